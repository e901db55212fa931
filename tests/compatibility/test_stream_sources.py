"""Sources: streams that take messages of others, beside those that are published to them."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.compatibility import jetstream
from tests.compatibility.jetstream import SECOND_NS, JetStream, Json
from tests.compatibility.origins import (
    MISSING,
    identity,
    payloads,
    publish_numbers,
    stored,
    wait_for_messages,
    wait_for_sequence,
    wait_for_sources,
    wait_until,
)
from tests.compatibility.server_process import ServerProcess

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream
start_jetstream = jetstream.start_jetstream

TIME_TO_LIVE = "4s"
"""Long enough for a message to reach another stream before it goes, also on a machine that is busy."""


@pytest.fixture(params=["file", "memory"])
def storage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def target(js: JetStream, stream: str, storage: str) -> Callable[..., str]:
    """A function that makes a stream with sources, and returns its name."""

    def make(*sources: Json, tail: str = "T", **config: Any) -> str:
        name = f"{stream}-{tail}"
        js.create(name, storage=storage, sources=list(sources), **config)
        return name

    return make


def with_source(headers: str, source: str) -> bytes:
    return f"NATS/1.0\r\n{headers}Nats-Stream-Source: {source}\r\n\r\n".encode()


# Messages


def test_message_says_where_it_comes_from(js: JetStream, stream: str, storage: str, target: Callable[..., str]) -> None:
    js.create(stream, storage=storage)
    js.publish(f"{stream}.a", b"1")
    js.publish(f"{stream}.b", b"2", {"A": "b", "Nats-Expected-Last-Sequence": "1", "Nats-Msg-Id": "x"})

    name = target({"name": stream})

    wait_for_messages(js, name, 2)
    created = identity(js, stream)
    assert stored(js, name) == [
        (1, f"{stream}.a", with_source("", f"{stream} 1 > > {stream}.a {created}"), b"1"),
        (2, f"{stream}.b", with_source("A: b\r\nNats-Msg-Id: x\r\n", f"{stream} 2 > > {stream}.b {created}"), b"2"),
    ]
    assert js.get(name, seq=1)["time"] > js.get(stream, seq=2)["time"]


def test_message_that_comes_a_long_way_names_its_last_station(
    js: JetStream, stream: str, storage: str, target: Callable[..., str]
) -> None:
    js.create(stream, storage=storage)
    first = target({"name": stream})
    second = target({"name": first}, tail="U")

    js.publish(f"{stream}.a", b"1", {"A": "b"})

    wait_for_messages(js, second, 1)
    headers = with_source("A: b\r\n", f"{first} 1 > > {stream}.a {identity(js, first)}")
    assert stored(js, second) == [(1, f"{stream}.a", headers, b"1")]


def test_filters_and_transforms_stand_in_the_header(
    js: JetStream, stream: str, storage: str, target: Callable[..., str]
) -> None:
    js.create(stream, storage=storage)
    for tail in ("a", "b", "c"):
        js.publish(f"{stream}.{tail}", tail.encode())
    transforms = [{"src": f"{stream}.a", "dest": "tr.one"}, {"src": f"{stream}.c", "dest": ""}]

    name = target({"name": stream, "subject_transforms": transforms})
    filtered = target({"name": stream, "filter_subject": f"{stream}.b"}, tail="F")

    wait_for_messages(js, name, 2)
    wait_for_messages(js, filtered, 1)
    tail = f"{stream}.a\f{stream}.c tr.one\f>"
    created = identity(js, stream)
    assert stored(js, name) == [
        (1, "tr.one", with_source("", f"{stream} 1 {tail} {stream}.a {created}"), b"a"),
        (2, f"{stream}.c", with_source("", f"{stream} 3 {tail} {stream}.c {created}"), b"c"),
    ]
    assert stored(js, filtered)[0].headers == with_source("", f"{stream} 2 {stream}.b > {stream}.b {created}")
    assert js.info(name)["sources"][0]["subject_transforms"] == transforms
    assert js.info(filtered)["sources"][0]["filter_subject"] == f"{stream}.b"


def test_stream_transforms_what_its_sources_bring(
    js: JetStream, stream: str, storage: str, target: Callable[..., str]
) -> None:
    js.create(stream, storage=storage)
    js.publish(f"{stream}.a")

    name = target(
        {"name": stream, "subject_transforms": [{"src": f"{stream}.*", "dest": "x.$1"}]},
        subject_transform={"src": "x.*", "dest": "y.$1"},
    )

    wait_for_messages(js, name, 1)
    assert stored(js, name)[0].subject == "y.a"


def test_several_sources_and_publishes_share_one_stream(
    js: JetStream, stream: str, storage: str, target: Callable[..., str]
) -> None:
    others = [f"{stream}-{number}" for number in range(3)]
    for other in others:
        js.create(other, storage=storage)
    name = target(*({"name": other} for other in others))

    for number in range(1, 5):
        for other in others:
            js.publish(f"{other}.a", b"%d" % number)
        assert js.publish(f"{name}.a", b"%d" % number)["stream"] == name

    wait_for_messages(js, name, 16)
    messages = stored(js, name)
    for source in (*others, name):
        assert [message.payload for message in messages if message.subject == f"{source}.a"] == [b"1", b"2", b"3", b"4"]
    positions = {source["name"]: source["seq"] for source in js.info(name)["sources"]}
    assert positions == dict.fromkeys(others, 4)


def test_one_origin_may_be_two_sources(js: JetStream, stream: str, storage: str, target: Callable[..., str]) -> None:
    js.create(stream, storage=storage)
    for tail in ("a", "b", "a"):
        js.publish(f"{stream}.{tail}", tail.encode())

    name = target(
        {"name": stream, "filter_subject": f"{stream}.a"},
        {"name": stream, "subject_transforms": [{"src": f"{stream}.b", "dest": "z"}]},
    )

    wait_for_messages(js, name, 3)
    assert sorted(message.subject for message in stored(js, name)) == [f"{stream}.a", f"{stream}.a", "z"]


def test_ids_are_known_to_a_stream_that_remembers_them(
    js: JetStream, stream: str, storage: str, target: Callable[..., str]
) -> None:
    js.create(stream, storage=storage)
    remembers = target({"name": stream}, duplicate_window=100 * SECOND_NS)
    forgets = target({"name": stream}, tail="F")
    own = js.publish(f"{remembers}.a", b"own", {"Nats-Msg-Id": "x"})
    js.publish(f"{forgets}.a", b"own", {"Nats-Msg-Id": "x"})

    js.publish(f"{stream}.a", b"1", {"Nats-Msg-Id": "x"})
    js.publish(f"{stream}.a", b"2", {"Nats-Msg-Id": "y"})

    wait_for_messages(js, remembers, 2)
    wait_for_messages(js, forgets, 3)
    assert payloads(js, remembers) == ["own", "2"]
    again = js.publish(f"{remembers}.a", b"", {"Nats-Msg-Id": "y"})
    assert (own["seq"], again) == (1, {"stream": remembers, "seq": 2, "duplicate": True})
    assert js.info(remembers)["sources"][0]["seq"] == 2


def test_rollup_is_done_where_it_is_allowed_and_kept_where_not(
    js: JetStream, stream: str, storage: str, target: Callable[..., str]
) -> None:
    js.create(stream, storage=storage, allow_rollup_hdrs=True)
    rolls = target({"name": stream}, allow_rollup_hdrs=True)
    keeps = target({"name": stream}, tail="K")
    publish_numbers(js, f"{stream}.a", 2)
    wait_for_messages(js, rolls, 2)
    wait_for_messages(js, keeps, 2)

    js.publish(f"{stream}.a", b"3", {"Nats-Rollup": "sub"})

    wait_for_sequence(js, rolls, 3)
    wait_for_messages(js, keeps, 3)
    wait_for_messages(js, rolls, 1)
    assert payloads(js, rolls) == ["3"]
    assert payloads(js, keeps) == ["1", "2", "3"]


def test_time_to_live_holds_where_it_is_allowed(
    js: JetStream, stream: str, storage: str, target: Callable[..., str]
) -> None:
    js.create(stream, storage=storage, allow_msg_ttl=True)
    mortal = target({"name": stream}, allow_msg_ttl=True)
    eternal = target({"name": stream}, tail="E")
    js.publish(f"{stream}.a", b"1", {"Nats-TTL": TIME_TO_LIVE})
    js.publish(f"{stream}.a", b"2")

    wait_for_messages(js, eternal, 2)
    wait_for_sequence(js, mortal, 2)
    wait_for_messages(js, mortal, 1)

    assert payloads(js, mortal) == ["2"]
    assert payloads(js, eternal) == ["1", "2"]


def test_stream_without_interest_counts_what_its_sources_bring(
    js: JetStream, stream: str, storage: str, target: Callable[..., str]
) -> None:
    js.create(stream, storage=storage)
    publish_numbers(js, f"{stream}.a", 3)

    name = target({"name": stream}, retention="interest")

    state = wait_for_sequence(js, name, 3)
    assert state["messages"] == 0


def test_full_stream_makes_its_sources_wait(
    js: JetStream, stream: str, storage: str, target: Callable[..., str]
) -> None:
    js.create(stream, storage=storage)
    publish_numbers(js, f"{stream}.a", 5)
    name = target({"name": stream}, discard="new", max_msgs=2)
    wait_for_messages(js, name, 2)
    time.sleep(0.3)
    assert payloads(js, name) == ["1", "2"]
    assert js.info(name)["sources"][0]["lag"] > 0

    js.api(f"STREAM.PURGE.{name}")

    wait_for_messages(js, name, 2)
    assert payloads(js, name) == ["3", "4"]


def test_sources_are_republished(js: JetStream, stream: str, storage: str, target: Callable[..., str]) -> None:
    js.create(stream, storage=storage)
    name = target({"name": stream}, republish={"src": f"{stream}.>", "dest": f"out.{stream}.>"})
    js.subscribe(f"out.{stream}.>")

    js.publish(f"{stream}.a", b"1")

    message = js.next(f"out.{stream}.a")
    assert (message.header("Nats-Stream"), message.header("Nats-Subject")) == (name, f"{stream}.a")
    assert message.header("Nats-Stream-Source") == f"{stream} 1 > > {stream}.a {identity(js, stream)}"


@pytest.mark.parametrize("retention", ["interest", "workqueue"])
def test_origin_lets_go_of_what_was_taken(
    js: JetStream, stream: str, storage: str, target: Callable[..., str], retention: str
) -> None:
    js.create(stream, storage=storage, retention=retention)
    name = target({"name": stream})
    wait_for_sources(js, name)

    publish_numbers(js, f"{stream}.a", 5)

    wait_for_messages(js, name, 5)
    state = wait_for_messages(js, stream, 0)
    assert payloads(js, name) == list("12345")
    assert (state["first_seq"], state["last_seq"]) == (6, 5)


# Where to start


@pytest.mark.parametrize(("start", "expected"), [(1, ["1", "2", "3"]), (3, ["3"]), (9, [])])
def test_source_starts_with_a_sequence(
    js: JetStream, stream: str, storage: str, target: Callable[..., str], start: int, expected: list[str]
) -> None:
    js.create(stream, storage=storage)
    publish_numbers(js, f"{stream}.a", 3)

    name = target({"name": stream, "opt_start_seq": start})

    wait_for_messages(js, name, len(expected))
    time.sleep(0.1)
    assert payloads(js, name) == expected


def test_source_starts_with_a_time(js: JetStream, stream: str, storage: str, target: Callable[..., str]) -> None:
    js.create(stream, storage=storage)
    publish_numbers(js, f"{stream}.a", 4)

    name = target({"name": stream, "opt_start_time": js.get(stream, seq=3)["time"]})

    wait_for_messages(js, name, 2)
    assert payloads(js, name) == ["3", "4"]


def test_sources_may_be_added_and_taken_away(
    js: JetStream, stream: str, storage: str, target: Callable[..., str]
) -> None:
    one, other = f"{stream}-1", f"{stream}-2"
    for origin in (one, other):
        js.create(origin, storage=storage)
        publish_numbers(js, f"{origin}.a", 3)
    name = target({"name": one})
    wait_for_messages(js, name, 3)

    js.update(name, sources=[{"name": other, "opt_start_seq": 2}])
    wait_for_messages(js, name, 5)
    publish_numbers(js, f"{one}.a", 1, first=4)
    time.sleep(0.3)
    without = [message.payload for message in stored(js, name) if message.subject == f"{one}.a"]
    js.update(name, sources=[{"name": other, "opt_start_seq": 2}, {"name": one}])
    wait_for_messages(js, name, 6)

    assert without == [b"1", b"2", b"3"]
    messages = stored(js, name)
    assert [message.payload for message in messages if message.subject == f"{one}.a"] == [b"1", b"2", b"3", b"4"]
    assert [message.payload for message in messages if message.subject == f"{other}.a"] == [b"2", b"3"]
    js.update(name, sources=[])
    assert "sources" not in js.info(name)


# Origins that come and go


def test_source_that_is_not_there_is_waited_for(
    js: JetStream, stream: str, storage: str, target: Callable[..., str]
) -> None:
    name = target({"name": stream})
    wait_until(js, name, lambda _: "error" in js.info(name)["sources"][0])
    missing = js.info(name)["sources"]

    js.create(stream, storage=storage)
    begun_at = time.monotonic()
    publish_numbers(js, f"{stream}.a", 2)

    wait_for_messages(js, name, 2)
    found = js.info(name)["sources"]
    passed_ns = (time.monotonic() - begun_at) * SECOND_NS
    assert missing == [{"name": stream, "lag": 0, "active": -1, "error": MISSING}]
    assert list(found[0]) == ["name", "lag", "seq", "active"]
    assert (found[0]["lag"], found[0]["seq"], 0 <= found[0]["active"] < passed_ns) == (0, 2, True)


def test_origin_made_again_is_taken_from_its_beginning(
    js: JetStream, stream: str, storage: str, target: Callable[..., str]
) -> None:
    js.create(stream, storage=storage)
    publish_numbers(js, f"{stream}.a", 3)
    name = target({"name": stream})
    wait_for_messages(js, name, 3)

    js.api(f"STREAM.DELETE.{stream}")
    js.create(stream, storage=storage)
    for payload in (b"x", b"y"):
        js.publish(f"{stream}.a", payload)

    wait_for_messages(js, name, 5)
    assert payloads(js, name) == ["1", "2", "3", "x", "y"]


def test_purges_and_deletions_at_the_origin_are_passed_over(
    js: JetStream, stream: str, storage: str, target: Callable[..., str]
) -> None:
    js.create(stream, storage=storage)
    publish_numbers(js, f"{stream}.a", 4)
    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 2})
    name = target({"name": stream})
    wait_for_messages(js, name, 3)

    js.api(f"STREAM.PURGE.{stream}", {"seq": 100})
    publish_numbers(js, f"{stream}.a", 1, first=5)

    wait_for_messages(js, name, 4)
    assert payloads(js, name) == ["1", "3", "4", "5"]
    assert js.info(name)["sources"][0]["seq"] == 100


def test_purged_stream_takes_only_what_is_new(
    js: JetStream, stream: str, storage: str, target: Callable[..., str]
) -> None:
    js.create(stream, storage=storage)
    publish_numbers(js, f"{stream}.a", 3)
    name = target({"name": stream})
    wait_for_messages(js, name, 3)

    js.api(f"STREAM.PURGE.{name}")
    publish_numbers(js, f"{stream}.a", 1, first=4)

    wait_for_messages(js, name, 1)
    assert payloads(js, name) == ["4"]
    assert js.info(name)["sources"][0]["seq"] == 4


# Restarts


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_nothing_is_missing_and_nothing_comes_twice_after_a_restart(
    start_jetstream: Callable[..., ServerProcess], tmp_path: Path, end: signal.Signals
) -> None:
    server = start_jetstream(tmp_path / "store")
    with JetStream(server) as js:
        for name in ("O", "P"):
            js.create(name)
            publish_numbers(js, f"{name}.a", 5)
        js.create("MIRROR", mirror={"name": "O"})
        js.create("TARGET", sources=[{"name": "O"}, {"name": "P", "filter_subject": "P.*"}])
        js.create("PURGED", sources=[{"name": "O"}, {"name": "P"}])
        wait_for_messages(js, "MIRROR", 5)
        wait_for_messages(js, "TARGET", 10)
        wait_for_messages(js, "PURGED", 10)
        js.api("STREAM.PURGE.PURGED")
    server.signal(end)
    server.wait_for_exit()

    with JetStream(start_jetstream(tmp_path / "store")) as js:
        for name in ("O", "P"):
            publish_numbers(js, f"{name}.a", 2, first=6)
        wait_for_messages(js, "MIRROR", 7)
        wait_for_messages(js, "TARGET", 14)
        wait_for_messages(js, "PURGED", 4)

        assert payloads(js, "MIRROR") == list("1234567")
        messages = stored(js, "TARGET")
        for name in ("O", "P"):
            of_source = [message.payload.decode() for message in messages if message.subject == f"{name}.a"]
            assert of_source == list("1234567")
        assert sorted(payloads(js, "PURGED")) == ["6", "6", "7", "7"]


def test_subject_that_is_not_text_comes_once_though_the_server_is_killed(
    start_jetstream: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    server = start_jetstream(tmp_path / "store")
    with JetStream(server) as js:
        js.create("O")
        js.create("TARGET", sources=[{"name": "O"}])
        for subject, payload in ((b"O.\xff", b"1"), (b"O.\xfe", b"2")):
            inbox = js.new_inbox()
            js.raw.send(b"PUB %s %s 1\r\n%s\r\n" % (subject, inbox.encode(), payload))
            assert "error" not in js.next(inbox).json()
        wait_for_messages(js, "TARGET", 2)
    server.signal(signal.SIGKILL)
    server.wait_for_exit()

    with JetStream(start_jetstream(tmp_path / "store")) as js:
        publish_numbers(js, "O.a", 1, first=3)

        # What came again would come before it.
        wait_until(js, "TARGET", lambda _: "3" in payloads(js, "TARGET"))
        assert payloads(js, "TARGET") == ["1", "2", "3"]


# Requests


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"sources": [{"name": "a.b"}]}, (400, 10141, "sourced stream name is invalid")),
        ({"sources": [{"name": "X"}, {"name": "X"}]}, (400, 10140, "duplicate source configuration detected")),
        (
            {"sources": [{"name": "X", "filter_subject": "a", "subject_transforms": [{"src": "a", "dest": "b"}]}]},
            (400, 10144, "source with multiple subject transforms cannot also have a single subject filter"),
        ),
    ],
)
def test_sources_are_checked(js: JetStream, stream: str, config: Json, expected: tuple[int, int, str]) -> None:
    assert js.create_error(stream, **config) == expected


def test_client_cannot_pretend_to_be_a_source(js: JetStream, stream: str) -> None:
    js.create(f"{stream}-O")
    js.create(stream, sources=[{"name": f"{stream}-O"}])

    assert js.publish_code(f"{stream}.a", b"", {"Nats-Stream-Source": f"{stream}-O 1 > > a"}) == 10227
