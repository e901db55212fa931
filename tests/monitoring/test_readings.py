"""What the engine reports, from a real one: every field means what its name says."""

import asyncio
import socket
import time

import nats
import pytest

import jetlake
from jetlake._engine import EngineError
from jetlake.monitoring.readings import MonitoredServer
from jetlake.server.system.registration import SUBJECTS_OF_ANY_ACCOUNT
from jetlake.shared.engine_reports import SubscriptionQuery

ACCOUNTS = """
accounts {
  A { users [ { user: ada, password: first } ] }
  B { users [ { user: bob, password: second } ] }
}
"""


def source_of(server):
    return MonitoredServer(server._started_engine(), server.facts)


def wait_for(read, condition, what):
    deadline = time.monotonic() + 60
    while not condition(value := read()):
        assert time.monotonic() < deadline, f"{what}: {value}"
        time.sleep(0.01)
    return value


def raw_client(server, operations=b""):
    """Return a client that has said CONNECT, and these operations, and been heard."""
    client = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    client.sendall(b'CONNECT {"verbose":false,"name":"raw","lang":"c","version":"1"}\r\n' + operations + b"PING\r\n")
    received = b""
    while b"PONG\r\n" not in received:
        received += client.recv(65_536)
    return client


async def test_counters_follow_traffic(jetlake_server):
    source = source_of(jetlake_server)
    own_subscriptions = source.statistics().subscriptions
    before = time.time_ns()
    connection = await nats.connect(jetlake_server.url, name="counted")
    await connection.subscribe("x.*", queue="q")
    await connection.subscribe("x.1")
    await connection.publish("x.1", b"hello", headers={"a": "b"})
    await connection.flush()

    statistics = source.statistics()
    reading = source.connections()[0]

    assert (statistics.connections, statistics.total_connections) == (1, 1)
    assert statistics.subscriptions == own_subscriptions + 2
    assert (statistics.traffic.in_messages, statistics.traffic.out_messages) == (1, 2)
    assert statistics.traffic.out_bytes == 2 * statistics.traffic.in_bytes > 10
    assert statistics.traffic == reading.traffic
    assert statistics.accounts[0].traffic == reading.traffic
    assert (statistics.accounts[0].name, statistics.accounts[0].connections) == ("$G", 1)
    assert (reading.name, reading.language, reading.account) == ("counted", "python3", "$G")
    assert (reading.ip, reading.subscriptions, reading.pending_bytes) == ("127.0.0.1", 2, 0)
    assert before - 60 * 10**9 < statistics.started_unix_ns < reading.started_unix_ns <= reading.last_activity_unix_ns
    assert 0 < reading.round_trip_ns < 10**10
    await connection.close()


async def test_counters_stay_when_connections_end(jetlake_server):
    source = source_of(jetlake_server)
    for _ in range(3):
        connection = await nats.connect(jetlake_server.url)
        await connection.publish("x", b"12345")
        await connection.close()
    wait_for(source.statistics, lambda statistics: statistics.connections == 0, "connections are left")

    statistics = source.statistics()

    assert (statistics.total_connections, statistics.traffic.in_messages, statistics.traffic.in_bytes) == (3, 3, 15)
    assert statistics.accounts[0].total_connections == 3
    assert statistics.accounts[0].traffic == statistics.traffic


