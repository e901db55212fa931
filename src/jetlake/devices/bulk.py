"""Many events at once: encoded, written in large pieces, every acknowledgement checked.

A publisher that waits for each acknowledgement stores a few thousand events a second; this one has thousands on their
way. It uses a connection and a thread of its own.

```python
with BulkPublisher(Settings(url="nats://127.0.0.1:4222")) as publisher:
    report = publisher.publish(events)
```

Invariants: an event is counted as stored only when a stream has acknowledged it. What was sent and not acknowledged
when a connection broke is sent again with the same message id, so it is stored once. At most about `WINDOW_EVENTS`
events and `WINDOW_BYTES` bytes are on their way.
"""

import re
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, NamedTuple, Self
from uuid import uuid4

from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.devices.codec import EventCodec
from jetlake.devices.publisher import acknowledged
from jetlake.errors import ApiError, ClientError, reworded

WINDOW_EVENTS = 8192
"""On their way at once: some hundred milliseconds of a fast server."""

WINDOW_BYTES = 8 * 1024 * 1024
"""The same in bytes; a stream's queue of a server takes sixteen times as much."""

CHUNK_EVENTS = 512
"""Encoded before they are written: large enough for the socket, small enough that the server is not kept waiting."""

RECONNECTS_MAX = 5
"""Of one call: a server that goes away more often has a problem that sending again does not solve."""

RECONNECT_WAIT_S = 0.5

ANSWER_S_MAX = 30.0
"""For the next acknowledgement."""

_ACKNOWLEDGEMENT = re.compile(rb"MSG \S+\.(\d+) \d+ (\d+)\r\n")
_PLAIN_ANSWER = re.compile(rb'\{"stream":"[^"]*",\s*"seq":(\d+)\}')
"""What a server answers nearly always; everything else is read as JSON."""

_STATUS = re.compile(rb"HMSG \S+\.(\d+) \d+ \d+ (\d+)\r\n")
_OTHER_LINE = re.compile(rb"(PING|PONG|INFO|\+OK|-ERR)([^\r\n]*)\r\n")


class BulkReport(NamedTuple):
    """What became of the events of one call."""

    stored: int
    # Stored by an earlier try, and recognised by their message ids.
    duplicates: int
    last_sequence: int
    duration_s: float


