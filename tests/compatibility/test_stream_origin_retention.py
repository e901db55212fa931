"""What an origin keeps that has messages only until they are taken: until each source that takes them has them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.compatibility import consumers, jetstream
from tests.compatibility.consumers import Puller
from tests.compatibility.jetstream import Json
from tests.compatibility.origins import (
    payloads,
    publish_numbers,
    wait_for_messages,
    wait_for_sequence,
    wait_for_sources,
    wait_until,
)

js, js_server, stream = consumers.js, jetstream.js_server, jetstream.stream


@pytest.fixture(params=["file", "memory"])
def storage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def target(js: Puller, stream: str, storage: str) -> Callable[..., str]:
    """A function that makes a stream with sources, and returns its name."""

    def make(*sources: Json, tail: str = "T", **config: Any) -> str:
        name = f"{stream}-{tail}"
        js.create(name, storage=storage, sources=list(sources), **config)
        return name

    return make


# Several sources


def test_origin_keeps_nothing_that_its_sources_do_not_take(
    js: Puller, stream: str, storage: str, target: Callable[..., str]
) -> None:
    js.create(stream, storage=storage, retention="interest")
    name = target({"name": stream, "filter_subject": f"{stream}.a.*"})
    wait_for_sources(js, name)

    for tail in ("a.1", "b.1", "a.2"):
        assert "error" not in js.publish(f"{stream}.{tail}", tail.encode())

    wait_for_messages(js, name, 2)
    state = wait_for_messages(js, stream, 0)
    assert payloads(js, name) == ["a.1", "a.2"]
    assert state["last_seq"] == 3


@pytest.mark.parametrize("retention", ["interest", "workqueue"])
def test_origin_lets_go_of_what_two_sources_of_one_stream_took(
    js: Puller, stream: str, storage: str, target: Callable[..., str], retention: str
) -> None:
    js.create(stream, storage=storage, retention=retention)
    name = target(*({"name": stream, "filter_subject": f"{stream}.{tail}.>"} for tail in "ab"))
    wait_for_sources(js, name)

    for number in range(3):
        for tail in "ab":
            assert "error" not in js.publish(f"{stream}.{tail}.{number}")

    wait_for_messages(js, name, 6)
    wait_for_messages(js, stream, 0)


@pytest.mark.parametrize("retention", ["interest", "workqueue"])
def test_origin_lets_go_of_what_two_streams_took(
    js: Puller, stream: str, storage: str, target: Callable[..., str], retention: str
) -> None:
    js.create(stream, storage=storage, retention=retention)
    names = [target({"name": stream, "filter_subject": f"{stream}.{tail}.>"}, tail=tail) for tail in "ab"]
    for name in names:
        wait_for_sources(js, name)

    for number in range(4):
        for tail in "ab":
            assert "error" not in js.publish(f"{stream}.{tail}.{number}")

    for name in names:
        wait_for_messages(js, name, 4)
    wait_for_messages(js, stream, 0)


def test_source_that_is_behind_loses_nothing_by_another_of_its_stream(
    js: Puller, stream: str, storage: str, target: Callable[..., str]
) -> None:
    js.create(stream, storage=storage, retention="interest")
    js.subscribe(f"delivered.{stream}")
    consumers.add(js, stream, "c", ack_policy="none", deliver_subject=f"delivered.{stream}")
    # With a limit for each subject the stream writes down how far one source is before it goes on with the other.
    sources = [{"name": stream, "filter_subject": f"{stream}.{tail}.>"} for tail in "ab"]
    name = target(*sources, max_msgs_per_subject=5)
    wait_for_sources(js, name)

    for burst in range(20):
        for number in range(10):
            for tail in "ab":
                js.send(f"{stream}.{tail}.{burst}.{number}")
        js.flush()
        time.sleep(0.02)

    wait_for_messages(js, name, 400)
    wait_for_messages(js, stream, 0)


def test_source_that_is_held_up_finds_what_it_has_not_taken(
    js: Puller, stream: str, storage: str, target: Callable[..., str]
) -> None:
    js.create(stream, storage=storage, retention="interest")
    consumer = consumers.add(js, stream, "c")
    name = target(
        {"name": stream, "filter_subject": f"{stream}.a.>"},
        {"name": stream, "subject_transforms": [{"src": f"{stream}.b.*", "dest": f"{stream}.b"}]},
        max_msgs_per_subject=1,
        discard="new",
        discard_new_per_subject=True,
    )
    wait_for_sources(js, name)
    js.publish(f"{stream}.b.1", b"b.1")
    wait_for_messages(js, name, 1)
    js.publish(f"{stream}.b.2", b"b.2")
    js.publish(f"{stream}.a.1", b"a.1")
    wait_for_messages(js, name, 2)

    consumer.acknowledge_each(consumer.take(3))

    time.sleep(0.5)
    assert 2 in js.sequences(stream)
    js.api(f"STREAM.PURGE.{name}", {"filter": f"{stream}.b"})
    wait_for_messages(js, name, 2)
    assert payloads(js, name) == ["a.1", "b.2"]


# Beside consumers


def test_queue_loses_what_its_source_took_whoever_reads_the_rest(
    js: Puller, stream: str, storage: str, target: Callable[..., str]
) -> None:
    js.create(stream, storage=storage, retention="workqueue")
    consumer = consumers.add(js, stream, "c", filter_subject=f"{stream}.a.>")
    name = target({"name": stream, "filter_subject": f"{stream}.b.>"})
    wait_for_sources(js, name)

    for number in range(3):
        for tail in "ab":
            js.publish(f"{stream}.{tail}.{number}")

    wait_for_messages(js, name, 3)
    wait_until(js, stream, lambda _: js.sequences(stream) == [1, 3, 5])
    consumer.acknowledge_each(consumer.take(3))
    wait_for_messages(js, stream, 0)


def test_queue_keeps_what_was_acknowledged_until_its_source_has_it(
    js: Puller, stream: str, storage: str, target: Callable[..., str]
) -> None:
    js.create(stream, storage=storage, retention="workqueue")
    consumer = consumers.add(js, stream, "c")
    name = target({"name": stream}, max_msgs=1, discard="new")
    wait_for_sources(js, name)
    publish_numbers(js, f"{stream}.a", 2)
    wait_for_messages(js, name, 1)

    consumer.acknowledge_each(consumer.take(2))

    time.sleep(0.2)
    assert 2 in js.sequences(stream)
    js.api(f"STREAM.PURGE.{name}")
    wait_until(js, name, lambda state: state["messages"] == 1)
    assert payloads(js, name) == ["2"]


def test_queue_lets_go_of_what_was_acknowledged_though_its_source_is_taken_away(
    js: Puller, stream: str, storage: str, target: Callable[..., str], server_kind: str
) -> None:
    if server_kind != "jetlake":
        pytest.skip("nats-server keeps it: see differences.md")
    js.create(stream, storage=storage, retention="workqueue")
    consumer = consumers.add(js, stream, "c")
    blocked = target({"name": stream}, max_msgs=1, discard="new", tail="B")
    taking = target({"name": stream})
    publish_numbers(js, f"{stream}.a", 4)
    wait_for_messages(js, blocked, 1)
    wait_for_messages(js, taking, 4)
    consumer.acknowledge_each(consumer.take(3))
    assert js.sequences(stream) == [2, 3, 4]

    js.update(blocked, sources=[])

    wait_until(js, stream, lambda _: js.sequences(stream) == [4])
    consumer.acknowledge(consumer.take_one())
    wait_for_messages(js, stream, 0)


def test_queue_lets_go_of_what_its_sources_took_when_one_of_them_is_taken_away(
    js: Puller, stream: str, storage: str, target: Callable[..., str], server_kind: str
) -> None:
    if server_kind != "jetlake":
        pytest.skip("nats-server keeps it: see differences.md")
    js.create(stream, storage=storage, retention="workqueue")
    blocked = target({"name": stream}, max_msgs=1, discard="new", tail="B")
    taking = target({"name": stream})
    publish_numbers(js, f"{stream}.a", 4)
    wait_for_messages(js, blocked, 1)
    wait_for_messages(js, taking, 4)
    wait_until(js, stream, lambda _: js.sequences(stream) == [2, 3, 4])

    js.update(blocked, sources=[])

    wait_for_messages(js, stream, 0)


def test_queue_that_was_made_again_keeps_what_its_mirror_passes_over(js: Puller, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, retention="workqueue")
    name = f"{stream}-T"
    js.create(name, storage=storage, mirror={"name": stream})
    publish_numbers(js, f"{stream}.a", 3)
    wait_for_messages(js, name, 3)
    wait_for_messages(js, stream, 0)

    js.api(f"STREAM.DELETE.{stream}")
    js.create(stream, storage=storage, retention="workqueue")
    publish_numbers(js, f"{stream}.a", 4)

    # The mirror goes on behind what it has.
    wait_for_sequence(js, name, 4)
    time.sleep(0.2)
    assert js.sequences(stream)[:3] == [1, 2, 3]


# Where to start


@pytest.mark.parametrize("start", ["sequence", "time"])
def test_queue_keeps_what_comes_before_the_start_of_its_source(
    js: Puller, stream: str, storage: str, target: Callable[..., str], start: str
) -> None:
    js.create(stream, storage=storage, retention="workqueue")
    publish_numbers(js, f"{stream}.a", 5)
    starts = {"sequence": {"opt_start_seq": 4}, "time": {"opt_start_time": js.get(stream, seq=4)["time"]}}

    name = target({"name": stream, **starts[start]})

    wait_for_messages(js, name, 2)
    wait_until(js, stream, lambda _: js.sequences(stream) == [1, 2, 3])
    publish_numbers(js, f"{stream}.a", 1, first=6)
    wait_for_messages(js, name, 3)
    wait_until(js, stream, lambda _: js.sequences(stream) == [1, 2, 3])
    assert payloads(js, name) == ["4", "5", "6"]


def test_queue_keeps_what_its_source_has_begun_behind_though_it_is_to_start_earlier_now(
    js: Puller, stream: str, storage: str, target: Callable[..., str]
) -> None:
    js.create(stream, storage=storage, retention="workqueue")
    publish_numbers(js, f"{stream}.a", 5)
    name = target({"name": stream, "opt_start_seq": 4})
    wait_for_messages(js, name, 2)

    js.update(name, sources=[{"name": stream, "opt_start_seq": 1}])

    publish_numbers(js, f"{stream}.a", 1, first=6)
    wait_for_messages(js, name, 3)
    time.sleep(0.2)
    assert js.sequences(stream)[:3] == [1, 2, 3]
