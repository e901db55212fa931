"""How a connection ends: the code and the text of the close frame for each reason, behind the error that says so."""

from __future__ import annotations

import json
import signal

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.websocket_servers import websocket_config
from tests.compatibility.websocket_wire import BINARY, CLOSE, WebSocketClient, close_payload, frame, open_socket
from tests.compatibility.wire import connect_line
from tests.waiting import until

ACCOUNTS = """
    accounts {
      SMALL { users: [{user: small, password: x}], limits { max_connections: 1 } }
      LARGE { users: [{user: large, password: x}] }
      SYS { users: [{user: system, password: x}] }
    }
    system_account: SYS
"""

FLOOD_BYTES = 1_000_000

LOGIN = {"user": "ada", "pass": "secret"}

BODY = b"x" * 10_000

SIDS = 20
"""With so many on one connection, what one read brings for it is handed over in several steps."""


@pytest.fixture
def client(websocket_client: WebSocketClient) -> WebSocketClient:
    """A client that has said CONNECT."""
    websocket_client.connect()
    return websocket_client


def test_wrong_password(start_once) -> None:
    server = start_once(websocket_config(rest="authorization { user: ada, password: secret }"))
    with WebSocketClient(server) as client:
        client.send_connect(user="ada", **{"pass": "wrong"})

        client.expect_error_and_close("Authorization Violation", 1008, "Authentication Failure")


def test_no_credentials_in_time(start_once) -> None:
    server = start_once(websocket_config(rest='authorization { user: ada, password: secret, timeout: "300ms" }'))
    with WebSocketClient(server) as client:
        client.expect_error_and_close("Authentication Timeout", 1008, "Authentication Timeout")


@pytest.mark.parametrize("status", [1000, 1001])
def test_what_came_before_a_close_frame_is_carried_out(start_once, status: int) -> None:
    server = start_once(websocket_config(rest="authorization { user: ada, password: secret }"))
    with server.client() as listener, WebSocketClient(server) as client:
        listener.connect(**LOGIN)
        listener.send(b"SUB last 1\r\n")
        listener.expect_pong()

        words = connect_line(verbose=False, **LOGIN) + b"PUB last 5\r\nwords\r\n"
        client.send_bytes(frame(BINARY, words) + frame(CLOSE, close_payload(status, "bye")))

        listener.expect(b"MSG last 1 5\r\nwords\r\n")
        client.expect_close(status, "bye")


def test_close_frame_behind_a_wrong_password_ends_the_connection(start_once) -> None:
    server = start_once(websocket_config(rest="authorization { user: ada, password: secret }"))
    with WebSocketClient(server) as client:
        words = connect_line(verbose=False, user="ada", **{"pass": "wrong"})
        client.send_bytes(frame(BINARY, words) + frame(CLOSE, close_payload(1000)))

        received, _ = client.read_close()

        assert received == b"-ERR 'Authorization Violation'\r\n"


def test_messages_before_a_close_frame_arrive_though_their_receiver_is_slow(start_once) -> None:
    server = start_once(websocket_config())
    messages = 150
    with server.client() as receiver, WebSocketClient(server) as publisher:
        receiver.connect()
        receiver.send(b"".join(b"SUB flood %d\r\n" % sid for sid in range(SIDS)))
        receiver.expect_pong()
        publisher.connect()
        message = frame(BINARY, b"PUB flood %d\r\n%b\r\n" % (len(BODY), BODY))
        publisher.send_bytes(message * messages + frame(CLOSE, close_payload(1000)))

        publisher.expect_close(1000, "")

        received = [receiver.read_line() for _ in range(SIDS * messages)]
        assert all(line.startswith(b"MSG flood ") for line in received)
        receiver.expect_pong()


def test_lines_that_nobody_knows(client: WebSocketClient) -> None:
    client.send(b"NONSENSE\r\n")

    client.expect_violation("Protocol Violation", 1002, lines=b"-ERR 'Unknown Protocol Operation'\r\n")


def test_payload_over_the_maximum(start_once) -> None:
    server = start_once(websocket_config(rest="max_payload: 1000"))
    with WebSocketClient(server) as client:
        client.connect()
        client.send(b"PUB large 1001\r\n")

        client.expect_error_and_close("Maximum Payload Violation", 1009, "Maximum Message Payload Exceeded")


def test_line_over_the_maximum(client: WebSocketClient) -> None:
    client.send(b"PUB " + b"a" * 5_000)

    client.expect_error_and_close("maximum control line exceeded", 1008, "Maximum Control Line Exceeded")


def test_client_that_answers_no_ping(start_once) -> None:
    server = start_once(websocket_config(rest='ping_interval: "200ms", ping_max: 1'))
    with WebSocketClient(server) as client:
        client.connect()
        client.answer_pings = False
        while (line := client.read_frame()) == b"PING\r\n":
            pass

        assert line == b"-ERR 'Stale Connection'\r\n"
        client.expect_close(1001, "Stale Connection")


