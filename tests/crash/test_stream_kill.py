"""`kill -9` in a loop under pipelined load: nothing acknowledged is lost, moved, or given a sequence of another.

`JETLAKE_KILLS` is the number of kills (3 unless told), `JETLAKE_KILL_SECONDS` how long a server lives.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import time
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.conftest import StartProcess

KILLS = int(os.environ.get("JETLAKE_KILLS", "3"))
LIFE_SECONDS = float(os.environ.get("JETLAKE_KILL_SECONDS", "0.7"))
CONNECTIONS = 2
IN_FLIGHT_MAX = 1000
READ_AT_ONCE = 5000

ACKNOWLEDGEMENT = re.compile(rb'MSG \S+\.(\d+) 1 \d+\r\n\{"stream":"KILL","seq":(\d+)\}\r\n')
STORED = re.compile(rb"Nats-Sequence: (\d+)\r\n.*?\r\n\r\n([0-9-]+)\r\n", re.DOTALL)


class Publisher(Thread):
    """Keeps many messages under way on one connection until the server dies; notes what was acknowledged."""

    def __init__(self, port: int, number: int, first: int) -> None:
        super().__init__(daemon=True)
        self.number = number
        self.next = first
        self.acknowledged: list[tuple[int, int]] = []
        self.ended = Event()
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.sendall(b'CONNECT {"verbose":false}\r\nSUB inbox.%d.* 1\r\nPING\r\n' % number)
        received = b""
        while b"PONG\r\n" not in received:
            received += self.socket.recv(65_536)

    def run(self) -> None:
        answered = self.next
        rest = b""
        try:
            while True:
                count = IN_FLIGHT_MAX - (self.next - answered)
                if count > 0:
                    self.socket.sendall(b"".join(self.frame(self.next + offset) for offset in range(count)))
                    self.next += count
                read = self.socket.recv(1 << 18)
                if not read:
                    break
                rest += read
                end = 0
                for match in ACKNOWLEDGEMENT.finditer(rest):
                    token, sequence = int(match[1]), int(match[2])
                    assert token == answered, "answers come in the order of messages"
                    self.acknowledged.append((token, sequence))
                    answered += 1
                    end = match.end()
                rest = rest[end:]
        except OSError:
            pass
        finally:
            self.socket.close()
            self.ended.set()

    def frame(self, number: int) -> bytes:
        payload = b"%d-%d" % (self.number, number)
        return b"PUB kill.%d inbox.%d.%d %d\r\n%s\r\n" % (self.number, self.number, number, len(payload), payload)


def api(port: int, subject: str, body: object) -> dict[str, object]:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        payload = json.dumps(body).encode()
        client.sendall(b'CONNECT {"verbose":false}\r\nSUB answer 1\r\nPUB $JS.API.%s answer %d\r\n%s\r\n'
                       % (subject.encode(), len(payload), payload))  # fmt: skip
        received = b""
        while not (match := re.search(rb"MSG answer 1 (\d+)\r\n", received)) or (
            len(received) < match.end() + int(match[1])
        ):
            received += client.recv(1 << 20)
        answer: dict[str, object] = json.loads(received[match.end() : match.end() + int(match[1])])
        return answer


def stored(port: int) -> dict[int, bytes]:
    """Return the payload of every message by its sequence."""
    found: dict[int, bytes] = {}
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB batch 1\r\n')
        following = 1
        while True:
            body = b'{"seq":%d,"batch":%d}' % (following, READ_AT_ONCE)
            client.sendall(b"PUB $JS.API.DIRECT.GET.KILL batch %d\r\n%s\r\n" % (len(body), body))
            received = b""
            while b"NATS/1.0 204 EOB" not in received and b"NATS/1.0 404" not in received:
                received += client.recv(1 << 20)
            messages = {int(match[1]): match[2] for match in STORED.finditer(received)}
            if not messages:
                return found
            found |= messages
            following = max(messages) + 1


@pytest.mark.timeout(600)
def test_nothing_acknowledged_is_lost_by_kills(start_process: StartProcess, tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    payload_of: dict[int, bytes] = {}
    next_of = [0] * CONNECTIONS
    for kill in range(KILLS):
        server = start_process("-js", "-sd", str(tmp_path / "store"))
        if kill == 0:
            config = {"name": "KILL", "subjects": ["kill.>"], "allow_direct": True}
            assert "error" not in api(server.port, "STREAM.CREATE.KILL", config)
        publishers = [Publisher(server.port, number, next_of[number]) for number in range(CONNECTIONS)]
        for publisher in publishers:
            publisher.start()
        time.sleep(LIFE_SECONDS * chance.uniform(0.5, 1.5))
        server.send(signal.SIGKILL)
        server.wait()
        for publisher in publishers:
            assert publisher.ended.wait(60)
            publisher.join()
            next_of[publisher.number] = publisher.next
            for token, sequence in publisher.acknowledged:
                assert sequence not in payload_of, f"sequence {sequence} was given twice (seed {seed})"
                payload_of[sequence] = b"%d-%d" % (publisher.number, token)

    server = start_process("-js", "-sd", str(tmp_path / "store"))
    found = stored(server.port)

    lost = {sequence for sequence, payload in payload_of.items() if found.get(sequence) != payload}
    assert not lost, f"{len(lost)} of {len(payload_of)} are lost or changed (seed {seed})"
    assert len(payload_of) > KILLS * 100
    for number in range(CONNECTIONS):
        prefix = b"%d-" % number
        tokens = [int(payload[2:]) for _, payload in sorted(found.items()) if payload.startswith(prefix)]
        assert tokens == sorted(set(tokens)), f"messages of connection {number} are out of order or twice (seed {seed})"
    print(f"{KILLS} kills, {len(payload_of)} acknowledged, none lost")
