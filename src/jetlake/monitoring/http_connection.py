"""One connection of the HTTP listener: receive a request, send its response, leave.

```text
receiving ──request or refusal──► sending ──all sent──► leaving ──peer closed──► done
    └──────────────── deadline or an error of the socket, anywhere ─────────────► done
```

Invariant: no method waits. What would block raises `BlockingIOError`, and `waits_for` says what to poll for before the
method is called again.
"""

import selectors
import socket
import time
from collections.abc import Callable

from jetlake.monitoring.http_request import (
    HEAD_BYTES_MAX,
    BadRequestError,
    HttpRequest,
    check_first_line,
    find_end,
    read_head,
)

RECEIVE_S_MAX = 5.0
"""For the handshake and the head of a request, together: nats-server's own."""

SEND_S_MAX = 30.0
"""For the response to be read, also of a large one over a slow line."""

LEAVE_S_MAX = 1.0
"""For the peer to close, so that a response is not lost to a reset."""

READ_BYTES = 16 * 1024


class HttpConnection:
    """A connection without TLS; `tls_connection` has the other kind."""

    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted
        self.deadline = time.monotonic() + RECEIVE_S_MAX
        self.waits_for = selectors.EVENT_READ
        self.unsent = memoryview(b"")
        self._received = bytearray()
        self._answered = False

    def receive(self) -> HttpRequest | BadRequestError | None:
        """Read until a request is complete; None = it was answered before."""
        if self._answered:
            return None
        self.waits_for = selectors.EVENT_READ
        self._shake_hands()
        while True:
            piece = self._read()
            if not piece:
                raise ConnectionResetError
            self._received += piece
            try:
                end = find_end(self._received)
                if end >= 0:
                    return read_head(bytes(self._received[:end]))
                check_first_line(self._received)
                if len(self._received) > HEAD_BYTES_MAX:
                    raise BadRequestError(431)
            except BadRequestError as error:
                return error

    def answer(self, response: bytes) -> None:
        """Begin to send."""
        self._answered = True
        self._received.clear()
        self.unsent = memoryview(response)
        self.deadline = time.monotonic() + SEND_S_MAX

    def send_and_leave(self, release: Callable[[int], None]) -> bool:
        """Send what is unsent and tell `release` how much went; then drop what comes until the peer closes: True."""
        self.waits_for = selectors.EVENT_WRITE
        while self.unsent:
            count = self._write(self.unsent)
            self.unsent = self.unsent[count:]
            release(count)
            if not self.unsent:
                self.deadline = time.monotonic() + LEAVE_S_MAX
                self._say_goodbye()
                self.socket.shutdown(socket.SHUT_WR)
        self.waits_for = selectors.EVENT_READ
        while self._read():
            pass
        return True

    def _shake_hands(self) -> None:
        """Do what comes before the first byte: nothing."""

    def _read(self) -> bytes:
        return self.socket.recv(READ_BYTES)

    def _write(self, piece: memoryview) -> int:
        return self.socket.send(piece)

    def _say_goodbye(self) -> None:
        """Do what comes after the last byte: nothing."""
