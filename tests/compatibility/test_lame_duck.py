"""Lame duck mode: no new connections, a word to the clients, then one close after the other."""

from __future__ import annotations

import signal
import socket

import pytest

from tests.compatibility.server_process import run_to_end
from tests.compatibility.wire import parse_info

# The duration may not be below thirty seconds; clients are closed in steps of at most one second after the grace.
# The grace is longer than this process may be late with what it does before it ends.
CONFIG = 'lame_duck_duration: "30s"\nlame_duck_grace_period: "5s"'


def test_lame_duck_tells_the_clients_and_closes_them(start_server) -> None:
    server = start_server(config=CONFIG)

    with server.client() as new, server.client() as old:
        new.connect(protocol=1)
        old.connect(protocol=0)
        server.signal(signal.SIGUSR2)

        information = parse_info(new.read_line())
        assert information["ldm"] is True
        assert "connect_urls" not in information
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((server.host, server.port), timeout=60)
        new.expect_pong()
        old.expect_pong()
        new.expect_closed()
        old.expect_closed()
        assert server.wait_for_exit() == 0


def test_lame_duck_ignores_sigterm_and_obeys_sigint(start_server) -> None:
    server = start_server(config='lame_duck_duration: "30s"\nlame_duck_grace_period: "20s"')

    with server.client() as client:
        client.connect(protocol=1)
        server.signal(signal.SIGUSR2)
        assert parse_info(client.read_line())["ldm"] is True

        server.signal(signal.SIGTERM)
        client.expect_silence()
        client.expect_pong()

        server.signal(signal.SIGINT)
        client.expect_closed()
        assert server.wait_for_exit() == 0


def test_lame_duck_without_clients_ends_at_once(start_server) -> None:
    server = start_server()

    server.signal(signal.SIGUSR2)

    assert server.wait_for_exit() == 0


def test_lame_duck_may_be_asked_for_by_the_command_line(start_server, server_kind: str, tmp_path) -> None:
    server = start_server()

    completed = run_to_end(server_kind, ["--signal", f"ldm={server.pid}"], tmp_path)

    assert completed.returncode == 0
    assert server.wait_for_exit() == 0


def test_lame_duck_with_clients_says_so_and_lets_them_work(start_server) -> None:
    server = start_server()

    with server.client() as new, server.client() as old:
        new.connect(protocol=1)
        old.connect(protocol=0)
        server.signal(signal.SIGUSR2)

        assert parse_info(new.read_line())["ldm"] is True
        old.expect_pong()
        new.send(b"SUB work 1\r\n")
        new.expect_pong()
        old.send(b"PUB work 2\r\nhi\r\n")
        new.expect(b"MSG work 1 2\r\nhi\r\n")
        server.signal(signal.SIGINT)
        assert server.wait_for_exit() == 0
