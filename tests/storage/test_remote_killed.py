"""A server that is killed again and again while it copies streams of another server: none is missing, none comes twice.

`JETLAKE_KILLS` is the number of kills, 6 unless told.
"""

from __future__ import annotations

import base64
import os
import random
import threading
import time
from pathlib import Path

import pytest

from tests.compatibility.jetstream import JetStream
from tests.compatibility.origins import wait_for_sequence
from tests.compatibility.remotes import Pair, origin_of
from tests.compatibility.server_process import ServerProcess

KILLS = int(os.environ.get("JETLAKE_KILLS", "6"))
MESSAGES = 4_000
BURST = 20
# How long the copying server lives and takes to come back, about.
SECONDS_PER_KILL = 1.5
CATCH_UP_SECONDS = 60.0


class Kills:
    """How often the copying server was killed."""

    def __init__(self) -> None:
        self.done = 0


def publish(server: ServerProcess, subject: str, count: int, kills: Kills) -> None:
    """Publish numbers over the time of all kills, and wait until the last one is stored."""
    chance = random.Random(count)
    with JetStream(server) as js:
        for number in range(1, count):
            js.send(subject, b"%d %s" % (number, b"x" * chance.randrange(200)))
            if number % BURST == 0:
                time.sleep(KILLS * SECONDS_PER_KILL * BURST / count)
                # However long the kills take: each one finds something that is still to come.
                while number * KILLS > (kills.done + 1) * count:
                    time.sleep(0.02)
        assert "error" not in js.publish(subject, b"%d " % count)


def numbers_and_sequences(js: JetStream, stream: str, first: int, last: int) -> list[tuple[int, int]]:
    """Return, for each message of a stream, the number in it and the sequence it says it had at its origin."""
    found = []
    for sequence in range(first, last + 1):
        message = js.get(stream, seq=sequence)
        number = int(base64.b64decode(message["data"]).split(b" ")[0])
        header = base64.b64decode(message.get("hdrs", ""))
        origin = int(header.split(b" ")[2]) if header else sequence
        found.append((number, origin))
    return found


def wait_until_empty(js: JetStream, stream: str) -> None:
    deadline = time.monotonic() + CATCH_UP_SECONDS
    while js.state(stream)["messages"]:
        assert time.monotonic() < deadline, js.info(stream)
        time.sleep(0.02)


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.timeout(120 + 20 * KILLS)
@pytest.mark.parametrize("kind", ["nats-server", "jetlake"])
def test_killed_server_loses_and_repeats_nothing_of_another_server(tmp_path: Path, kind: str) -> None:
    chance = random.Random(7)
    pair = Pair(kind, tmp_path)
    kills = Kills()
    try:
        pair.start_origin()
        pair.start_copy()
        with pair.origin() as origin, pair.copy() as copy:
            origin.create("O")
            origin.create("Q", retention="workqueue")
            copy.create("M", mirror=origin_of("O"))
            copy.create("S", subjects=[], sources=[origin_of("O")])
            copy.create("W", subjects=[], sources=[origin_of("Q")])
        publishers = [
            threading.Thread(target=publish, args=(pair.servers["origin"], f"{name}.a", MESSAGES, kills))
            for name in "OQ"
        ]
        for publisher in publishers:
            publisher.start()
        unfinished = 0
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.1, 0.8))
            with pair.copy() as copy:
                unfinished += 0 < copy.state("M")["last_seq"] < MESSAGES
            pair.kill("copy")
            pair.start_copy()
            kills.done += 1
        for publisher in publishers:
            publisher.join()
        with pair.origin() as origin, pair.copy() as copy:
            assert unfinished > KILLS // 2
            for name in "MSW":
                wait_for_sequence(copy, name, MESSAGES)
            wait_until_empty(origin, "Q")

            for name in "MSW":
                state = copy.state(name)
                assert (state["messages"], state["first_seq"], state["last_seq"]) == (MESSAGES, 1, MESSAGES), name
            assert copy.state("M")["bytes"] == origin.state("O")["bytes"]
            expected = [(number, number) for number in range(1, MESSAGES + 1)]
            for name in "SW":
                assert numbers_and_sequences(copy, name, 1, MESSAGES) == expected
            for sequence in range(1, MESSAGES + 1, 97):
                assert copy.get("M", seq=sequence) == origin.get("O", seq=sequence)
    finally:
        # Nobody waits for kills that do not come any more.
        kills.done = KILLS
        pair.stop()
    assert "findings" not in pair.servers["copy"].log()
