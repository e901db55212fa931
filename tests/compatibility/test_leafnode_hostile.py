"""A leaf node that sends what no server sends: it gains no right by it, and stops nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

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

WILDCARDS = ("foo.*", "foo.>", "*.bar", "*.*", "*.>", ">")
"""All of them match foo.bar."""


def expect_served(leaf: RawClient) -> None:
    """Wait until the server has taken everything, passing over what it sends by itself."""
    leaf.send(b"PING\r\n")
    while frame := leaf.read_frame():
        if frame == b"PONG\r\n":
            return
    raise AssertionError("the connection was closed")


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


def test_subject_behind_a_reply_gives_no_right(start_jetstream: Callable[..., ServerProcess]) -> None:
    server = start_jetstream(config=RESTRICTED)
    with JetStream(server) as js, leaf_client(server) as leaf:
        js.create("O", subjects=["orders.>"])
        leaf.send(connect_as(user="edge", **{"pass": "p"}))
        expect_served(leaf)

        for subject, behind in (
            (b"orders.in", b"orders.secret"),
            (b"orders.in", b"else.where"),
            (b"$JS.API.STREAM.INFO.O", b"$JS.API.STREAM.DELETE.O"),
        ):
            leaf.send(b"LMSG %s $JS.ACK.x@%s 0\r\n\r\n" % (subject, behind))
        expect_served(leaf)

        js.wait_for_state("O", lambda state: state["messages"] == 2)
        shown = js.api("STREAM.INFO.O", {"subjects_filter": ">"})["state"]["subjects"]
    assert shown == {"orders.in": 2}, json.dumps(shown)
