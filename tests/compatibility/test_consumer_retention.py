"""Streams that keep a message only as long as a consumer needs it: what is stored, and what removes it when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.compatibility import consumer_watch, jetstream
from tests.compatibility.consumer_watch import (
    Watch,
    consumer_info,
    create_consumer_error,
    create_durable,
    delete_consumer,
    delivery_of,
    numbers_of,
    publish_many,
    sequences_of,
    wait_for_consumer,
)
from tests.compatibility.jetstream import API, MILLISECOND_NS, POLL_SECONDS, SECOND_NS, JetStream
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import TIMEOUT_SECONDS

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream
start_jetstream, watch = jetstream.start_jetstream, consumer_watch.watch

KEEPING = pytest.mark.parametrize("retention", ["interest", "workqueue"])
STORAGES = pytest.mark.parametrize("storage", ["file", "memory"])


def state_numbers(js: JetStream, stream: str) -> tuple[int, int, int, int]:
    """Return the number of messages, the first and the last sequence, and the number of gaps between them."""
    state = js.state(stream)
    return state["messages"], state["first_seq"], state["last_seq"], state.get("num_deleted", 0)


def expect_stored(js: JetStream, stream: str, stored: list[int], last: int) -> None:
    """Expect these messages, at once or soon, and that the numbers of the state agree with them."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while (found := js.sequences(stream)) != stored:
        assert time.monotonic() < deadline, f"expected {stored}, found {found}"
        time.sleep(POLL_SECONDS)
    first = stored[0] if stored else last + 1
    gaps = last - first + 1 - len(stored)
    assert state_numbers(js, stream) == (len(stored), first, last, gaps)


# What is stored


@STORAGES
def test_interest_stream_skips_what_no_consumer_asks_for(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, retention="interest", storage=storage)
    publish_many(js, stream, "ab")
    expect_stored(js, stream, [], 2)

    created = create_durable(js, stream, "C", filter_subject=f"{stream}.a")
    publish_many(js, stream, "abab")

    assert numbers_of(created) == (0, 2, 0, 2, 0, 0)
    expect_stored(js, stream, [3, 5], 6)
    assert numbers_of(consumer_info(js, stream, "C")) == (0, 2, 0, 2, 0, 2)


@STORAGES
def test_work_queue_stores_what_no_consumer_asks_for(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, retention="workqueue", storage=storage)
    publish_many(js, stream, "ab")
    create_durable(js, stream, "C", filter_subject=f"{stream}.a")
    publish_many(js, stream, "abab")

    expect_stored(js, stream, [1, 2, 3, 4, 5, 6], 6)
    assert numbers_of(consumer_info(js, stream, "C")) == (0, 0, 0, 0, 0, 3)


def test_interest_is_that_of_any_filter_also_with_wildcards(js: JetStream, stream: str) -> None:
    js.create(stream, retention="interest")
    create_durable(js, stream, "ONE", filter_subjects=[f"{stream}.a.*", f"{stream}.b"])
    create_durable(js, stream, "TWO", filter_subject=f"{stream}.c.>")

    for tail in ("a", "a.x", "b", "b.x", "c", "c.x", "c.x.y", "d"):
        js.publish(f"{stream}.{tail}")

    expect_stored(js, stream, [2, 3, 6, 7], 8)


def test_push_consumer_without_a_subscriber_is_interest(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream, retention="interest")
    create_durable(js, stream, "C", deliver_subject=f"to.{stream}", ack_policy="none")
    publish_many(js, stream, "ab")
    expect_stored(js, stream, [1, 2], 2)

    watch.subscribe(f"to.{stream}").take(2)

    expect_stored(js, stream, [], 2)
    assert numbers_of(consumer_info(js, stream, "C")) == (2, 2, 2, 2, 0, 0)


# Acknowledgements


