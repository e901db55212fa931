"""Mirrors: streams that have the messages of another one, with the same sequences and times."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.compatibility import jetstream
from tests.compatibility.jetstream import API, SECOND_NS, JetStream, Json
from tests.compatibility.origins import (
    MISSING,
    PATIENCE_SECONDS,
    payloads,
    publish_numbers,
    stored,
    wait_for_messages,
    wait_for_sequence,
    wait_until,
)

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream

TIME_TO_LIVE = "4s"
"""Long enough for a message to reach another stream before it goes, also on a machine that is busy."""

pytestmark = pytest.mark.parametrize("storage", ["file", "memory"])


@pytest.fixture
def mirror(js: JetStream, stream: str, storage: str) -> Callable[..., str]:
    """A function that makes a mirror of `stream` and returns its name."""

    def make(tail: str = "M", origin: Json | None = None, **config: Any) -> str:
        name = f"{stream}-{tail}"
        js.create(name, storage=storage, mirror={"name": stream, **(origin or {})}, **config)
        return name

    return make


# Messages


def test_mirror_has_the_messages_of_its_origin(
    js: JetStream, stream: str, storage: str, mirror: Callable[..., str]
) -> None:
    js.create(stream, storage=storage)
    for number in range(5):
        js.publish(f"{stream}.{number % 2}", b"%d" % number, {"Nats-Msg-Id": f"id{number}"})
    name = mirror()
    wait_for_messages(js, name, 5)

    publish_numbers(js, f"{stream}.x", 2)
    wait_for_messages(js, name, 7)

    before, after = js.state(stream), js.state(name)
    assert after == before
    for sequence in range(1, 8):
        assert js.get(name, seq=sequence) == js.get(stream, seq=sequence)


def test_messages_that_are_gone_leave_gaps(
    js: JetStream, stream: str, storage: str, mirror: Callable[..., str]
) -> None:
    js.create(stream, storage=storage)
    publish_numbers(js, f"{stream}.a", 9)
    for sequence in (1, 2, 5, 7):
        js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": sequence})

    name = mirror()

    wait_for_messages(js, name, 5)
    state = js.state(name, {"deleted_details": True})
    assert (state["first_seq"], state["last_seq"], state["deleted"]) == (3, 9, [5, 7])
    assert js.sequences(name) == [3, 4, 6, 8, 9]


def test_large_gap_is_passed_over(js: JetStream, stream: str, storage: str, mirror: Callable[..., str]) -> None:
    js.create(stream, storage=storage)
    publish_numbers(js, f"{stream}.a", 2)
    name = mirror()
    wait_for_messages(js, name, 2)

    js.api(f"STREAM.PURGE.{stream}", {"seq": 1_000_000})
    publish_numbers(js, f"{stream}.a", 2, first=3)

    wait_for_messages(js, name, 4)
    assert js.get(name, seq=1_000_001)["data"] == js.get(stream, seq=1_000_001)["data"]
    assert js.error(f"STREAM.MSG.GET.{name}", {"seq": 999_999}) == (404, 10037, "no message found")


def test_purge_and_deletion_at_the_origin_stay_there(
    js: JetStream, stream: str, storage: str, mirror: Callable[..., str]
) -> None:
    js.create(stream, storage=storage)
    publish_numbers(js, f"{stream}.a", 3)
    name = mirror()
    wait_for_messages(js, name, 3)

    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 2})
    js.api(f"STREAM.PURGE.{stream}")
    publish_numbers(js, f"{stream}.a", 1, first=4)

    wait_for_messages(js, name, 4)
    assert payloads(js, name) == ["1", "2", "3", "4"]


def test_purge_and_deletion_at_the_mirror_stay_there(
    js: JetStream, stream: str, storage: str, mirror: Callable[..., str]
) -> None:
    js.create(stream, storage=storage)
    publish_numbers(js, f"{stream}.a", 3)
    name = mirror()
    wait_for_messages(js, name, 3)

    assert js.api(f"STREAM.MSG.DELETE.{name}", {"seq": 3})["success"]
    assert js.api(f"STREAM.PURGE.{name}")["purged"] == 2
    publish_numbers(js, f"{stream}.a", 1, first=4)

    wait_for_messages(js, name, 1)
    assert js.sequences(name) == [4]
    assert js.sequences(stream) == [1, 2, 3, 4]


def test_empty_mirror_begins_where_its_origin_does(
    js: JetStream, stream: str, storage: str, mirror: Callable[..., str]
) -> None:
    js.create(stream, storage=storage, first_seq=1000)
    name = mirror()

    state = wait_for_sequence(js, name, 999)
    publish_numbers(js, f"{stream}.a", 1)

    assert (state["messages"], state["first_seq"], state["last_seq"]) == (0, 1000, 999)
    wait_for_messages(js, name, 1)
    assert js.sequences(name) == [1000]


def test_headers_that_speak_of_the_publish_are_left_behind(
    js: JetStream, stream: str, storage: str, mirror: Callable[..., str]
) -> None:
    js.create(stream, storage=storage, allow_atomic=True, allow_rollup_hdrs=True, allow_msg_ttl=True)
    js.publish(f"{stream}.a", b"1", {"Nats-Expected-Last-Sequence": "0"})
    js.publish(f"{stream}.b", b"2", {"A": "b", "Nats-Expected-Stream": stream, "Nats-Msg-Id": "id", "C": "d"})
    js.publish(f"{stream}.c", b"3", {"Nats-TTL": "1h", "Nats-Rollup": "sub"})
    batch = {"Nats-Batch-Id": "x", "Nats-Batch-Sequence": "1", "Nats-Batch-Commit": "1", "E": "f"}
    js.publish(f"{stream}.d", b"4", batch)

    name = mirror()

    wait_for_messages(js, name, 4)
    assert [message.headers for message in stored(js, name)] == [
        b"",
        b"NATS/1.0\r\nA: b\r\nNats-Msg-Id: id\r\nC: d\r\n\r\n",
        b"NATS/1.0\r\nNats-TTL: 1h\r\nNats-Rollup: sub\r\n\r\n",
        b"NATS/1.0\r\nE: f\r\n\r\n",
    ]


def test_mirror_keeps_what_the_origin_rolls_up(
    js: JetStream, stream: str, storage: str, mirror: Callable[..., str]
) -> None:
    js.create(stream, storage=storage, allow_rollup_hdrs=True)
    publish_numbers(js, f"{stream}.a", 2)
    name = mirror()
    wait_for_messages(js, name, 2)

    js.publish(f"{stream}.a", b"3", {"Nats-Rollup": "sub"})

    wait_for_messages(js, name, 3)
    assert payloads(js, stream) == ["3"]
    assert payloads(js, name) == ["1", "2", "3"]


def test_messages_expire_in_a_mirror_that_allows_it(
    js: JetStream, stream: str, storage: str, mirror: Callable[..., str]
) -> None:
    js.create(stream, storage=storage, allow_msg_ttl=True)
    mortal, eternal = mirror("M", allow_msg_ttl=True), mirror("E")
    js.publish(f"{stream}.a", b"1", {"Nats-TTL": TIME_TO_LIVE})
    publish_numbers(js, f"{stream}.a", 1, first=2)
    wait_for_messages(js, eternal, 2)

    wait_for_messages(js, stream, 1)
    wait_for_messages(js, mortal, 1)

    assert payloads(js, mortal) == ["2"]
    assert payloads(js, eternal) == ["1", "2"]


def test_mirror_has_limits_of_its_own(js: JetStream, stream: str, storage: str, mirror: Callable[..., str]) -> None:
    js.create(stream, storage=storage)
    publish_numbers(js, f"{stream}.a", 5)

    name = mirror(max_msgs=2)

    wait_for_sequence(js, name, 5)
    assert js.sequences(name) == [4, 5]


def test_full_mirror_refuses_nothing_and_waits(
    js: JetStream, stream: str, storage: str, mirror: Callable[..., str]
) -> None:
    js.create(stream, storage=storage)
    publish_numbers(js, f"{stream}.a", 5)

    name = mirror(max_msgs=2, discard="new")

    wait_for_messages(js, name, 2)
    time.sleep(0.3)
    assert js.sequences(name) == [1, 2]
    assert js.info(name)["mirror"]["lag"] > 0


def test_mirror_republishes(js: JetStream, stream: str, storage: str, mirror: Callable[..., str]) -> None:
    js.create(stream, storage=storage)
    name = mirror(republish={"src": ">", "dest": f"out.{stream}.>"})
    js.subscribe(f"out.{stream}.>")

    publish_numbers(js, f"{stream}.a", 1)

    message = js.next(f"out.{stream}.{stream}.a")
    assert (message.data, message.header("Nats-Stream"), message.header("Nats-Sequence")) == (b"1", name, "1")


@pytest.mark.parametrize("retention", ["interest", "workqueue"])
def test_origin_lets_go_of_what_is_mirrored(
    js: JetStream, stream: str, storage: str, mirror: Callable[..., str], retention: str
) -> None:
    js.create(stream, storage=storage, retention=retention)
    name = mirror()
    # Where nobody is interested nothing is kept, and nats-server needs a moment to be.
    wait_until(js, name, lambda _: js.info(name)["mirror"]["active"] >= 0)

    publish_numbers(js, f"{stream}.a", 5)

    wait_for_messages(js, name, 5)
    state = wait_for_messages(js, stream, 0)
    assert (state["first_seq"], state["last_seq"]) == (6, 5)


# Parts of an origin


def test_mirror_with_a_filter_has_only_matching_messages(
    js: JetStream, stream: str, storage: str, mirror: Callable[..., str]
) -> None:
    js.create(stream, storage=storage)
    for number in range(6):
        js.publish(f"{stream}.{'ab'[number % 2]}", b"%d" % number)

    name = mirror(origin={"filter_subject": f"{stream}.b"})

    wait_for_messages(js, name, 3)
    state = js.state(name, {"deleted_details": True})
    assert (state["first_seq"], state["last_seq"], state["deleted"]) == (2, 6, [3, 5])
    assert js.info(name)["mirror"]["filter_subject"] == f"{stream}.b"


def test_subjects_are_transformed_by_the_origin_and_then_by_the_stream(
    js: JetStream, stream: str, storage: str, mirror: Callable[..., str]
) -> None:
    js.create(stream, storage=storage)
    for tail in ("a.1", "b.1", "c.1", "a.2"):
        js.publish(f"{stream}.{tail}")
    transforms = [
        {"src": f"{stream}.a.*", "dest": "x.{{wildcard(1)}}"},
        {"src": f"{stream}.b.*", "dest": ""},
    ]

    name = mirror(
        origin={"subject_transforms": transforms}, subject_transform={"src": "x.*", "dest": "y.{{wildcard(1)}}"}
    )

    wait_for_messages(js, name, 3)
    subjects = [(message.sequence, message.subject) for message in stored(js, name)]
    assert subjects == [(1, "y.1"), (2, f"{stream}.b.1"), (4, "y.2")]
    assert js.info(name)["mirror"]["subject_transforms"] == transforms


@pytest.mark.parametrize("start", [2, 4, 9])
def test_mirror_starts_with_a_sequence(
    js: JetStream, stream: str, storage: str, mirror: Callable[..., str], start: int
) -> None:
    js.create(stream, storage=storage)
    publish_numbers(js, f"{stream}.a", 4)

    name = mirror(origin={"opt_start_seq": start})

    state = wait_for_sequence(js, name, max(4, start - 1))
    assert (state["first_seq"], state["last_seq"]) == (start, max(4, start - 1))


def test_mirror_starts_with_a_time(js: JetStream, stream: str, storage: str, mirror: Callable[..., str]) -> None:
    js.create(stream, storage=storage)
    publish_numbers(js, f"{stream}.a", 4)

    name = mirror(origin={"opt_start_time": js.get(stream, seq=3)["time"]})

    wait_for_messages(js, name, 2)
    assert js.sequences(name) == [3, 4]


# Origins that come and go


def test_mirror_of_nothing_says_so_and_waits(
    js: JetStream, stream: str, storage: str, mirror: Callable[..., str]
) -> None:
    name = mirror()
    wait_until(js, name, lambda _: "error" in js.info(name)["mirror"])
    missing = js.info(name)["mirror"]

    js.create(stream, storage=storage)
    begun_at = time.monotonic()
    publish_numbers(js, f"{stream}.a", 2)

    wait_for_messages(js, name, 2)
    found = js.info(name)["mirror"]
    passed_ns = (time.monotonic() - begun_at) * SECOND_NS
    assert missing == {"name": stream, "lag": 0, "active": -1, "error": MISSING}
    assert list(found) == ["name", "lag", "active"]
    assert (found["lag"], 0 <= found["active"] < passed_ns) == (0, True)


def test_mirror_goes_on_behind_its_own_last_message_when_its_origin_is_made_again(
    js: JetStream, stream: str, storage: str, mirror: Callable[..., str]
) -> None:
    js.create(stream, storage=storage)
    publish_numbers(js, f"{stream}.a", 2)
    name = mirror()
    wait_for_messages(js, name, 2)

    js.api(f"STREAM.DELETE.{stream}")
    js.create(stream, storage=storage)
    for payload in (b"x", b"y", b"z"):
        js.publish(f"{stream}.a", payload)

    wait_for_messages(js, name, 3)
    assert payloads(js, name) == ["1", "2", "z"]


def test_mirrors_can_be_chained(js: JetStream, stream: str, storage: str, mirror: Callable[..., str]) -> None:
    js.create(stream, storage=storage)
    first = mirror()
    second = f"{stream}-MM"
    js.create(second, storage=storage, mirror={"name": first})

    publish_numbers(js, f"{stream}.a", 3)
    wait_for_messages(js, second, 3)
    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 2})
    js.api(f"STREAM.PURGE.{first}")
    publish_numbers(js, f"{stream}.a", 1, first=4)

    wait_for_messages(js, second, 4)
    assert payloads(js, second) == ["1", "2", "3", "4"]


def test_promoted_mirror_takes_publishes_and_nothing_from_its_origin(
    js: JetStream, stream: str, storage: str, mirror: Callable[..., str]
) -> None:
    js.create(stream, storage=storage)
    publish_numbers(js, f"{stream}.a", 2)
    name = mirror()
    wait_for_messages(js, name, 2)

    config = {"name": name, "storage": storage, "subjects": [f"{name}.>"]}
    promoted = js.api(f"STREAM.UPDATE.{name}", config)
    publish_numbers(js, f"{stream}.a", 1, first=3)
    own = js.publish(f"{name}.a", b"own")
    time.sleep(0.3)

    assert "mirror" not in promoted
    assert own == {"stream": name, "seq": 3}
    assert payloads(js, name) == ["1", "2", "own"]


# Requests


def test_mirror_answers_direct_gets_of_its_origin(
    js: JetStream, stream: str, storage: str, mirror: Callable[..., str]
) -> None:
    js.create(stream, storage=storage, allow_direct=True)
    publish_numbers(js, f"{stream}.a", 1)
    name = mirror(mirror_direct=True)
    wait_for_messages(js, name, 1)

    answering: set[str | None] = set()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(answering) < 2 and time.monotonic() < deadline:
        answering.add(js.request(f"{API}DIRECT.GET.{stream}.{stream}.a").header("Nats-Stream"))

    assert answering == {stream, name}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"subjects": ["x"]}, (400, 10034, "stream mirrors can not contain subjects")),
        ({"first_seq": 5}, (400, 10143, "stream mirrors can not have first sequence configured")),
        ({"sources": [{"name": "X"}]}, (400, 10031, "stream mirrors can not also contain other sources")),
        ({"mirror": {"name": "a.b"}}, (400, 10142, "mirrored stream name is invalid")),
    ],
)
def test_mirror_cannot_be_everything(
    js: JetStream, stream: str, storage: str, config: Json, expected: tuple[int, int, str]
) -> None:
    assert js.create_error(stream, storage=storage, **{"mirror": {"name": "O"}, **config}) == expected
