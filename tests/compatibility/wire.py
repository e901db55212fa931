"""A raw NATS client: bytes out, bytes in, and readable errors when they are not the expected ones."""

from __future__ import annotations

import json
import socket
import ssl
import time
from typing import Any, Self

from tests.compatibility.frames import split_frame

# Generous, because a test machine may be busy; an expected byte normally arrives within a millisecond.
TIMEOUT_SECONDS = 60.0

# The options a client library of today would send, so that a test names only what it is about.
QUIET_OPTIONS = {"verbose": False, "pedantic": False}

# Longer bytes are shortened in the middle when an error shows them.
SHOWN_BYTES_MAX = 1000


class RawClient:
    """One connection to a server. Frames of the server are read one by one.

    A PING of the server is answered and skipped, because it may come at any time from two seconds after
    CONNECT on; set `answer_pings = False` to see them.

        with RawClient("127.0.0.1", 4222) as client:
            client.connect()
            client.send(b"SUB greetings 1\r\nPUB greetings 2\r\nhi\r\n")
            client.expect(b"MSG greetings 1 2\r\nhi\r\n")
    """

    def __init__(
        self,
        host: str,
        port: int,
        timeout_seconds: float = TIMEOUT_SECONDS,
        tls_first: ssl.SSLContext | None = None,
    ) -> None:
        self.timeout_seconds = timeout_seconds
        self.answer_pings = True
        self.connected_info: dict[str, Any] = {}
        self._socket = socket.create_connection((host, port), timeout=timeout_seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        self._closed_by_server = False
        if tls_first is not None:
            self.encrypt(tls_first)
        self.info_line = self.read_line()
        self.info = parse_info(self.info_line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def encrypt(
        self, context: ssl.SSLContext, session: ssl.SSLSession | None = None, host: str = "localhost"
    ) -> ssl.SSLSocket:
        """Shake hands; from here on everything is encrypted. An end that was not announced is an error then."""
        encrypted = context.wrap_socket(self._socket, server_hostname=host, suppress_ragged_eofs=False, session=session)
        self._socket = encrypted
        return encrypted

    # Sending

    def send(self, data: bytes) -> None:
        """Send `data`. A connection the server has closed already is not an error here but in what is expected."""
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            self._closed_by_server = True

    def send_in_pieces(self, data: bytes, piece_bytes: int = 1, pause_seconds: float = 0.001) -> None:
        """Send `data` so that the server reads it in small pieces (most of the time: TCP promises nothing)."""
        for start in range(0, len(data), piece_bytes):
            self.send(data[start : start + piece_bytes])
            time.sleep(pause_seconds)

    def send_connect(self, **options: Any) -> None:
        """Send only the CONNECT line."""
        self.send(connect_line(**options))

    def connect(self, **options: Any) -> None:
        """Send CONNECT and PING and wait for the answers; the options are those of a quiet client plus `options`."""
        merged = {**QUIET_OPTIONS, **options}
        self.send(connect_line(**merged) + b"PING\r\n")
        self.expect((b"+OK\r\n" if merged["verbose"] else b"") + b"PONG\r\n")
        if merged.get("protocol", 0) >= 1:
            self.connected_info = parse_info(self.read_line())

    # Receiving

    def read_frame(self, timeout_seconds: float | None = None) -> bytes:
        """Return the next frame (a line, or a message with its payload); b"" when the server has closed."""
        deadline = time.monotonic() + (self.timeout_seconds if timeout_seconds is None else timeout_seconds)
        while True:
            cut = split_frame(self._buffer)
            if cut is None:
                if not self._receive(deadline):
                    return b""
                continue
            frame, self._buffer = cut
            if frame == b"PING\r\n" and self.answer_pings:
                self.send(b"PONG\r\n")
                continue
            return frame

    def read_line(self) -> bytes:
        """Return the next frame, which must not be the end of the connection."""
        frame = self.read_frame()
        assert frame, f"expected a line, the server closed; left over: {shown(self._buffer)}"
        return frame

    def expect(self, expected: bytes) -> None:
        """Read as many bytes as expected, in whole frames, and compare."""
        received = b""
        while len(received) < len(expected):
            try:
                frame = self.read_frame()
            except TimeoutError:
                raise self._unexpected(expected, received, "nothing more") from None
            if not frame:
                raise self._unexpected(expected, received, "the end")
            received += frame
            assert expected.startswith(received), f"expected {shown(expected)}, received {shown(received)}"

    def expect_pong(self) -> None:
        """Send PING and expect PONG as the very next frame: nothing else was on its way, the connection lives."""
        self.send(b"PING\r\n")
        self.expect(b"PONG\r\n")

    def expect_silence(self, seconds: float = 0.2) -> None:
        """Expect no byte for a while. Prefer `expect_pong`, which needs no waiting, on the same connection."""
        try:
            frame = self.read_frame(timeout_seconds=seconds)
        except TimeoutError:
            assert not self._buffer, f"expected silence, received {shown(self._buffer)}"
            return
        raise AssertionError(f"expected silence, received {shown(frame) if frame else 'the end'}")

    def expect_closed(self) -> None:
        """Expect the server to close without a further byte."""
        received = self.read_to_end()
        assert received == b"", f"expected the end of the connection, received {shown(received)}"

    def expect_error(self, text: str) -> None:
        """Expect `-ERR '<text>'` as the next frame."""
        self.expect(b"-ERR '" + text.encode() + b"'\r\n")

    def expect_error_and_closed(self, text: str) -> None:
        """Expect `-ERR '<text>'` and then the end of the connection."""
        self.expect_error(text)
        self.expect_closed()

    def read_to_end(self) -> bytes:
        """Return everything up to the end of the connection, which must come in time."""
        deadline = time.monotonic() + self.timeout_seconds
        try:
            while self._receive(deadline):
                pass
        except TimeoutError:
            raise self._unexpected(b"", b"", "an open connection") from None
        received = self.take_buffer()
        # The server may have sent a PING meanwhile. No test has a payload that ends like one.
        return received.replace(b"PING\r\n", b"") if self.answer_pings else received

    def take_buffer(self) -> bytes:
        """Return and forget the bytes of an unfinished frame."""
        received, self._buffer = self._buffer, b""
        return received

    def _unexpected(self, expected: bytes, received: bytes, then: str) -> AssertionError:
        received += self._buffer
        return AssertionError(f"expected {shown(expected)}, received {shown(received)}, then {then}")

    def _receive(self, deadline: float) -> bool:
        """Add what arrives to the buffer; False at the end of the connection."""
        remaining_seconds = deadline - time.monotonic()
        if remaining_seconds <= 0:
            raise TimeoutError
        self._socket.settimeout(remaining_seconds)
        try:
            data = self._socket.recv(65536)
        except ConnectionResetError:
            data = b""
        finally:
            self._socket.settimeout(self.timeout_seconds)
        self._buffer += data
        return bool(data)


def shown(data: bytes) -> str:
    if len(data) <= SHOWN_BYTES_MAX:
        return repr(data)
    half = SHOWN_BYTES_MAX // 2
    return f"{data[:half]!r} ... {data[-half:]!r} ({len(data)} bytes)"


def connect_line(**options: Any) -> bytes:
    return b"CONNECT " + json.dumps(options).encode() + b"\r\n"


def parse_info(line: bytes) -> dict[str, Any]:
    assert line.startswith(b"INFO {"), f"expected INFO, received {line!r}"
    information = json.loads(line[len(b"INFO ") :])
    assert isinstance(information, dict)
    return information
