"""What clients that nobody knows cost: memory of the server, and the time of clients that are known.

Two attacks, each on a server with and without authentication:

- half-open: 20,000 connections, 2,000 per second, that send 3 KB of a CONNECT and nothing more;
- slow: 2,000 clients that send one byte of a CONNECT per second, and come again when they are cut off.

Method: an established client measures round trips through the server, one after the other. Each round does so three
times: in quiet; beside the same attack on listeners that nobody serves, which costs the same work of the attackers and
of the kernel; and beside the attack on the server. The ratio of p99 is taken within a round, between the last two: the
cores are shared, and what the attackers use of them is not the server's doing. Memory is what the server's resident
memory grew by at most, from the first round on.

The goals: 32 MB, and twice the p99. Run `python -m benchmarks.flood`, on a release build.
"""

import argparse
import socket
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks.report import PLAIN_COLUMNS
from benchmarks.servers import (
    JETLAKE,
    BenchmarkError,
    ServerProcess,
    commands,
    connected,
    free_port,
    raise_open_file_limit,
)
from benchmarks.strangers import Attack, Attackers
from jetlake.client.load import build_profile

MEMORY_MB_MAX = 32.0
P99_RATIO_MAX = 2.0

ATTACKERS = 4
"""Processes that attack: each may have as many open files as the server."""

HALF_OPEN_CLIENTS = 20_000
HALF_OPEN_PER_SECOND = 2_000.0
"""What leaves a third of two cores idle: beyond that, it is the cores that keep the client waiting."""

SLOW_CLIENTS = 2_000
SLOW_S = 5.0
QUIET_S = 2.0

BACKLOG = 4_000
"""Connections that one listener holds without anybody accepting them."""

PAUSE_S = 0.0005
"""Between two round trips: the client that measures must not be the load."""

TOKEN = "flood"
SUBJECT_LINE = b"SUB flood 1\r\n"
PUBLISH = b"PUB flood 2\r\nhi\r\n"
PING = b"PING\r\n"
DELIVERED = b"MSG flood 1 2\r\nhi\r\n"


@dataclass
class Outcome:
    """What one attack on one server led to; times in microseconds."""

    title: str
    quiet_p50: list[float] = field(default_factory=list)
    quiet_p99: list[float] = field(default_factory=list)
    beside_p50: list[float] = field(default_factory=list)
    beside_p99: list[float] = field(default_factory=list)
    during_p50: list[float] = field(default_factory=list)
    during_p99: list[float] = field(default_factory=list)
    memory_mb: float = 0.0

    @property
    def ratio(self) -> float:
        pairs = zip(self.during_p99, self.beside_p99, strict=True)
        return statistics.median(during / beside for during, beside in pairs)

    @property
    def reached(self) -> bool:
        return self.memory_mb <= MEMORY_MB_MAX and self.ratio <= P99_RATIO_MAX


class Observer:
    """A client that is in, and how long its messages take."""

    def __init__(self, server: ServerProcess, token: str) -> None:
        self._server = server
        self._socket = connected(server.port, token=token)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(SUBJECT_LINE)
        self._received = b""
        self.memory_bytes_most = 0

    def close(self) -> None:
        self._socket.close()

    def measure(self, until: Callable[[], bool]) -> tuple[float, float]:
        """Return p50 and p99 of round trips until then, in microseconds."""
        times: list[float] = []
        while not until():
            begun_at = time.perf_counter()
            self._round_trip()
            times.append((time.perf_counter() - begun_at) * 1e6)
            if len(times) % 50 == 0:
                self.memory_bytes_most = max(self.memory_bytes_most, self._server.memory_bytes())
            time.sleep(PAUSE_S)
        times.sort()
        return times[len(times) // 2], times[len(times) * 99 // 100]

    def _round_trip(self) -> None:
        self._socket.sendall(PUBLISH)
        while DELIVERED not in self._received:
            piece = self._socket.recv(4096)
            if not piece:
                raise BenchmarkError("the server cut off the client that measures")
            self._received += piece
            if PING in self._received:
                self._received = self._received.replace(PING, b"")
                self._socket.sendall(b"PONG\r\n")
        self._received = self._received.replace(DELIVERED, b"")


def main() -> int:
    options = read_options()
    if build_profile != "release":
        print("flood: the engine is a debug build; run `make engine-release` first", file=sys.stderr)
        return 1
    open_files_max = raise_open_file_limit()
    outcomes = []
    for token in ("", TOKEN):
        for kind in ("half-open", "slow"):
            print(f"{kind}, {'with' if token else 'without'} authentication ...", file=sys.stderr, flush=True)
            outcomes.append(attack(kind, token, options.rounds))
    show(outcomes, open_files_max, options.rounds)
    return 0 if all(outcome.reached for outcome in outcomes) else 1


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="how often each attack is made")
    return parser.parse_args()


