"""What operators see of leaf nodes: log, pages, answers of the system account, events; and what a reload may change."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import free_ports
from tests.compatibility.monitored import DIRECTION, Monitored, assert_shape
from tests.compatibility.server_process import run_to_end
from tests.compatibility.wire import RawClient
from tests.waiting import until

SYSTEM = """
    system_account: SYS
    accounts { SYS { users: [{user: admin, password: pw}] }, A {}, B {} }
"""

LISTENING = re.compile(r"\[INF\] Listening for leafnode connections on 127\.0\.0\.1:(\d+)\n")

LINK = {
    "id": int,
    "name": str,
    "is_spoke": bool,
    "account": str,
    "ip": str,
    "port": int,
    "rtt": str,
    "in_msgs": int,
    "out_msgs": int,
    "in_bytes": int,
    "out_bytes": int,
    "subscriptions": int,
    "compression": str,
}


class Pair:
    """A hub and a leaf node that are connected."""

    def __init__(self, hub: Monitored, leaf: Monitored, leaf_config: str) -> None:
        self.hub = hub
        self.leaf = leaf
        self.leaf_config = leaf_config


@pytest.fixture
async def pair(start_monitored: Callable[..., Monitored]) -> Pair:
    hub = start_monitored(
        config="server_name: hub\n" + SYSTEM + "leafnodes { listen: '127.0.0.1:-1', "
        "authorization { users: [{user: edge, password: hidden, account: A}] } }"
    )
    found = LISTENING.search(hub.server.log())
    assert found is not None
    url = f"nats-leaf://edge:hidden@127.0.0.1:{found[1]}"
    remote = f"{{ url: '{url}', account: B, deny_imports: ['x.>'], deny_exports: y }}"
    config = f"server_name: leaf\n{SYSTEM}leafnodes {{ remotes: [{remote}] }}"
    leaf = start_monitored(config=config)
    await until(lambda: hub.get_json("/leafz")["leafnodes"] == leaf.get_json("/leafz")["leafnodes"] == 1)
    # What a leaf node wants is told after it has come in.
    await until(lambda: hub.get_json("/leafz?subs=1")["leafs"][0]["subscriptions"] > 0)
    return Pair(hub, leaf, config)


# The start


def test_log_says_where_leaf_nodes_connect(start_server) -> None:
    log = start_server(config="leafnodes { listen: '127.0.0.1:-1' }").log()

    assert LISTENING.search(log)
    assert log.index("leafnode connections") < log.index("client connections")


def test_block_without_a_port_and_remotes_has_no_effect(start_server) -> None:
    assert "leafnode" not in start_server(config="leafnodes { isolate: true }").log()


def test_port_that_is_taken_ends_the_server(server_kind: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "server.conf").write_text(f'leafnodes {{ listen: "127.0.0.1:{port}" }}')

        ended = run_to_end(server_kind, ["-a", "127.0.0.1", "-p", "-1", "-c", "server.conf"], tmp_path)

    assert ended.returncode == 1
    assert f"[FTL] Error listening on leafnode port: {port} - " in ended.stderr
    assert f"127.0.0.1:{port}: bind: address already in use" in ended.stderr


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ("compression: zip", 'unsupported compression mode "zip"'),
        ("compression { rtt: ['2ms', '1ms'] , mode: auto }", "should be in ascending order"),
        ("min_version: '2.7.0'", "the minimum version should be at least 2.8.0"),
        ("authorization { user: a, password: b, account: C }", 'cannot find local account "C" specified in leafnode'),
        ("remotes: [{url: 'nats://h', account: C}]", 'cannot find local account "C" specified in leafnode remote'),
        ("remotes: [{urls: ['nats://a', 'ws://b']}]", "cannot have a mix of websocket and non-websocket urls"),
        (
            "remotes: [{url: 'nats://u:hidden@a'}, {url: 'nats://u:hidden@a'}]",
            'duplicate remote urls=["nats://u:xxxxx@',
        ),
        ("remotes: [{url: 'nats://a', deny_imports: 'a..b'}]", 'subject "a..b" is not a valid subject'),
        ("remotes: [{url: 'nats://a', nonsense: 1}]", 'unknown field "nonsense"'),
        ("nonsense: 1", 'unknown field "nonsense"'),
    ],
)
def test_configuration_that_cannot_be_meant_is_refused(
    server_kind: str, tmp_path: Path, keys: str, reason: str
) -> None:
    (tmp_path / "server.conf").write_text(f"leafnodes {{ port: -1, {keys} }}")

    ended = run_to_end(server_kind, ["-a", "127.0.0.1", "-p", "-1", "-c", "server.conf"], tmp_path)

    assert ended.returncode == 1
    assert reason in ended.stderr
    assert "hidden" not in ended.stderr


# Pages


def test_varz_of_a_hub_shows_its_listener(start_monitored) -> None:
    hub = start_monitored(config="leafnodes { listen: '127.0.0.1:-1', authorization { timeout: 3 } }")
    found = LISTENING.search(hub.server.log())
    assert found is not None

    page = hub.get_json("/varz")

    assert page["leaf"] == {"host": "127.0.0.1", "port": int(found[1]), "auth_timeout": 3, "tls_timeout": 2}
    assert page["leafnodes"] == 0


def test_varz_of_a_leaf_node_shows_its_hub(pair: Pair) -> None:
    page = pair.leaf.get_json("/varz")

    (remote,) = page["leaf"]["remotes"]
    (address,) = remote.pop("urls")
    assert address.startswith("127.0.0.1:")
    assert remote == {"local_account": "B", "deny": {"exports": ["y"], "imports": ["x.>"]}}
    assert page["leafnodes"] == pair.hub.get_json("/varz")["leafnodes"] == 1


def test_leafz_shows_both_ends(pair: Pair) -> None:
    ends = []
    for side in (pair.hub, pair.leaf):
        page = side.get_json("/leafz")
        assert_shape(page, {"server_id": str, "now": str, "leafnodes": int, "leafs": list})
        assert_shape(page["leafs"][0], LINK)
        ends.append([page["leafs"][0][key] for key in ("name", "is_spoke", "account")])

    assert ends == [["leaf", False, "A"], ["hub", True, "B"]]


def test_leafz_names_what_the_other_side_wants(pair: Pair) -> None:
    (link,) = pair.hub.get_json("/leafz?subs=1")["leafs"]

    assert link["subscriptions"] == len(link["subscriptions_list"]) > 0
    assert any(subject.startswith("$LDS.") for subject in link["subscriptions_list"])


def test_leafz_of_another_account_is_empty(pair: Pair) -> None:
    assert pair.hub.get_json("/leafz?acc=B")["leafs"] == []
    assert pair.leaf.get_json("/leafz?acc=B")["leafnodes"] == 1


def test_accounts_count_their_links(pair: Pair) -> None:
    entries = {each["acc"]: each for each in pair.hub.get_json("/accstatz")["account_statz"]}
    detail = pair.hub.get_json("/accountz?acc=A")["account_detail"]

    assert [entries["A"][key] for key in ("conns", "leafnodes", "total_conns")] == [0, 1, 1]
    assert_shape(entries["A"]["sent"], DIRECTION)
    assert (detail["leafnode_connections"], detail["client_connections"]) == (1, 0)


# The system account


@contextmanager
def admin_of(monitored: Monitored, subscription: str) -> Iterator[RawClient]:
    """A client of the system account that listens to a subject."""
    with monitored.server.client() as admin:
        admin.connect(user="admin", **{"pass": "pw"}, verbose=False)
        admin.send(f"SUB {subscription} 1\r\n".encode())
        admin.expect_pong()
        yield admin


def read_payload(client: RawClient) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(client.read_frame().partition(b"\r\n")[2])
    return payload


def ask(monitored: Monitored, subject: str, request: dict[str, Any] | None = None) -> dict[str, Any]:
    body = json.dumps(request or {}).encode()
    with admin_of(monitored, "inbox") as admin:
        admin.send(f"PUB {subject} inbox {len(body)}\r\n".encode() + body + b"\r\n")
        return read_payload(admin)


def test_system_account_is_told_about_links(pair: Pair) -> None:
    listed = ask(pair.hub, "$SYS.REQ.SERVER.PING.LEAFZ", {"subscriptions": True})["data"]
    own = ask(pair.hub, "$SYS.REQ.ACCOUNT.A.LEAFZ")["data"]
    other = ask(pair.hub, "$SYS.REQ.ACCOUNT.B.LEAFZ", {"account": "A"})["data"]

    assert_shape(listed["leafs"][0], {**LINK, "subscriptions_list": list})
    assert (own["leafnodes"], other["leafnodes"]) == (1, 0)


def test_end_of_a_link_is_an_event(pair: Pair) -> None:
    with admin_of(pair.hub, "$SYS.ACCOUNT.A.DISCONNECT") as admin:
        pair.leaf.server.stop()
        event = read_payload(admin)

    client = event["client"]
    assert (client["kind"], client["acc"], client["name"], client["user"]) == ("Leafnode", "A", "leaf", "edge")
    assert "client_type" not in client


# Reload


async def test_remote_can_be_disabled_and_enabled_by_a_reload(pair: Pair) -> None:
    path = Path(pair.leaf.server.folder) / "server.conf"
    for disabled, count in (("true", 0), ("false", 1)):
        path.write_text(pair.leaf_config.replace("account: B", f"account: B, disabled: {disabled}"))
        pair.leaf.server.signal(signal.SIGHUP)
        pair.leaf.server.wait_for_log(f"Disabled value is: {disabled}")

        await until(lambda wanted=count: pair.hub.get_json("/leafz")["leafnodes"] == wanted)


def test_listener_cannot_change_by_a_reload(pair: Pair) -> None:
    path = Path(pair.leaf.server.folder) / "server.conf"
    (port,) = free_ports(1)
    path.write_text(pair.leaf_config.replace("leafnodes {", f"leafnodes {{ port: {port},"))

    pair.leaf.server.signal(signal.SIGHUP)

    pair.leaf.server.wait_for_log("config reload not supported for LeafNode: field")
