"""The page of connections: its order, its parts, one by its id, and those that are closed, the same on both servers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from tests.compatibility.monitored import CONNECTION, TIME, Monitored, assert_shape, read_pong


@pytest.fixture
def three_clients(monitored: Monitored) -> Iterator[list[int]]:
    """Three clients that differ in what they did; their ids, in the order in which they came."""
    ids = []
    clients = []
    for number in range(3):
        client = monitored.server.client()
        client.connect(name=f"client {number}")
        client.send(b"".join(b"SUB u.%d.%d %d\r\n" % (number, sid, sid) for sid in range(3 - number)))
        client.send(b"PUB nobody 2\r\nxx\r\n" * (number + 1) + b"PING\r\n")
        read_pong(client)
        ids.append(client.info["client_id"])
        clients.append(client)
        # So that no two are the same age.
        time.sleep(0.01)
    clients[0].send(b"PUB u.1.0 50\r\n" + b"y" * 50 + b"\r\nPING\r\n")
    read_pong(clients[0])
    yield ids
    for client in clients:
        client.close()
    monitored.wait_for_connections("", 0)


@pytest.mark.parametrize(
    ("word", "order"),
    [
        ("cid", [0, 1, 2]),
        ("start", [0, 1, 2]),
        ("subs", [0, 1, 2]),
        ("msgs_from", [2]),
        ("bytes_from", [0, 2, 1]),
        ("msgs_to", [1]),
        ("bytes_to", [1]),
        ("idle", [2]),
        ("uptime", [2, 1, 0]),
    ],
)
def test_connz_is_sorted(monitored: Monitored, three_clients: list[int], word: str, order: list[int]) -> None:
    found = [entry["cid"] for entry in monitored.connections(f"?sort={word}")]

    assert len(found) == 3
    # Those that are equal may come in any order.
    assert found[: len(order)] == [three_clients[position] for position in order]


@pytest.mark.parametrize("word", ["pending", "rtt"])
def test_connz_can_be_sorted_by_what_no_test_can_arrange(
    monitored: Monitored, three_clients: list[int], word: str
) -> None:
    assert {entry["cid"] for entry in monitored.connections(f"?sort={word}")} == set(three_clients)


@pytest.mark.parametrize(
    ("query", "expected", "offset", "limit"),
    [
        ("?limit=2", [0, 1], 0, 2),
        ("?offset=1", [1, 2], 1, 1024),
        ("?offset=1&limit=1", [1], 1, 1),
        ("?offset=3", [], 3, 1024),
        ("?offset=9223372036854775807&limit=9223372036854775807", [], 2**63 - 1, 2**63 - 1),
        ("?offset=-1&limit=-1", [0, 1, 2], 0, 1024),
        ("?limit=0", [0, 1, 2], 0, 1024),
    ],
)
def test_connz_is_cut_by_offset_and_limit(
    monitored: Monitored, three_clients: list[int], query: str, expected: list[int], offset: int, limit: int
) -> None:
    page = monitored.get_json(f"/connz{query}")

    assert [entry["cid"] for entry in page["connections"]] == [three_clients[position] for position in expected]
    assert (page["total"], page["num_connections"]) == (3, len(expected))
    assert (page["offset"], page["limit"]) == (offset, limit)


def test_connz_finds_one_by_its_id(monitored: Monitored, three_clients: list[int]) -> None:
    page = monitored.get_json(f"/connz?cid={three_clients[1]}")

    assert [entry["cid"] for entry in page["connections"]] == [three_clients[1]]
    assert (page["limit"], page["num_connections"], page["total"]) == (1, 1, 3)
    assert monitored.connections("?cid=18446744073709551615") == []


def test_connz_remembers_closed_connections(start_monitored: Callable[..., Monitored]) -> None:
    monitored = start_monitored()
    for data in (b"", b"NONSENSE\r\n"):
        with monitored.server.client() as client:
            client.connect(name="gone", lang="test")
            client.send(b"SUB kept.1 1\r\nSUB kept.2 2\r\nPING\r\n")
            read_pong(client)
            client.send(data)
            if data:
                client.expect(b"-ERR 'Unknown Protocol Operation'\r\n")
    closed = monitored.wait_for_connections("?state=closed&subs=1", 2)

    assert [entry["reason"] for entry in closed] == ["Client Closed", "Protocol Violation"]
    for entry in closed:
        extra = {"stop": str, "reason": str, "subscriptions_list": list}
        assert_shape(entry, {**{key: kind for key, kind in CONNECTION.items() if key != "version"}, **extra})
        assert TIME.match(entry["stop"])
        assert (entry["subscriptions"], sorted(entry["subscriptions_list"])) == (2, ["kept.1", "kept.2"])
    assert monitored.connections("") == []
    assert [entry["cid"] for entry in monitored.connections("?state=any")] == [entry["cid"] for entry in closed]
    assert monitored.get_json("/connz?state=all")["total"] == 2
    by_stop = monitored.connections("?state=closed&sort=stop")
    assert [entry["cid"] for entry in by_stop] == [entry["cid"] for entry in reversed(closed)]
    assert len(monitored.connections("?state=closed&sort=reason")) == 2
    assert len(monitored.connections(f"?state=closed&cid={closed[0]['cid']}")) == 1
