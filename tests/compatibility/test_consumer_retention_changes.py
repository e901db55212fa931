"""Streams that keep a message only as long as a consumer needs it, when the consumer changes: nothing is lost unread.

A work queue removes what was acknowledged and nothing else, whatever its consumers are updated or reset to. An interest
stream also removes what no consumer asks for any more.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compatibility import consumer_watch, jetstream
from tests.compatibility.consumer_watch import (
    Watch,
    consumer_info,
    create_durable,
    delete_consumer,
    numbers_of,
    publish_many,
    sequences_of,
)
from tests.compatibility.jetstream import SECOND_NS, JetStream
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.test_consumer_restart import wait_until_written
from tests.compatibility.test_consumer_retention import expect_stored

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream
start_jetstream, watch = jetstream.start_jetstream, consumer_watch.watch

STORAGES = pytest.mark.parametrize("storage", ["file", "memory"])


def reset(js: JetStream, stream: str, name: str, sequence: int) -> None:
    answer = js.api(f"CONSUMER.RESET.{stream}.{name}", {"seq": sequence})
    assert "error" not in answer, answer


def acknowledge_next(watch: Watch, stream: str, name: str, count: int) -> list[int]:
    """Fetch and acknowledge messages; return their sequences."""
    messages = watch.fetch(stream, name, count)
    for message in messages:
        watch.acknowledge(message)
    return sequences_of(messages)


# Work queues


@STORAGES
@pytest.mark.parametrize("tails", ["", "b", "c", ">"], ids=["all", "b", "c", "wildcard"])
def test_work_queue_keeps_what_its_consumer_passed_over_when_the_filter_changes(
    js: JetStream, watch: Watch, stream: str, storage: str, tails: str
) -> None:
    js.create(stream, retention="workqueue", storage=storage)
    publish_many(js, stream, "bbaab")
    create_durable(js, stream, "W", filter_subject=f"{stream}.a")
    assert acknowledge_next(watch, stream, "W", 2) == [3, 4]
    expect_stored(js, stream, [1, 2, 5], 5)

    create_durable(js, stream, "W", **({"filter_subject": f"{stream}.{tails}"} if tails else {}))

    expect_stored(js, stream, [1, 2, 5], 5)
    expected = {"": 1, "b": 1, "c": 0, ">": 1}[tails]
    assert numbers_of(consumer_info(js, stream, "W")) == (2, 4, 2, 4, 0, expected)


@STORAGES
def test_work_queue_keeps_what_a_reset_passes_over(js: JetStream, watch: Watch, stream: str, storage: str) -> None:
    js.create(stream, retention="workqueue", storage=storage)
    publish_many(js, stream, "abababab")
    create_durable(js, stream, "W")

    reset(js, stream, "W", 5)

    expect_stored(js, stream, [1, 2, 3, 4, 5, 6, 7, 8], 8)
    assert acknowledge_next(watch, stream, "W", 1) == [5]
    expect_stored(js, stream, [1, 2, 3, 4, 6, 7, 8], 8)
    reset(js, stream, "W", 2)
    assert acknowledge_next(watch, stream, "W", 4) == [2, 3, 4, 6]
    expect_stored(js, stream, [1, 7, 8], 8)


def test_work_queue_keeps_what_is_under_way_when_a_reset_forgets_it(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream, retention="workqueue")
    publish_many(js, stream, "abcd")
    create_durable(js, stream, "W")
    messages = watch.fetch(stream, "W", 3)

    reset(js, stream, "W", 4)

    expect_stored(js, stream, [1, 2, 3, 4], 4)
    watch.acknowledge(messages[1])
    expect_stored(js, stream, [1, 3, 4], 4)


def test_work_queue_keeps_an_acknowledged_message_that_another_consumer_asks_for_now(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream, retention="workqueue")
    publish_many(js, stream, "aabb")
    create_durable(js, stream, "W", filter_subject=f"{stream}.a")
    first, _ = watch.fetch(stream, "W", 2)
    create_durable(js, stream, "W", filter_subject=f"{stream}.b")
    create_durable(js, stream, "V", filter_subject=f"{stream}.a")

    watch.acknowledge(first)

    expect_stored(js, stream, [1, 2, 3, 4], 4)
    assert acknowledge_next(watch, stream, "V", 1) == [1]
    expect_stored(js, stream, [2, 3, 4], 4)


def test_work_queue_keeps_everything_when_something_else_of_its_consumer_changes(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream, retention="workqueue")
    publish_many(js, stream, "abcdef")
    create_durable(js, stream, "W")
    reset(js, stream, "W", 4)
    watch.fetch(stream, "W", 1)

    create_durable(js, stream, "W", description="changed", max_ack_pending=5)

    expect_stored(js, stream, [1, 2, 3, 4, 5, 6], 6)
    delete_consumer(js, stream, "W")
    expect_stored(js, stream, [1, 2, 3, 4, 5, 6], 6)


@pytest.mark.parametrize("change", ["reset", "filter"])
def test_work_queue_keeps_over_a_restart_what_its_consumer_passed_over(
    start_jetstream: Callable[..., ServerProcess], tmp_path: Path, stream: str, change: str
) -> None:
    server = start_jetstream(store=tmp_path)
    with JetStream(server) as js, Watch(server) as watch:
        js.create(stream, retention="workqueue")
        publish_many(js, stream, "bbaab")
        create_durable(js, stream, "W", filter_subject=f"{stream}.a")
        if change == "reset":
            reset(js, stream, "W", 4)
        else:
            assert acknowledge_next(watch, stream, "W", 2) == [3, 4]
            create_durable(js, stream, "W", filter_subject=f"{stream}.b")
        before = js.sequences(stream)
        wait_until_written(js)
    server.signal(signal.SIGKILL)
    server.wait_for_exit()

    server = start_jetstream(store=tmp_path)

    with JetStream(server) as js:
        assert before == ([1, 2, 3, 4, 5] if change == "reset" else [1, 2, 5])
        expect_stored(js, stream, before, 5)


def test_message_that_was_acknowledged_before_a_crash_is_removed_after_it(
    start_jetstream: Callable[..., ServerProcess], tmp_path: Path, stream: str
) -> None:
    server = start_jetstream(store=tmp_path)
    with JetStream(server) as js, Watch(server) as watch:
        js.create(stream, retention="workqueue")
        publish_many(js, stream, "abcd")
        create_durable(js, stream, "W")
        messages = watch.fetch(stream, "W", 3)
        for index in (0, 2):
            watch.acknowledge(messages[index])
        wait_until_written(js)
    server.signal(signal.SIGKILL)
    server.wait_for_exit()

    server = start_jetstream(store=tmp_path)

    with JetStream(server) as js:
        expect_stored(js, stream, [2, 4], 4)


# Interest streams


@STORAGES
def test_interest_stream_removes_what_a_changed_filter_leaves_to_nobody(
    js: JetStream, watch: Watch, stream: str, storage: str
) -> None:
    js.create(stream, retention="interest", storage=storage)
    create_durable(js, stream, "C")
    create_durable(js, stream, "D", filter_subject=f"{stream}.c")
    publish_many(js, stream, "abcabc")
    assert acknowledge_next(watch, stream, "C", 3) == [1, 2, 3]
    expect_stored(js, stream, [3, 4, 5, 6], 6)

    create_durable(js, stream, "C", filter_subject=f"{stream}.b")

    expect_stored(js, stream, [3, 5, 6], 6)
    assert numbers_of(consumer_info(js, stream, "C")) == (3, 3, 3, 3, 0, 1)
    assert numbers_of(consumer_info(js, stream, "D")) == (0, 0, 0, 0, 0, 2)


@STORAGES
def test_interest_stream_removes_what_a_reset_leaves_to_nobody(
    js: JetStream, watch: Watch, stream: str, storage: str
) -> None:
    js.create(stream, retention="interest", storage=storage)
    create_durable(js, stream, "C")
    create_durable(js, stream, "D", filter_subject=f"{stream}.b")
    publish_many(js, stream, "abababab")
    watch.fetch(stream, "C", 2)

    reset(js, stream, "C", 6)

    expect_stored(js, stream, [2, 4, 6, 7, 8], 8)
    reset(js, stream, "C", 1)
    expect_stored(js, stream, [2, 4, 6, 7, 8], 8)
    assert acknowledge_next(watch, stream, "C", 3) == [2, 4, 6]
    expect_stored(js, stream, [2, 4, 6, 7, 8], 8)


def test_interest_stream_keeps_what_was_given_up_when_its_consumer_changes(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream, retention="interest")
    create_durable(js, stream, "C", max_deliver=1, ack_wait=SECOND_NS // 10)
    publish_many(js, stream, "abab")
    watch.fetch(stream, "C", 2)
    consumer_watch.wait_for_consumer(js, stream, "C", lambda info: info["num_ack_pending"] == 0)
    assert acknowledge_next(watch, stream, "C", 2) == [3, 4]
    expect_stored(js, stream, [1, 2], 4)

    create_durable(js, stream, "C", max_deliver=1, ack_wait=SECOND_NS // 10, filter_subject=f"{stream}.b")

    expect_stored(js, stream, [1, 2], 4)


def test_interest_stream_keeps_everything_when_something_else_of_its_consumer_changes(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream, retention="interest")
    create_durable(js, stream, "C")
    create_durable(js, stream, "D", filter_subject=f"{stream}.b")
    publish_many(js, stream, "abab")
    watch.fetch(stream, "C", 1)
    watch.fetch(stream, "D", 1)

    create_durable(js, stream, "C", description="changed", max_ack_pending=5)

    expect_stored(js, stream, [1, 2, 3, 4], 4)
    assert numbers_of(consumer_info(js, stream, "C")) == (1, 1, 0, 0, 1, 3)
