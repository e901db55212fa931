"""A server that is killed again and again while messages flow from stream to stream: none is missing, none comes twice.

`JETLAKE_KILLS` is the number of kills, 6 unless told.
"""

from __future__ import annotations

import base64
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.compatibility.jetstream import JetStream, Json, start_jetstream_server
from tests.compatibility.server_process import ServerProcess

KILLS = int(os.environ.get("JETLAKE_KILLS", "6"))
CATCH_UP_SECONDS = 60.0
ORIGINS = ("O", "P", "Q")


def create_all(js: JetStream) -> None:
    for origin in ORIGINS:
        js.create(origin)
    js.create("MIRROR", mirror={"name": "O"})
    js.create("CHAIN", mirror={"name": "MIRROR"})
    js.create("ALL", sources=[{"name": origin} for origin in ORIGINS])
    # Only the last messages are left, and those of one origin may push out all of another.
    js.create("FEW", max_msgs=50, sources=[{"name": origin} for origin in ORIGINS])


def publish_until(killed: threading.Event, server: ServerProcess, seed: int) -> None:
    """Publish to all origins, some more often than others, until the server is gone."""
    chance = random.Random(seed)
    try:
        with JetStream(server) as js:
            while not killed.is_set():
                origin = chance.choices(ORIGINS, (8, 4, 1))[0]
                for _ in range(chance.randrange(1, 200)):
                    js.send(f"{origin}.a", b"x" * chance.randrange(300))
                time.sleep(chance.random() / 200)
    except (OSError, AssertionError):
        return


def messages_of(js: JetStream, stream: str) -> list[Json]:
    """Return all messages of a stream, in its order."""
    return [js.get(stream, seq=sequence) for sequence in js.sequences(stream)]


def origin_sequences(js: JetStream, stream: str) -> dict[str, list[int]]:
    """Return, for each origin, the sequences that the messages of a stream had there."""
    found: dict[str, list[int]] = {origin: [] for origin in ORIGINS}
    for message in messages_of(js, stream):
        lines = base64.b64decode(message["hdrs"]).split(b"\r\n")
        value = next(line for line in lines if line.startswith(b"Nats-Stream-Source: ")).decode()
        _, origin, sequence, *_ = value.split(" ")
        found[origin].append(int(sequence))
    return found


def wait_until_caught_up(js: JetStream) -> None:
    deadline = time.monotonic() + CATCH_UP_SECONDS
    lasts = {origin: js.state(origin)["last_seq"] for origin in ORIGINS}
    while True:
        positions = [
            {source["name"]: source.get("seq", 0) for source in js.info(name)["sources"]} for name in ("ALL", "FEW")
        ]
        mirrors = [js.state(name)["last_seq"] for name in ("MIRROR", "CHAIN")]
        # A position tells what was taken; what is stored of it is told by the next commit.
        stored = [js.state(name)["last_seq"] for name in ("ALL", "FEW")]
        is_stored = stored == [sum(lasts.values())] * 2 and mirrors == [lasts["O"]] * 2
        if is_stored and all(position == lasts for position in positions):
            return
        assert time.monotonic() < deadline, (lasts, positions, mirrors, stored)
        time.sleep(0.02)


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.timeout(60 + 20 * KILLS)
def test_killed_server_loses_and_repeats_nothing_between_streams(tmp_path: Path) -> None:
    chance = random.Random(7)
    server = start_jetstream_server("jetlake", tmp_path, tmp_path / "store")
    try:
        with JetStream(server) as js:
            create_all(js)
        stored_by_few = 0
        for number in range(KILLS):
            killed = threading.Event()
            publisher = threading.Thread(target=publish_until, args=(killed, server, number))
            publisher.start()
            time.sleep(chance.uniform(0.05, 0.6))
            server.signal(signal.SIGKILL)
            server.wait_for_exit()
            killed.set()
            publisher.join()
            server = start_jetstream_server("jetlake", tmp_path, tmp_path / "store")
            with JetStream(server) as js:
                wait_until_caught_up(js)
                lasts = {origin: js.state(origin)["last_seq"] for origin in ORIGINS}

                assert js.state("MIRROR")["messages"] == js.state("O")["messages"]
                assert js.state("CHAIN")["messages"] == js.state("O")["messages"]
                assert js.state("MIRROR")["bytes"] == js.state("O")["bytes"]
                assert js.state("ALL")["messages"] == sum(js.state(origin)["messages"] for origin in ORIGINS)
                # As many were stored as came, though few of them are left.
                stored_by_few = js.state("FEW")["last_seq"]
                assert stored_by_few == sum(lasts.values())
        assert stored_by_few > 0
        with JetStream(server) as js:
            for origin, sequences in origin_sequences(js, "ALL").items():
                assert sequences == js.sequences(origin), origin
    finally:
        server.stop()
    assert "findings" not in server.log()
