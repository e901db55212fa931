"""Compressed messages (permessage-deflate): agreed on in the upgrade, both ways, and within bounds."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.websocket_servers import websocket_config
from tests.compatibility.websocket_wire import (
    BINARY,
    COMPRESSED_BIT,
    CONTINUATION,
    DEFLATE_OFFER,
    FINAL_BIT,
    PING,
    PONG,
    WebSocketClient,
    ask,
    compressed,
    frame,
)

PUBLISH = b"SUB echo 1\r\nPUB echo 5\r\nhello\r\nPING\r\n"
ECHO = b"MSG echo 1 5\r\nhello\r\nPONG\r\n"

PAYLOAD_BYTES_MAX = 100_000

BOMB = compressed(b"PING\r\n" * 5_000_000)
"""30 MB that arrive as 30 KB."""

READ_BYTES = 512 * 1024
"""What Jetlake reads at once; a message that fills it exactly is kept as it is until its sender is known."""

BROWSER = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605"
)


@pytest.fixture
def server(start_once) -> ServerProcess:
    return start_once(websocket_config("compress: true", f"max_payload: {PAYLOAD_BYTES_MAX}"))


@pytest.fixture
def client(server: ServerProcess) -> Iterator[WebSocketClient]:
    """A client that has agreed to compress, and said CONNECT."""
    with WebSocketClient(server, compress=True) as client:
        client.connect()
        yield client


@pytest.mark.parametrize(
    "offer",
    [
        "permessage-deflate",
        DEFLATE_OFFER,
        "permessage-deflate; client_max_window_bits",
        "x-unknown, permessage-deflate; server_no_context_takeover",
        "Permessage-Deflate",
    ],
)
def test_compression_is_agreed_on_without_a_context(server: ServerProcess, offer: str) -> None:
    response = ask(server, {"Sec-WebSocket-Extensions": offer})

    assert response.headers["sec-websocket-extensions"] == DEFLATE_OFFER


@pytest.mark.parametrize("offer", [None, "x-unknown", "permessage-bzip2"])
def test_compression_that_was_not_offered_is_not_used(server: ServerProcess, offer: str | None) -> None:
    with WebSocketClient(server, headers={"Sec-WebSocket-Extensions": offer}) as client:
        assert "sec-websocket-extensions" not in client.response.headers
        client.connect()
        client.send(b"SUB long 1\r\nPUB long 1000\r\n" + b"x" * 1_000 + b"\r\n")
        client.expect(b"MSG long 1 1000\r\n" + b"x" * 1_000 + b"\r\n")

        assert not any(frame.is_compressed for frame in client.data)


def test_info_is_compressed(client: WebSocketClient) -> None:
    assert client.data[0].is_compressed
    assert client.info["max_payload"] == PAYLOAD_BYTES_MAX


def test_compressed_message_is_obeyed(client: WebSocketClient) -> None:
    client.send_compressed(PUBLISH)

    client.expect(ECHO)


def test_message_need_not_be_compressed(client: WebSocketClient) -> None:
    client.send(PUBLISH)

    client.expect(ECHO)


def test_small_answer_is_not_compressed(client: WebSocketClient) -> None:
    client.data.clear()
    client.expect_pong()

    assert [frame.is_compressed for frame in client.data] == [False]


@pytest.mark.parametrize("size", [500, 20_000, 99_000])
def test_large_message_comes_compressed(client: WebSocketClient, size: int) -> None:
    body = b"abcdefgh" * (size // 8)
    client.send(b"SUB large 1\r\n")
    client.data.clear()
    client.send(b"PUB large %d\r\n%b\r\n" % (len(body), body))

    client.expect(b"MSG large 1 %d\r\n%b\r\n" % (len(body), body))
    assert client.data[0].is_compressed
    assert sum(len(frame.payload) for frame in client.data) < len(body)


def test_message_that_cannot_be_compressed_arrives_as_it_is(client: WebSocketClient) -> None:
    body = os.urandom(90_000)
    client.send_compressed(b"SUB noise 1\r\nPUB noise %d\r\n%b\r\n" % (len(body), body))

    client.expect(b"MSG noise 1 %d\r\n%b\r\n" % (len(body), body))


@pytest.mark.parametrize("user_agent", ["Mozilla/5.0 (X11) Chrome/140.0.0.0 Safari/537.36", BROWSER])
def test_browser_can_put_compressed_messages_together(server: ServerProcess, user_agent: str) -> None:
    body = os.urandom(60_000)
    with WebSocketClient(server, compress=True, headers={"User-Agent": user_agent}) as client:
        client.connect()
        client.send(b"SUB large 1\r\nPUB large %d\r\n%b\r\n" % (len(body), body))

        client.expect(b"MSG large 1 %d\r\n%b\r\n" % (len(body), body))


@pytest.mark.parametrize("piece_bytes", [1, 10])
def test_compressed_message_may_come_in_fragments(client: WebSocketClient, piece_bytes: int) -> None:
    data = compressed(PUBLISH)
    pieces = [data[start : start + piece_bytes] for start in range(0, len(data), piece_bytes)]
    last = len(pieces) - 1
    for index, piece in enumerate(pieces):
        bits = (FINAL_BIT if index == last else 0) | (0 if index else COMPRESSED_BIT)
        client.send_frame(CONTINUATION if index else BINARY, piece, bits=bits)
        client.send_frame(PING, b"%d" % index)

    client.expect(ECHO)
    client.expect_control(PONG, b"0")


def test_line_may_be_cut_by_compressed_messages(client: WebSocketClient) -> None:
    client.send_compressed(PUBLISH[:20])
    client.send(PUBLISH[20:30])
    client.send_compressed(PUBLISH[30:])

    client.expect(ECHO)


def test_empty_compressed_message_means_nothing(client: WebSocketClient) -> None:
    client.send_compressed(b"")

    client.expect_pong()


def test_compressed_message_without_a_byte_harms_nobody_else(client: WebSocketClient, server: ServerProcess) -> None:
    client.send_frame(BINARY, b"", bits=FINAL_BIT | COMPRESSED_BIT)

    with WebSocketClient(server, compress=True) as other:
        other.connect()
    # nats-server ends this connection, for what deflate reads as nothing.
    if server.kind != "nats-server":
        client.expect_pong()


def test_compressed_messages_of_several_clients_do_not_mix(server: ServerProcess) -> None:
    bodies = [bytes([65 + number]) * (200 + 900 * number) for number in range(20)]
    expected = {number: b"MSG mixed 1 %d\r\n%b\r\n" % (len(body), body) for number, body in enumerate(bodies)}
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(WebSocketClient(server, compress=True)) for _ in range(3)]
        for each in clients:
            each.connect()
            each.send(b"SUB mixed 1\r\n")
            each.expect_pong()
        for _ in range(10):
            for number, body in enumerate(bodies):
                clients[number % 3].send_compressed(b"PUB mixed %d\r\n%b\r\n" % (len(body), body))

        for each in clients:
            received = [each.read_frame() for _ in range(10 * len(bodies))]
            assert sorted(received) == sorted(list(expected.values()) * 10)


def test_only_the_first_fragment_says_that_it_is_compressed(client: WebSocketClient) -> None:
    data = compressed(PUBLISH)
    client.send_frame(BINARY, data[:5], bits=COMPRESSED_BIT)
    client.send_frame(CONTINUATION, data[5:], bits=FINAL_BIT | COMPRESSED_BIT)

    client.expect_violation("invalid continuation frame")


def test_what_is_not_deflate_ends_the_connection(client: WebSocketClient) -> None:
    client.send_frame(BINARY, b"\xff" * 50, bits=FINAL_BIT | COMPRESSED_BIT)

    _, close = client.read_close()
    assert close is None or close[0] in (1002, 1007)


def test_compressed_message_may_hold_several_publishes(client: WebSocketClient) -> None:
    publish = b"PUB several 30000\r\n" + b"x" * 30_000 + b"\r\n"
    client.send(b"SUB several 1\r\n")
    client.send_compressed(publish * 3)
    client.expect((b"MSG several 1 30000\r\n" + b"x" * 30_000 + b"\r\n") * 3)

    # nats-server allows the whole message no more than one payload.
    if client.kind != "nats-server":
        client.send_compressed(publish * 20)
        client.expect((b"MSG several 1 30000\r\n" + b"x" * 30_000 + b"\r\n") * 20)


def test_what_is_sent_before_the_client_is_known_is_not_changed(start_once) -> None:
    rest = "authorization { users: [{user: ada, password: x}] }, no_auth_user: ada"
    server = start_once(websocket_config("compress: true", rest))
    bodies = [bytes([65 + number]) * 60_000 for number in range(24)]
    stream = b"".join(b"PUB large %d\r\n%b\r\n" % (len(body), body) for body in bodies)
    with server.client() as listener, WebSocketClient(server, compress=True) as client:
        listener.connect(user="ada", **{"pass": "x"})
        listener.send(b"SUB large 1\r\n")
        listener.expect_pong()

        for start in range(0, len(stream), READ_BYTES):
            client.send_compressed(stream[start : start + READ_BYTES])

        listener.expect(b"".join(b"MSG large 1 %d\r\n%b\r\n" % (len(body), body) for body in bodies))


def test_many_large_messages_at_once_arrive_in_their_order(client: WebSocketClient) -> None:
    bodies = [b"%d" % number * (90_000 // len(b"%d" % number)) for number in range(200)]
    client.send(b"SUB order 1\r\n")
    client.expect_pong()
    frames = []
    for body in bodies:
        message = compressed(b"PUB order %d\r\n%b\r\n" % (len(body), body))
        frames += [frame(BINARY, message, bits=FINAL_BIT | COMPRESSED_BIT), frame(PING, b"between")]

    client.send_bytes(b"".join(frames))

    client.expect(b"".join(b"MSG order 1 %d\r\n%b\r\n" % (len(body), body) for body in bodies))
    client.expect_pong()
    assert [each.payload for each in client.control if each.opcode == PONG] == [b"between"] * len(bodies)


def test_message_that_grows_without_end_is_given_up(client: WebSocketClient, server: ServerProcess) -> None:
    client.send_frame(BINARY, BOMB, bits=FINAL_BIT | COMPRESSED_BIT)

    _, close = client.read_close()
    assert close in (None, (1009, "Maximum Message Payload Exceeded"))
    with WebSocketClient(server, compress=True) as other:
        other.connect()


def test_compressed_fragments_without_end_are_given_up(client: WebSocketClient) -> None:
    client.send_frame(BINARY, os.urandom(50_000), bits=COMPRESSED_BIT)
    for _ in range(40):
        client.send_frame(CONTINUATION, os.urandom(50_000), bits=0)

    _, close = client.read_close()
    assert close in (None, (1009, "Maximum Message Payload Exceeded"))
