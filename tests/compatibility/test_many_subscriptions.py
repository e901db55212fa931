"""Very many subscriptions of one client: what one of them costs does not grow with the number of the others.

Measured is the processor's time and not that of the clock, because other tests run beside these.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.test_leafnode_access import connect_as, leaf_client
from tests.compatibility.wire import RawClient

LIVE = 100_000

ENDING = 20_000

MEMBERS = 10_000

QUIET_SECONDS = 0.3

MORE = 10
"""How many times as much a larger number of the same may cost, where it is ten times as many."""

CPU_SECONDS_SPARE = 1.0
"""Many times what the tests take; if each looked at all others, it would be several times this."""


def cpu_seconds(server: ServerProcess) -> float:
    """Return how long a server has kept processors busy so far."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def settled_cpu_seconds(server: ServerProcess) -> float:
    """Return the same once it does not grow any more: subscriptions that have ended are forgotten a little later."""
    while True:
        before = cpu_seconds(server)
        time.sleep(QUIET_SECONDS)
        if (after := cpu_seconds(server)) - before < QUIET_SECONDS / 5:
            return after


def subscribe(client: RawClient, lines: list[bytes]) -> None:
    client.connect()
    client.send(b"".join(lines))
    client.expect_pong()


def cost_of_ending(server: ServerProcess, live_count: int) -> float:
    """Return what it costs that subscriptions end, beside so many that do not."""
    with server.client() as client, server.client() as publisher:
        live = [b"SUB live.%d %d\r\n" % (sid, sid) for sid in range(live_count)]
        ending = [b"SUB once.%d e%d\r\nUNSUB e%d 1\r\n" % (number, number, number) for number in range(ENDING)]
        subscribe(client, live + ending)
        publisher.connect()
        before = settled_cpu_seconds(server)

        publisher.send(b"".join(b"PUB once.%d 0\r\n\r\n" % number for number in range(ENDING)))
        publisher.expect_pong()
        client.expect(b"".join(b"MSG once.%d e%d 0\r\n\r\n" % (number, number) for number in range(ENDING)))
        client.expect_pong()
        return settled_cpu_seconds(server) - before


def test_subscription_that_ends_by_itself_costs_the_same_beside_many_others(
    start_server: Callable[..., ServerProcess],
) -> None:
    alone = cost_of_ending(start_server(), 0)

    beside_others = cost_of_ending(start_server(), LIVE)

    assert beside_others < 3 * alone + CPU_SECONDS_SPARE


def cost_of_members(server: ServerProcess, count: int) -> float:
    """Return what it costs that so many join a queue group, and leave it, where a leaf node is told."""
    with leaf_client(server) as leaf, server.client() as client, server.client() as other:
        leaf.send(connect_as() + b"PING\r\n")
        while leaf.read_line() != b"PONG\r\n":
            pass
        other.connect()
        before = settled_cpu_seconds(server)

        subscribe(client, [b"SUB same workers %d\r\n" % sid for sid in range(count)])

        while leaf.read_line() != b"LS+ same workers %d\r\n" % count:
            pass
        client.close()
        while leaf.read_line() != b"LS- same workers\r\n":
            pass
        other.expect_pong()
        return settled_cpu_seconds(server) - before


def test_member_of_a_large_queue_group_costs_the_same_where_a_leaf_node_is_told_of_it(
    start_server: Callable[..., ServerProcess],
) -> None:
    leaf_nodes = 'leafnodes { listen: "127.0.0.1:-1" }'
    of_few = cost_of_members(start_server(config=leaf_nodes), MEMBERS // 10)

    of_many = cost_of_members(start_server(config=leaf_nodes), MEMBERS)

    assert of_many < MORE * of_few + CPU_SECONDS_SPARE
