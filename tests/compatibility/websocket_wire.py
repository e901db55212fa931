"""A raw WebSocket client: HTTP upgrade, frames out, frames in; the NATS lines inside them as `RawClient` reads them.

It sends whatever a test asks for, valid or not, and it is written from RFC 6455 and RFC 7692 alone.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import socket
import ssl
import struct
import time
import zlib
from collections.abc import Mapping
from typing import NamedTuple

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import TIMEOUT_SECONDS, RawClient, parse_info, shown

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA

FINAL_BIT, COMPRESSED_BIT, RSV2_BIT, RSV3_BIT, MASK_BIT = 0x80, 0x40, 0x20, 0x10, 0x80

ACCEPT_SUFFIX = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

DEFLATE_TAIL = b"\x00\x00\xff\xff"
"""What RFC 7692 has a sender leave out at the end of each compressed message."""

DEFLATE_OFFER = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

LISTENING = re.compile(r"Listening for websocket clients on (wss?)://(\S+):(\d+)")


class Frame(NamedTuple):
    """One frame of a server."""

    first: int
    payload: bytes

    @property
    def opcode(self) -> int:
        return self.first & 0x0F

    @property
    def is_final(self) -> bool:
        return bool(self.first & FINAL_BIT)

    @property
    def is_compressed(self) -> bool:
        return bool(self.first & COMPRESSED_BIT)

    @property
    def close(self) -> tuple[int, str]:
        """The code and the text of a close frame; (0, "") when it has neither."""
        assert self.opcode == CLOSE, self
        if not self.payload:
            return 0, ""
        return struct.unpack(">H", self.payload[:2])[0], self.payload[2:].decode()


class Response(NamedTuple):
    """The head of an HTTP answer, with names in small letters, and its body if it says how long that is."""

    status_line: str
    headers: dict[str, str]
    body: bytes

    @property
    def status(self) -> int:
        return int(self.status_line.split(" ")[1])


def frame(
    opcode: int,
    payload: bytes = b"",
    *,
    bits: int = FINAL_BIT,
    masked: bool = True,
    length_bytes: int | None = None,
    length: int | None = None,
) -> bytes:
    """Return a frame. `length_bytes` (1, 3 or 9) writes the length longer than needed, `length` writes another one."""
    said = len(payload) if length is None else length
    if length_bytes is None:
        length_bytes = 1 if said <= 125 else 3 if said < 65_536 else 9
    mask_bit = MASK_BIT if masked else 0
    match length_bytes:
        case 1:
            head = struct.pack(">BB", bits | opcode, mask_bit | said)
        case 3:
            head = struct.pack(">BBH", bits | opcode, mask_bit | 126, said)
        case _:
            head = struct.pack(">BBQ", bits | opcode, mask_bit | 127, said)
    if not masked:
        return head + payload
    key = os.urandom(4)
    return head + key + mask(key, payload)


def mask(key: bytes, payload: bytes) -> bytes:
    if not payload:
        return b""
    repeated = (key * (len(payload) // 4 + 1))[: len(payload)]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(len(payload), "big")


def close_payload(code: int, text: str | bytes = b"") -> bytes:
    return struct.pack(">H", code) + (text.encode() if isinstance(text, str) else text)


def compressed(payload: bytes) -> bytes:
    """Return the payload of a compressed message, without what RFC 7692 leaves out."""
    deflate = zlib.compressobj(wbits=-15)
    return (deflate.compress(payload) + deflate.flush(zlib.Z_SYNC_FLUSH)).removesuffix(DEFLATE_TAIL)


def decompressed(payload: bytes) -> bytes:
    inflate = zlib.decompressobj(wbits=-15)
    return inflate.decompress(payload + DEFLATE_TAIL)


def split_websocket_frame(buffer: bytes) -> tuple[Frame, bytes] | None:
    """Return the first frame of `buffer` and the rest, or None while it is incomplete. A server masks nothing."""
    if len(buffer) < 2:
        return None
    assert not buffer[1] & MASK_BIT, f"a server must not mask: {shown(buffer)}"
    length, start = buffer[1] & 0x7F, 2
    if length >= 126:
        size = 2 if length == 126 else 8
        start += size
        if len(buffer) < start:
            return None
        length = int.from_bytes(buffer[2:start], "big")
    if len(buffer) < start + length:
        return None
    return Frame(buffer[0], buffer[start : start + length]), buffer[start + length :]


def new_key() -> str:
    return base64.b64encode(os.urandom(16)).decode()


def accept_of(key: str) -> str:
    """What a server must answer to a key."""
    return base64.b64encode(hashlib.sha1(key.encode() + ACCEPT_SUFFIX).digest()).decode()


def upgrade_headers(host: str, key: str) -> dict[str, str]:
    """The headers that RFC 6455 wants; a test changes them or leaves some out."""
    return {
        "Host": host,
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": key,
        "Sec-WebSocket-Version": "13",
    }


def request(headers: Mapping[str, str | None], *, method: str = "GET", path: str = "/", version: str = "1.1") -> bytes:
    """Return a request; a header that is None is left out."""
    lines = [f"{method} {path} HTTP/{version}", *(f"{name}: {value}" for name, value in headers.items() if value)]
    return "\r\n".join([*lines, "", ""]).encode()


def read_response(connection: socket.socket) -> tuple[Response, bytes]:
    """Return the answer of a server and what came behind it."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65_536)
        assert piece, f"the server closed before its answer was complete: {shown(received)}"
        received += piece
    head, _, rest = received.partition(b"\r\n\r\n")
    status_line, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", 0))
    while len(rest) < length:
        rest += connection.recv(65_536)
    return Response(status_line, headers, rest[:length]), rest[length:]


