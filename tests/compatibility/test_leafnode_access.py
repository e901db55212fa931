"""Who comes in at the port for leaf nodes: nothing passes before CONNECT, and nonsense ends one connection."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient

LISTENING = re.compile(r"Listening for leafnode connections on (\S+):(\d+)")

CONFIG = """
leafnodes { listen: "127.0.0.1:-1" }
no_auth_user: nobody
accounts {
  A { users: [
    {user: nobody, password: x}
    {user: edge, password: p}
    {user: client, password: p, allowed_connection_types: [STANDARD]}
  ] }
}
"""

LEAF = {"version": "2.15.1", "server_id": "NAX", "name": "edge", "cluster": "edge", "headers": True, "protocol": 3}


def leaf_client(server: ServerProcess) -> RawClient:
    found = LISTENING.search(server.log())
    assert found is not None
    return RawClient(found[1], int(found[2]))


def connect_as(**login: Any) -> bytes:
    return b"CONNECT " + json.dumps({**LEAF, **login}).encode() + b"\r\n"


@pytest.fixture
def server(start_server: Callable[..., ServerProcess]) -> ServerProcess:
    started: ServerProcess = start_server(config=CONFIG)
    return started


def expect_alive(server: ServerProcess) -> None:
    with server.client() as client:
        client.connect()


def test_greeting_is_that_of_a_hub(server: ServerProcess) -> None:
    with leaf_client(server) as leaf:
        information = leaf.info

    assert information["auth_required"] is True
    assert information["nonce"]
    assert information["client_id"] > 0
    assert information["leafnode_urls"] == [LISTENING.search(server.log())[0].rpartition(" ")[2]]  # type: ignore[index]


def test_user_comes_in_and_is_told_its_account(server: ServerProcess) -> None:
    with leaf_client(server) as leaf:
        leaf.send(connect_as(user="edge", **{"pass": "p"}) + b"PING\r\n")
        answer = leaf.read_frame()

    assert answer.startswith(b"INFO ")
    told = json.loads(answer.removeprefix(b"INFO "))
    assert (told["connect_info"], told["remote_account"]) == (True, "A")


@pytest.mark.parametrize(
    "login",
    [
        {"user": "edge", "pass": "wrong"},
        {"user": "unknown", "pass": "p"},
        {"user": "client", "pass": "p"},
    ],
)
def test_others_are_refused(server: ServerProcess, login: dict[str, str]) -> None:
    with leaf_client(server) as leaf:
        leaf.send(connect_as(**login) + b"PING\r\n")
        leaf.expect_error_and_closed("Authorization Violation")


@pytest.mark.parametrize(
    "first",
    [
        b"LS+ secret\r\n",
        b"LMSG secret 2\r\nhi\r\n",
        b"HMSG secret 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
        b"LS- secret\r\n",
        b"LS+ a b 99999999999999999999\r\n",
        b"LMSG a 99999999999999999999\r\n",
        b"LMSG a | -1\r\n",
        b"CONNECT {\r\n",
        b"CONNECT []\r\n",
        b"\x00\xff" * 64 + b"\r\n",
    ],
)
def test_nothing_passes_before_connect(server: ServerProcess, first: bytes) -> None:
    with server.client() as listener, leaf_client(server) as leaf:
        listener.connect()
        listener.send(b"SUB secret 1\r\n")
        listener.expect_pong()

        leaf.send(first)
        leaf.read_to_end()

        listener.expect_pong()
    expect_alive(server)


def test_client_at_the_wrong_port_is_told(server: ServerProcess) -> None:
    with leaf_client(server) as client:
        client.send(b'CONNECT {"lang":"python3","version":"2.0","verbose":false}\r\n')
        client.expect_error_and_closed("attempted to connect to leaf node port")
    expect_alive(server)