class BulkPublisher:
    """Publishes events over one connection, for one thread. Every method raises `ClientError`."""

    def __init__(self, settings: ConnectionSettings, *, codec: EventCodec | None = None, stream: str = "") -> None:
        self.codec = codec or EventCodec()
        self._settings = settings
        self._headers_head = f"NATS/1.0\r\nNats-Msg-Id: {uuid4().hex}-".encode()
        self._headers_tail = f"\r\nNats-Expected-Stream: {stream}\r\n\r\n".encode() if stream else b"\r\n\r\n"
        self._number = 0
        self._bytes = 0
        # What is on its way, by its number: what is written before the inbox, and what after it.
        self._outstanding: dict[int, tuple[bytes, bytes]] = {}
        self._unread = b""
        self._stored = self._duplicates = self._last_sequence = 0
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def publish(self, messages: Iterable[Any]) -> BulkReport:
        """Publish events and return when all of them are acknowledged."""
        started_s = time.perf_counter()
        self._stored = self._duplicates = 0
        reconnects = 0
        rest = iter(messages)
        is_at_end = False
        while not is_at_end or self._outstanding:
            try:
                if not is_at_end and self._has_room():
                    is_at_end = self._send_chunk(rest)
                if self._outstanding and (is_at_end or not self._has_room()):
                    self._receive()
            except ClientError as error:
                reconnects += 1
                if not self._connection.broken or reconnects > RECONNECTS_MAX:
                    raise
                self._reopen(error)
        return BulkReport(self._stored, self._duplicates, self._last_sequence, time.perf_counter() - started_s)

    def _has_room(self) -> bool:
        return len(self._outstanding) < WINDOW_EVENTS and self._bytes < WINDOW_BYTES

    def _send_chunk(self, rest: Any) -> bool:
        """Encode and write some events; tell whether there are no more."""
        parts: list[bytes] = []
        is_at_end = True
        encode, inbox, outstanding = self.codec.encode, self._inbox, self._outstanding
        last = self._number + CHUNK_EVENTS
        number, headers_head, headers_tail = self._number, self._headers_head, self._headers_tail
        for message in rest:
            subject, payload, _, _ = encode(message)
            number += 1
            headers = headers_head + b"%d" % number + headers_tail
            head = b"HPUB %s " % subject.encode()
            # The inbox is written when the frame is sent: after a reconnection there is another one.
            tail = b".%d %d %d\r\n%s%s\r\n" % (number, len(headers), len(headers) + len(payload), headers, payload)
            outstanding[number] = (head, tail)
            self._bytes += len(tail)
            parts += (head, inbox, tail)
            if number >= last:
                is_at_end = False
                break
        self._number = number
        self._connection.send(b"".join(parts))
        return is_at_end

    def _receive(self) -> None:
        data = self._unread + self._connection.receive(ANSWER_S_MAX)
        position = 0
        while position < len(data):
            found = _ACKNOWLEDGEMENT.match(data, position)
            if found is not None:
                end = found.end() + int(found[2])
                if end + 2 > len(data):
                    break
                self._acknowledge(int(found[1]), data[found.end() : end])
                position = end + 2
                continue
            following = self._read_other(data, position)
            if following < 0:
                break
            position = following
        self._unread = data[position:]

    def _acknowledge(self, number: int, answer: bytes) -> None:
        frame = self._outstanding.pop(number, None)
        if frame is None:
            # Of an earlier connection.
            return
        self._bytes -= len(frame[1])
        self._stored += 1
        plain = _PLAIN_ANSWER.fullmatch(answer)
        if plain is not None:
            self._last_sequence = max(self._last_sequence, int(plain[1]))
            return
        try:
            published = acknowledged(answer)
        except ApiError as error:
            self._stored -= 1
            raise reworded(error, f"the stream refused {_subject_of(frame)}: {error}") from error
        self._duplicates += published.is_duplicate
        self._last_sequence = max(self._last_sequence, published.sequence)

    def _read_other(self, data: bytes, position: int) -> int:
        """Read a line that is not an acknowledgement; return the position after it, -1 if it is not complete."""
        status = _STATUS.match(data, position)
        if status is not None:
            number = int(status[1])
            subject = _subject_of(self._outstanding.get(number, (b"HPUB ? ", b"")))
            raise ClientError(f"no stream is listening on subject {subject!r}: create one with the subject events.>")
        line = _OTHER_LINE.match(data, position)
        if line is None:
            if data.find(b"\r\n", position) >= 0:
                raise ClientError(
                    f"{self._connection.url} sent something unexpected: {data[position : position + 60]!r}"
                )
            return -1
        if line[1] == b"PING":
            self._connection.send(b"PONG\r\n")
        elif line[1] == b"-ERR":
            raise ClientError(f"{self._connection.url} refused an event: {line[2].decode(errors='replace').strip()}")
        return line.end()

    def _open(self) -> None:
        self._connection = RawConnection(self._settings)
        self._inbox = self._connection.new_inbox().encode()
        number = self._connection.new_subscription()
        self._connection.send(b"SUB %s.* %d\r\n" % (self._inbox, number))
        self._unread = self._connection.take_unparsed()

    def _reopen(self, cause: ClientError) -> None:
        self._connection.close()
        for attempt in range(RECONNECTS_MAX):
            time.sleep(RECONNECT_WAIT_S * (attempt + 1))
            try:
                self._open()
                # With the inbox of the new connection, and the message ids they had.
                again = b"".join(head + self._inbox + tail for head, tail in self._outstanding.values())
                self._connection.send(again)
            except ClientError:
                continue
            return
        raise cause


def _subject_of(frame: tuple[bytes, bytes]) -> str:
    return frame[0].split(b" ")[1].decode()
