"""Frames: how NATS lines are cut into them, control frames between them, and what is not allowed in one."""

from __future__ import annotations

import itertools

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.websocket_servers import websocket_config
from tests.compatibility.websocket_wire import (
    BINARY,
    CLOSE,
    COMPRESSED_BIT,
    CONTINUATION,
    FINAL_BIT,
    PING,
    PONG,
    RSV2_BIT,
    RSV3_BIT,
    TEXT,
    WebSocketClient,
    close_payload,
    frame,
)

NOT_FINAL = 0

PUBLISH = b"SUB echo 1\r\nPUB echo 5\r\nhello\r\nPING\r\n"
ECHO = b"MSG echo 1 5\r\nhello\r\nPONG\r\n"

BODY_BYTES = 70_000
"""More than fits into a length of 16 bits."""

FRAME_BYTES_PROMISED = (1 << 40, (1 << 63) - 1)
"""More than any server has room for: it must not make room for a frame before it arrives."""

BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"


@pytest.fixture
def client(websocket_client: WebSocketClient) -> WebSocketClient:
    """A client that has said CONNECT."""
    websocket_client.connect()
    return websocket_client


# How lines are cut into frames means nothing


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_text_and_binary_frames_carry_the_same_lines(client: WebSocketClient, opcode: int) -> None:
    client.send_frame(opcode, PUBLISH)

    client.expect(ECHO)


def test_text_frame_need_not_be_text(client: WebSocketClient) -> None:
    client.send_frame(TEXT, b"SUB bytes 1\r\nPUB bytes 2\r\n\xff\xfe\r\n")

    client.expect(b"MSG bytes 1 2\r\n\xff\xfe\r\n")


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 7, 20])
def test_line_may_be_cut_by_frames_anywhere(client: WebSocketClient, piece_bytes: int) -> None:
    for start in range(0, len(PUBLISH), piece_bytes):
        client.send_frame(BINARY, PUBLISH[start : start + piece_bytes])

    client.expect(ECHO)


@pytest.mark.parametrize("piece_bytes", [1, 5, 20])
def test_message_may_be_cut_into_fragments(client: WebSocketClient, piece_bytes: int) -> None:
    pieces = [PUBLISH[start : start + piece_bytes] for start in range(0, len(PUBLISH), piece_bytes)]
    last = len(pieces) - 1
    for index, piece in enumerate(pieces):
        client.send_frame(CONTINUATION if index else BINARY, piece, bits=FINAL_BIT if index == last else NOT_FINAL)

    client.expect(ECHO)


def test_first_lines_of_a_message_are_obeyed_before_its_last_fragment(client: WebSocketClient) -> None:
    client.send_frame(BINARY, PUBLISH, bits=NOT_FINAL)
    client.expect(ECHO)

    client.send_frame(CONTINUATION, b"PING\r\n")
    client.expect(b"PONG\r\n")


def test_frames_may_be_cut_by_packets_anywhere(client: WebSocketClient) -> None:
    data = frame(BINARY, PUBLISH[:9], bits=NOT_FINAL) + frame(PING, b"x") + frame(CONTINUATION, PUBLISH[9:])
    for byte in data:
        client.send_bytes(bytes([byte]))

    client.expect(ECHO)
    client.expect_control(PONG, b"x")


def test_many_frames_may_come_in_one_packet(client: WebSocketClient) -> None:
    client.send_bytes(b"".join(frame(BINARY, b"PING\r\n") for _ in range(500)))

    client.expect(b"PONG\r\n" * 500)


def test_empty_frames_mean_nothing(client: WebSocketClient) -> None:
    client.send_frame(BINARY)
    client.send_frame(TEXT, bits=NOT_FINAL)
    client.send_frame(CONTINUATION, bits=NOT_FINAL)
    client.send_frame(CONTINUATION)

    client.expect_pong()


@pytest.mark.parametrize("length_bytes", [1, 3, 9])
def test_length_may_be_written_longer_than_needed(client: WebSocketClient, length_bytes: int) -> None:
    client.send_bytes(frame(BINARY, PUBLISH, length_bytes=length_bytes))

    client.expect(ECHO)