def websocket_address(server: ServerProcess) -> tuple[str, int]:
    """Where a server says that it listens for WebSocket clients."""
    found = LISTENING.search(server.log())
    assert found, server.log()
    return found[2], int(found[3])


def websocket_url(server: ServerProcess) -> str:
    found = LISTENING.search(server.log())
    assert found, server.log()
    return f"{found[1]}://{found[2]}:{found[3]}"


def open_socket(server: ServerProcess, tls: ssl.SSLContext | None = None) -> socket.socket:
    """Connect, and shake hands if asked to."""
    connection = socket.create_connection(websocket_address(server), timeout=TIMEOUT_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if tls is None:
        return connection
    return tls.wrap_socket(connection, server_hostname="localhost")


def ask(
    server: ServerProcess,
    changes: Mapping[str, str | None] | None = None,
    *,
    method: str = "GET",
    path: str = "/",
    version: str = "1.1",
    tls: ssl.SSLContext | None = None,
) -> Response:
    """Ask for an upgrade with some headers changed (None leaves one out), and return the answer."""
    host, port = websocket_address(server)
    headers = {**upgrade_headers(f"{host}:{port}", new_key()), **(changes or {})}
    with open_socket(server, tls) as connection:
        connection.sendall(request(headers, method=method, path=path, version=version))
        return read_response(connection)[0]


class WebSocketClient(RawClient):
    """One WebSocket connection: `send` puts bytes into one masked binary frame, and NATS lines are read across frames.

        with WebSocketClient(server) as client:
            client.connect()
            client.send(b"SUB greetings 1\r\n")
            client.send_frame(TEXT, b"PUB greetings 2\r\nhi\r\n")
            client.expect(b"MSG greetings 1 2\r\nhi\r\n")

    Frames that are not data are kept in `control`, in the order in which they came.
    """

    def __init__(
        self,
        server: ServerProcess,
        *,
        path: str = "/",
        headers: Mapping[str, str | None] | None = None,
        compress: bool = False,
        tls: ssl.SSLContext | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self.kind = server.kind
        self.timeout_seconds = timeout_seconds
        self.answer_pings = True
        self.connected_info = {}
        self.control: list[Frame] = []
        self.data: list[Frame] = []
        self._buffer = b""
        self._unread = b""
        self._message: list[Frame] = []
        self._closed_by_server = False
        host, port = websocket_address(server)
        key = new_key()
        wanted: dict[str, str | None] = {**upgrade_headers(f"{host}:{port}", key)}
        if compress:
            wanted["Sec-WebSocket-Extensions"] = DEFLATE_OFFER
        self._socket = open_socket(server, tls)
        self._socket.sendall(request({**wanted, **(headers or {})}, path=path))
        self.response, self._unread = read_response(self._socket)
        assert self.response.status == 101, self.response
        assert self.response.headers["sec-websocket-accept"] == accept_of(key)
        self.is_masking = self.response.headers.get("nats-no-masking") != "true"
        self.info_line = self.read_line()
        self.info = parse_info(self.info_line)

    # Sending

    def send(self, data: bytes) -> None:
        self.send_frame(BINARY, data)

    def send_frame(self, opcode: int, payload: bytes = b"", *, bits: int = FINAL_BIT) -> None:
        self.send_bytes(frame(opcode, payload, bits=bits, masked=self.is_masking))

    def send_compressed(self, data: bytes) -> None:
        self.send_frame(BINARY, compressed(data), bits=FINAL_BIT | COMPRESSED_BIT)

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are, outside any frame."""
        super().send(data)

    # Receiving

    def expect_control(self, opcode: int, payload: bytes) -> None:
        """Wait for the next control frame and compare it."""
        deadline = time.monotonic() + self.timeout_seconds
        while not self.control:
            assert self._receive(deadline), f"the server closed without a control frame: {shown(self._buffer)}"
        found = self.control.pop(0)
        assert (found.opcode, found.payload) == (opcode, payload), found

    def expect_close(self, code: int, text: str) -> None:
        """Expect a close frame, the end of the connection behind it, and no NATS lines on the way."""
        received, close = self.read_close()
        assert received == b"", f"expected only a close frame, received {shown(received)}"
        assert close == (code, text)

    def expect_violation(self, text: str, code: int = 1002, *, lines: bytes = b"") -> None:
        """Expect the end of the connection for something that is not allowed.

        nats-server means to say why in a close frame, and in the lines before it, and closes before either is sent.
        """
        received, close = self.read_close()
        if self.kind == "nats-server" and close is None:
            assert received in (b"", lines), shown(received)
            return
        assert (received, close) == (lines, (code, text))

    def expect_error_and_close(self, error: str, code: int, text: str) -> None:
        """Expect `-ERR`, then a close frame, then the end of the connection."""
        self.expect_error(error)
        self.expect_close(code, text)

    def read_close(self) -> tuple[bytes, tuple[int, str] | None]:
        """Read up to the end of the connection: the NATS lines on the way, and what the close frame says."""
        received = self.read_to_end()
        closes = [each for each in self.control if each.opcode == CLOSE]
        assert len(closes) <= 1, closes
        return received, closes[0].close if closes else None

    def _receive(self, deadline: float) -> bool:
        """Add the data of one or more frames to the buffer; False at the end of the connection."""
        while (cut := split_websocket_frame(self._unread)) is None:
            if not self._receive_bytes(deadline):
                return False
        while cut is not None:
            received, self._unread = cut
            self._take(received)
            cut = split_websocket_frame(self._unread)
        return True

    def _receive_bytes(self, deadline: float) -> bool:
        kept, self._buffer = self._buffer, b""
        try:
            is_open = super()._receive(deadline)
        finally:
            self._unread += self._buffer
            self._buffer = kept
        return is_open

    def _take(self, received: Frame) -> None:
        if received.opcode >= CLOSE:
            assert received.is_final, received
            assert len(received.payload) <= 125, received
            self.control.append(received)
            return
        assert (received.opcode == CONTINUATION) == bool(self._message), f"a frame out of order: {received}"
        self.data.append(received)
        self._message.append(received)
        if not received.is_final:
            return
        payload = b"".join(each.payload for each in self._message)
        self._buffer += decompressed(payload) if self._message[0].is_compressed else payload
        self._message = []
