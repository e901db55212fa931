"""The upgrade from HTTP to WebSocket: what a server accepts, what it answers, and what it refuses."""

from __future__ import annotations

import contextlib
import socket

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.websocket_servers import websocket_config
from tests.compatibility.websocket_wire import (
    BINARY,
    FINAL_BIT,
    WebSocketClient,
    accept_of,
    ask,
    frame,
    new_key,
    open_socket,
    read_response,
    request,
    upgrade_headers,
)
from tests.compatibility.wire import TIMEOUT_SECONDS

TEXTS = {400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed"}

COOKIES_BYTES = 12_000
"""More than browsers send: they keep 4 KB for each cookie, and proxies refuse more than 8 KB in all."""

HEAD_BYTES = 2_000_000
"""More than any server reads of a request without a limit."""


def read_to_end(connection: socket.socket) -> bytes:
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65_536):
            received += piece
    return received


def test_upgrade_is_answered_with_the_key_and_nothing_else(websocket_server: ServerProcess) -> None:
    key = new_key()
    with open_socket(websocket_server) as connection:
        connection.sendall(request(upgrade_headers("127.0.0.1", key)))
        response, _ = read_response(connection)

    assert response.status_line == "HTTP/1.1 101 Switching Protocols"
    assert response.headers == {
        "upgrade": "websocket",
        "connection": "Upgrade",
        "sec-websocket-accept": accept_of(key),
    }


