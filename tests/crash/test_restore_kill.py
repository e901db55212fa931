"""`kill -9` while the consumers of an archive are restored: all of them are there afterwards, or no stream.

`JETLAKE_KILLS` is the number of kills (3 unless told).
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.compatibility.archives import Entry, archive, frame
from tests.conftest import StartProcess
from tests.crash.test_stream_kill import api

KILLS = int(os.environ.get("JETLAKE_KILLS", "3"))
CONSUMERS = 1_200
MESSAGES = 20
CHUNK_BYTES = 512 * 1024


def archived() -> bytes:
    """Return the archive of a stream with a few messages and many consumers."""
    state = {"first_seq": 1, "last_seq": MESSAGES, "messages": MESSAGES, "consumer_count": CONSUMERS}
    position = {"consumer_seq": 0, "stream_seq": 0}
    entries = []
    for number in range(CONSUMERS):
        config = {"durable_name": f"C{number}", "deliver_policy": "all", "ack_policy": "explicit"}
        body = {
            "config": config,
            "created": "2026-01-01T00:00:00Z",
            "state": {"delivered": position, "ack_floor": position},
        }
        entries.append(Entry(f"consumers/C{number}".encode(), payload=json.dumps(body).encode()))
    entries += [Entry(b"r.x", sequence=sequence, time_ns=sequence, payload=b"x") for sequence in range(1, MESSAGES + 1)]
    return frame(archive(*entries, state=json.dumps(state).encode()))


def request(client: socket.socket, subject: str, body: bytes) -> bytes:
    """Send a request, and return what comes back."""
    client.sendall(f"PUB {subject} done {len(body)}\r\n".encode() + body + b"\r\n")
    received = b""
    while not received.endswith(b"\r\n") or b"MSG done" not in received or received.count(b"\r\n") < 2:
        piece = client.recv(65_536)
        if not piece:
            return received
        received += piece
    return received


@pytest.mark.timeout(300)
@pytest.mark.parametrize("retention", ["limits", "interest"])
def test_a_restore_that_is_killed_leaves_all_consumers_or_no_stream(
    start_process: StartProcess, tmp_path: Path, retention: str
) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    data = archived()
    outcomes = []
    server = start_process("-js", "-sd", str(tmp_path))
    for _ in range(KILLS):
        config = {"name": "R", "subjects": ["r.>"], "retention": retention}
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
            client.sendall(b'CONNECT {"verbose":false}\r\nSUB done 1\r\n')
            begun = request(client, "$JS.API.STREAM.RESTORE.R", json.dumps({"config": config, "state": {}}).encode())
            subject = json.loads(begun[begun.index(b"{", begun.index(b"MSG done")) :])["deliver_subject"]
            for start in range(0, len(data), CHUNK_BYTES):
                request(client, subject, data[start : start + CHUNK_BYTES])
            client.sendall(f"PUB {subject} done 0\r\n\r\n".encode())
            time.sleep(chance.uniform(0, 0.6))
            server.send(signal.SIGKILL)
            server.wait()
            received = b""
            try:
                while piece := client.recv(65_536):
                    received += piece
            except OSError:
                pass
        was_answered = b"stream_create_response" in received
        assert b'"error"' not in received, received

        server = start_process("-js", "-sd", str(tmp_path))
        names = api(server.port, "STREAM.NAMES", {})["streams"]
        assert names in (None, ["R"]), seed
        assert names == ["R"] or not was_answered, seed
        if names:
            info = api(server.port, "STREAM.INFO.R", {})
            assert info["state"]["consumer_count"] == CONSUMERS, seed
            assert info["state"]["messages"] == MESSAGES, seed
            assert api(server.port, "STREAM.DELETE.R", {})["success"] is True
        outcomes.append("there" if names else "absent")
    print(f"seed {seed}: {outcomes}")
