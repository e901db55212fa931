"""`jetlake leaf`: over NATS from both servers, and from monitoring pages."""

import json

import pytest
from typer.testing import CliRunner

import jetlake
from jetlake.cli.app import create
from jetlake.cli.leaf import _remote_rows
from tests.cli.conftest import asked_until
from tests.cluster import free_ports

SYSTEM = "system_account: SYS\naccounts { SYS { users: [{user: admin, password: pw}] }, A {} }\n"
LOGIN = ("--user", "admin", "--password", "pw")


@pytest.fixture
def free_port():
    (port,) = free_ports(1)
    return port


@pytest.fixture
def leaf_url(start_server, free_port, cli, monkeypatch):
    """The URL of a leaf node that is connected to a hub."""
    hub = f"""
        server_name: hub
        leafnodes {{ listen: "127.0.0.1:{free_port}", authorization {{ user: edge, password: hidden, account: A }} }}
    """
    start_server(config=hub + SYSTEM)
    leaf = f"""
        server_name: edge
        leafnodes {{ remotes: [{{ url: "nats-leaf://edge:hidden@127.0.0.1:{free_port}", account: A }}] }}
    """
    url = start_server(config=leaf + SYSTEM).url
    monkeypatch.setenv("NATS_URL", url)
    (page,) = json.loads(
        answered(cli, "leaf", "ls", *LOGIN, "--json", is_whole=lambda text: json.loads(text)[0]["leafnodes"] == 1)
    )
    assert page["leafnodes"] == 1, "it did not connect"
    return url


def answered(cli, *words, is_whole=bool):
    """Return what a command prints as soon as the server has answered in the second that it waits."""
    answer = asked_until(lambda: cli(*words), lambda answer: answer.exit_code == 0 and is_whole(answer.stdout))
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def test_links_are_listed(leaf_url, cli):
    listed = answered(cli, "leaf", "ls", *LOGIN)

    head, row = (line.split("\t") for line in listed.splitlines())
    assert head[:5] == ["server", "role", "peer", "account", "address"]
    assert row[:4] == ["edge", "spoke", "hub", "A"]


def test_links_of_another_account_are_left_out(leaf_url, cli):
    assert answered(cli, "leaf", "ls", *LOGIN, "--account", "SYS") == "No links to hubs or leaf nodes\n"


def test_status_says_whether_hubs_are_connected(leaf_url, cli):
    shown = answered(cli, "leaf", "status", *LOGIN)

    head, row = (line.split("\t") for line in shown.splitlines())
    assert head[:4] == ["server", "account", "hub", "state"]
    assert (row[0], row[1], row[3]) == ("edge", "A", "connected")
    assert "hidden" not in shown


def test_user_of_another_account_is_told_what_is_needed(cli):
    refused = cli("leaf", "ls")

    assert refused.exit_code == 1
    assert "Connect as a user of the system account" in refused.stderr


def test_hub_that_is_not_there_is_shown_with_the_reason(free_port):
    config = f'leafnodes {{ remotes: [{{ url: "nats-leaf://127.0.0.1:{free_port}" }}] }}'
    with jetlake.Server(config=config, monitor_port=0) as server:
        shown = CliRunner().invoke(create(), ["leaf", "status", "--monitor", server.monitor_url])

    _, row = (line.split("\t") for line in shown.stdout.splitlines())
    assert row[2:4] == [f"nats-leaf://127.0.0.1:{free_port}", "disconnected"]


def test_server_without_leaf_nodes_says_so():
    with jetlake.Server(monitor_port=0) as server:
        listed = CliRunner().invoke(create(), ["leaf", "ls", "--monitor", server.monitor_url])
        shown = CliRunner().invoke(create(), ["leaf", "status", "--monitor", server.monitor_url])
        page = CliRunner().invoke(create(), ["leaf", "ls", "--monitor", server.monitor_url, "--json"])

    assert listed.stdout == "No links to hubs or leaf nodes\n"
    assert shown.stdout == "No hubs are configured\n"
    assert json.loads(page.stdout)[0]["leafs"] == []


def test_hubs_of_a_server_that_does_not_tell_them_are_those_it_is_connected_to():
    links = [
        {"name": "hub", "account": "A", "is_spoke": True},
        {"name": "edge", "account": "A", "is_spoke": False},
    ]

    assert [row[:4] for row in _remote_rows({"server": "here", "leafs": links})] == [("here", "A", "hub", "connected")]


def test_reason_and_next_attempt_are_shown():
    remote = {"account": "A", "urls": ["a:1", "b:2"], "connected": False, "changed": "t", "attempts": 4,
              "retry_in": 1_500_000_000, "pending_bytes": 7, "last_error": "connection refused"}  # fmt: skip

    (row,) = _remote_rows({"server": "here", "remotes": [remote]})

    assert row == ("here", "A", "a:1, b:2", "disconnected", "t", 4, 1_500_000_000, 7, "connection refused")


def test_pages_that_are_not_there_are_told():
    answer = CliRunner().invoke(create(), ["leaf", "ls", "--monitor", "1"])

    assert answer.exit_code == 1
    assert "jetlake leaf ls: cannot read http://127.0.0.1:1/leafz" in answer.stderr
