"""Repeating schedules over a restart: each time is published once, whatever became of the messages."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compatibility import jetstream
from tests.compatibility.jetstream import JetStream
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.test_stream_schedules import wait_for_sequence

start_jetstream, stream = jetstream.start_jetstream, jetstream.stream

SCHEDULES = ("a", "b")

INTERVAL = "@every 4s"


def publish_schedules(js: JetStream, stream: str) -> None:
    """Store schedules that publish to the same subject, so that its last message speaks of one of them only."""
    js.create(stream, allow_msg_schedules=True)
    for name in SCHEDULES:
        headers = {"Nats-Schedule": INTERVAL, "Nats-Schedule-Target": f"{stream}.target"}
        js.publish(f"{stream}.{name}", b"payload", headers)


def add_next_times(js: JetStream, stream: str, begin: int, found: dict[str, list[str]]) -> int:
    """Add what the messages from a sequence on say of the next time of their schedule; return where to go on."""
    last = js.info(stream)["state"]["last_seq"]
    for sequence in range(begin, last + 1):
        lines = base64.b64decode(js.get(stream, seq=sequence)["hdrs"]).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:] if line)
        if "Nats-Schedule-Next" in headers:
            found[headers["Nats-Scheduler"]].append(headers["Nats-Schedule-Next"])
    return last + 1


@pytest.mark.parametrize("is_purged", [False, True])
def test_schedule_publishes_each_time_once(
    start_jetstream: Callable[..., ServerProcess], stream: str, tmp_path: Path, is_purged: bool
) -> None:
    found: dict[str, list[str]] = defaultdict(list)
    begin = 1

    def wait_for(js: JetStream, count: int) -> None:
        """Wait until each schedule has published this many messages."""
        nonlocal begin
        while len(found) < len(SCHEDULES) or any(len(times) < count for times in found.values()):
            wait_for_sequence(js, stream, begin)
            begin = add_next_times(js, stream, begin, found)

    server = start_jetstream(store=tmp_path)
    with JetStream(server) as js:
        publish_schedules(js, stream)
        wait_for(js, 1)
        if is_purged:
            assert js.api(f"STREAM.PURGE.{stream}", {"filter": f"{stream}.target"})["success"]
    server.stop()

    with JetStream(start_jetstream(store=tmp_path)) as js:
        wait_for(js, 2)

    assert {scheduler: len(times) - len(set(times)) for scheduler, times in found.items()} == {
        f"{stream}.{name}": 0 for name in SCHEDULES
    }