async def test_accounts_are_counted_apart():
    async with jetlake.Server(config=ACCOUNTS) as server:
        source = source_of(server)
        ada = await nats.connect(server.url, user="ada", password="first")
        bob = await nats.connect(server.url, user="bob", password="second")
        await ada.subscribe("x")
        for _ in range(3):
            await ada.publish("x", b"1234")
        await bob.publish("x", b"")
        await ada.flush()
        await bob.flush()

        accounts = {account.name: account for account in source.statistics().accounts}

        assert (accounts["A"].connections, accounts["B"].connections, accounts["$G"].connections) == (1, 1, 0)
        assert (accounts["A"].traffic.in_messages, accounts["A"].traffic.out_bytes) == (3, 12)
        assert (accounts["B"].traffic.in_messages, accounts["B"].traffic.out_messages) == (1, 0)
        own_subscriptions = len(SUBJECTS_OF_ANY_ACCOUNT)
        assert (accounts["A"].subscriptions, accounts["B"].subscriptions) == (own_subscriptions + 1, own_subscriptions)
        assert {reading.user: reading.account for reading in source.connections()} == {"ada": "A", "bob": "B"}
        listed = source.subscriptions(SubscriptionQuery(account="A")).subscriptions
        assert {each.account for each in listed} == {"A"}
        assert "x" in {each.subject for each in listed}
        assert source.subscriptions(SubscriptionQuery(account="B")).total == own_subscriptions
        await ada.close()
        await bob.close()


def test_lookups_are_counted_where_they_walk(jetlake_server):
    source = source_of(jetlake_server)
    own_inserts = source.statistics().accounts[0].routing.inserts
    with raw_client(jetlake_server, b"SUB a 1\r\nSUB a 2\r\nSUB b 3\r\nUNSUB 3\r\n" + b"PUB a 0\r\n\r\n" * 10):
        routing = source.statistics().accounts[0].routing

    assert (routing.inserts - own_inserts, routing.removes) == (3, 1)
    assert 1 <= routing.walks < 10
    assert routing.fanout_max == 2
    assert routing.fanout_total == 2 * routing.walks


def test_subscriptions_are_listed_in_a_lasting_order(jetlake_server):
    source = source_of(jetlake_server)
    # The server's own come first.
    own = len(SUBJECTS_OF_ANY_ACCOUNT)
    operations = b"".join(b"SUB s.%d %d\r\n" % (number, number) for number in range(1, 13))
    with raw_client(jetlake_server, operations), raw_client(jetlake_server, b"SUB s.* q 7\r\nUNSUB 7 5\r\n"):
        everything = source.subscriptions(SubscriptionQuery(account="$G"))
        page = source.subscriptions(SubscriptionQuery(account="$G", offset=own + 10, limit=2))
        behind = source.subscriptions(SubscriptionQuery(account="$G", offset=2**63 - 1, limit=2**63 - 1))

    of_clients = everything.subscriptions[own:]
    assert everything.total == own + 13
    assert [each.sid for each in of_clients] == [*map(str, range(1, 13)), "7"]
    assert (page.total, page.subscriptions) == (own + 13, of_clients[10:12])
    assert (behind.total, behind.subscriptions) == (own + 13, [])
    last = of_clients[-1]
    assert (last.subject, last.queue, last.delivered, last.delivered_max) == ("s.*", "q", 0, 5)
    assert last.connection_id > of_clients[0].connection_id


def test_subscriptions_are_found_by_connection_and_by_subject(jetlake_server):
    source = source_of(jetlake_server)
    with (
        raw_client(jetlake_server, b"SUB a 1\r\nSUB a.b 2\r\n"),
        raw_client(jetlake_server, b"SUB a.* q 1\r\nSUB > 2\r\n"),
    ):
        first, second = (reading.id for reading in source.connections())

        of_first = source.subscriptions(SubscriptionQuery(connection_ids=[first]))
        of_nobody = source.subscriptions(SubscriptionQuery(connection_ids=[]))
        receivers = source.subscriptions(SubscriptionQuery(subject="a.b"))

    assert [(each.connection_id, each.subject) for each in of_first.subscriptions] == [(first, "a"), (first, "a.b")]
    assert of_nobody.total == 0
    assert [(each.connection_id, each.subject) for each in receivers.subscriptions] == [
        (first, "a.b"),
        (second, "a.*"),
        (second, ">"),
    ]


