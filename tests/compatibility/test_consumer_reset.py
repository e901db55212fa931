"""Resets of consumers: to where they may go back or forward, and what is delivered and counted from then on."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.compatibility import consumer_watch, jetstream
from tests.compatibility.consumer_watch import (
    Delivery,
    Watch,
    consumer_info,
    create_durable,
    delivery_of,
    numbers_of,
    publish_many,
    sequences_of,
    wait_for_consumer,
)
from tests.compatibility.jetstream import (
    ADVISORY,
    API,
    MILLISECOND_NS,
    TYPE,
    Body,
    JetStream,
    Json,
    Message,
    error_of,
    normal,
)

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream
watch = consumer_watch.watch

NOT_ALLOWED = (400, 10204, "invalid reset: not allowed")
BELOW_SEQUENCE = (400, 10204, "invalid reset: below start seq")
BELOW_TIME = (400, 10204, "invalid reset: below start time")


def try_reset(js: JetStream, stream: str, body: Body = None, headers: dict[str, str] | None = None) -> Json:
    return js.api(f"CONSUMER.RESET.{stream}.C", body, headers)


def reset(js: JetStream, stream: str, sequence: int | None = None) -> Json:
    answer = try_reset(js, stream, None if sequence is None else {"seq": sequence})
    assert "error" not in answer, answer
    return answer


def create(js: JetStream, stream: str, count: int = 8, **config: Any) -> None:
    """Create a stream with messages in `a` and `b` by turns, and its consumer."""
    js.create(stream)
    publish_many(js, stream, ("ab" * count)[:count])
    create_durable(js, stream, "C", **config)


def fetch(js: JetStream, watch: Watch, stream: str, count: int) -> list[Message]:
    """Pull messages, and wait until that is recorded: nats-server does so a little later, also over a reset."""
    messages = watch.fetch(stream, "C", count)
    last = delivery_of(messages[-1]).consumer_sequence if messages else 0
    wait_for_consumer(js, stream, "C", lambda info: info["delivered"]["consumer_seq"] >= last)
    return messages


# The answer


def test_answer_is_the_info_after_the_reset(js: JetStream, watch: Watch, stream: str) -> None:
    create(js, stream)
    fetch(js, watch, stream, 5)
    info = consumer_info(js, stream, "C")

    answer = reset(js, stream, 3)

    expected = {
        **info,
        "type": f"{TYPE}consumer_reset_response",
        "delivered": {"consumer_seq": 0, "stream_seq": 2},
        "ack_floor": {"consumer_seq": 0, "stream_seq": 2},
        "num_ack_pending": 0,
        "num_pending": 6,
        "reset_seq": 3,
    }
    assert normal(answer) == normal(expected)
    assert answer["config"] == info["config"]
    assert answer["created"] == info["created"]


def test_info_shows_the_reset(js: JetStream, watch: Watch, stream: str) -> None:
    create(js, stream)
    for message in fetch(js, watch, stream, 5):
        watch.acknowledge(message)

    reset(js, stream, 3)

    info = consumer_info(js, stream, "C")
    assert numbers_of(info) == (0, 2, 0, 2, 0, 6)
    assert "last_active" not in info["delivered"]
    assert "last_active" not in info["ack_floor"]


@pytest.mark.parametrize(
    "body", [b"junk", b"[]", b"5", b" ", {"seq": -1}, {"seq": "1"}, {"seq": 1.5}, b'{"seq":'], ids=str
)
def test_request_that_is_not_understood_changes_nothing(js: JetStream, watch: Watch, stream: str, body: Body) -> None:
    create(js, stream)
    fetch(js, watch, stream, 2)

    answer = try_reset(js, stream, body)

    assert error_of(answer)[:2] == (400, 10025)
    assert answer["type"] == f"{TYPE}consumer_reset_response"
    assert numbers_of(consumer_info(js, stream, "C")) == (2, 2, 0, 0, 2, 6)


@pytest.mark.parametrize("body", [None, b"{}", b"null", {"seq": 0}, {"unknown": 1}])
def test_request_without_a_sequence_goes_back_to_the_ack_floor(
    js: JetStream, watch: Watch, stream: str, body: Body
) -> None:
    create(js, stream)
    for index, message in enumerate(fetch(js, watch, stream, 5)):
        if index in (0, 1, 3):
            watch.acknowledge(message)

    answer = try_reset(js, stream, body)

    assert answer["reset_seq"] == 3
    assert numbers_of(answer) == (0, 2, 0, 2, 0, 6)
    # What was acknowledged above the floor comes again.
    assert sequences_of(fetch(js, watch, stream, 6)) == [3, 4, 5, 6, 7, 8]


def test_required_level_of_the_interface_is_looked_at(js: JetStream, stream: str) -> None:
    create(js, stream)

    refused = try_reset(js, stream, None, {"Nats-Required-Api-Level": "99"})
    accepted = try_reset(js, stream, None, {"Nats-Required-Api-Level": "4"})

    assert error_of(refused) == (412, 10185, "JetStream minimum api level required")
    assert accepted["reset_seq"] == 1


def test_answer_names_the_stream_only_to_who_asks(js: JetStream, stream: str) -> None:
    create(js, stream)

    plain = js.api_message(f"CONSUMER.RESET.{stream}.C")
    asked = [js.api_message(f"CONSUMER.RESET.{stream}.C", None, {"Nats-Stream-Identity": "x"}) for _ in range(2)]

    assert plain.headers == b""
    assert asked[0].headers == asked[1].headers
    assert re.fullmatch(rb"NATS/1\.0\r\nNats-Stream-Identity: [0-9A-Za-z]{8}\r\n\r\n", asked[0].headers)


def test_consumer_that_is_not_there_gives_no_answer(js: JetStream, stream: str) -> None:
    js.create(stream)

    assert js.is_silent(f"CONSUMER.RESET.{stream}.C")
    assert js.is_silent(f"CONSUMER.RESET.{stream}NONE.C")


def test_request_without_a_reply_subject_is_ignored(js: JetStream, watch: Watch, stream: str) -> None:
    create(js, stream)
    fetch(js, watch, stream, 2)

    js.send(f"{API}CONSUMER.RESET.{stream}.C", b'{"seq":1}')

    js.api(f"CONSUMER.INFO.{stream}.C")
    assert numbers_of(consumer_info(js, stream, "C")) == (2, 2, 0, 0, 2, 6)


def test_reset_is_neither_told_nor_counted(js: JetStream, stream: str) -> None:
    create(js, stream)
    js.subscribe(f"{ADVISORY}>")
    before = js.api("INFO")["api"]["total"]

    reset(js, stream, 3)
    try_reset(js, stream, b"junk")

    assert js.api("INFO")["api"]["total"] == before + 1
    subjects = [message.json()["subject"] for message in js.received(f"{ADVISORY}API")]
    assert f"{API}CONSUMER.RESET.{stream}.C" not in subjects
    assert js.received(f"{ADVISORY}CONSUMER.>") == []


# Where a consumer may go


@pytest.mark.parametrize("sequence", [1, 4, 8, 9])
def test_consumer_of_all_messages_may_go_anywhere(js: JetStream, watch: Watch, stream: str, sequence: int) -> None:
    create(js, stream)
    fetch(js, watch, stream, 6)

    answer = reset(js, stream, sequence)

    assert answer["reset_seq"] == sequence
    before, left = sequence - 1, 9 - sequence
    assert numbers_of(answer) == (0, before, 0, before, 0, left)
    assert sequences_of(fetch(js, watch, stream, left)) == list(range(sequence, 9))


def test_consumer_may_go_beyond_the_end(js: JetStream, watch: Watch, stream: str) -> None:
    create(js, stream, 2)

    answer = reset(js, stream, 5)

    assert numbers_of(answer) == (0, 4, 0, 4, 0, 0)
    inbox = watch.pull(stream, "C", {"batch": 5})
    publish_many(js, stream, "cd")
    assert inbox.settled() == []
    publish_many(js, stream, "e")
    delivery = delivery_of(inbox.next())
    # What was published before counts as pending, for a while, in some servers.
    assert (delivery.stream_sequence, delivery.consumer_sequence, delivery.deliveries) == (5, 1, 1)


@pytest.mark.parametrize(
    ("config", "sequence", "error"),
    [
        ({"deliver_policy": "new"}, 1, NOT_ALLOWED),
        ({"deliver_policy": "new"}, 9, NOT_ALLOWED),
        ({"deliver_policy": "last"}, 8, NOT_ALLOWED),
        ({"deliver_policy": "last_per_subject", "filter_subject": ">"}, 8, NOT_ALLOWED),
        ({"deliver_policy": "by_start_sequence", "opt_start_seq": 5}, 4, BELOW_SEQUENCE),
        ({"deliver_policy": "by_start_sequence", "opt_start_seq": 5}, 1, BELOW_SEQUENCE),
    ],
)
def test_consumer_may_not_go_where_it_would_not_have_started(
    js: JetStream, watch: Watch, stream: str, config: Json, sequence: int, error: tuple[int, int, str]
) -> None:
    create(js, stream, **config)
    before = numbers_of(consumer_info(js, stream, "C"))

    answer = try_reset(js, stream, {"seq": sequence})

    assert error_of(answer) == error
    assert answer["reset_seq"] == 0
    assert numbers_of(consumer_info(js, stream, "C")) == before


@pytest.mark.parametrize("sequence", [5, 7])
def test_consumer_with_a_start_sequence_may_go_behind_it(
    js: JetStream, watch: Watch, stream: str, sequence: int
) -> None:
    create(js, stream, deliver_policy="by_start_sequence", opt_start_seq=5)
    fetch(js, watch, stream, 3)

    assert reset(js, stream, sequence)["reset_seq"] == sequence
    assert sequences_of(fetch(js, watch, stream, 1)) == [sequence]


def test_consumer_with_a_start_time_may_go_behind_it(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "a" * 8)
    create_durable(js, stream, "C", deliver_policy="by_start_time", opt_start_time=js.get(stream, seq=5)["time"])

    assert error_of(try_reset(js, stream, {"seq": 4})) == BELOW_TIME
    for sequence in (5, 7):
        assert reset(js, stream, sequence)["reset_seq"] == sequence
        assert sequences_of(fetch(js, watch, stream, 1)) == [sequence]


@pytest.mark.parametrize(("policy", "first"), [("new", 9), ("last", 8)])
def test_every_consumer_may_go_back_to_its_ack_floor(
    js: JetStream, watch: Watch, stream: str, policy: str, first: int
) -> None:
    create(js, stream, deliver_policy=policy)
    publish_many(js, stream, "ab")
    assert sequences_of(fetch(js, watch, stream, 2)) == [first, first + 1]

    assert reset(js, stream)["reset_seq"] == first
    assert sequences_of(fetch(js, watch, stream, 2)) == [first, first + 1]


# What a reset does


def test_messages_come_again_as_if_for_the_first_time(js: JetStream, watch: Watch, stream: str) -> None:
    create(js, stream, 4, max_deliver=2)
    watch.acknowledge(fetch(js, watch, stream, 1)[0], b"-NAK")
    fetch(js, watch, stream, 1)
    assert consumer_info(js, stream, "C")["num_redelivered"] == 1

    answer = reset(js, stream)

    assert answer["num_redelivered"] == 0
    assert delivery_of(fetch(js, watch, stream, 1)[0]) == Delivery(stream, "C", 1, 1, 1, 3)


def test_what_was_unacknowledged_is_not_delivered_again_behind_the_reset(
    js: JetStream, watch: Watch, stream: str
) -> None:
    create(js, stream, ack_wait=100 * MILLISECOND_NS)
    fetch(js, watch, stream, 2)

    reset(js, stream, 7)
    inbox = watch.pull(stream, "C", {"batch": 10})

    assert sequences_of(inbox.take(2)) == [7, 8]
    again = [delivery_of(message) for message in inbox.take(2)]
    assert {delivery.stream_sequence for delivery in again} == {7, 8}
    assert {delivery.deliveries for delivery in again} == {2}


def test_waiting_requests_are_served_after_a_reset(js: JetStream, watch: Watch, stream: str) -> None:
    create(js, stream)
    fetch(js, watch, stream, 8)
    inbox = watch.pull(stream, "C", {"batch": 2})
    wait_for_consumer(js, stream, "C", lambda info: info["num_waiting"] == 1)

    reset(js, stream, 7)

    assert sequences_of(inbox.take(2)) == [7, 8]


def test_stall_by_unacknowledged_messages_ends(js: JetStream, watch: Watch, stream: str) -> None:
    create(js, stream, max_ack_pending=2)
    fetch(js, watch, stream, 2)
    inbox = watch.pull(stream, "C", {"batch": 2})
    assert inbox.settled() == []

    reset(js, stream, 5)

    assert sequences_of(inbox.take(2)) == [5, 6]


def test_push_consumer_delivers_from_the_reset_on(js: JetStream, watch: Watch, stream: str) -> None:
    inbox = watch.subscribe(f"to.{stream}")
    create(js, stream, deliver_subject=f"to.{stream}")
    inbox.take(8)

    reset(js, stream, 7)

    assert [delivery_of(message) for message in inbox.take(2)] == [
        Delivery(stream, "C", 1, 7, 1, 1),
        Delivery(stream, "C", 1, 8, 2, 0),
    ]


def test_filter_stays(js: JetStream, watch: Watch, stream: str) -> None:
    create(js, stream, filter_subject=f"{stream}.b")
    fetch(js, watch, stream, 3)

    answer = reset(js, stream, 3)

    assert numbers_of(answer) == (0, 2, 0, 2, 0, 3)
    assert delivery_of(fetch(js, watch, stream, 1)[0]) == Delivery(stream, "C", 1, 4, 1, 2)


@pytest.mark.parametrize(("ack_policy", "floor"), [("none", 3), ("all", 2)])
def test_reset_goes_by_the_floor_of_every_ack_policy(
    js: JetStream, watch: Watch, stream: str, ack_policy: str, floor: int
) -> None:
    create(js, stream, ack_policy=ack_policy)
    messages = fetch(js, watch, stream, 3)
    if ack_policy == "all":
        watch.acknowledge(messages[1])

    answer = reset(js, stream)

    assert answer["reset_seq"] == floor + 1
    assert numbers_of(answer) == (0, floor, 0, floor, 0, 8 - floor)
    assert sequences_of(fetch(js, watch, stream, 1)) == [floor + 1]


def test_acknowledgement_from_before_the_reset_counts(js: JetStream, watch: Watch, stream: str) -> None:
    create(js, stream)
    old = fetch(js, watch, stream, 2)
    reset(js, stream)
    fetch(js, watch, stream, 2)

    watch.acknowledge(old[0])

    assert numbers_of(consumer_info(js, stream, "C")) == (2, 2, 1, 1, 1, 6)


def test_pause_stays(js: JetStream, stream: str) -> None:
    create(js, stream, pause_until="2050-01-01T00:00:00Z")

    assert reset(js, stream, 4)["paused"] is True
    assert consumer_info(js, stream, "C")["config"]["pause_until"] == "2050-01-01T00:00:00Z"


def test_reset_below_the_first_message_starts_with_the_first(js: JetStream, watch: Watch, stream: str) -> None:
    create(js, stream)
    js.api(f"STREAM.PURGE.{stream}", {"seq": 6})

    assert numbers_of(reset(js, stream, 2)) == (0, 1, 0, 1, 0, 3)
    assert delivery_of(fetch(js, watch, stream, 1)[0]) == Delivery(stream, "C", 1, 6, 1, 2)


def test_reset_of_a_work_queue_brings_back_what_is_left(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream, retention="workqueue")
    publish_many(js, stream, "abcd")
    create_durable(js, stream, "C")
    watch.acknowledge(fetch(js, watch, stream, 3)[1])

    reset(js, stream, 1)

    assert js.sequences(stream) == [1, 3, 4]
    assert sequences_of(fetch(js, watch, stream, 3)) == [1, 3, 4]


def test_reset_forward_lets_go_of_messages_of_an_interest_stream(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream, retention="interest")
    create_durable(js, stream, "C")
    publish_many(js, stream, "abcd")
    fetch(js, watch, stream, 2)

    reset(js, stream, 3)

    js.wait_for_state(stream, lambda state: state["first_seq"] == 3)
    assert js.sequences(stream) == [3, 4]
    assert sequences_of(fetch(js, watch, stream, 1)) == [3]


def test_deleted_consumer_cannot_be_reset(js: JetStream, stream: str) -> None:
    create(js, stream)
    js.api(f"CONSUMER.DELETE.{stream}.C")

    assert js.is_silent(f"CONSUMER.RESET.{stream}.C")