def attack(kind: str, token: str, rounds: int) -> Outcome:
    """Make one attack on a new server."""
    outcome = Outcome(f"{kind}, {'with' if token else 'without'} authentication")
    with ExitStack() as stack:
        unserved = [stack.enter_context(listener()) for _ in range(HALF_OPEN_CLIENTS // BACKLOG)]
        server = stack.enter_context(ServerProcess(JETLAKE, commands()[JETLAKE], token=token))
        observer = Observer(server, token)
        stack.callback(observer.close)
        observer.measure(after(QUIET_S))
        before_bytes = server.memory_bytes()
        for number in range(rounds):
            add(outcome.quiet_p50, outcome.quiet_p99, observer.measure(after(QUIET_S)))
            ports = [each.getsockname()[1] for each in unserved]
            add(outcome.beside_p50, outcome.beside_p99, measured_beside(kind, ports, observer, number))
            # Only from here on is it the server that is attacked.
            observer.memory_bytes_most = before_bytes
            add(outcome.during_p50, outcome.during_p99, measured_beside(kind, [server.port], observer, number))
            outcome.memory_mb = max(outcome.memory_mb, (observer.memory_bytes_most - before_bytes) / 1e6)
            for each in unserved:
                drain(each)
    return outcome


def measured_beside(kind: str, ports: list[int], observer: Observer, number: int) -> tuple[float, float]:
    """Return p50 and p99 while these ports are attacked, and for a second after the last client has come."""
    clients, per_second = {
        "half-open": (HALF_OPEN_CLIENTS, HALF_OPEN_PER_SECOND),
        "slow": (SLOW_CLIENTS, float(SLOW_CLIENTS)),
    }[kind]
    attacks = [
        Attack(f"127.0.{number + 1}.{attacker + 2}", ports, clients // ATTACKERS, per_second / ATTACKERS)
        for attacker in range(ATTACKERS)
    ]
    with Attackers(kind, attacks) as attackers:
        over = after(HALF_OPEN_CLIENTS / HALF_OPEN_PER_SECOND * 3)
        finished = (lambda: attackers.done or over()) if kind == "half-open" else after(SLOW_S)
        times = observer.measure(finished)
        if attackers.failed or (kind == "half-open" and not attackers.done):
            raise BenchmarkError("an attacker did not bring all its clients; see above, or raise `ulimit -Hn`")
    return times


def after(seconds: float) -> Callable[[], bool]:
    """Return whether so much time has passed since now."""
    over_at = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= over_at


def add(p50: list[float], p99: list[float], times: tuple[float, float]) -> None:
    p50.append(times[0])
    p99.append(times[1])


def listener() -> socket.socket:
    """A listener whose connections the kernel holds, and nobody serves."""
    listening = socket.create_server(("127.0.0.1", free_port()), backlog=BACKLOG + 96)
    listening.setblocking(False)
    return listening


def drain(listening: socket.socket) -> None:
    """Make room for the next round."""
    try:
        while True:
            listening.accept()[0].close()
    except BlockingIOError:
        return


def show(outcomes: list[Outcome], open_files_max: int, rounds: int) -> None:
    console = Console(width=None if sys.stdout.isatty() else PLAIN_COLUMNS)
    console.print(
        f"{HALF_OPEN_CLIENTS:,} half-open or {SLOW_CLIENTS:,} slow clients from {ATTACKERS} processes; "
        f"medians of {rounds} rounds; the server may have {open_files_max:,} open files"
    )
    table = Table(box=SIMPLE)
    table.add_column("attack")
    for heading in ("quiet p50", "p99 µs", "beside p50", "p99 µs", "attacked p50", "p99 µs", "p99 ratio", "memory"):
        table.add_column(heading, justify="right")
    table.add_column("goals")
    for outcome in outcomes:
        times = [
            f"{statistics.median(values):,.0f}"
            for values in (
                *(outcome.quiet_p50, outcome.quiet_p99),
                *(outcome.beside_p50, outcome.beside_p99),
                *(outcome.during_p50, outcome.during_p99),
            )
        ]
        goals = "reached" if outcome.reached else "missed"
        table.add_row(outcome.title, *times, f"{outcome.ratio:.2f}", f"{outcome.memory_mb:.1f} MB", goals)
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
