"""Servers to connect to: a hub, played by a test, names others, or is removed from the configuration as it greets."""

from __future__ import annotations

import contextlib
import json
import select
import socket
from collections.abc import Callable, Iterator

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.test_reload import reload  # noqa: F401
from tests.compatibility.wire import TIMEOUT_SECONDS

Reload = Callable[[ServerProcess, str], str]


class Hub:
    """A port for leaf nodes, and what a hub says there."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(TIMEOUT_SECONDS)
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"

    def accept(self) -> socket.socket:
        connection, _ = self.listener.accept()
        connection.settimeout(TIMEOUT_SECONDS)
        return connection

    def close(self) -> None:
        self.listener.close()


@pytest.fixture
def hubs() -> Iterator[list[Hub]]:
    made = [Hub() for _ in range(3)]
    yield made
    for hub in made:
        hub.close()


def information(*addresses: str, is_answer: bool = False) -> bytes:
    """Return the INFO of a hub that can be reached at these addresses; the answer to CONNECT is another one."""
    told = {
        "server_id": "HUB",
        "server_name": "hub",
        "version": "2.15.1",
        "proto": 1,
        "host": "127.0.0.1",
        "port": 1,
        "headers": True,
        "max_payload": 1_048_576,
        "client_id": 7,
        "leafnode_urls": addresses,
        "info_on_connect": True,
        "connect_info": is_answer,
    }
    return b"INFO " + json.dumps(told).encode() + b"\r\n"


def remotes(*hubs: Hub) -> str:
    listed = ", ".join(f'{{ url: "nats-leaf://{hub.address}", no_randomize: true }}' for hub in hubs)
    return f'leafnodes {{ reconnect: "100ms", remotes: [ {listed} ] }}\n'


def read_connect(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n" not in received:
        piece = connection.recv(65_536)
        assert piece, f"the leaf node closed: {received!r}"
        received += piece
    assert received.startswith(b"CONNECT "), received
    return received


def read_until_closed(connection: socket.socket) -> bytes:
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65_536):
            received += piece
    return received


def test_list_of_addresses_that_is_as_long_as_the_old_one_replaces_it(
    start_server: Callable[..., ServerProcess], hubs: list[Hub]
) -> None:
    first, gone, new = hubs
    start_server(config=remotes(first))
    with first.accept() as connection:
        connection.sendall(information(first.address, gone.address))
        read_connect(connection)
        connection.sendall(information(first.address, gone.address, is_answer=True))

        connection.sendall(information(first.address, new.address) + b"PING\r\n")
        while b"PONG\r\n" not in connection.recv(65_536):
            pass
        first.close()

    tried, _, _ = select.select([gone.listener, new.listener], [], [], TIMEOUT_SECONDS)
    assert tried == [new.listener]


def test_remote_that_is_removed_during_its_handshake_gets_no_link(
    start_server: Callable[..., ServerProcess],
    reload: Reload,  # noqa: F811
    hubs: list[Hub],
) -> None:
    removed, kept, _ = hubs
    server = start_server(config=remotes(removed, kept))
    with removed.accept() as connection, kept.accept():
        connection.sendall(information(removed.address))
        read_connect(connection)

        reload(server, remotes(kept))
        connection.sendall(information(removed.address, is_answer=True) + b"LS+ a\r\n")

        assert b"LS+ " not in read_until_closed(connection)
    with server.client() as client:
        client.connect()
