"""`LoadPublisher`: keeps messages under way until a server dies, and notes what was acknowledged.

`read_all` reads them back.

Invariant: the payload of a message can be computed from its number, so every byte that is served can be checked.
"""

import hashlib
import json
import re
import socket
import threading
from contextlib import suppress
from typing import BinaryIO

from jetlake.crashtest.servers import api
from jetlake.errors import ServerError

__all__ = ["LoadPublisher", "create_stream", "payload_of", "publish_one", "read_all"]

STREAM = "CRASHTEST"
SUBJECT = "crashtest.message"

IN_FLIGHT_MAX = 200
"""Messages that are sent and not acknowledged: enough to keep a disk busy."""

MESSAGES_MAX = 20_000
"""Messages of one life of a server: reading them back must not take longer than the test."""

READ_AT_ONCE = 2_000
"""Messages of one batched get."""

PROBE = 10**15
"""Number of the messages that only ask for the next sequence; no publisher comes that far."""

ANSWER_S_MAX = 20.0

_ACKNOWLEDGEMENT = re.compile(rb"MSG inbox\.(\d+) 1 (\d+)\r\n")
_HEAD = re.compile(rb"HMSG batch 1 (\d+) (\d+)\r\n")
_SEQUENCE = re.compile(rb"Nats-Sequence: (\d+)\r\n")


def payload_of(number: int) -> bytes:
    """Return the payload of a message: its number, and 96 letters that depend on it."""
    digest = hashlib.sha256(b"%d" % number).hexdigest()
    return b"%d:%s%s" % (number, digest.encode(), digest[:32].encode())


def create_stream(port: int) -> None:
    """Make the stream that everything is published to; with the defaults of the server."""
    answer = api(port, f"STREAM.CREATE.{STREAM}", {"name": STREAM, "subjects": [SUBJECT], "allow_direct": True})
    if "error" in answer:
        raise ServerError(f"the server refuses the stream of the test: {answer['error']}")


class LoadPublisher(threading.Thread):
    """Publishes from a number on, until the connection ends."""

    def __init__(self, port: int, first: int) -> None:
        super().__init__(name="jetlake-crashtest", daemon=True)
        self.next = first
        self._last = first + MESSAGES_MAX
        # Answers come in the order of the messages.
        self._first_open = first
        # Sequence by number, of what was acknowledged.
        self.acknowledged: dict[int, int] = {}
        self._has_acknowledgements = threading.Event()
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S_MAX)
        self._socket.sendall(b'CONNECT {"verbose":false}\r\nSUB inbox.* 1\r\n')

    def run(self) -> None:
        """Publish and read acknowledgements until the server is gone."""
        rest = b""
        with suppress(OSError), self._socket:
            while True:
                count = min(IN_FLIGHT_MAX - (self.next - self._first_open), self._last - self.next)
                if count > 0:
                    self._socket.sendall(b"".join(self._frame(self.next + offset) for offset in range(count)))
                    self.next += count
                received = self._socket.recv(1 << 18)
                if not received:
                    return
                rest = self._read_acknowledgements(rest + received)

    def wait_for_acknowledgement(self) -> None:
        """Wait until something was acknowledged: nothing can be lost before. Gives up on a server that is too slow."""
        self._has_acknowledgements.wait(ANSWER_S_MAX)

    def _frame(self, number: int) -> bytes:
        payload = payload_of(number)
        return b"PUB %s inbox.%d %d\r\n%s\r\n" % (SUBJECT.encode(), number, len(payload), payload)

    def _read_acknowledgements(self, received: bytes) -> bytes:
        position = 0
        while (head := _ACKNOWLEDGEMENT.search(received, position)) is not None:
            end = head.end() + int(head[2])
            if len(received) < end + 2:
                break
            answer = json.loads(received[head.end() : end])
            if "seq" in answer:
                self.acknowledged[int(head[1])] = int(answer["seq"])
                self._has_acknowledgements.set()
            self._first_open += 1
            position = end + 2
        if b"PING\r\n" in received[position:]:
            self._socket.sendall(b"PONG\r\n")
        return received[position:]


def read_all(port: int) -> dict[int, bytes] | None:
    """Return the payload of every message by its sequence; None if the stream is gone."""
    if "error" in api(port, f"STREAM.INFO.{STREAM}"):
        return None
    found: dict[int, bytes] = {}
    with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S_MAX) as client, client.makefile("rb") as lines:
        client.sendall(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB batch 1\r\n')
        following = 1
        while True:
            body = b'{"seq":%d,"batch":%d}' % (following, READ_AT_ONCE)
            client.sendall(b"PUB $JS.API.DIRECT.GET.%s batch %d\r\n%s\r\n" % (STREAM.encode(), len(body), body))
            page = _page(lines)
            if not page:
                return found
            found |= page
            following = max(page) + 1


def _page(lines: BinaryIO) -> dict[int, bytes]:
    page: dict[int, bytes] = {}
    while True:
        line = lines.readline()
        if not line:
            raise ConnectionError("the server closed the connection while it was read")
        head = _HEAD.match(line)
        if head is None:
            continue
        content = lines.read(int(head[2]))
        headers, payload = content[: int(head[1])], content[int(head[1]) :]
        sequence = _SEQUENCE.search(headers)
        if sequence is None:
            # The end of the batch, or no message at all.
            return page
        page[int(sequence[1])] = payload


def publish_one(port: int) -> int:
    """Store one more message and return its sequence; 0 if it is not acknowledged."""
    payload = payload_of(PROBE)
    with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S_MAX) as client, client.makefile("rb") as lines:
        client.sendall(
            b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB inbox 1\r\n'
            b"PUB %s inbox %d\r\n%s\r\n" % (SUBJECT.encode(), len(payload), payload)
        )
        while line := lines.readline():
            if line.startswith(b"MSG inbox"):
                return int(json.loads(lines.read(int(line.split()[-1]))).get("seq", 0))
            if line.startswith(b"HMSG inbox"):
                return 0
    return 0
