"""Redelivery: when a message comes again, how often, in which order, and what becomes of it when it is removed."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.compatibility import consumers, jetstream
from tests.compatibility.consumers import (
    NAK,
    NO_MESSAGES,
    PROGRESS,
    SHORT_NS,
    TERM,
    Consumer,
    Delivery,
    Numbers,
    Puller,
    add,
    create,
    deliveries,
    delivery,
    pending_status,
    publish,
    sequences,
    statuses,
    written,
)
from tests.compatibility.jetstream import ADVISORY, ADVISORY_TYPE, SECOND_NS, Json, normal
from tests.compatibility.wire import TIMEOUT_SECONDS

js, js_server, stream = consumers.js, jetstream.js_server, jetstream.stream

# A message that a test wants to see again is waited for as long as this.
ACK_WAIT_NS = SHORT_NS

# What must come before the time to acknowledge or the life of a request ends may be late on a busy machine.
PATIENT_NS = 4 * SECOND_NS


def max_deliveries_subject(consumer: Consumer) -> str:
    return f"{ADVISORY}CONSUMER.MAX_DELIVERIES.{consumer.stream}.{consumer.name}"


def max_deliveries(stream: str, sequence: int, count: int) -> Json:
    """The advisory about a message that was delivered as often as it may be."""
    return {
        "type": f"{ADVISORY_TYPE}max_deliver",
        "id": "...",
        "timestamp": "TIME",
        "stream": stream,
        "consumer": "c",
        "stream_seq": sequence,
        "deliveries": count,
    }


def terminated(stream: str, sequence: int) -> Json:
    """The advisory about a message that was removed while it was pending."""
    return {
        "type": f"{ADVISORY_TYPE}terminated",
        "id": "...",
        "timestamp": "TIME",
        "stream": stream,
        "consumer": "c",
        "consumer_seq": sequence,
        "stream_seq": sequence,
        "deliveries": 1,
        "reason": "Unacknowledged message was deleted",
    }


# The time to acknowledge


@pytest.mark.parametrize("ack_policy", ["explicit", "all"])
def test_message_is_redelivered_when_it_is_not_acknowledged_in_time(js: Puller, stream: str, ack_policy: str) -> None:
    consumer = create(js, stream, "abc", ack_policy=ack_policy, ack_wait=PATIENT_NS)

    first = deliveries(consumer.take(3))
    again = deliveries(consumer.take(3))

    assert first == [Delivery(1, 1, 1, 2), Delivery(1, 2, 2, 1), Delivery(1, 3, 3, 0)]
    assert again == [Delivery(2, 1, 4, 0), Delivery(2, 2, 5, 0), Delivery(2, 3, 6, 0)]
    assert consumer.numbers() == Numbers((6, 3), ack_pending=3, redelivered=3)


def test_ack_subject_of_a_redelivery_keeps_the_time_of_the_message(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "a", ack_wait=ACK_WAIT_NS)

    first, again = consumer.take_one(), consumer.take_one()

    head, count, sequence, _, stored_ns, pending = first.reply.rsplit(".", 5)
    assert (count, sequence, pending) == ("1", "1", "0")
    assert again.reply == f"{head}.2.1.2.{stored_ns}.0"
    assert (again.subject, again.headers, again.data) == (first.subject, first.headers, first.data)


def test_only_messages_that_are_not_acknowledged_are_redelivered(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc", ack_wait=PATIENT_NS)
    first, _, third = consumer.take(3)

    consumer.acknowledge(first)
    consumer.acknowledge(third)

    assert deliveries(consumer.take(1)) == [Delivery(2, 2, 4, 0)]
    assert consumer.numbers() == Numbers((4, 3), (1, 1), ack_pending=1, redelivered=1)


def test_messages_that_are_due_again_wait_for_a_request(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc", ack_wait=PATIENT_NS)
    clock = add(js, stream, "clock", filter_subject=f"{stream}.a", ack_wait=PATIENT_NS)
    consumer.take(2)

    # What was delivered later elsewhere has come again, so these are due as well.
    assert [delivery(clock.take_one()).count for _ in range(2)] == [1, 2]
    time.sleep(ACK_WAIT_NS / 1e9)
    numbers = consumer.numbers()
    *again, _ = consumer.pull({"batch": 9, "no_wait": True})

    assert numbers == Numbers((2, 2), ack_pending=2, pending=1)
    assert deliveries(again) == [Delivery(2, 1, 3, 1), Delivery(2, 2, 4, 1), Delivery(1, 3, 5, 0)]


def test_message_in_progress_is_not_redelivered(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "a", ack_wait=PATIENT_NS)
    message = consumer.take_one()

    for _ in range(6):
        time.sleep(PATIENT_NS / 5e9)
        consumer.acknowledge(message, PROGRESS)

    assert consumer.status({"no_wait": True}) == NO_MESSAGES
    assert deliveries(consumer.take(1)) == [Delivery(2, 1, 2, 0)]


@pytest.mark.parametrize("body", [b"+ACK", b"+TERM"])
def test_message_that_is_done_is_not_redelivered(js: Puller, stream: str, body: bytes) -> None:
    consumer = create(js, stream, "a", ack_wait=ACK_WAIT_NS)

    consumer.acknowledge(consumer.take_one(), body)

    assert consumer.status({"expires": 3 * ACK_WAIT_NS}) == pending_status("408 Request Timeout", 0)


def test_message_without_acknowledgements_is_not_redelivered(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "a", ack_policy="none", ack_wait=ACK_WAIT_NS)
    consumer.take(1)

    assert consumer.status({"expires": 3 * ACK_WAIT_NS}) == pending_status("408 Request Timeout", 0)
    assert consumer.numbers() == Numbers((1, 1), (1, 1))


def test_back_off_is_the_time_to_acknowledge(js: Puller, stream: str) -> None:
    back_off = [ACK_WAIT_NS, 2 * ACK_WAIT_NS]
    consumer = create(js, stream, "a", backoff=back_off, max_deliver=3)

    delivered = [consumer.take_one() for _ in range(3)]

    assert consumer.info()["config"]["ack_wait"] == ACK_WAIT_NS
    assert deliveries(delivered) == [Delivery(1, 1, 1, 0), Delivery(2, 1, 2, 0), Delivery(3, 1, 3, 0)]
    assert statuses(consumer.pull({"expires": PATIENT_NS})) == ["408 Request Timeout"]
    assert consumer.numbers() == Numbers((3, 1), redelivered=1)


def test_last_back_off_counts_for_all_later_deliveries(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "a", backoff=[ACK_WAIT_NS, ACK_WAIT_NS // 2])

    assert [delivery(consumer.take_one()).count for _ in range(5)] == [1, 2, 3, 4, 5]


def test_time_to_acknowledge_may_be_changed(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "a")

    consumer.update(ack_wait=ACK_WAIT_NS)

    assert deliveries([consumer.take_one(), consumer.take_one()]) == [Delivery(1, 1, 1, 0), Delivery(2, 1, 2, 0)]


# How often


def test_message_that_may_be_delivered_once_is_given_up_without_a_request(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "ab", max_deliver=1, ack_wait=PATIENT_NS)
    subject = max_deliveries_subject(consumer)
    js.subscribe(subject)

    consumer.take(1)
    advisory = normal(js.next(subject).json())

    # The floor does not move by giving up, but with the next acknowledgement.
    assert advisory == max_deliveries(stream, 1, 1)
    assert consumer.wait_for(lambda numbers: numbers.ack_pending == 0) == Numbers((1, 1), pending=1)
    consumer.acknowledge(consumer.take_one())
    assert consumer.numbers() == Numbers((2, 2), (2, 2))


@pytest.mark.parametrize("count", [2, 3])
def test_message_is_given_up_when_it_would_be_delivered_once_too_often(js: Puller, stream: str, count: int) -> None:
    consumer = create(js, stream, "ab", max_deliver=count, ack_wait=ACK_WAIT_NS)
    subject = max_deliveries_subject(consumer)
    js.subscribe(subject)
    consumer.take(2 * count)

    time.sleep(3 * ACK_WAIT_NS / 1e9)
    before = (consumer.numbers(), js.received(subject))
    given_up = consumer.status({"expires": PATIENT_NS})

    assert before == (Numbers((2 * count, 2), ack_pending=2, redelivered=2), [])
    assert given_up == pending_status("408 Request Timeout", 0)
    assert [normal(js.next(subject).json()) for _ in range(2)] == [
        max_deliveries(stream, sequence, count) for sequence in (1, 2)
    ]
    assert consumer.numbers() == Numbers((2 * count, 2), redelivered=2)


def test_refused_message_is_given_up_when_it_would_be_delivered_once_too_often(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "ab", max_deliver=2)
    for _ in range(2):
        consumer.acknowledge(consumer.take_one(), NAK)

    before = consumer.numbers()
    rest = deliveries(consumer.take_all())

    assert before == Numbers((2, 1), ack_pending=1, redelivered=1, pending=1)
    assert rest == [Delivery(1, 2, 3, 0)]
    assert consumer.numbers() == Numbers((3, 2), ack_pending=1, redelivered=1)


def test_refusal_with_a_delay_counts_as_well(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "a", max_deliver=2)

    for _ in range(2):
        consumer.acknowledge(consumer.take_one(), b"-NAK 10ms")

    assert consumer.status({"expires": PATIENT_NS}) == pending_status("408 Request Timeout", 0)
    assert consumer.numbers() == Numbers((2, 1), redelivered=1)


def test_message_that_was_given_up_may_still_be_acknowledged(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "ab", max_deliver=2)
    consumer.acknowledge(consumer.take_one(), NAK)
    message = consumer.take_one()
    consumer.acknowledge(message, NAK)
    consumer.take_all()

    consumer.acknowledge(message)

    assert consumer.numbers() == Numbers((3, 2), ack_pending=1)


# Refusals


@pytest.mark.parametrize("body", [b"-NAK 100ms", b'-NAK {"delay":100000000}', b"-NAK {}", b"-NAK 0s", b"-NAK -1s"])
def test_refused_message_may_come_later(js: Puller, stream: str, body: bytes) -> None:
    consumer = create(js, stream, "abc")
    first, _ = consumer.take(2)

    consumer.acknowledge(first, body)

    # Without a delay it may come before the new one or behind it: a timer decides.
    found = deliveries(consumer.take(2))
    assert {(each.count, each.stream_sequence) for each in found} == {(1, 3), (2, 1)}


def test_refused_messages_come_in_the_order_of_their_refusals_and_before_new_ones(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abcd")
    first, second = consumer.take(2)

    consumer.acknowledge_each([second, first, second], NAK)

    assert deliveries(consumer.take(4)) == [
        Delivery(2, 2, 3, 2),
        Delivery(2, 1, 4, 2),
        Delivery(1, 3, 5, 1),
        Delivery(1, 4, 6, 0),
    ]


def test_later_refusal_replaces_the_delay_of_an_earlier_one(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc")
    first, second = consumer.take(2)

    consumer.acknowledge(first, b"-NAK 30s")
    consumer.acknowledge(first, NAK)
    consumer.acknowledge(second, NAK)
    consumer.acknowledge(second, b"-NAK 30s")

    assert deliveries(consumer.take_all()) == [Delivery(2, 1, 3, 1), Delivery(1, 3, 4, 0)]


@pytest.mark.parametrize("body", [b"+ACK", b"+TERM"])
def test_refused_message_may_be_done_before_it_comes_again(js: Puller, stream: str, body: bytes) -> None:
    consumer = create(js, stream, "abc")
    first, _ = consumer.take(2)

    consumer.acknowledge(first, NAK)
    consumer.acknowledge(first, body)

    assert deliveries(consumer.take_all()) == [Delivery(1, 3, 3, 0)]
    assert consumer.numbers() == Numbers((3, 3), (1, 1), ack_pending=2)


def test_redelivered_message_may_be_refused_by_its_first_ack_subject(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "ab")
    message = consumer.take_one()

    consumer.acknowledge(message, NAK)
    consumer.take(1)
    consumer.acknowledge(message, NAK)

    assert deliveries(consumer.take(1)) == [Delivery(3, 1, 3, 1)]


def test_refusal_does_not_wait_for_the_back_off(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "a", backoff=[30 * 10 * SHORT_NS, 60 * 10 * SHORT_NS])

    consumer.acknowledge(consumer.take_one(), NAK)

    assert deliveries(consumer.take_all()) == [Delivery(2, 1, 2, 0)]


def test_refused_message_goes_to_the_request_that_waits(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "a")
    message = consumer.take_one()
    inbox = consumer.wait(b"1")

    consumer.acknowledge(message, NAK)

    assert delivery(js.next_at(inbox)) == Delivery(2, 1, 2, 0)


# How many may be pending


@pytest.mark.parametrize("ack_policy", ["explicit", "all"])
def test_delivery_stalls_until_something_is_acknowledged(js: Puller, stream: str, ack_policy: str) -> None:
    consumer = create(js, stream, "abcd", ack_policy=ack_policy, max_ack_pending=2)
    inbox = consumer.request(b"4")
    first, _ = consumer.answers(inbox, 2)

    stalled = (consumer.is_silent(inbox), consumer.numbers())
    consumer.acknowledge(first)

    assert stalled == (True, Numbers((2, 2), ack_pending=2, waiting=1, pending=2))
    assert deliveries(consumer.answers(inbox, 1)) == [Delivery(1, 3, 3, 1)]
    assert consumer.numbers() == Numbers((3, 3), (1, 1), ack_pending=2, waiting=1, pending=1)


def test_request_that_does_not_wait_is_held_while_delivery_stalls(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc", max_ack_pending=1)
    first = consumer.take_one()
    inbox = consumer.wait({"batch": 9, "no_wait": True})

    stalled = consumer.is_silent(inbox)
    consumer.acknowledge(first)
    second = js.next_at(inbox)

    assert stalled
    assert delivery(second) == Delivery(1, 2, 2, 1)
    assert consumer.numbers() == Numbers((2, 2), (1, 1), ack_pending=1, waiting=1, pending=1)


@pytest.mark.parametrize("no_wait", [False, True])
def test_request_times_out_while_delivery_stalls(js: Puller, stream: str, no_wait: bool) -> None:
    consumer = create(js, stream, "abc", max_ack_pending=1)
    consumer.take(1)

    status = consumer.status({"batch": 2, "expires": SHORT_NS, "no_wait": no_wait})

    assert status == pending_status("408 Request Timeout", 2)


def test_redelivery_does_not_stall(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abcd", max_ack_pending=2)

    consumer.acknowledge_each(consumer.take(2), NAK)

    assert deliveries(consumer.take(2)) == [Delivery(2, 1, 3, 2), Delivery(2, 2, 4, 2)]
    assert consumer.numbers() == Numbers((4, 2), ack_pending=2, redelivered=2, pending=2)


@pytest.mark.parametrize("body", [b"+TERM", b""])
def test_every_way_to_be_done_ends_the_stall(js: Puller, stream: str, body: bytes) -> None:
    consumer = create(js, stream, "ab", max_ack_pending=1)
    message = consumer.take_one()
    inbox = consumer.wait(b"1")

    js.send(message.reply, body)

    assert delivery(js.next_at(inbox)) == Delivery(1, 2, 2, 0)


def test_giving_a_message_up_ends_the_stall(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "ab", max_ack_pending=1, max_deliver=1, ack_wait=ACK_WAIT_NS)
    consumer.take(1)

    assert deliveries(consumer.take(1)) == [Delivery(1, 2, 2, 0)]


def test_more_may_be_pending_after_an_update(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abcde", max_ack_pending=1)
    inbox = consumer.request(b"5")
    consumer.answers(inbox, 1)

    consumer.update(max_ack_pending=3)
    three = sequences(consumer.answers(inbox, 2))
    consumer.update(max_ack_pending=-1)

    assert three == [2, 3]
    assert sequences(consumer.answers(inbox, 2)) == [4, 5]


# Messages that are removed while they are pending


def test_deleting_a_pending_message_terminates_it(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abcd")
    subject = f"{ADVISORY}CONSUMER.MSG_TERMINATED.{stream}.c"
    js.subscribe(subject)
    messages = consumer.take(3)

    numbers = []
    for sequence, ack_pending in ((2, 2), (1, 1), (3, 0)):
        js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": sequence})
        assert normal(js.next(subject).json()) == terminated(stream, sequence)
        numbers.append(consumer.wait_for(lambda numbers, left=ack_pending: numbers.ack_pending == left))

    assert numbers == [
        Numbers((3, 3), ack_pending=2, pending=1),
        Numbers((3, 3), (2, 2), ack_pending=1, pending=1),
        Numbers((3, 3), (3, 3), pending=1),
    ]
    consumer.acknowledge_each(messages)
    assert deliveries(consumer.take_all()) == [Delivery(1, 4, 4, 0)]


def test_deleting_a_message_that_was_not_delivered_makes_less_pending(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abcd")

    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 3})

    assert consumer.numbers() == Numbers(pending=3)
    assert deliveries(consumer.take_all()) == [Delivery(1, 1, 1, 2), Delivery(1, 2, 2, 1), Delivery(1, 4, 3, 0)]


def test_refused_message_that_is_deleted_does_not_come_again(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc")
    first, _ = consumer.take(2)

    consumer.acknowledge(first, NAK)
    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 1})
    consumer.wait_for(lambda numbers: numbers.ack_pending == 1)

    assert deliveries(consumer.take_all()) == [Delivery(1, 3, 3, 0)]
    assert consumer.numbers() == Numbers((3, 3), (1, 1), ack_pending=2)


@pytest.mark.parametrize("limits", [{"max_msgs": 3}, {"max_msgs_per_subject": 1}])
@pytest.mark.parametrize("ack_policy", ["explicit", "all"])
def test_limits_of_the_stream_terminate_pending_messages(
    js: Puller, stream: str, ack_policy: str, limits: dict[str, Any]
) -> None:
    js.create(stream, **limits)
    publish(js, stream, "abc")
    consumer = add(js, stream, ack_policy=ack_policy)
    subject = f"{ADVISORY}CONSUMER.MSG_TERMINATED.{stream}.c"
    js.subscribe(subject)
    consumer.take(2)

    publish(js, stream, "ab")
    advisories = [normal(js.next(subject).json()) for _ in range(2)]

    assert sorted(advisories, key=lambda advisory: advisory["stream_seq"]) == [
        terminated(stream, sequence) for sequence in (1, 2)
    ]
    assert consumer.wait_for_pending(3) == Numbers((2, 2), (2, 2), pending=3)
    assert sequences(consumer.take_all()) == [3, 4, 5]


def test_age_of_the_stream_terminates_pending_messages(js: Puller, stream: str) -> None:
    js.create(stream, duplicate_window=5 * SHORT_NS)
    publish(js, stream, "abc")
    consumer = add(js, stream)
    consumer.take(2)

    js.update(stream, max_age=5 * SHORT_NS)
    gone = consumer.wait_for(lambda numbers: numbers.ack_pending == numbers.pending == 0)
    js.update(stream, max_age=int(TIMEOUT_SECONDS * 60e9))
    publish(js, stream, "d")

    assert gone == Numbers((2, 2), (2, 2))
    assert deliveries(consumer.take(1)) == [Delivery(1, 4, 3, 0)]


# Purges

# For each purge of a stream with messages to a, a, b, c, a, b, two of which are pending, what happens to a consumer of
# everything, of a, of *, and of a and b: its numbers, written as delivered/floor/ack pending/redelivered/pending, and
# after > the sequences that still come.
PURGES: list[tuple[Json | None, str]] = [
    (None, "2,6/2,6/0/0/0>  2,6/2,6/0/0/0>  2,6/2,6/0/0/0>  2,6/2,6/0/0/0>"),
    ({"keep": 1}, "2,5/2,5/0/0/1>6  2,5/2,5/0/0/0>  2,5/2,5/0/0/1>6  2,5/2,5/0/0/1>6"),
    ({"keep": 2}, "2,4/2,4/0/0/2>56  2,4/2,4/0/0/1>5  2,4/2,4/0/0/2>56  2,4/2,4/0/0/2>56"),
    ({"seq": 3}, "2,2/2,2/0/0/4>3456  2,2/2,2/0/0/1>5  2,2/2,2/0/0/4>3456  2,2/2,2/0/0/3>356"),
    ({"seq": 10}, "2,9/2,9/0/0/0>  2,9/2,9/0/0/0>  2,9/2,9/0/0/0>  2,9/2,9/0/0/0>"),
    ({"filter": "~.a"}, "2,2/2,2/0/0/3>346  2,6/2,6/0/0/0>  2,2/2,2/0/0/3>346  2,2/2,2/0/0/2>36"),
    ({"filter": "~.*"}, "2,6/2,6/0/0/0>  2,6/2,6/0/0/0>  2,6/2,6/0/0/0>  2,6/2,6/0/0/0>"),
    ({"filter": "~.b"}, "2,2/0,0/2/0/2>45  2,2/0,0/2/0/1>5  2,2/0,0/2/0/2>45  2,2/0,0/2/0/1>5"),
    ({"filter": "~.a", "keep": 1}, "2,2/2,2/0/0/4>3456  2,4/2,4/0/0/1>5  2,2/2,2/0/0/4>3456  2,2/2,2/0/0/3>356"),
    ({"filter": "~.a", "seq": 3}, "2,2/2,2/0/0/4>3456  2,4/2,4/0/0/1>5  2,2/2,2/0/0/4>3456  2,2/2,2/0/0/3>356"),
    ({"filter": "none"}, "2,2/0,0/2/0/4>3456  2,2/0,0/2/0/1>5  2,2/0,0/2/0/4>3456  2,2/0,0/2/0/3>356"),
]


@pytest.mark.parametrize(("request_body", "cells"), PURGES)
@pytest.mark.parametrize("storage", ["file", "memory"])
def test_purge_moves_consumers_whose_messages_it_removes(
    js: Puller, stream: str, storage: str, request_body: Json | None, cells: str
) -> None:
    purged = []
    for number, tails in enumerate([(), ("a",), ("*",), ("a", "b")]):
        name = f"{stream}x{number}"
        js.create(name, storage=storage)
        publish(js, name, "aabcab")
        consumer = add(js, name, filter_subjects=[f"{name}.{tail}" for tail in tails] or None)
        consumer.take(2)
        js.api(f"STREAM.PURGE.{name}", for_stream(request_body, name))
        numbers = consumer.numbers()
        rest = "".join(str(sequence) for sequence in sequences(consumer.take_all()))
        purged.append(f"{written(numbers)}>{rest}")

    assert "  ".join(purged) == cells


def for_stream(body: Json | None, stream: str) -> Json | None:
    """Return the body with ~ in its filter replaced by the stream's name."""
    return body and {key: value.replace("~", stream) if key == "filter" else value for key, value in body.items()}


def test_purge_forgets_what_was_to_be_redelivered(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc")
    first, second = consumer.take(2)
    consumer.acknowledge_each([first, second], NAK)
    consumer.take(1)

    js.api(f"STREAM.PURGE.{stream}")
    publish(js, stream, "d")

    assert deliveries(consumer.take(1)) == [Delivery(1, 4, 4, 0)]
    assert consumer.numbers() == Numbers((4, 4), (3, 3), ack_pending=1)


def test_acknowledgement_after_a_purge_is_answered(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc")
    messages = consumer.take(2)

    js.api(f"STREAM.PURGE.{stream}")
    for body in (NAK, PROGRESS, TERM):
        consumer.acknowledge_each(messages, body)

    assert consumer.numbers() == Numbers((2, 3), (2, 3))