@pytest.mark.parametrize("size", [0, 1, 100, 125, 126, 127, 65_000, 65_535, 65_536, BODY_BYTES, 1_000_000])
def test_messages_of_every_size_go_both_ways(client: WebSocketClient, size: int) -> None:
    body = bytes(itertools.islice(itertools.cycle(range(256)), size))
    client.send(b"SUB size 1\r\n")
    client.send(b"PUB size %d\r\n%b\r\n" % (size, body))

    client.expect(b"MSG size 1 %d\r\n%b\r\n" % (size, body))


@pytest.mark.parametrize("promised", FRAME_BYTES_PROMISED)
def test_frame_is_read_as_it_arrives_and_not_when_it_is_whole(client: WebSocketClient, promised: int) -> None:
    client.send_bytes(frame(BINARY, PUBLISH, length_bytes=9, length=promised))

    client.expect(ECHO)


def test_browser_gets_frames_that_it_can_put_together(websocket_server: ServerProcess) -> None:
    body = b"x" * BODY_BYTES
    with WebSocketClient(websocket_server, headers={"User-Agent": BROWSER}) as client:
        client.connect()
        client.send(b"SUB large 1\r\nPUB large %d\r\n%b\r\n" % (BODY_BYTES, body))

        client.expect(b"MSG large 1 %d\r\n%b\r\n" % (BODY_BYTES, body))


def test_client_that_asked_not_to_mask_sends_plain_frames(websocket_server: ServerProcess) -> None:
    with WebSocketClient(websocket_server, headers={"Nats-No-Masking": "true"}) as client:
        client.connect()
        client.send(PUBLISH)
        client.expect(ECHO)

        client.send_frame(PING, b"plain")
        client.expect_control(PONG, b"plain")


# Control frames


@pytest.mark.parametrize("payload", [b"", b"x", b"\x00\xff" * 40, b"y" * 125])
def test_ping_is_answered_with_its_own_payload(client: WebSocketClient, payload: bytes) -> None:
    client.send_frame(PING, payload)

    client.expect_control(PONG, payload)
    client.expect_pong()


def test_pong_that_nobody_asked_for_means_nothing(client: WebSocketClient) -> None:
    client.send_frame(PONG, b"unasked")

    client.expect_pong()
    assert client.control == []


def test_control_frames_may_come_between_fragments(client: WebSocketClient) -> None:
    client.send_frame(BINARY, PUBLISH[:7], bits=NOT_FINAL)
    client.send_frame(PING, b"between")
    client.send_frame(CONTINUATION, PUBLISH[7:15], bits=NOT_FINAL)
    client.send_frame(PONG)
    client.send_frame(CONTINUATION, PUBLISH[15:])

    client.expect(ECHO)
    client.expect_control(PONG, b"between")


@pytest.mark.parametrize("code", [1000, 1001, 1002, 1003, 1007, 1011, 1014, 3000, 3999, 4000, 4999])
def test_close_frame_is_returned_and_the_connection_ends(client: WebSocketClient, code: int) -> None:
    client.send_frame(CLOSE, close_payload(code, "good bye"))

    client.expect_close(code, "good bye")


def test_close_frame_without_a_code_is_returned_without_one(client: WebSocketClient) -> None:
    client.send_frame(CLOSE)

    client.expect_close(0, "")


def test_longest_text_of_a_close_frame_is_returned(client: WebSocketClient) -> None:
    client.send_frame(CLOSE, close_payload(1000, "x" * 123))

    client.expect_close(1000, "x" * 123)


def test_close_frame_whose_text_is_none_is_answered_so(client: WebSocketClient) -> None:
    client.send_frame(CLOSE, close_payload(1000, b"\xff\xfe"))

    client.expect_close(1007, "invalid utf8 body in close frame")