@KEEPING
@STORAGES
def test_acknowledged_messages_are_removed_in_any_order(
    js: JetStream, watch: Watch, stream: str, retention: str, storage: str
) -> None:
    js.create(stream, retention=retention, storage=storage)
    create_durable(js, stream, "C")
    publish_many(js, stream, "abcde")
    first, second, third, fourth, fifth = watch.fetch(stream, "C", 5)
    expect_stored(js, stream, [1, 2, 3, 4, 5], 5)

    watch.acknowledge(fifth)
    expect_stored(js, stream, [1, 2, 3, 4], 5)
    watch.acknowledge(third)
    expect_stored(js, stream, [1, 2, 4], 5)
    assert numbers_of(consumer_info(js, stream, "C")) == (5, 5, 0, 0, 3, 0)
    watch.acknowledge(first)
    expect_stored(js, stream, [2, 4], 5)
    watch.acknowledge(second)
    expect_stored(js, stream, [4], 5)
    assert numbers_of(consumer_info(js, stream, "C")) == (5, 5, 3, 3, 1, 0)
    watch.acknowledge(fourth)
    expect_stored(js, stream, [], 5)
    assert numbers_of(consumer_info(js, stream, "C")) == (5, 5, 5, 5, 0, 0)
    assert js.publish(f"{stream}.a")["seq"] == 6


@KEEPING
@pytest.mark.parametrize(
    ("body", "is_removed"),
    [
        (b"", True),
        (b"+ACK", True),
        (b"+OK", True),
        (b"+TERM", True),
        (b"+TERM with a reason", True),
        (b"-NAK", False),
        (b'-NAK {"delay": 60000000000}', False),
        (b"+WPI", False),
        (b"nothing known", False),
    ],
)
def test_message_is_removed_by_what_ends_it(
    js: JetStream, watch: Watch, stream: str, retention: str, body: bytes, is_removed: bool
) -> None:
    js.create(stream, retention=retention)
    create_durable(js, stream, "C")
    publish_many(js, stream, "ab")

    watch.acknowledge(watch.fetch(stream, "C", 1)[0], body)

    expect_stored(js, stream, [2] if is_removed else [1, 2], 2)


@KEEPING
def test_acknowledgement_that_asks_for_the_next_message_removes_too(
    js: JetStream, watch: Watch, stream: str, retention: str
) -> None:
    js.create(stream, retention=retention)
    create_durable(js, stream, "C")
    publish_many(js, stream, "ab")
    inbox = watch.new_inbox()

    watch.send(watch.fetch(stream, "C", 1)[0].reply, b"+NXT", reply=inbox.subject)

    assert delivery_of(inbox.next()).stream_sequence == 2
    expect_stored(js, stream, [2], 2)


@KEEPING
def test_message_that_was_delivered_too_often_is_kept_until_it_is_acknowledged(
    js: JetStream, watch: Watch, stream: str, retention: str
) -> None:
    js.create(stream, retention=retention)
    create_durable(js, stream, "C", max_deliver=2)
    publish_many(js, stream, "ab")
    for _ in range(2):
        again = watch.fetch(stream, "C", 1)[0]
        watch.acknowledge(again, b"-NAK")
    assert delivery_of(again).deliveries == 2

    assert sequences_of(watch.fetch(stream, "C", 1)) == [2]
    info = consumer_info(js, stream, "C")
    assert numbers_of(info) == (3, 2, 0, 0, 1, 0)
    assert info["num_redelivered"] == 1
    expect_stored(js, stream, [1, 2], 2)

    watch.acknowledge(again)
    expect_stored(js, stream, [2], 2)
    assert consumer_info(js, stream, "C")["num_redelivered"] == 0


@KEEPING
def test_message_that_was_delivered_once_and_may_not_be_again_is_kept(
    js: JetStream, watch: Watch, stream: str, retention: str
) -> None:
    js.create(stream, retention=retention)
    create_durable(js, stream, "C", max_deliver=1, ack_wait=100 * MILLISECOND_NS)
    publish_many(js, stream, "ab")
    first, second = watch.fetch(stream, "C", 2)
    watch.acknowledge(second)

    wait_for_consumer(js, stream, "C", lambda info: info["num_ack_pending"] == 0)

    expect_stored(js, stream, [1], 2)
    watch.acknowledge(first)
    expect_stored(js, stream, [], 2)