@pytest.mark.parametrize("query", [b"", b'{"offset":-1}', b'{"limit":1e30}', b'{"unknown":1}', b"\xff"])
def test_a_query_that_cannot_be_read_is_refused(jetlake_server, query):
    with pytest.raises(EngineError) as refusal:
        jetlake_server._started_engine().subscriptions(query)

    assert refusal.value.args[0] == "options"


def test_closed_connections_say_why_and_what_they_were(jetlake_server):
    source = source_of(jetlake_server)
    operations = b"".join(b"SUB s.%d %d\r\n" % (number, number) for number in range(1, 41))
    raw_client(jetlake_server, operations).close()
    with raw_client(jetlake_server) as client:
        client.sendall(b"NONSENSE\r\n")
        client.recv(1000)
    closed = wait_for(source.closed_connections, lambda closed: len(closed) == 2, "both are gone")

    first, second = sorted(closed, key=lambda reading: reading.id)
    assert (first.reason, second.reason) == ("Client Closed", "Protocol Violation")
    assert first.subscriptions == 40
    assert [each.subject for each in first.last_subscriptions] == [f"s.{number}" for number in range(1, 33)]
    assert second.last_subscriptions == []
    assert first.started_unix_ns < first.stopped_unix_ns <= time.time_ns()
    assert (first.name, first.language, first.version) == ("raw", "c", "1")
    assert source.connections() == []


def test_as_many_closed_connections_are_kept_as_allowed():
    with jetlake.Server(config="max_closed_clients: 3") as server:
        source = source_of(server)
        for number in range(1, 8):
            raw_client(server).close()
            wait_for(source.closed_connections, lambda closed, n=number: n in [c.id for c in closed], "not kept")

        assert [reading.id for reading in source.closed_connections()] == [5, 6, 7]


def test_endless_names_of_closed_connections_are_cut(jetlake_server):
    source = source_of(jetlake_server)
    with socket.create_connection(("127.0.0.1", jetlake_server.port), timeout=60) as client:
        client.sendall(b'CONNECT {"name":"%s"}\r\nPING\r\n' % (b"n" * 4_000))
        while b"PONG" not in client.recv(65_536):
            pass
        assert len(source.connections()[0].name) == 4_000

    closed = wait_for(source.closed_connections, bool, "it is gone")

    assert len(closed[0].name) == 256


def test_slow_consumers_and_stalls_are_counted():
    message = b"PUB x 100000\r\n" + b"m" * 100_000 + b"\r\n"
    with (
        jetlake.Server(limits=jetlake.Limits(max_pending_bytes=2_000_000)) as server,
        raw_client(server, b"SUB x 1\r\n"),
        raw_client(server) as publisher,
    ):
        source = source_of(server)
        for _ in range(300):
            publisher.sendall(message)

        statistics = wait_for(source.statistics, lambda statistics: statistics.slow_consumers, "nobody was cut off")
        closed = wait_for(source.closed_connections, bool, "it was not remembered")

        assert statistics.slow_consumers == statistics.accounts[0].slow_consumers == 1
        assert closed[0].reason == "Slow Consumer (Pending Bytes)"
        assert statistics.stalls > 0
        assert closed[0].stalls == statistics.stalls


async def test_reading_while_clients_come_and_go_is_safe(jetlake_server):
    source = source_of(jetlake_server)
    own_subscriptions = source.statistics().subscriptions
    stop = asyncio.Event()

    async def come_and_go():
        while not stop.is_set():
            connection = await nats.connect(jetlake_server.url)
            await connection.subscribe("x")
            await connection.close()

    clients = [asyncio.create_task(come_and_go()) for _ in range(4)]
    for _ in range(100):
        source.statistics()
        source.connections()
        source.closed_connections()
        source.subscriptions(SubscriptionQuery())
        await asyncio.sleep(0)
    stop.set()
    await asyncio.gather(*clients)

    wait_for(source.statistics, lambda statistics: statistics.connections == 0, "connections are left")
    assert source.statistics().subscriptions == own_subscriptions
