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

CPU_SECONDS_MAX = 1.5
"""Several times what it takes; if each looked at all others, it would be several times this."""


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


def test_subscription_that_ends_by_itself_costs_the_same_beside_many_others(
    start_server: Callable[..., ServerProcess],
) -> None:
    server = start_server()
    with server.client() as client, server.client() as publisher:
        live = [b"SUB live.%d %d\r\n" % (sid, sid) for sid in range(LIVE)]
        ending = [b"SUB once.%d e%d\r\nUNSUB e%d 1\r\n" % (number, number, number) for number in range(ENDING)]
        subscribe(client, live + ending)
        publisher.connect()
        before = cpu_seconds(server)

        publisher.send(b"".join(b"PUB once.%d 0\r\n\r\n" % number for number in range(ENDING)))
        publisher.expect_pong()
        client.expect(b"".join(b"MSG once.%d e%d 0\r\n\r\n" % (number, number) for number in range(ENDING)))
        client.expect_pong()

        assert settled_cpu_seconds(server) - before < CPU_SECONDS_MAX


def test_member_of_a_large_queue_group_costs_the_same_where_a_leaf_node_is_told_of_it(
    start_server: Callable[..., ServerProcess],
) -> None:
    server = start_server(config='leafnodes { listen: "127.0.0.1:-1" }')
    with leaf_client(server) as leaf, server.client() as client, server.client() as other:
        leaf.send(connect_as() + b"PING\r\n")
        while leaf.read_line() != b"PONG\r\n":
            pass
        other.connect()
        before = cpu_seconds(server)

        subscribe(client, [b"SUB same workers %d\r\n" % sid for sid in range(MEMBERS)])

        while leaf.read_line() != b"LS+ same workers %d\r\n" % MEMBERS:
            pass
        client.close()
        while leaf.read_line() != b"LS- same workers\r\n":
            pass
        other.expect_pong()
        assert settled_cpu_seconds(server) - before < CPU_SECONDS_MAX