def test_consumer_without_acknowledgements_removes_by_delivery(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream, retention="interest")
    create_durable(js, stream, "C", ack_policy="none")
    publish_many(js, stream, "abc")
    expect_stored(js, stream, [1, 2, 3], 3)

    watch.fetch(stream, "C", 2)
    expect_stored(js, stream, [3], 3)
    watch.fetch(stream, "C", 1)
    expect_stored(js, stream, [], 3)


def test_acknowledgement_of_all_removes_all_before(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream, retention="interest")
    create_durable(js, stream, "C", ack_policy="all")
    publish_many(js, stream, "abcd")
    messages = watch.fetch(stream, "C", 4)

    watch.acknowledge(messages[2])
    expect_stored(js, stream, [4], 4)
    watch.acknowledge(messages[0])
    expect_stored(js, stream, [4], 4)
    watch.acknowledge(messages[3])
    expect_stored(js, stream, [], 4)


@KEEPING
def test_answer_to_flow_control_removes_all_before(js: JetStream, watch: Watch, stream: str, retention: str) -> None:
    js.create(stream, retention=retention)
    inbox = watch.subscribe(f"to.{stream}")
    flow = {"deliver_subject": f"to.{stream}", "ack_policy": "flow_control", "max_ack_pending": 2}
    create_durable(js, stream, "C", **flow)
    publish_many(js, stream, "abcd")
    _, _, request = inbox.take(3)
    expect_stored(js, stream, [1, 2, 3, 4], 4)

    watch.send(request.reply, b"", {"Nats-Last-Consumer": "2", "Nats-Last-Stream": "2"})

    expect_stored(js, stream, [3, 4], 4)


# What a confirmed acknowledgement promises: nothing is asked of the server between it and what it allows

OFTEN = 40
"""Times to try what a server that confirms too early allows now and then."""

ENDING = pytest.mark.parametrize("body", [b"+ACK", b"+TERM"])


@KEEPING
@STORAGES
@ENDING
def test_confirmed_acknowledgement_has_made_room_in_a_full_stream(
    js: JetStream, watch: Watch, stream: str, retention: str, storage: str, body: bytes
) -> None:
    js.create(stream, retention=retention, storage=storage, max_msgs=1, discard="new")
    create_durable(js, stream, "C")

    for _ in range(OFTEN):
        assert js.publish_code(f"{stream}.a") == 0
        watch.acknowledge(watch.fetch(stream, "C", 1)[0], body)


@KEEPING
def test_confirmed_acknowledgement_has_made_room_where_the_consumer_is_in_memory(
    js: JetStream, watch: Watch, stream: str, retention: str
) -> None:
    js.create(stream, retention=retention, max_msgs=1, discard="new")
    create_durable(js, stream, "C", mem_storage=True)

    for _ in range(OFTEN):
        assert js.publish_code(f"{stream}.a") == 0
        watch.acknowledge(watch.fetch(stream, "C", 1)[0])


@STORAGES
def test_confirmed_acknowledgement_of_all_has_made_room_for_as_many(
    js: JetStream, watch: Watch, stream: str, storage: str
) -> None:
    js.create(stream, retention="interest", storage=storage, max_msgs=3, discard="new")
    create_durable(js, stream, "C", ack_policy="all")

    for _ in range(OFTEN):
        assert [js.publish_code(f"{stream}.a") for _ in range(3)] == [0, 0, 0]
        watch.acknowledge(watch.fetch(stream, "C", 3)[2])


@STORAGES
def test_confirmed_acknowledgement_of_the_last_consumer_has_made_room(
    js: JetStream, watch: Watch, stream: str, storage: str
) -> None:
    js.create(stream, retention="interest", storage=storage, max_msgs=1, discard="new")
    for name in ("C", "D"):
        create_durable(js, stream, name)

    for _ in range(OFTEN):
        assert js.publish_code(f"{stream}.a") == 0
        watch.acknowledge(watch.fetch(stream, "C", 1)[0])
        assert js.publish_error(f"{stream}.a") == (503, 10077, "maximum messages exceeded")
        watch.acknowledge(watch.fetch(stream, "D", 1)[0])