def test_lines_before_a_close_frame_are_obeyed(client: WebSocketClient, websocket_server: ServerProcess) -> None:
    with WebSocketClient(websocket_server) as listener:
        listener.connect()
        listener.send(b"SUB last.words 1\r\n")
        listener.expect_pong()

        client.send_bytes(frame(BINARY, b"PUB last.words 3\r\nbye\r\n") + frame(CLOSE, close_payload(1000)))

        listener.expect(b"MSG last.words 1 3\r\nbye\r\n")


# What is not allowed


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(frame(BINARY, b"PING\r\n", masked=False), "mask bit missing", id="unmasked data"),
        pytest.param(frame(PING, masked=False), "mask bit missing", id="unmasked ping"),
        pytest.param(frame(BINARY, bits=FINAL_BIT | RSV2_BIT), "RSV2 and RSV3 must be clear", id="RSV2"),
        pytest.param(frame(BINARY, bits=FINAL_BIT | RSV3_BIT), "RSV2 and RSV3 must be clear", id="RSV3"),
        pytest.param(
            frame(BINARY, b"PING\r\n", bits=FINAL_BIT | COMPRESSED_BIT),
            "compressed frame received without negotiated permessage-deflate",
            id="compressed",
        ),
        *[pytest.param(frame(code), f"unknown opcode {code}", id=f"opcode {code}") for code in (3, 7, 11, 15)],
        pytest.param(frame(CONTINUATION, b"PING\r\n"), "invalid continuation frame", id="continuation of nothing"),
        pytest.param(
            frame(BINARY, b"PI", bits=NOT_FINAL) + frame(BINARY, b"NG\r\n"),
            "new message started before final frame for previous message was received",
            id="message inside a message",
        ),
        pytest.param(
            frame(PING, bits=NOT_FINAL), "control frame does not have final bit set", id="fragment of a control frame"
        ),
        *[
            pytest.param(
                frame(opcode, b"x" * 126),
                "control frame length bigger than maximum allowed of 125 bytes",
                id=f"control frame {opcode} of 126 bytes",
            )
            for opcode in (PING, PONG, CLOSE)
        ],
        pytest.param(
            frame(PING, b"x", length_bytes=9),
            "control frame length bigger than maximum allowed of 125 bytes",
            id="control frame with a long length",
        ),
        pytest.param(
            frame(BINARY, length_bytes=9, length=1 << 63), "invalid 64-bit payload length", id="length of 64 bits"
        ),
        pytest.param(frame(CLOSE, b"x"), "close frame payload cannot be 1 byte", id="close of one byte"),
        *[
            pytest.param(frame(CLOSE, close_payload(code)), f"invalid close status code {code}", id=f"close {code}")
            for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535)
        ],
    ],
)
def test_frame_against_the_rules_ends_the_connection(client: WebSocketClient, data: bytes, text: str) -> None:
    client.send_bytes(data)

    client.expect_violation(text)


def test_frames_behind_one_against_the_rules_are_not_obeyed(
    client: WebSocketClient, websocket_server: ServerProcess
) -> None:
    with WebSocketClient(websocket_server) as listener:
        listener.connect()
        listener.send(b"SUB too.late 1\r\n")
        listener.expect_pong()

        client.send_bytes(frame(BINARY, bits=FINAL_BIT | RSV2_BIT) + frame(BINARY, b"PUB too.late 0\r\n\r\n"))
        client.expect_violation("RSV2 and RSV3 must be clear")

        listener.expect_pong()


def test_control_frame_must_not_be_compressed(start_once) -> None:
    server = start_once(websocket_config("compress: true"))
    with WebSocketClient(server, compress=True) as client:
        client.connect()
        client.send_frame(PING, b"x", bits=FINAL_BIT | COMPRESSED_BIT)

        client.expect_violation("control frame must not be compressed")


def test_client_over_tcp_does_not_speak_in_frames(websocket_server: ServerProcess) -> None:
    with websocket_server.client() as client:
        client.connect()
        client.send(frame(BINARY, b"PING\r\n"))

        assert client.read_to_end().startswith(b"-ERR 'Unknown Protocol Operation'")
