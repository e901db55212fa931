"""Where a consumer starts: its first message, its numbers right after it was created, and the pace of a replay."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.compatibility import consumers, jetstream
from tests.compatibility.consumers import (
    Consumer,
    Delivery,
    Numbers,
    Puller,
    add,
    create,
    deliveries,
    filters_of,
    numbers_of,
    publish,
    sequences,
    statuses,
    try_add,
)
from tests.compatibility.jetstream import SECOND_NS, TYPE, Json, error_of

js, js_server, stream = consumers.js, jetstream.js_server, jetstream.stream

PAST, FUTURE = "2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z"

POLICIES: dict[str, Json] = {
    "all": {"deliver_policy": "all"},
    "new": {"deliver_policy": "new"},
    "last": {"deliver_policy": "last"},
    "sequence 3": {"deliver_policy": "by_start_sequence", "opt_start_seq": 3},
    "sequence 50": {"deliver_policy": "by_start_sequence", "opt_start_seq": 50},
    "past": {"deliver_policy": "by_start_time", "opt_start_time": PAST},
    "future": {"deliver_policy": "by_start_time", "opt_start_time": FUTURE},
    "last_per_subject": {"deliver_policy": "last_per_subject"},
}

# For each policy and its filters, what happens on a stream that is empty; one with messages to a, b, c, a, b; one with
# the first, third and fifth of them deleted; and one with all five purged. Each cell says which sequence is before the
# start, what is pending at the start, and which sequences are delivered after two more messages, to b and a.
STARTS = [
    # policy, filters, empty, full, deleted, purged
    ("all", "", "0/0/12  0/5/1234567  1/2/2467  5/0/67"),
    ("all", "b", "0/0/1  0/2/256  1/1/26  5/0/6"),
    ("all", "x", "0/0/  0/0/  1/0/  5/0/"),
    ("all", "*", "0/0/12  0/5/1234567  1/2/2467  5/0/67"),
    ("all", "a b", "0/0/12  0/4/124567  1/2/2467  5/0/67"),
    ("new", "", "0/0/12  5/0/67  5/0/67  5/0/67"),
    ("new", "b", "0/0/1  5/0/6  5/0/6  5/0/6"),
    ("new", "x", "0/0/  5/0/  5/0/  5/0/"),
    ("new", "*", "0/0/12  5/0/67  5/0/67  5/0/67"),
    ("new", "a b", "0/0/12  5/0/67  5/0/67  5/0/67"),
    ("last", "", "0/0/12  4/1/567  4/0/67  5/0/67"),
    ("last", "b", "0/0/1  4/1/56  1/1/26  5/0/6"),
    ("last", "x", "0/0/  0/0/  1/0/  5/0/"),
    ("last", "*", "0/0/12  4/1/567  3/1/467  5/0/67"),
    ("last", "a b", "0/0/12  4/1/567  3/1/467  5/0/67"),
    ("sequence 3", "", "2/0/  2/3/34567  2/1/467  5/0/67"),
    ("sequence 3", "b", "2/0/  2/1/56  2/0/6  5/0/6"),
    ("sequence 3", "x", "2/0/  2/0/  2/0/  5/0/"),
    ("sequence 3", "*", "2/0/  2/3/34567  2/1/467  5/0/67"),
    ("sequence 3", "a b", "2/0/  2/2/4567  2/1/467  5/0/67"),
    ("sequence 50", "", "49/0/  49/0/  49/0/  49/0/"),
    ("sequence 50", "b", "49/0/  49/0/  49/0/  49/0/"),
    ("sequence 50", "x", "49/0/  49/0/  49/0/  49/0/"),
    ("sequence 50", "*", "49/0/  49/0/  49/0/  49/0/"),
    ("sequence 50", "a b", "49/0/  49/0/  49/0/  49/0/"),
    ("past", "", "0/0/12  0/5/1234567  1/2/2467  5/0/67"),
    ("past", "b", "0/0/1  1/2/256  1/1/26  5/0/6"),
    ("past", "x", "0/0/  0/0/  1/0/  5/0/"),
    ("past", "*", "0/0/12  0/5/1234567  1/2/2467  5/0/67"),
    ("past", "a b", "0/0/12  0/4/124567  1/2/2467  5/0/67"),
    ("future", "", "0/0/12  5/0/67  5/0/67  5/0/67"),
    ("future", "b", "0/0/1  5/0/6  5/0/6  5/0/6"),
    ("future", "x", "0/0/  5/0/  5/0/  5/0/"),
    ("future", "*", "0/0/12  5/0/67  5/0/67  5/0/67"),
    ("future", "a b", "0/0/12  5/0/67  5/0/67  5/0/67"),
    ("last_per_subject", "b", "0/0/1  4/1/56  1/1/26  5/0/6"),
    ("last_per_subject", "x", "0/0/  4/0/  4/0/  5/0/"),
    ("last_per_subject", "*", "0/0/12  2/3/34567  1/2/2467  5/0/67"),
    ("last_per_subject", "a b", "0/0/12  3/2/4567  1/2/2467  5/0/67"),
]


def fill(js: Puller, stream: str, kind: str) -> None:
    if kind != "empty":
        publish(js, stream, "abcab")
    if kind == "deleted":
        for sequence in (1, 3, 5):
            js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": sequence})
    if kind == "purged":
        js.api(f"STREAM.PURGE.{stream}")


@pytest.mark.parametrize(("policy", "filters", "cells"), STARTS)
@pytest.mark.parametrize("storage", ["file", "memory"])
def test_consumer_starts_where_its_policy_says(
    js: Puller, stream: str, storage: str, policy: str, filters: str, cells: str
) -> None:
    started = []
    for kind, cell in zip(("empty", "full", "deleted", "purged"), cells.split("  "), strict=True):
        name = f"{stream}{kind}"
        js.create(name, storage=storage)
        fill(js, name, kind)
        numbers = numbers_of(try_add(js, name, **POLICIES[policy], **filters_of(name, filters)))
        publish(js, name, "ba")
        consumer = Consumer(js, name, "c")
        consumer.wait_for_pending(len(cell.split("/")[2]))
        delivered = "".join(str(sequence) for sequence in sequences(consumer.take_all()))
        assert numbers == Numbers(numbers.delivered, numbers.delivered, pending=numbers.pending)
        assert numbers.delivered[0] == 0
        started.append(f"{numbers.delivered[1]}/{numbers.pending}/{delivered}")

    assert "  ".join(started) == cells


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"deliver_policy": "by_start_sequence"}, "by start sequence, but optional start sequence is not set"),
        (
            {"deliver_policy": "by_start_sequence", "opt_start_seq": 0},
            "by start sequence, but optional start sequence is not set",
        ),
        (
            {"deliver_policy": "by_start_sequence", "opt_start_seq": 1, "opt_start_time": PAST},
            "by start sequence, but optional start time is also set",
        ),
        ({"deliver_policy": "by_start_time"}, "by start time, but optional start time is not set"),
        (
            {"deliver_policy": "by_start_time", "opt_start_seq": 1, "opt_start_time": PAST},
            "by start time, but optional start start sequence is also set",
        ),
        ({"deliver_policy": "all", "opt_start_seq": 1}, "all, but optional start sequence is also set"),
        ({"deliver_policy": "all", "opt_start_time": PAST}, "all, but optional start time is also set"),
        ({"deliver_policy": "last", "opt_start_seq": 1}, "last, but optional start sequence is also set"),
        ({"deliver_policy": "last", "opt_start_time": PAST}, "last, but optional start time is also set"),
        ({"deliver_policy": "new", "opt_start_seq": 1}, "new, but optional start sequence is also set"),
        ({"deliver_policy": "new", "opt_start_time": PAST}, "new, but optional start time is also set"),
        (
            {"deliver_policy": "last_per_subject", "filter_subject": "x", "opt_start_seq": 1},
            "last per subject, but optional start sequence is also set",
        ),
        (
            {"deliver_policy": "last_per_subject", "filter_subject": "x", "opt_start_time": PAST},
            "last per subject, but optional start time is also set",
        ),
        ({"deliver_policy": "last_per_subject"}, "last per subject, but optional filter subject is not set"),
        (
            {"deliver_policy": "last_per_subject", "filter_subjects": []},
            "last per subject, but optional filter subject is not set",
        ),
    ],
)
def test_policy_must_go_with_its_options(js: Puller, stream: str, config: dict[str, Any], text: str) -> None:
    js.create(stream)

    refused = try_add(js, stream, **config)

    assert error_of(refused) == (400, 10094, f"consumer delivery policy is deliver {text}")


@pytest.mark.parametrize("policy", ["bogus", "", "ALL"])
def test_policy_must_be_known(js: Puller, stream: str, policy: str) -> None:
    js.create(stream)

    assert error_of(try_add(js, stream, deliver_policy=policy))[1] == 10025


@pytest.mark.parametrize("policy", ["undefined", None])
def test_policy_is_all_by_default(js: Puller, stream: str, policy: str | None) -> None:
    consumer = create(js, stream, "ab", deliver_policy=policy)

    assert consumer.info()["config"]["deliver_policy"] == "all"
    assert sequences(consumer.take_all()) == [1, 2]


def test_information_of_a_new_consumer_has_all_numbers_and_no_last_activity(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc")

    information = consumer.masked_info()

    assert information == {
        "type": f"{TYPE}consumer_info_response",
        "stream_name": stream,
        "name": "c",
        "created": "TIME",
        "config": {
            "durable_name": "c",
            "name": "c",
            "deliver_policy": "all",
            "ack_policy": "explicit",
            "ack_wait": 30 * SECOND_NS,
            "max_deliver": -1,
            "replay_policy": "instant",
            "max_waiting": 512,
            "max_ack_pending": 1000,
            "num_replicas": 0,
            "metadata": {"_nats.level": "5", "_nats.req.level": "0", "_nats.ver": "..."},
        },
        "delivered": {"consumer_seq": 0, "stream_seq": 0},
        "ack_floor": {"consumer_seq": 0, "stream_seq": 0},
        "num_ack_pending": 0,
        "num_redelivered": 0,
        "num_waiting": 0,
        "num_pending": 3,
        "ts": "TIME",
    }


def test_last_activity_is_told_after_the_first_delivery_and_the_first_acknowledgement(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc")

    (message,) = consumer.take(1)
    delivered = consumer.masked_info()
    consumer.acknowledge(message)
    acknowledged = consumer.masked_info()

    assert delivered["delivered"] == {"consumer_seq": 1, "stream_seq": 1, "last_active": "TIME"}
    assert delivered["ack_floor"] == {"consumer_seq": 0, "stream_seq": 0}
    assert acknowledged["ack_floor"] == {"consumer_seq": 1, "stream_seq": 1, "last_active": "TIME"}


# Times


@pytest.mark.parametrize("sequence", [1, 2, 3])
@pytest.mark.parametrize("storage", ["file", "memory"])
def test_start_time_of_a_message_includes_it(js: Puller, stream: str, storage: str, sequence: int) -> None:
    js.create(stream, storage=storage)
    publish(js, stream, "abc")

    stored_time = js.get(stream, seq=sequence)["time"]
    consumer = add(js, stream, deliver_policy="by_start_time", opt_start_time=stored_time)

    assert consumer.numbers() == Numbers((0, sequence - 1), (0, sequence - 1), pending=4 - sequence)
    assert sequences(consumer.take_all()) == list(range(sequence, 4))


@pytest.mark.parametrize(
    ("start_time", "expected"),
    [
        ("0001-01-01T00:00:00Z", [1, 2, 3]),
        ("0001-01-01T00:00:00.000000001Z", [1, 2, 3]),
        ("0001-01-01T02:00:00+02:00", [1, 2, 3]),
        ("1969-12-31T23:59:59Z", [1, 2, 3]),
        ("2262-01-01T00:00:00Z", []),
    ],
)
def test_start_time_may_be_long_ago_or_far_away(js: Puller, stream: str, start_time: str, expected: list[int]) -> None:
    js.create(stream)
    publish(js, stream, "abc")

    consumer = add(js, stream, deliver_policy="by_start_time", opt_start_time=start_time)

    assert sequences(consumer.take_all()) == expected


def test_start_time_may_be_that_of_a_deleted_message(js: Puller, stream: str) -> None:
    js.create(stream)
    publish(js, stream, "abc")
    stored_time = js.get(stream, seq=2)["time"]
    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 2})

    consumer = add(js, stream, deliver_policy="by_start_time", opt_start_time=stored_time)

    assert sequences(consumer.take_all()) == [3]


# Sequences


def test_start_sequence_before_the_first_message_is_that_of_the_first(js: Puller, stream: str) -> None:
    js.create(stream, max_msgs=2)
    publish(js, stream, "abcd")

    consumer = add(js, stream, deliver_policy="by_start_sequence", opt_start_seq=1)

    assert consumer.numbers() == Numbers((0, 2), (0, 2), pending=2)
    assert deliveries(consumer.take_all()) == [Delivery(1, 3, 1, 1), Delivery(1, 4, 2, 0)]


def test_start_sequence_beyond_the_end_waits_until_it_is_reached(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "a", deliver_policy="by_start_sequence", opt_start_seq=4)
    inbox = consumer.wait({"batch": 2})

    publish(js, stream, "bc")
    before = (consumer.numbers(), js.received_at(inbox))
    publish(js, stream, "de")

    assert before == (Numbers((0, 3), (0, 3), waiting=1), [])
    assert sequences(consumer.answers(inbox, 2)) == [4, 5]


def test_start_sequence_beyond_the_end_may_be_reached_by_a_purge(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "ab", deliver_policy="by_start_sequence", opt_start_seq=4)

    js.api(f"STREAM.PURGE.{stream}", {"seq": 3})
    publish(js, stream, "abc")

    assert consumer.wait_for_pending(2) == Numbers((0, 3), (0, 3), pending=2)
    assert sequences(consumer.take_all()) == [4, 5]


# The last message of each subject


def test_last_messages_of_subjects_come_before_those_stored_in_between(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abcab", deliver_policy="last_per_subject", filter_subject=f"{stream}.>")

    first = deliveries(consumer.take(1))
    publish(js, stream, "ca")
    in_between = consumer.wait_for_pending(4)
    rest = deliveries(consumer.take_all())

    assert first == [Delivery(1, 3, 1, 2)]
    assert in_between == Numbers((1, 3), (0, 2), ack_pending=1, pending=4)
    assert rest == [Delivery(1, 4, 2, 3), Delivery(1, 5, 3, 2), Delivery(1, 6, 4, 1), Delivery(1, 7, 5, 0)]


def test_last_message_of_a_subject_that_is_deleted_before_its_delivery_is_left_out(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abcab", deliver_policy="last_per_subject", filter_subject=f"{stream}.>")

    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 4})
    pending = consumer.numbers().pending
    # A request that does not wait may end at the gap; the next one goes on behind it.
    taken = sequences(consumer.take_all() + consumer.take_all())

    assert pending == 2
    assert taken == [3, 5]


def test_last_messages_are_all_messages_when_a_subject_keeps_one(js: Puller, stream: str) -> None:
    js.create(stream, max_msgs_per_subject=1)
    publish(js, stream, "abcab")
    consumer = add(js, stream, deliver_policy="last_per_subject", filter_subject=f"{stream}.>")

    start = consumer.numbers()
    publish(js, stream, "c")

    assert start == Numbers((0, 2), (0, 2), pending=3)
    assert consumer.wait_for_pending(3) == start
    assert deliveries(consumer.take_all()) == [Delivery(1, 4, 1, 2), Delivery(1, 5, 2, 1), Delivery(1, 6, 3, 0)]


def test_acknowledged_last_messages_move_the_floor(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abcab", deliver_policy="last_per_subject", filter_subject=f"{stream}.>")

    first, second, third = consumer.take(3)
    consumer.acknowledge(first)
    after_first = consumer.numbers()
    consumer.acknowledge(third)
    after_third = consumer.numbers()
    consumer.acknowledge(second)

    assert after_first == Numbers((3, 5), (1, 3), ack_pending=2)
    assert after_third == Numbers((3, 5), (1, 3), ack_pending=1)
    assert consumer.numbers() == Numbers((3, 5), (3, 5))


# Replay


def test_replay_at_the_original_pace_delivers_everything_in_order(js: Puller, stream: str) -> None:
    js.create(stream)
    for tail in "abc":
        publish(js, stream, tail)
        time.sleep(0.05)
    consumer = add(js, stream, replay_policy="original")

    assert deliveries(consumer.take(3)) == [Delivery(1, 1, 1, 2), Delivery(1, 2, 2, 1), Delivery(1, 3, 3, 0)]
    publish(js, stream, "d")
    assert deliveries(consumer.take(1)) == [Delivery(1, 4, 4, 0)]


def test_replay_at_the_original_pace_makes_even_a_request_wait_that_does_not_want_to(js: Puller, stream: str) -> None:
    js.create(stream)
    publish(js, stream, "a")
    time.sleep(0.2)
    publish(js, stream, "b")
    consumer = add(js, stream, replay_policy="original")

    assert statuses(consumer.pull({"batch": 5, "no_wait": True})) == ["", "", "404 No Messages"]


def test_consumer_of_a_missing_stream_is_refused(js: Puller, stream: str) -> None:
    assert error_of(try_add(js, stream)) == (404, 10059, "stream not found")