@KEEPING
@STORAGES
def test_confirmed_acknowledgement_has_made_room_for_another_message_of_the_subject(
    js: JetStream, watch: Watch, stream: str, retention: str, storage: str
) -> None:
    limits = {"max_msgs_per_subject": 1, "discard": "new", "discard_new_per_subject": True}
    js.create(stream, retention=retention, storage=storage, **limits)
    create_durable(js, stream, "C")

    for _ in range(OFTEN):
        assert js.publish_code(f"{stream}.a") == 0
        watch.acknowledge(watch.fetch(stream, "C", 1)[0])


@KEEPING
@STORAGES
def test_subject_has_no_last_message_after_a_confirmed_acknowledgement(
    js: JetStream, watch: Watch, stream: str, retention: str, storage: str
) -> None:
    js.create(stream, retention=retention, storage=storage)
    create_durable(js, stream, "C")

    for _ in range(OFTEN):
        assert js.publish_code(f"{stream}.a", b"", {"Nats-Expected-Last-Subject-Sequence": "0"}) == 0
        watch.acknowledge(watch.fetch(stream, "C", 1)[0])


@KEEPING
@STORAGES
def test_message_cannot_be_read_after_its_confirmed_acknowledgement(
    js: JetStream, watch: Watch, stream: str, retention: str, storage: str
) -> None:
    js.create(stream, retention=retention, storage=storage, allow_direct=True)
    create_durable(js, stream, "C")

    for _ in range(OFTEN):
        js.publish(f"{stream}.a")
        watch.acknowledge(watch.fetch(stream, "C", 1)[0])
        assert js.request(f"{API}DIRECT.GET.{stream}.{stream}.a").status == "404 Message Not Found"


# Publishers and consumers at the same time

TERMINATED = 3000
"""Messages that are given up while others are published; 500 were enough to stop a server."""


@contextmanager
def publishing(server: ServerProcess, subject: str) -> Iterator[None]:
    """Publish on a connection of its own, as fast as the server takes it, until the block ends."""
    is_over = threading.Event()
    block = f"PUB {subject} 0\r\n\r\n".encode() * 50

    def publish() -> None:
        with server.client() as client:
            client.connect()
            while not is_over.is_set():
                client.send(block)
                client.expect_pong()

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        yield
    finally:
        is_over.set()
        publisher.join()


