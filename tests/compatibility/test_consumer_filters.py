"""Filters of consumers: what they let through, what is counted as pending, and what a change of them does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.compatibility import consumers, jetstream
from tests.compatibility.consumers import (
    NAK,
    PROGRESS,
    SHORT_NS,
    Consumer,
    Delivery,
    Numbers,
    Puller,
    add,
    create,
    deliveries,
    delivery,
    filters_of,
    numbers_of,
    pending_status,
    publish,
    sequences,
    try_add,
)
from tests.compatibility.jetstream import SECOND_NS, Json, error_of, start_jetstream_server

js, js_server, stream = consumers.js, jetstream.js_server, jetstream.stream

TAILS = ["a", "b.x", "c", "a", "b.y", "b.x", "c.d.e"]


def change_filters(consumer: Consumer, tails: str) -> Json:
    """Give the consumer other filters and return the answer."""
    filters = filters_of(consumer.stream, tails)
    return consumer.update(**{"filter_subject": None, "filter_subjects": None, **filters})


# What is let through


@pytest.mark.parametrize(
    ("tails", "expected"),
    [
        ("", [1, 2, 3, 4, 5, 6, 7]),
        ("a", [1, 4]),
        ("b.*", [2, 5, 6]),
        ("*", [1, 3, 4]),
        ("*.*", [2, 5, 6]),
        (">", [1, 2, 3, 4, 5, 6, 7]),
        ("c.>", [7]),
        ("*.d.*", [7]),
        ("b", []),
        ("none", []),
        ("b.x a", [1, 2, 4, 6]),
        ("a b.x", [1, 2, 4, 6]),
        ("c c.>", [3, 7]),
        ("*.x b.*", [2, 5, 6]),
        ("none a", [1, 4]),
        ("none nothing", []),
        ("b.* c.> a", [1, 2, 4, 5, 6, 7]),
    ],
)
@pytest.mark.parametrize("storage", ["file", "memory"])
def test_filters_let_matching_messages_through_in_the_order_of_the_stream(
    js: Puller, stream: str, storage: str, tails: str, expected: list[int]
) -> None:
    js.create(stream, storage=storage)
    publish(js, stream, TAILS)
    consumer = add(js, stream, **filters_of(stream, tails))

    start = consumer.numbers()
    messages = consumer.take_all()

    count = len(expected)
    last = expected[-1] if expected else 0
    assert start == Numbers(pending=count)
    assert deliveries(messages) == [
        Delivery(1, sequence, number, count - number) for number, sequence in enumerate(expected, start=1)
    ]
    assert consumer.numbers() == Numbers((count, last), ack_pending=count)


@pytest.mark.parametrize("tails", ["b.x", "b.* c"])
def test_filters_count_messages_that_come_later(js: Puller, stream: str, tails: str) -> None:
    consumer = create(js, stream, **filters_of(stream, tails))

    publish(js, stream, TAILS)

    matching = [2, 6] if tails == "b.x" else [2, 3, 5, 6]
    assert consumer.wait_for_pending(len(matching)) == Numbers(pending=len(matching))
    assert sequences(consumer.take_all()) == matching


@pytest.mark.parametrize("tails", ["b.x", "b.* c"])
def test_waiting_request_gets_only_matching_messages(js: Puller, stream: str, tails: str) -> None:
    consumer = create(js, stream, **filters_of(stream, tails))
    inbox = consumer.wait(b"2")

    publish(js, stream, TAILS)

    assert sequences(consumer.answers(inbox, 2)) == ([2, 6] if tails == "b.x" else [2, 3])


def test_filter_outside_of_the_stream_lets_nothing_through(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc", filter_subject=f"other.{stream}")

    assert consumer.numbers() == Numbers()
    assert consumer.take_all() == []


def test_filter_of_everything_is_kept_as_it_is(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc", filter_subject=">")

    assert consumer.info()["config"]["filter_subject"] == ">"
    assert sequences(consumer.take_all()) == [1, 2, 3]


@pytest.mark.parametrize("config", [{"filter_subject": ""}, {"filter_subjects": []}])
def test_empty_filter_is_none(js: Puller, stream: str, config: dict[str, Any]) -> None:
    consumer = create(js, stream, "abc", **config)

    assert not {"filter_subject", "filter_subjects"} & consumer.info()["config"].keys()
    assert sequences(consumer.take_all()) == [1, 2, 3]


def test_list_with_one_filter_stays_a_list(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "aba", filter_subjects=[f"{stream}.a"])

    config = consumer.info()["config"]
    assert config["filter_subjects"] == [f"{stream}.a"]
    assert "filter_subject" not in config
    assert sequences(consumer.take_all()) == [1, 3]


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"filter_subjects": ["~.a", "~.>"]}, (400, 10138, "consumer subject filters cannot overlap")),
        ({"filter_subjects": ["~.*", "~.a"]}, (400, 10138, "consumer subject filters cannot overlap")),
        ({"filter_subjects": ["~.a", "~.a"]}, (400, 10138, "consumer subject filters cannot overlap")),
        ({"filter_subjects": ["", "~.a"]}, (400, 10139, "consumer filter in FilterSubjects cannot be empty")),
        ({"filter_subjects": [""]}, (400, 10139, "consumer filter in FilterSubjects cannot be empty")),
        (
            {"filter_subject": "~.a", "filter_subjects": ["~.b"]},
            (400, 10136, "consumer cannot have both FilterSubject and FilterSubjects specified"),
        ),
        ({"filter_subject": ".."}, (500, 10052, "invalid subject")),
        ({"filter_subject": "~..a"}, (500, 10052, "invalid subject")),
        ({"filter_subject": "~.>.a"}, (500, 10052, "invalid subject")),
        ({"filter_subjects": ["~ a", "~.c"]}, (500, 10052, "invalid subject")),
    ],
)
def test_filters_must_be_subjects_of_their_own(
    js: Puller, stream: str, config: dict[str, Any], error: tuple[int, int, str]
) -> None:
    js.create(stream)
    filters = {
        key: value.replace("~", stream) if isinstance(value, str) else [one.replace("~", stream) for one in value]
        for key, value in config.items()
    }

    assert error_of(try_add(js, stream, **filters)) == error


def test_filter_may_stand_in_the_subject_of_the_request(js: Puller, stream: str) -> None:
    js.create(stream)
    publish(js, stream, TAILS)
    config = {"durable_name": "c", "ack_policy": "explicit", "filter_subject": f"{stream}.b.*"}

    created = js.api(f"CONSUMER.CREATE.{stream}.c.{stream}.b.*", {"stream_name": stream, "config": config})
    other = js.error(f"CONSUMER.CREATE.{stream}.d.{stream}.b.x", {"stream_name": stream, "config": {"name": "d"}})

    assert numbers_of(created) == Numbers(pending=3)
    assert other == (400, 10131, "Consumer create request did not match filtered subject from create subject")


# Numbers


def test_delivered_sequence_is_that_of_the_last_matching_message(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abcab", filter_subject=f"{stream}.b")

    (first,) = consumer.take(1)
    taken = consumer.numbers()
    consumer.acknowledge(first)
    acknowledged = consumer.numbers()
    consumer.acknowledge_each(consumer.take_all())
    publish(js, stream, "cc")
    consumer.pull({"expires": SHORT_NS})

    assert taken == Numbers((1, 2), ack_pending=1, pending=1)
    assert acknowledged == Numbers((1, 2), (1, 2), pending=1)
    assert consumer.numbers() == Numbers((2, 5), (2, 5))


def test_messages_that_do_not_match_leave_the_numbers_alone(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc", filter_subject=f"{stream}.none")

    status = consumer.status({"expires": SHORT_NS})

    assert status == pending_status("408 Request Timeout", 0)
    assert consumer.numbers() == Numbers()


@pytest.mark.parametrize("tails", ["b.x", "b.* c", ""])
def test_deleting_a_message_makes_less_pending_if_it_matches(js: Puller, stream: str, tails: str) -> None:
    js.create(stream)
    publish(js, stream, TAILS)
    consumer = add(js, stream, **filters_of(stream, tails))
    before = consumer.numbers().pending

    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 6})
    matching = consumer.numbers().pending
    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 1})

    assert matching == before - 1
    assert consumer.numbers().pending == (matching if tails else matching - 1)


def test_consumers_of_one_stream_do_not_disturb_each_other(js: Puller, stream: str) -> None:
    js.create(stream)
    publish(js, stream, "abab")
    of_a, of_b, of_all = (add(js, stream, name, **filters_of(stream, name[1:])) for name in ("_a", "_b", "_"))

    of_a.acknowledge_each(of_a.take(2))
    of_b.acknowledge(of_b.take_one(), NAK)

    assert of_a.numbers() == Numbers((2, 3), (2, 3))
    assert of_b.numbers() == Numbers((1, 2), ack_pending=1, pending=1)
    assert of_all.numbers() == Numbers(pending=4)
    assert deliveries(of_b.take_all()) == [Delivery(2, 2, 2, 1), Delivery(1, 4, 3, 0)]


# Changes


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a", "b", [2, 5]),
        ("a", "a b", [2, 4, 5]),
        ("a", "*", [2, 3, 4, 5, 6]),
        ("a", "", [2, 3, 4, 5, 6]),
        ("a", "none", []),
        ("a b", "c", [3, 6]),
        ("a b", "b c", [2, 3, 5, 6]),
        ("", "c", [3, 6]),
        ("", "b c", [2, 3, 5, 6]),
    ],
)
def test_changed_filters_hold_for_what_was_not_delivered_yet(
    js: Puller, stream: str, before: str, after: str, expected: list[int]
) -> None:
    consumer = create(js, stream, "abcabc", **filters_of(stream, before))
    (message,) = consumer.take(1)

    answer = change_filters(consumer, after)
    consumer.acknowledge(message, NAK)
    again, *rest = consumer.take_all()

    count = len(expected)
    assert numbers_of(answer) == Numbers((1, 1), ack_pending=1, pending=count)
    # What was delivered already is delivered again, whether it matches or not.
    assert delivery(again) == Delivery(2, 1, 2, count)
    assert deliveries(rest) == [
        Delivery(1, sequence, number + 2, count - number) for number, sequence in enumerate(expected, start=1)
    ]


def test_changed_filters_do_not_bring_back_what_was_passed_over(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "aa", filter_subject=f"{stream}.b")
    inbox = consumer.wait(b"2")

    changed = numbers_of(change_filters(consumer, "a"))
    publish(js, stream, "ba")

    assert changed == Numbers(waiting=1)
    assert deliveries(consumer.answers(inbox, 1)) == [Delivery(1, 4, 1, 0)]


def test_changed_filters_hold_from_the_start_when_nothing_was_asked_for_yet(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "aab", filter_subject=f"{stream}.b")

    changed = numbers_of(change_filters(consumer, "a"))

    assert changed == Numbers(pending=2)
    assert sequences(consumer.take_all()) == [1, 2]


def test_changed_filters_are_told(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc", filter_subject=f"{stream}.a")

    change_filters(consumer, "a b")
    config = consumer.info()["config"]

    assert config["filter_subjects"] == [f"{stream}.a", f"{stream}.b"]
    assert "filter_subject" not in config


@pytest.mark.jetlake
def test_open_message_of_an_earlier_filter_outlives_a_purge_and_a_restart(tmp_path: Path) -> None:
    """nats-server counts it as acknowledged at once: see `docs/reference/differences.md`."""
    folders = [tmp_path / name for name in ("before", "after")]
    for folder in folders:
        folder.mkdir()
    first = start_jetstream_server("jetlake", folders[0], tmp_path / "store")
    try:
        with Puller(first) as js:
            js.create("S")
            publish(js, "S", ["a.1", "b.1", "b.2"])
            consumer = add(js, "S", filter_subject="S.a.*", ack_wait=600 * SECOND_NS)
            message = consumer.take_one()
            change_filters(consumer, "b.*")

            purged = js.api("STREAM.PURGE.S", {"filter": "S.b.*"})

            assert purged.get("purged") == 2, purged
            assert (consumer.numbers().ack_floor, consumer.numbers().ack_pending) == ((0, 0), 1)
            consumer.acknowledge(message, PROGRESS)
    finally:
        first.stop()

    second = start_jetstream_server("jetlake", folders[1], tmp_path / "store")

    try:
        with Puller(second) as js:
            consumer = Consumer(js, "S", "c")
            assert (consumer.numbers().ack_floor, consumer.numbers().ack_pending) == ((0, 0), 1)
            consumer.acknowledge(message)
            assert consumer.numbers().ack_pending == 0
    finally:
        second.stop()


# Headers only


def test_consumer_of_headers_gets_the_size_instead_of_the_payload(js: Puller, stream: str) -> None:
    js.create(stream)
    js.publish(f"{stream}.a", b"hello")
    js.publish(f"{stream}.a", b"hello", {"A": "b"})
    js.publish(f"{stream}.a", b"")
    js.publish(f"{stream}.a", b"", {"A": "b", "Nats-Msg-Size": "7"})
    consumer = add(js, stream, headers_only=True)

    messages = consumer.take(4)

    assert [message.headers for message in messages] == [
        b"NATS/1.0\r\nNats-Msg-Size: 5\r\n\r\n",
        b"NATS/1.0\r\nA: b\r\nNats-Msg-Size: 5\r\n\r\n",
        b"NATS/1.0\r\nNats-Msg-Size: 0\r\n\r\n",
        b"NATS/1.0\r\nA: b\r\nNats-Msg-Size: 7\r\nNats-Msg-Size: 0\r\n\r\n",
    ]
    assert {message.data for message in messages} == {b""}


def test_consumer_of_headers_pays_for_headers_only(js: Puller, stream: str) -> None:
    js.create(stream)
    js.publish(f"{stream}.a", b"x" * 1000)
    message = add(js, stream, "d", headers_only=True).take_one()
    cost = len(message.subject) + len(message.reply) + len(message.headers)

    too_few = add(js, stream, "e", headers_only=True).status({"max_bytes": cost - 1})
    consumer = add(js, stream, "f", headers_only=True)

    assert too_few == pending_status("409 Message Size Exceeds MaxBytes", 0, cost - 1)
    assert js.next_at(consumer.request({"max_bytes": cost})).headers == message.headers


def test_payload_may_be_asked_for_later(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "ab", headers_only=True)

    (without,) = consumer.take(1)
    consumer.update(headers_only=False)
    (with_payload,) = consumer.take(1)

    assert (without.headers, without.data) == (b"NATS/1.0\r\nNats-Msg-Size: 1\r\n\r\n", b"")
    assert (with_payload.headers, with_payload.data) == (b"", b"b")