def test_one_connection_too_many(start_once) -> None:
    server = start_once(websocket_config(rest="max_connections: 1"))
    with WebSocketClient(server) as first:
        first.connect()
        with WebSocketClient(server) as second:
            second.expect_error_and_close("maximum connections exceeded", 1008, "Maximum Connections Exceeded")
        first.expect_pong()


def test_connections_over_tcp_count_too(start_once) -> None:
    server = start_once(websocket_config(rest="max_connections: 1 # shared"))
    with server.client() as first:
        first.connect()
        with WebSocketClient(server) as second:
            second.expect_error_and_close("maximum connections exceeded", 1008, "Maximum Connections Exceeded")


def test_one_connection_too_many_of_an_account(start_once) -> None:
    server = start_once(websocket_config(rest=ACCOUNTS))
    with WebSocketClient(server) as first, WebSocketClient(server) as second:
        first.connect(user="small", **{"pass": "x"})
        second.send_connect(user="small", **{"pass": "x"})

        second.expect_error_and_close(
            "maximum account active connections exceeded", 1008, "Maximum Account Connections Exceeded"
        )


def test_client_that_wants_no_responders_without_headers(client: WebSocketClient) -> None:
    client.send_connect(no_responders=True, headers=False)

    received, close = client.read_close()

    assert received == b"-ERR 'no responders requires headers support'\r\n"
    assert close == (1011, "No Responders Requires Headers")


def test_client_that_is_kicked(start_once) -> None:
    server = start_once(websocket_config(rest=ACCOUNTS))
    with WebSocketClient(server) as client, server.client() as system:
        client.connect(user="large", **{"pass": "x"})
        system.connect(user="system", **{"pass": "x"})
        body = json.dumps({"cid": client.info["client_id"]}).encode()
        subject = f"$SYS.REQ.SERVER.{client.info['server_id']}.KICK".encode()
        system.send(b"PUB %b inbox %d\r\n%b\r\n" % (subject, len(body), body))

        received, close = client.read_close()

        assert (received, close) == (b"", (1011, "Kicked"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_server_that_ends(start_server, number: signal.Signals) -> None:
    server: ServerProcess = start_server(config=websocket_config())
    with WebSocketClient(server) as client:
        client.connect()
        server.signal(number)

        client.expect_close(1001, "Server Shutdown")
    assert server.wait_for_exit() in (0, 1)


def test_server_that_leaves_in_lame_duck_mode(start_server) -> None:
    rest = 'lame_duck_duration: "30s", lame_duck_grace_period: "1s"'
    server: ServerProcess = start_server(config=websocket_config(rest=rest))
    with WebSocketClient(server) as client:
        client.connect(protocol=1)
        server.signal(signal.SIGUSR2)
        lines = []
        while frame := client.read_frame():
            lines.append(frame)

        assert len(lines) == 1, lines
        assert json.loads(lines[0].removeprefix(b"INFO "))["ldm"] is True
        assert [each.close for each in client.control] == [(1001, "Server Shutdown")]


async def test_server_that_leaves_takes_no_new_clients(start_server) -> None:
    rest = 'lame_duck_duration: "60s", lame_duck_grace_period: "30s"'
    server: ServerProcess = start_server(config=websocket_config(rest=rest))

    def is_refused() -> bool:
        try:
            open_socket(server).close()
        except ConnectionRefusedError:
            return True
        return False

    with WebSocketClient(server) as client:
        client.connect()
        server.signal(signal.SIGUSR2)
        await until(is_refused)

        client.expect_pong()
    # SIGTERM, which ends the servers of tests, is ignored by one that is leaving.
    server.signal(signal.SIGINT)


def test_client_that_does_not_read(start_once) -> None:
    server = start_once(websocket_config(rest="max_pending: 2MB, max_payload: 1MB"))
    with WebSocketClient(server) as slow, server.client() as publisher:
        slow.connect()
        slow.send(b"SUB flood 1\r\n")
        slow.expect_pong()
        publisher.connect()
        body = b"x" * FLOOD_BYTES
        for _ in range(40):
            publisher.send(b"PUB flood %d\r\n%b\r\n" % (len(body), body))
        publisher.expect_pong()

        server.wait_for_log("Slow Consumer Detected")
        while slow.read_frame():
            pass

        # There is no room for a close frame; one that comes all the same says why.
        assert [each.close for each in slow.control] in ([], [(1008, "Slow Consumer (Pending Bytes)")])


def test_connection_that_is_cut_ends_quietly(websocket_server: ServerProcess) -> None:
    with WebSocketClient(websocket_server) as client:
        client.connect()
        client.send_bytes(b"\x82\xff\x00")

    with WebSocketClient(websocket_server) as client:
        client.connect()


def test_error_that_does_not_end_the_connection_has_no_close_frame(start_once) -> None:
    rest = 'authorization { users: [{user: ada, password: x, permissions { publish: "allowed" }}] }'
    server = start_once(websocket_config(rest=rest))
    with WebSocketClient(server) as client:
        client.connect(user="ada", **{"pass": "x"})
        client.send_frame(BINARY, b"PUB denied 0\r\n\r\n")

        client.expect(b"-ERR 'Permissions Violation for Publish to \"denied\"'\r\n")
        client.expect_pong()
        assert client.control == []