@pytest.mark.parametrize("retention", ["limits", "interest", "workqueue"])
def test_publisher_and_client_that_gives_messages_up_do_not_wait_for_each_other(
    start_jetstream: Callable[..., ServerProcess], stream: str, retention: str
) -> None:
    server = start_jetstream()
    with JetStream(server) as js, Watch(server) as watch:
        js.create(stream, retention=retention, storage="memory")
        create_durable(js, stream, "C", max_ack_pending=-1)

        with publishing(server, f"{stream}.a"):
            for _ in range(TERMINATED // 100):
                messages = watch.fetch(stream, "C", 100)
                # At once, so that the server reads them in one go.
                watch.raw.send(b"".join(f"PUB {message.reply} 5\r\n+TERM\r\n".encode() for message in messages))
            watch.flush()

        wait_for_consumer(js, stream, "C", lambda info: info["num_ack_pending"] == 0)


# Several consumers


def test_message_of_an_interest_stream_is_removed_by_the_last_that_needs_it(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream, retention="interest")
    create_durable(js, stream, "ALL")
    create_durable(js, stream, "B", filter_subject=f"{stream}.b")
    publish_many(js, stream, "abcab")

    stored_after = {1: [2, 3, 4, 5], 2: [2, 3, 4, 5], 3: [2, 4, 5], 4: [2, 5], 5: [2, 5]}
    for message in watch.fetch(stream, "ALL", 5):
        watch.acknowledge(message)
        expect_stored(js, stream, stored_after[delivery_of(message).stream_sequence], 5)

    for message, stored in zip(watch.fetch(stream, "B", 2), ([5], []), strict=True):
        watch.acknowledge(message)
        expect_stored(js, stream, stored, 5)


def test_consumers_of_different_ack_policies_must_all_be_done(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream, retention="interest")
    for ack_policy in ("none", "all", "explicit"):
        create_durable(js, stream, ack_policy.upper(), ack_policy=ack_policy)
    publish_many(js, stream, "abc")

    watch.fetch(stream, "NONE", 3)
    expect_stored(js, stream, [1, 2, 3], 3)
    watch.acknowledge(watch.fetch(stream, "ALL", 2)[1])
    expect_stored(js, stream, [1, 2, 3], 3)
    explicit = watch.fetch(stream, "EXPLICIT", 3)
    watch.acknowledge(explicit[1])
    expect_stored(js, stream, [1, 3], 3)
    watch.acknowledge(explicit[0])
    watch.acknowledge(explicit[2])
    expect_stored(js, stream, [3], 3)
    watch.acknowledge(watch.fetch(stream, "ALL", 1)[0])
    expect_stored(js, stream, [], 3)


def test_consumers_of_a_work_queue_remove_their_own(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream, retention="workqueue")
    create_durable(js, stream, "A", filter_subject=f"{stream}.a")
    create_durable(js, stream, "BC", filter_subjects=[f"{stream}.b", f"{stream}.c"])
    publish_many(js, stream, "abcdab")

    for message in watch.fetch(stream, "A", 2):
        watch.acknowledge(message)
    expect_stored(js, stream, [2, 3, 4, 6], 6)
    for message in watch.fetch(stream, "BC", 3):
        watch.acknowledge(message)
    expect_stored(js, stream, [4], 6)


def test_new_consumer_needs_only_what_it_will_get(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream, retention="interest")
    create_durable(js, stream, "OLD")
    publish_many(js, stream, "abc")
    watch.acknowledge(watch.fetch(stream, "OLD", 1)[0])

    assert numbers_of(create_durable(js, stream, "ALL")) == (0, 1, 0, 1, 0, 2)
    assert numbers_of(create_durable(js, stream, "NEW", deliver_policy="new")) == (0, 3, 0, 3, 0, 0)

    for name in ("OLD", "ALL"):
        expect_stored(js, stream, [2, 3], 3)
        for message in watch.fetch(stream, name, 2):
            watch.acknowledge(message)
    expect_stored(js, stream, [], 3)


def test_changed_filter_lets_go_of_what_it_no_longer_asks_for(js: JetStream, stream: str) -> None:
    js.create(stream, retention="interest")
    create_durable(js, stream, "C", filter_subjects=[f"{stream}.a", f"{stream}.b"])
    publish_many(js, stream, "abab")

    create_durable(js, stream, "C", filter_subject=f"{stream}.b")

    expect_stored(js, stream, [2, 4], 4)
    assert numbers_of(consumer_info(js, stream, "C")) == (0, 0, 0, 0, 0, 2)


# Deletion of consumers


def test_deleted_consumer_of_an_interest_stream_takes_away_what_only_it_needed(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream, retention="interest")
    create_durable(js, stream, "ALL")
    create_durable(js, stream, "B", filter_subject=f"{stream}.b")
    publish_many(js, stream, "abab")
    watch.fetch(stream, "ALL", 2)

    delete_consumer(js, stream, "ALL")
    expect_stored(js, stream, [2, 4], 4)

    delete_consumer(js, stream, "B")
    expect_stored(js, stream, [], 4)
    assert js.publish(f"{stream}.a")["seq"] == 5


def test_deleted_consumer_that_was_slower_lets_go_of_what_others_acknowledged(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream, retention="interest")
    for name in ("FAST", "SLOW"):
        create_durable(js, stream, name)
    publish_many(js, stream, "abcd")
    messages = watch.fetch(stream, "FAST", 4)
    for index in (0, 2):
        watch.acknowledge(messages[index])
    expect_stored(js, stream, [1, 2, 3, 4], 4)

    delete_consumer(js, stream, "SLOW")

    expect_stored(js, stream, [2, 4], 4)


def test_messages_of_a_work_queue_stay_when_consumers_are_deleted(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream, retention="workqueue")
    create_durable(js, stream, "C")
    publish_many(js, stream, "abc")
    first, _ = watch.fetch(stream, "C", 2)
    watch.acknowledge(first)

    delete_consumer(js, stream, "C")
    expect_stored(js, stream, [2, 3], 3)

    create_durable(js, stream, "C")
    assert sequences_of(watch.fetch(stream, "C", 2)) == [2, 3]


def test_ephemeral_consumer_that_ends_lets_go_of_its_messages(js: JetStream, stream: str) -> None:
    js.create(stream, retention="interest")
    create_durable(js, stream, "C", durable_name="", inactive_threshold=100 * MILLISECOND_NS)
    publish_many(js, stream, "ab")

    expect_stored(js, stream, [], 2)


# The rules of a work queue

ONLY_ONE = (400, 10099, "multiple non-filtered consumers not allowed on workqueue stream")
NOT_UNIQUE = (400, 10100, "filtered consumer not unique on workqueue stream")


@pytest.mark.parametrize(
    ("config", "error"),
    [
        (
            {"ack_policy": "none"},
            (400, 10084, "consumer in pull mode requires explicit ack policy on workqueue stream"),
        ),
        ({"ack_policy": "none", "deliver_subject": "to"}, (400, 10098, "workqueue stream requires explicit ack")),
        ({"ack_policy": "all"}, (400, 10098, "workqueue stream requires explicit ack")),
        ({"deliver_policy": "new"}, (400, 10101, "consumer must be deliver all on workqueue stream")),
        ({"deliver_policy": "last"}, (400, 10101, "consumer must be deliver all on workqueue stream")),
    ],
)
def test_work_queue_refuses_consumers_that_would_miss_messages(
    js: JetStream, stream: str, config: dict[str, Any], error: tuple[int, int, str]
) -> None:
    js.create(stream, retention="workqueue")

    assert create_consumer_error(js, stream, "C", **{"ack_policy": "explicit", **config}) == error


@pytest.mark.parametrize(
    ("there", "new", "error"),
    [
        ([], [], ONLY_ONE),
        ([], ["a"], NOT_UNIQUE),
        (["a"], [], ONLY_ONE),
        (["a"], ["a"], NOT_UNIQUE),
        (["a"], ["*"], NOT_UNIQUE),
        (["*"], ["a"], NOT_UNIQUE),
        (["a", "b"], ["c", "b"], NOT_UNIQUE),
    ],
)
def test_work_queue_has_one_consumer_for_each_message(
    js: JetStream, stream: str, there: list[str], new: list[str], error: tuple[int, int, str]
) -> None:
    js.create(stream, retention="workqueue")
    create_durable(js, stream, "C", filter_subjects=[f"{stream}.{tail}" for tail in there])

    refused = create_consumer_error(
        js, stream, "D", ack_policy="explicit", filter_subjects=[f"{stream}.{tail}" for tail in new]
    )

    assert refused == error


# Limits on top


@KEEPING
def test_limit_removes_messages_that_are_not_acknowledged(
    js: JetStream, watch: Watch, stream: str, retention: str
) -> None:
    js.create(stream, retention=retention, max_msgs=2)
    create_durable(js, stream, "C")
    publish_many(js, stream, "abcd")
    expect_stored(js, stream, [3, 4], 4)
    third, fourth = watch.fetch(stream, "C", 2)
    assert sequences_of([third, fourth]) == [3, 4]

    publish_many(js, stream, "e")
    expect_stored(js, stream, [4, 5], 5)
    wait_for_consumer(js, stream, "C", lambda info: numbers_of(info) == (2, 4, 1, 3, 1, 1))

    watch.acknowledge(third)
    watch.acknowledge(fourth)
    expect_stored(js, stream, [5], 5)
    assert numbers_of(consumer_info(js, stream, "C")) == (2, 4, 2, 4, 0, 1)


@KEEPING
def test_age_removes_messages_that_are_not_acknowledged(js: JetStream, stream: str, retention: str) -> None:
    js.create(stream, retention=retention, max_age=200 * MILLISECOND_NS, duplicate_window=200 * MILLISECOND_NS)
    create_durable(js, stream, "C")
    publish_many(js, stream, "ab")

    expect_stored(js, stream, [], 2)
    assert consumer_info(js, stream, "C")["num_pending"] == 0


@KEEPING
def test_full_stream_has_room_again_after_an_acknowledgement(
    js: JetStream, watch: Watch, stream: str, retention: str
) -> None:
    js.create(stream, retention=retention, max_msgs=2, discard="new")
    create_durable(js, stream, "C")
    publish_many(js, stream, "ab")
    assert js.publish_error(f"{stream}.c") == (503, 10077, "maximum messages exceeded")

    watch.acknowledge(watch.fetch(stream, "C", 1)[0])
    expect_stored(js, stream, [2], 2)

    assert js.publish(f"{stream}.c")["seq"] == 3


def test_full_interest_stream_takes_what_it_will_not_store(js: JetStream, stream: str) -> None:
    js.create(stream, retention="interest", max_msgs=2, discard="new")
    create_durable(js, stream, "C", filter_subject=f"{stream}.a")
    publish_many(js, stream, "aa")

    assert js.publish(f"{stream}.b")["seq"] == 3
    assert js.publish_error(f"{stream}.a") == (503, 10077, "maximum messages exceeded")
    expect_stored(js, stream, [1, 2], 3)


@KEEPING
def test_deleted_message_counts_as_acknowledged(js: JetStream, watch: Watch, stream: str, retention: str) -> None:
    js.create(stream, retention=retention)
    create_durable(js, stream, "C")
    publish_many(js, stream, "abc")
    watch.fetch(stream, "C", 2)

    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 1})

    wait_for_consumer(js, stream, "C", lambda info: numbers_of(info) == (2, 2, 1, 1, 1, 1))
    expect_stored(js, stream, [2, 3], 3)


