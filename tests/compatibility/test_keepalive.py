"""PING of the server, and what becomes of a client that does not answer."""

from __future__ import annotations

import time

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient


def test_first_ping_comes_two_seconds_after_connect_and_not_before_connect(server: ServerProcess) -> None:
    with server.client() as silent, server.client() as connected, server.client() as busy:
        for client in (silent, connected, busy):
            client.answer_pings = False
        begun_at = time.monotonic()
        connected.send_connect(verbose=False)
        busy.connect()
        busy.send(b"SUB keepalive.busy 1\r\n")

        connected.expect(b"PING\r\n")

        assert time.monotonic() - begun_at > 1.9
        busy.expect(b"PING\r\n")
        silent.expect_silence()


def test_client_ping_is_answered_at_any_time(client: RawClient) -> None:
    client.expect_pong()
    client.send_connect(verbose=False)
    client.expect_pong()

    client.send(b"PING\r\n" * 100)

    client.expect(b"PONG\r\n" * 100)


def test_client_that_does_not_answer_is_stale(start_server) -> None:
    server = start_server(config='ping_interval: "2s"\nping_max: 2')

    with server.client() as client:
        # On a busy machine the server may ask before it is greeted.
        client.connect()
        client.answer_pings = False

        client.expect(b"PING\r\nPING\r\n")
        client.expect_error_and_closed("Stale Connection")


def test_client_that_answers_is_not_stale(start_server) -> None:
    server = start_server(config='ping_interval: "500ms"\nping_max: 8')

    with server.client() as client:
        client.connect()
        client.answer_pings = False

        # More often than it may owe an answer, which it may for longer than this process may be late.
        for _ in range(10):
            client.expect(b"PING\r\n")
            client.send(b"PONG\r\n")

        client.answer_pings = True
        client.expect_pong()


def test_connection_without_connect_is_pinged_at_the_interval(start_server) -> None:
    server = start_server(config='ping_interval: "300ms"\nping_max: 1')

    with server.client() as client:
        client.answer_pings = False

        client.expect(b"PING\r\n")
        client.expect_error_and_closed("Stale Connection")
