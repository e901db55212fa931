"""What a consumer says when messages leave the stream by a purge, a roll-up or a deletion: floors, and what is open."""

from __future__ import annotations

import pytest

from tests.compatibility import consumers, jetstream
from tests.compatibility.consumers import NAK, Numbers, Puller, add, create, publish, sequences

js, js_server, stream = consumers.js, jetstream.js_server, jetstream.stream

SECOND_NS = jetstream.SECOND_NS


def roll_up(js: Puller, stream: str, tail: str, what: str) -> int:
    return int(js.publish(f"{stream}.{tail}", b"", {"Nats-Rollup": what})["seq"])


def purge(js: Puller, stream: str, **request: object) -> int:
    return int(js.api(f"STREAM.PURGE.{stream}", request)["purged"])


# Roll-ups


@pytest.mark.parametrize("filter_tail", ["", "a", "x", "*"])
def test_roll_up_of_everything_moves_the_floor_of_every_consumer(js: Puller, stream: str, filter_tail: str) -> None:
    js.create(stream, allow_rollup_hdrs=True)
    publish(js, stream, "abcab")
    consumer = add(js, stream, **consumers.filters_of(stream, filter_tail))

    assert roll_up(js, stream, "d", "all") == 6

    pending = 1 if filter_tail in ("", "*") else 0
    consumer.wait_for(lambda numbers: numbers == Numbers((0, 5), (0, 5), pending=pending))


def test_roll_up_of_everything_settles_what_was_delivered(js: Puller, stream: str) -> None:
    js.create(stream, allow_rollup_hdrs=True)
    publish(js, stream, "abc")
    consumer = add(js, stream)
    consumer.take(2)

    roll_up(js, stream, "a", "all")

    consumer.wait_for(lambda numbers: numbers == Numbers((2, 3), (2, 3), pending=1))
    assert sequences(consumer.take_all()) == [4]


@pytest.mark.parametrize(
    ("filter_tail", "expected"),
    [
        ("", Numbers((0, 1), (0, 1), pending=3)),
        ("a", Numbers((0, 4), (0, 4), pending=1)),
        ("b", Numbers((0, 0), (0, 0), pending=1)),
        ("*", Numbers((0, 1), (0, 1), pending=3)),
    ],
)
def test_roll_up_of_a_subject_moves_the_floor_of_those_who_take_it(
    js: Puller, stream: str, filter_tail: str, expected: Numbers
) -> None:
    js.create(stream, allow_rollup_hdrs=True)
    publish(js, stream, "abca")
    consumer = add(js, stream, **consumers.filters_of(stream, filter_tail))

    assert roll_up(js, stream, "a", "sub") == 5

    consumer.wait_for(lambda numbers: numbers == expected)


# Purges


@pytest.mark.parametrize(("filter_tail", "purged"), [("b", "a"), ("b.x", "a"), ("b.x", "a.>")])
def test_purge_of_other_subjects_leaves_a_consumer_where_it_is(
    js: Puller, stream: str, filter_tail: str, purged: str
) -> None:
    js.create(stream)
    publish(js, stream, ["a", "a", "b.x", "c.x"])
    consumer = add(js, stream, filter_subject=f"{stream}.{filter_tail}")

    purge(js, stream, filter=f"{stream}.{purged}")

    assert consumer.numbers() == Numbers(pending=int(filter_tail == "b.x"))


def test_message_to_come_again_survives_a_purge_that_removes_nothing(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc", ack_wait=SECOND_NS)
    consumer.acknowledge(consumer.take_one(), NAK)

    assert purge(js, stream, seq=1) == 0

    # nats-server has it wait for `ack_wait`, as if it had not been refused; new messages come first there.
    assert sorted(sequences(consumer.take(3))) == [1, 2, 3]


# Deletions


def test_deleted_message_of_an_ack_all_consumer_is_not_waited_for(js: Puller, stream: str, server_kind: str) -> None:
    consumer = create(js, stream, "abcde", ack_policy="all")
    messages = consumer.take(4)

    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 3})

    if server_kind == "nats-server":
        # Whoever deletes a message acknowledges all before it.
        consumer.wait_for(lambda numbers: numbers == Numbers((4, 4), (3, 3), ack_pending=1, pending=1))
    else:
        consumer.wait_for(lambda numbers: numbers == Numbers((4, 4), (0, 0), ack_pending=3, pending=1))
    consumer.acknowledge(messages[3])
    assert consumer.numbers() == Numbers((4, 4), (4, 4), pending=1)


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_message_that_a_limit_removes_makes_room_for_the_next(js: Puller, stream: str, storage: str) -> None:
    js.create(stream, max_msgs=2, storage=storage)
    publish(js, stream, "a")
    consumer = add(js, stream, max_ack_pending=1)
    inbox = consumer.request({"batch": 2, "expires": consumers.EXPIRES_NS})
    assert sequences(consumer.answers(inbox, 1)) == [1]

    publish(js, stream, "bc")

    assert sequences(consumer.answers(inbox, 1)) == [2]
    consumer.wait_for(lambda numbers: numbers == Numbers((2, 2), (1, 1), ack_pending=1, pending=1))
