"""The end of a connection from the client's side."""

from __future__ import annotations

import socket
import time

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient

# How long a server may take to notice that a client has gone; it normally takes a millisecond.
NOTICE_SECONDS_MAX = 60.0

ATTEMPTS = 100


def half_close(client: RawClient) -> None:
    """Say that nothing more will be sent, and go on reading, as `printf ... | nc` does."""
    client._socket.shutdown(socket.SHUT_WR)


def test_silent_client_that_half_closes_is_closed(client: RawClient) -> None:
    half_close(client)

    client.expect_closed()


def test_connected_client_that_half_closes_is_closed(client: RawClient) -> None:
    client.connect()

    half_close(client)

    client.expect_closed()


def test_client_that_sends_and_half_closes_gets_its_answers(server: ServerProcess, subject: bytes) -> None:
    # Many times, because the data and the end may or may not reach the server together.
    for _ in range(ATTEMPTS):
        with server.client() as client:
            client.send(b'CONNECT {"verbose":true}\r\nSUB %b 1\r\nPUB %b 2\r\nhi\r\nPING\r\n' % (subject, subject))
            half_close(client)

            client.expect(b"+OK\r\n+OK\r\n+OK\r\nMSG %b 1 2\r\nhi\r\nPONG\r\n" % subject)
            client.expect_closed()


def test_client_that_half_closes_inside_a_payload_is_closed(client: RawClient, subject: bytes) -> None:
    client.connect()

    client.send(b"PUB %b 100\r\nabc" % subject)
    half_close(client)

    client.expect_closed()


@pytest.mark.parametrize("payload_bytes", [2, 1000, 100_000])
def test_messages_sent_just_before_the_end_are_delivered(
    server: ServerProcess, client: RawClient, subject: bytes, payload_bytes: int
) -> None:
    message = b"%d\r\n%b\r\n" % (payload_bytes, b"p" * payload_bytes)
    client.connect()
    client.send(b"SUB %b 1\r\n" % subject)
    client.expect_pong()

    with server.client() as publisher:
        publisher.connect()
        publisher.send((b"PUB %b " % subject + message) * 3)

    client.expect((b"MSG %b 1 " % subject + message) * 3)


def test_unfinished_message_at_the_end_is_not_delivered(
    server: ServerProcess, client: RawClient, subject: bytes
) -> None:
    client.connect()
    client.send(b"SUB %b 1\r\n" % subject)
    client.expect_pong()

    with server.client() as publisher:
        publisher.connect()
        publisher.send(b"PUB %b 3\r\nyes\r\nPUB %b 100\r\nabc" % (subject, subject))

    client.expect(b"MSG %b 1 3\r\nyes\r\n" % subject)
    client.expect_silence()


def test_clients_that_subscribe_and_leave_at_once_are_forgotten(
    server: ServerProcess, client: RawClient, subject: bytes
) -> None:
    client.connect(headers=True, no_responders=True)
    client.send(b"SUB inbox.%b 1\r\n" % subject)

    for _ in range(ATTEMPTS):
        with server.client() as leaving:
            leaving.send_connect(verbose=False)
            leaving.send(b"SUB %b 1\r\nSUB %b group 2\r\n" % (subject, subject))

    # Nobody is left once the request is answered with 503; until then the request goes to those who left.
    deadline = time.monotonic() + NOTICE_SECONDS_MAX
    request = b"PUB %b inbox.%b 0\r\n\r\nPING\r\n" % (subject, subject)
    client.send(request)
    while (frame := client.read_line()) == b"PONG\r\n" and time.monotonic() < deadline:
        time.sleep(0.01)
        client.send(request)
    assert frame.startswith(b"HMSG inbox.%b 1 " % subject)
