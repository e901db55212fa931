"""`kill -9` during a purge: what was answered is complete, what was not may be partly done, all else stays.

`JETLAKE_KILLS` is the number of kills (3 unless told).
"""

from __future__ import annotations

import os
import random
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.conftest import StartProcess
from tests.crash.test_stream_kill import api

KILLS = int(os.environ.get("JETLAKE_KILLS", "3"))
MESSAGES = 60_000
BATCH = 6_000


def fill(port: int) -> None:
    """Publish as many messages to each of two subjects, in turns."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(b'CONNECT {"verbose":false}\r\nSUB done 1\r\n')
        pair = b"PUB kill.keep 1\r\nx\r\nPUB kill.purge 1\r\nx\r\n"
        last = b"PUB kill.keep 1\r\nx\r\nPUB kill.purge done 1\r\nx\r\n"
        for _ in range(MESSAGES // BATCH):
            client.sendall(pair * (BATCH // 2 - 1) + last)
            received = b""
            while b"}\r\n" not in received.partition(b"MSG done")[2]:
                received += client.recv(65_536)
            assert b"error" not in received


def subjects(port: int) -> dict[str, int]:
    answer = api(port, "STREAM.INFO.KILL", {"subjects_filter": ">"})
    state = answer["state"]
    assert isinstance(state, dict)
    counts: dict[str, int] = state.get("subjects") or {}
    assert state["messages"] == sum(counts.values())
    return counts


@pytest.mark.timeout(300)
@pytest.mark.parametrize("filtered", [True, False], ids=["by-subject", "all"])
def test_purge_that_is_killed_takes_nothing_it_should_not(
    start_process: StartProcess, tmp_path: Path, filtered: bool
) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    body = b'{"filter":"kill.purge"}' if filtered else b"{}"
    outcomes = []
    for kill in range(KILLS):
        server = start_process("-js", "-sd", str(tmp_path / f"store{kill}"))
        config = {"name": "KILL", "subjects": ["kill.>"]}
        assert "error" not in api(server.port, "STREAM.CREATE.KILL", config)
        fill(server.port)
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
            client.sendall(
                b'CONNECT {"verbose":false}\r\nSUB done 1\r\nPUB $JS.API.STREAM.PURGE.KILL done %d\r\n%s\r\n'
                % (len(body), body)
            )
            time.sleep(chance.uniform(0, 0.08))
            server.send(signal.SIGKILL)
            server.wait()
            received = b""
            try:
                while read := client.recv(65_536):
                    received += read
            except OSError:
                pass
        was_answered = b'"success":true' in received.replace(b" ", b"")

        server = start_process("-js", "-sd", str(tmp_path / f"store{kill}"))
        left = subjects(server.port)

        context = f"seed {seed}, kill {kill}, answered {was_answered}, left {left}"
        if was_answered:
            assert left.get("kill.purge", 0) == 0, context
        if filtered:
            assert left["kill.keep"] == MESSAGES // 2, context
        elif not was_answered:
            # A purge of everything is one record: it is there or not.
            assert sum(left.values()) in (0, MESSAGES), context
        outcomes.append((was_answered, left.get("kill.purge", 0)))
        answer = api(server.port, "STREAM.PURGE.KILL", {"filter": "kill.purge"} if filtered else {})
        assert answer["purged"] == left.get("kill.purge", 0) + (0 if filtered else left.get("kill.keep", 0)), context
        server.send(signal.SIGTERM)
        server.wait()
    print(f"answered, messages left: {outcomes} (seed {seed})")