# Change of the retention


def test_stream_that_becomes_one_of_interest_lets_go_of_what_all_have_acknowledged(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream)
    for name in ("ONE", "TWO"):
        create_durable(js, stream, name)
    publish_many(js, stream, "abcd")
    for name, count in (("ONE", 3), ("TWO", 2)):
        for message in watch.fetch(stream, name, count):
            watch.acknowledge(message)

    js.update(stream, retention="interest")

    expect_stored(js, stream, [3, 4], 4)
    watch.acknowledge(watch.fetch(stream, "TWO", 1)[0])
    expect_stored(js, stream, [4], 4)


def test_stream_without_consumers_that_becomes_one_of_interest_is_emptied(js: JetStream, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")

    js.update(stream, retention="interest")

    expect_stored(js, stream, [], 2)
    publish_many(js, stream, "c")
    expect_stored(js, stream, [], 3)


def test_interest_stream_that_becomes_one_of_limits_keeps_all_from_then_on(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream, retention="interest")
    create_durable(js, stream, "C", filter_subject=f"{stream}.a")
    publish_many(js, stream, "abab")
    first, second = watch.fetch(stream, "C", 2)
    watch.acknowledge(first)

    js.update(stream, retention="limits")
    expect_stored(js, stream, [3], 4)
    watch.acknowledge(second)
    publish_many(js, stream, "ab")

    expect_stored(js, stream, [3, 5, 6], 6)


@pytest.mark.parametrize(
    ("old", "new"),
    [("limits", "workqueue"), ("interest", "workqueue"), ("workqueue", "limits"), ("workqueue", "interest")],
)
def test_work_queue_stays_one(js: JetStream, stream: str, old: str, new: str) -> None:
    js.create(stream, retention=old)

    answer = js.try_update(stream, retention=new)

    description = "stream configuration update can not change retention policy to/from workqueue"
    assert jetstream.error_of(answer) == (500, 10052, description)


# Purges


@KEEPING
def test_purge_takes_what_was_delivered_and_what_was_not(
    js: JetStream, watch: Watch, stream: str, retention: str
) -> None:
    js.create(stream, retention=retention)
    create_durable(js, stream, "C", ack_wait=60 * SECOND_NS)
    publish_many(js, stream, "abc")
    watch.fetch(stream, "C", 2)

    assert js.api(f"STREAM.PURGE.{stream}")["purged"] == 3

    expect_stored(js, stream, [], 3)
    wait_for_consumer(js, stream, "C", lambda info: info["num_ack_pending"] == info["num_pending"] == 0)
    assert js.publish(f"{stream}.d")["seq"] == 4
    assert sequences_of(watch.fetch(stream, "C", 1)) == [4]
