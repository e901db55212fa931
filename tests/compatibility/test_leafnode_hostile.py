"""A leaf node that sends what no server sends: it gains no right by it, and stops nothing."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.compatibility import jetstream
from tests.compatibility.jetstream import JetStream
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.test_leafnode_access import connect_as, expect_alive, leaf_client
from tests.compatibility.wire import RawClient

start_jetstream = jetstream.start_jetstream

OPEN = 'leafnodes { listen: "127.0.0.1:-1" }'

RESTRICTED = """
leafnodes { listen: "127.0.0.1:-1" }
no_auth_user: client
accounts { A {
  jetstream: enabled
  users: [
    {user: client, password: p}
    {user: edge, password: p, permissions: {
      publish: {allow: ["$JS.API.STREAM.INFO.O", "orders.in"]}, subscribe: ">"
    }}
  ]
} }
"""

STREAM_NAME = b"\xff\x06\x00\x00S2sTwO"

CHUNK_BYTES = 4_800_000
"""About the most that a chunk of S2 may hold."""

UNKNOWN_BYTES_MAX = 32 * 1024 * 1024
"""More than clients that have not logged in may hold together, with room for the allocator; less than the chunks."""

WILDCARDS = ("foo.*", "foo.>", "*.bar", "*.*", "*.>", ">")
"""All of them match foo.bar."""


def expect_served(leaf: RawClient) -> None:
    """Wait until the server has taken everything, passing over what it sends by itself."""
    leaf.send(b"PING\r\n")
    while frame := leaf.read_frame():
        if frame == b"PONG\r\n":
            return
    raise AssertionError("the connection was closed")


def resident_bytes(server: ServerProcess) -> int:
    """Return the most memory that a server has had so far."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None, status
    return int(found[1]) * 1024


@pytest.fixture
def server(start_server: Callable[..., ServerProcess]) -> ServerProcess:
    started: ServerProcess = start_server(config=OPEN)
    return started


@pytest.fixture
def leaf(server: ServerProcess) -> Iterator[RawClient]:
    with leaf_client(server) as client:
        client.send(connect_as())
        expect_served(client)
        yield client


def test_interest_in_a_subject_of_very_many_tokens_stops_nothing(server: ServerProcess, leaf: RawClient) -> None:
    subject = b".".join([b"a"] * 15_000)

    for operation in (b"LS+ ", b"LMSG ", b"LS- "):
        leaf.send(operation + subject + (b" 0\r\n\r\n" if operation == b"LMSG " else b"\r\n"))

    expect_served(leaf)
    expect_alive(server)


def test_weights_that_add_up_to_more_than_32_bits_stop_nothing(
    server_kind: str, server: ServerProcess, leaf: RawClient
) -> None:
    if server_kind == "nats-server":
        pytest.skip("nats-server makes a list as long as the weights, and answers nobody meanwhile")
    leaf.send(b"".join(b"LS+ %s q 999999999\r\n" % subject.encode() for subject in WILDCARDS))
    expect_served(leaf)

    with server.client() as client:
        client.connect()
        client.send(b"PUB foo.bar 1\r\nx\r\n")
        client.expect_pong()

    expect_alive(server)


def test_chunks_of_servers_that_have_not_logged_in_are_not_held(
    server_kind: str, start_server: Callable[..., ServerProcess]
) -> None:
    if server_kind == "nats-server":
        pytest.skip("nats-server holds what it was promised, until the time to log in is over")
    leafnodes = 'leafnodes { listen: "127.0.0.1:-1", compression: s2_fast, authorization { user: l, password: p } }'
    server = start_server(config=leafnodes)
    promised = STREAM_NAME + b"\x00" + CHUNK_BYTES.to_bytes(3, "little")
    before = resident_bytes(server)
    with contextlib.ExitStack() as stack:
        leafs = [stack.enter_context(leaf_client(server)) for _ in range(30)]
        for leaf in leafs:
            leaf.send(b'INFO {"server_id":"NAX","compression":"s2_fast"}\r\n')
            # The answer says that what follows is compressed.
            leaf.answer_pings = False
            leaf.read_frame()

        for leaf in leafs:
            leaf.send(promised)
            leaf.send(b"\x00" * (CHUNK_BYTES - 1))

        for leaf in leafs:
            leaf.read_to_end()
        assert resident_bytes(server) - before < UNKNOWN_BYTES_MAX
    expect_alive(server)


def test_line_without_an_end_is_refused_before_it_keeps_the_server_busy(
    server_kind: str, start_server: Callable[..., ServerProcess]
) -> None:
    leafnodes = 'leafnodes { listen: "127.0.0.1:-1", authorization { user: l, password: p, timeout: 1 } }'
    server = start_server(config=f"max_control_line: 65536\n{leafnodes}")
    with leaf_client(server) as leaf:
        leaf.send(b'CONNECT {"name":"' + b"a" * 400_000)

        # nats-server takes a line of any length from another server, as long as the time to log in lasts.
        error = "Authentication Timeout" if server_kind == "nats-server" else "maximum control line exceeded"
        leaf.expect_error_and_closed(error)
    expect_alive(server)


def test_subject_behind_a_reply_gives_no_right(server_kind: str, start_jetstream: Callable[..., ServerProcess]) -> None:
    server = start_jetstream(config=RESTRICTED)
    # Behind a whole acknowledgement nats-server takes the second subject, and deletes the stream.
    reply = b"$JS.ACK.x" if server_kind == "nats-server" else b"$JS.ACK.S.c.1.2.3.4.0"
    with JetStream(server) as js, leaf_client(server) as leaf:
        js.create("O", subjects=["orders.>"])
        leaf.send(connect_as(user="edge", **{"pass": "p"}))
        expect_served(leaf)

        for subject, behind in (
            (b"orders.in", b"orders.secret"),
            (b"orders.in", b"else.where"),
            (b"$JS.API.STREAM.INFO.O", b"$JS.API.STREAM.DELETE.O"),
        ):
            leaf.send(b"LMSG %s %s@%s 0\r\n\r\n" % (subject, reply, behind))
        expect_served(leaf)

        js.wait_for_state("O", lambda state: state["messages"] == 2)
        shown = js.api("STREAM.INFO.O", {"subjects_filter": ">"})["state"]["subjects"]
    assert shown == {"orders.in": 2}, json.dumps(shown)
