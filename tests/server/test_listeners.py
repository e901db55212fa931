"""Where a server listens: its URLs, its lines in the log, its ports file."""

import logging
import socket

import aiohttp
import pytest

import jetlake
from jetlake.server.listeners import Listeners
from jetlake.server.options import LeafListenerOptions, LeafOptions, ServerOptions, TlsOptions, WebSocketOptions

TLS = TlsOptions(certificate_file="c", key_file="k")
WEBSOCKET = "websocket { port: -1, no_tls: true }"


class Engine:
    """The addresses of an engine that listens on ports of its own choice."""

    server_id = "NAB"
    address = ("0.0.0.0", 4333)
    websocket_address = ("0.0.0.0", 8333)
    leaf_address = ("0.0.0.0", 7433)


class Lines:
    """A log that only remembers."""

    def __init__(self):
        self.lines = []

    def info(self, text):
        self.lines.append(text)

    def warning(self, text):
        self.lines.append(f"warning: {text}")


def listeners(**fields):
    return Listeners(Engine(), ServerOptions(port=0, **fields))


@pytest.mark.parametrize(
    ("websocket", "url"),
    [
        (None, ""),
        (WebSocketOptions(port=0, allows_plain=True), "ws://127.0.0.1:8333"),
        (WebSocketOptions(port=0, tls=TLS), "wss://127.0.0.1:8333"),
        (WebSocketOptions(port=0, tls=TLS, host="nats.example.com"), "wss://nats.example.com:8333"),
        (WebSocketOptions(port=0, tls=TLS, host="::1"), "wss://[::1]:8333"),
    ],
)
def test_url_is_one_that_a_client_on_this_machine_reaches(websocket, url):
    assert listeners(websocket=websocket).websocket_url == url
    assert listeners(websocket=websocket).url() == "nats://127.0.0.1:4333"


def test_lines_come_in_the_order_of_nats_server():
    log = Lines()

    leaf = LeafOptions(listener=LeafListenerOptions(port=0))
    listeners(websocket=WebSocketOptions(port=0, allows_plain=True), leaf=leaf, tls=TLS).tell(log)

    assert log.lines == [
        "Listening for websocket clients on ws://0.0.0.0:8333",
        "warning: Websocket not configured with TLS. DO NOT USE IN PRODUCTION!",
        "Listening for leafnode connections on 0.0.0.0:7433",
        "Listening for client connections on 0.0.0.0:4333",
        "Server id is NAB",
        "TLS required for client connections",
    ]


def test_nothing_is_warned_about_with_tls():
    log = Lines()

    listeners(websocket=WebSocketOptions(port=0, tls=TLS)).tell(log)

    assert log.lines[0] == "Listening for websocket clients on wss://0.0.0.0:8333"
    assert not any(line.startswith("warning") for line in log.lines)


def test_ports_file_names_every_listener():
    ports = listeners(
        host="10.0.0.1",
        websocket=WebSocketOptions(port=0, tls=TLS, host="10.0.0.2"),
        leaf=LeafOptions(listener=LeafListenerOptions(port=0, host="10.0.0.3")),
    ).ports(["http://x"])

    assert ports.nats == ["nats://10.0.0.1:4333"]
    assert ports.websocket == ["wss://10.0.0.2:8333"]
    assert ports.leafnodes == ["nats-leaf://10.0.0.3:7433"]
    assert ports.monitoring == ["http://x"]
    assert (listeners().ports([]).websocket, listeners().ports([]).leafnodes) == ([], [])


async def test_server_in_a_program_is_reached_over_websocket():
    async with (
        jetlake.Server(config=WEBSOCKET) as server,
        aiohttp.ClientSession() as session,
        session.ws_connect(server.websocket_url) as client,
    ):
        assert server.websocket_url.startswith("ws://127.0.0.1:")
        assert (await client.receive_bytes()).startswith(b'INFO {"server_id":"' + server.server_id.encode())


def test_server_in_a_program_listens_on_the_loopback_address_unless_told_otherwise():
    with jetlake.Server(config=WEBSOCKET) as server:
        engine_address = server._engine.websocket_address

        assert engine_address[0] == "127.0.0.1"
    with jetlake.Server(config="websocket { listen: '0.0.0.0:-1', no_tls: true }") as server:
        assert server._engine.websocket_address[0] in ("0.0.0.0", "::")
        assert server.websocket_url.startswith("ws://127.0.0.1:")


def test_server_without_the_block_has_no_url():
    with jetlake.Server() as server:
        assert server.websocket_url == ""


def test_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = jetlake.Server(config=f"websocket {{ listen: '127.0.0.1:{port}', no_tls: true }}")

        with pytest.raises(jetlake.StartError) as caught:
            server.start()

    assert str(caught.value) == (
        f"Unable to listen for websocket connections: listen tcp 127.0.0.1:{port}: bind: address already in use"
    )


def test_port_for_leaf_nodes_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = jetlake.Server(config=f"leafnodes {{ listen: '127.0.0.1:{port}' }}")

        with pytest.raises(jetlake.StartError) as caught:
            server.start()

    assert str(caught.value) == (
        f"Error listening on leafnode port: {port} - listen tcp 127.0.0.1:{port}: bind: address already in use"
    )


def test_server_in_a_program_has_a_url_for_leaf_nodes(caplog):
    with caplog.at_level(logging.INFO, "jetlake.server"), jetlake.Server(config="leafnodes { port: -1 }") as server:
        address = server.leaf_url.removeprefix("nats-leaf://")
        with socket.create_connection(tuple(address.split(":")), timeout=60) as leaf:
            greeting = leaf.recv(4096)

    assert address.startswith("127.0.0.1:")
    assert f"Listening for leafnode connections on {address}" in caplog.text
    assert greeting.startswith(b"INFO {")


def test_server_that_does_not_listen_for_leaf_nodes_has_no_url():
    with jetlake.Server() as server:
        assert server.leaf_url == ""