def test_key_of_the_specification_gets_its_answer(websocket_server: ServerProcess) -> None:
    response = ask(websocket_server, {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="})

    assert response.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


def test_info_comes_in_one_binary_frame_without_a_mask(websocket_server: ServerProcess) -> None:
    with WebSocketClient(websocket_server) as client:
        (first,) = client.data

        assert first.first == FINAL_BIT | BINARY
        assert first.payload == client.info_line


@pytest.mark.parametrize(
    "changes",
    [
        {"Connection": "keep-alive, Upgrade"},
        {"Connection": "upgrade"},
        {"Connection": "close,\tUPGRADE"},
        {"Upgrade": "WebSocket"},
        {"Upgrade": "h2c, websocket"},
        {"Sec-WebSocket-Version": "8, 13"},
        {"Sec-WebSocket-Protocol": "nats"},
        {"Sec-WebSocket-Extensions": "x-unknown; a=1"},
        {"Sec-WebSocket-Extensions": "permessage-deflate"},
        {"Origin": "http://example.com"},
        {"Content-Length": "0"},
    ],
    ids=str,
)
def test_other_spellings_are_accepted_and_change_nothing(
    websocket_server: ServerProcess,
    changes: dict[str, str],
) -> None:
    response = ask(websocket_server, changes)

    assert response.status == 101
    assert set(response.headers) == {"upgrade", "connection", "sec-websocket-accept"}


@pytest.mark.parametrize("path", ["/", "/nats", "/a/b/c", "/?token=x", "/a?x=%zz", "/%20", "/a%2Fb"])
def test_every_path_leads_to_the_same_server(websocket_server: ServerProcess, path: str) -> None:
    with WebSocketClient(websocket_server, path=path) as client:
        client.connect()


def test_header_names_match_in_any_case(websocket_server: ServerProcess) -> None:
    headers = {name.swapcase(): value for name, value in upgrade_headers("127.0.0.1", new_key()).items()}
    with open_socket(websocket_server) as connection:
        connection.sendall(request(headers))

        assert read_response(connection)[0].status == 101


def test_request_may_come_in_pieces(websocket_server: ServerProcess) -> None:
    whole = request(upgrade_headers("127.0.0.1", new_key()))
    with open_socket(websocket_server) as connection:
        for start in range(0, len(whole), 7):
            connection.sendall(whole[start : start + 7])

        assert read_response(connection)[0].status == 101


def test_many_cookies_fit_into_a_request(websocket_server: ServerProcess) -> None:
    response = ask(websocket_server, {"Cookie": "; ".join(f"c{n}={'x' * 1000}" for n in range(COOKIES_BYTES // 1000))})

    assert response.status == 101


@pytest.mark.parametrize(
    ("changes", "method", "status", "reason"),
    [
        ({}, "POST", 405, "request method must be GET"),
        ({}, "PUT", 405, "request method must be GET"),
        ({"Upgrade": None}, "GET", 400, "invalid value for header 'Upgrade'"),
        ({"Upgrade": "websockets"}, "GET", 400, "invalid value for header 'Upgrade'"),
        ({"Connection": None}, "GET", 400, "invalid value for header 'Connection'"),
        ({"Connection": "keep-alive"}, "GET", 400, "invalid value for header 'Connection'"),
        ({"Sec-WebSocket-Key": None}, "GET", 400, "key missing"),
        ({"Sec-WebSocket-Key": "short"}, "GET", 400, "invalid websocket key"),
        ({"Sec-WebSocket-Key": "bm90IHNpeHRlZW4gYnl0ZXMh"}, "GET", 400, "invalid websocket key"),
        ({"Sec-WebSocket-Version": None}, "GET", 400, "invalid version"),
        ({"Sec-WebSocket-Version": "8"}, "GET", 400, "invalid version"),
    ],
    ids=str,
)
def test_upgrade_without_what_it_needs_is_refused(
    websocket_server: ServerProcess,
    changes: dict[str, str | None],
    method: str,
    status: int,
    reason: str,
) -> None:
    response = ask(websocket_server, changes, method=method)

    assert response.status_line == f"HTTP/1.1 {status} {TEXTS[status]}"
    assert response.headers["sec-websocket-version"] == "13"
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.body == f"{TEXTS[status]}\n".encode()
    websocket_server.wait_for_log(f" - websocket handshake error: {reason}")


def test_mqtt_over_websocket_is_not_found(websocket_server: ServerProcess) -> None:
    response = ask(websocket_server, path="/mqtt")

    assert (response.status, response.body) == (404, b"Not Found\n")


def test_request_without_a_host_is_refused(websocket_server: ServerProcess) -> None:
    assert ask(websocket_server, {"Host": None}).status == 400


def test_other_version_of_http_is_refused(websocket_server: ServerProcess) -> None:
    assert ask(websocket_server, version="2.0").status in (400, 505)


@pytest.mark.parametrize(
    "data",
    [
        b'CONNECT {"verbose":false}\r\nPING\r\n\r\n',
        b"GET / HTTP/1.1\r\nbroken\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nBad Name: x\r\n\r\n",
        b"GET nowhere HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\x16\x03\x01\x00\x05aaaaa\r\n\r\n",
    ],
    ids=["nats", "header without colon", "blank in a name", "path without slash", "tls"],
)
def test_what_is_not_http_is_refused_and_closed(websocket_server: ServerProcess, data: bytes) -> None:
    with open_socket(websocket_server) as connection:
        connection.sendall(data)

        assert read_to_end(connection).startswith(b"HTTP/1.1 400 Bad Request")


def test_endless_request_is_refused(websocket_server: ServerProcess) -> None:
    with open_socket(websocket_server) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * HEAD_BYTES)
        received = read_to_end(connection)

    # A client that is still sending when the server closes may lose the answer.
    assert not received or received.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")


def test_frames_before_the_answer_end_the_connection(websocket_server: ServerProcess) -> None:
    with open_socket(websocket_server) as connection:
        connection.sendall(request(upgrade_headers("127.0.0.1", new_key())) + frame(BINARY, b"PING\r\n"))

        assert read_to_end(connection) == b""
    websocket_server.wait_for_log(" - websocket handshake error: client sent data before handshake is complete")


def test_client_that_never_asks_is_closed_after_the_handshake_timeout(start_once) -> None:
    server = start_once(websocket_config('handshake_timeout: "200ms"'))
    with open_socket(server) as silent, open_socket(server) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\n")

        assert read_to_end(silent) == b""
        assert not read_to_end(slow).startswith(b"HTTP/1.1 101")


def test_upgraded_client_is_not_hurried_by_the_handshake_timeout(start_once) -> None:
    # Long enough for the handshake itself, also on a machine that is busy.
    server = start_once(websocket_config('handshake_timeout: "4s"'))
    with WebSocketClient(server) as client:
        client.connect()
        client.expect_silence(4.3)
        client.expect_pong()


def test_configured_headers_are_in_the_answer(start_once) -> None:
    server = start_once(websocket_config('headers { X-Served-By: "one", Strict-Transport-Security: "max-age=1" }'))

    response = ask(server)

    assert response.status == 101
    assert response.headers["x-served-by"] == "one"
    assert response.headers["strict-transport-security"] == "max-age=1"


def test_client_may_ask_not_to_mask(websocket_server: ServerProcess) -> None:
    with WebSocketClient(websocket_server, headers={"Nats-No-Masking": "true"}) as client:
        assert not client.is_masking
        client.connect()


def test_nats_lines_are_not_served_on_the_port_of_websocket(websocket_server: ServerProcess) -> None:
    with open_socket(websocket_server) as connection:
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.settimeout(TIMEOUT_SECONDS)
