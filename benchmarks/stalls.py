"""How long one connection waits because of what another one asked for: a purge, a cumulative acknowledgement, a source.

    python -m benchmarks.stalls [--messages N] [--repeats N] [--only NAME] [--before FOLDER] [--json FILE]

Each case fills a stream, and then asks for one thing that concerns all of its messages while somebody publishes into
that stream. Meanwhile connections that have nothing to do with it send PING and wait for PONG; the table shows the
largest round trip, beside the largest of as long a time in which nothing was asked for, on the same server: what the
machine itself adds. Both servers are measured in one run, and with `--before` also an older build of Jetlake, whose
package is in that folder. Of some repeats the median counts, because what else the machine does is not there each time.
Invariant: a debug build is refused.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.servers import JETLAKE, BenchmarkError, commands, connected
from benchmarks.stream_servers import SUBJECT, Api, StreamServer, create_stream
from jetlake.client.load import build_profile

MESSAGES = 1_000_000
REPEATS = 3

PROBES = 4
"""Connections that send PING: a server has a thread for each core, and each must have one."""

PROBE_PAUSE_S = 0.0005

BATCH = 10_000
"""Messages that a load sends before it waits for an acknowledgement."""

STEADY_PAUSE_S = 0.001
"""Between the publishes of whoever uses the stream meanwhile."""

COST_PUBLISHES = 200

WAIT_S_MAX = 300.0

PAYLOAD = b"x" * 16


class Row(msgspec.Struct, frozen=True):
    """One case on one server."""

    case: str
    server: str
    messages: int
    took_ms: float
    ping_ms_max: float
    idle_ping_ms_max: float
    cpu_us_per_publish: float | None = None


# Those who have nothing to do with it


def probe(port: int, pipe: Connection) -> None:
    """Send PING on all connections until told to report; answer each question with the largest round trip since."""
    clients = [connected(port) for _ in range(PROBES)]
    largest_s = 0.0
    pipe.send(0.0)
    while True:
        if pipe.poll():
            if not pipe.recv():
                return
            pipe.send(largest_s)
            largest_s = 0.0
        for client in clients:
            begun = time.perf_counter()
            client.sendall(b"PING\r\n")
            read_until(client, b"PONG\r\n")
            largest_s = max(largest_s, time.perf_counter() - begun)
        time.sleep(PROBE_PAUSE_S)


class Prober:
    """A process of its own, so that nothing here delays it."""

    def __init__(self, port: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=probe, args=(port, theirs), daemon=True)
        self._process.start()
        self._pipe.recv()

    def largest_ms(self) -> float:
        """Return the largest round trip since the last call."""
        self._pipe.send(True)
        return float(self._pipe.recv()) * 1000

    def stop(self) -> None:
        self._pipe.send(False)
        self._process.join()


@contextmanager
def prober(server: StreamServer) -> Iterator[Prober]:
    running = Prober(server.port)
    try:
        yield running
    finally:
        running.stop()


# Those who use the stream


def read_until(client: socket.socket, end: bytes) -> bytes:
    received = b""
    while end not in received:
        piece = client.recv(1 << 20)
        if not piece:
            raise BenchmarkError("the server closed the connection; look at its log")
        received = received[-len(end) :] + piece
    return received


def fill(server: StreamServer, messages: int) -> None:
    """Publish this many messages in batches, and wait for the acknowledgement of each batch."""
    publish = f"PUB {SUBJECT}.{{}} {len(PAYLOAD)}\r\n{PAYLOAD.decode()}\r\n"
    body = "".join(publish.format(number % 100) for number in range(BATCH - 1)).encode()
    last = f"PUB {SUBJECT}.last fill {len(PAYLOAD)}\r\n".encode() + PAYLOAD + b"\r\n"
    with connected(server.port) as client:
        client.sendall(b"SUB fill 1\r\n")
        for _ in range(messages // BATCH):
            client.sendall(body + last)
            answer = read_until(client, b"}\r\n")
            if b"error" in answer:
                raise BenchmarkError(f"{server.name} refused a message: {answer!r}")


@contextmanager
def steady_publisher(server: StreamServer) -> Iterator[None]:
    """Publish into the stream, one acknowledged message after the other, until the block is left."""
    stop = threading.Event()

    def run() -> None:
        with connected(server.port) as client:
            client.sendall(b"SUB steady 1\r\n")
            line = f"PUB {SUBJECT}.steady steady {len(PAYLOAD)}\r\n".encode() + PAYLOAD + b"\r\n"
            while not stop.is_set():
                client.sendall(line)
                read_until(client, b"}\r\n")
                time.sleep(STEADY_PAUSE_S)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def measured(server: StreamServer, work: Callable[[], None]) -> tuple[float, float, float]:
    """Return how long it took, the largest PING meanwhile, and the largest of as long a time without it, in ms."""
    with prober(server) as pings, steady_publisher(server):
        time.sleep(0.2)
        pings.largest_ms()
        begun = time.perf_counter()
        work()
        took_s = time.perf_counter() - begun
        # What it left to others is done in the background.
        time.sleep(0.5)
        largest = pings.largest_ms()
        time.sleep(min(took_s + 0.5, 5.0))
        return took_s * 1000, largest, pings.largest_ms()


# The cases


def purge(server: StreamServer, messages: int) -> Row:
    create_stream(server, storage="file")
    fill(server, messages)

    def work() -> None:
        with server.api() as api:
            api.ask("STREAM.PURGE.BENCH")

    took, largest, idle = measured(server, work)
    return Row("purge", server.name, messages, took, largest, idle)


def acknowledge_all(server: StreamServer, messages: int) -> Row:
    create_stream(server, storage="file", retention="interest")
    with connected(server.port) as client:
        with server.api() as api:
            config = {
                "durable_name": "C",
                "deliver_subject": "deliver",
                "ack_policy": "all",
                "max_ack_pending": -1,
                "ack_wait": 3_600_000_000_000,
            }
            api.ask("CONSUMER.DURABLE.CREATE.BENCH.C", {"stream_name": "BENCH", "config": config})
        fill(server, messages)
        client.sendall(b"SUB deliver 1\r\n")
        reply = received_reply(client, messages)

        def work() -> None:
            client.sendall(f"SUB confirmed 2\r\nPUB {reply} confirmed 4\r\n+ACK\r\n".encode())
            read_until(client, b" confirmed ")
            with server.api() as api:
                give_up_at = time.perf_counter() + WAIT_S_MAX
                while api.ask("STREAM.INFO.BENCH")["state"]["first_seq"] <= messages:
                    if time.perf_counter() > give_up_at:
                        raise BenchmarkError(f"{server.name} keeps what was acknowledged")
                    time.sleep(0.01)

        took, largest, idle = measured(server, work)
    return Row("acknowledge all", server.name, messages, took, largest, idle)


def received_reply(client: socket.socket, messages: int) -> str:
    """Read deliveries up to the message of this sequence, and return its reply subject."""
    wanted = f".1.{messages}.{messages}.".encode()
    received = b""
    while True:
        received = received[-4096:] + client.recv(1 << 20)
        at = received.find(wanted)
        end = received.find(b"\r\n", at)
        if at >= 0 and end >= 0:
            start = received.rindex(b" ", 0, at) + 1
            return received[start : received.index(b" ", at)].decode()


def source(server: StreamServer, messages: int) -> Row:
    create_stream(server, storage="file", retention="interest")
    with server.api() as api:
        config = {"durable_name": "C", "ack_policy": "explicit"}
        api.ask("CONSUMER.DURABLE.CREATE.BENCH.C", {"stream_name": "BENCH", "config": config})
    fill(server, messages)

    def work() -> None:
        with server.api() as api:
            api.ask("STREAM.CREATE.COPY", {"name": "COPY", "sources": [{"name": "BENCH"}]})
            wait_for_copies(api, messages)

    took, largest, idle = measured(server, work)
    return Row("source", server.name, messages, took, largest, idle, publish_cost_us(server))


def wait_for_copies(api: Api, messages: int) -> None:
    give_up_at = time.perf_counter() + WAIT_S_MAX
    while api.ask("STREAM.INFO.COPY")["state"]["messages"] < messages:
        if time.perf_counter() > give_up_at:
            raise BenchmarkError(f"the source is not in step after {WAIT_S_MAX} s")
        time.sleep(0.02)


def publish_cost_us(server: StreamServer) -> float:
    """Return the server's CPU for each of some publishes, one after the other, that the source has to copy."""
    costs = []
    with connected(server.port) as client, server.api() as api:
        client.sendall(b"SUB cost 1\r\n")
        line = f"PUB {SUBJECT}.cost cost {len(PAYLOAD)}\r\n".encode() + PAYLOAD + b"\r\n"
        for _ in range(3):
            before = server.cpu_us()
            for _ in range(COST_PUBLISHES):
                client.sendall(line)
                read_until(client, b"}\r\n")
            wait_for_copies(api, api.ask("STREAM.INFO.BENCH")["state"]["messages"])
            costs.append((server.cpu_us() - before) / COST_PUBLISHES)
    return statistics.median(costs)


CASES: dict[str, Callable[[StreamServer, int], Row]] = {
    "purge": purge,
    "acknowledge-all": acknowledge_all,
    "source": source,
}


# The report


def table(rows: list[Row]) -> str:
    """Return the rows as a table in Markdown."""
    lines = [
        "| case | server | messages | took, ms | largest PING, ms | without it, ms | CPU per publish, µs |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        cost = "" if row.cpu_us_per_publish is None else f"{row.cpu_us_per_publish:,.0f}"
        lines.append(
            f"| {row.case} | {row.server} | {row.messages:,} | {row.took_ms:,.0f} | {row.ping_ms_max:.1f} "
            f"| {row.idle_ping_ms_max:.1f} | {cost} |"
        )
    return "\n".join(lines)


def servers(before: Path | None) -> dict[str, list[str]]:
    """Return how each server that takes part is started."""
    started = commands()
    if before is not None:
        started = {f"{JETLAKE} before": ["env", f"PYTHONPATH={before}", *started[JETLAKE]], **started}
    return started


def middle(rows: list[Row]) -> Row:
    """Return the medians of the repeats of one case on one server."""
    costs = [row.cpu_us_per_publish for row in rows if row.cpu_us_per_publish is not None]
    return msgspec.structs.replace(
        rows[0],
        took_ms=statistics.median(row.took_ms for row in rows),
        ping_ms_max=statistics.median(row.ping_ms_max for row in rows),
        idle_ping_ms_max=statistics.median(row.idle_ping_ms_max for row in rows),
        cpu_us_per_publish=statistics.median(costs) if costs else None,
    )


def run(names: list[str], options: argparse.Namespace) -> list[Row]:
    rows: dict[tuple[str, str], list[Row]] = {}
    for repeat in range(1, options.repeats + 1):
        for name in names:
            for server_name, command in servers(options.before).items():
                with (
                    tempfile.TemporaryDirectory(dir=options.folder) as place,
                    StreamServer(server_name, command, Path(place)) as server,
                ):
                    row = CASES[name](server, options.messages)
                rows.setdefault((name, server_name), []).append(row)
                print(f"repeat {repeat}: measured {name} on {server_name}", file=sys.stderr)
    return [middle(repeats) for repeats in rows.values()]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=MESSAGES, help=f"messages in each stream ({MESSAGES:,})")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"measurements of each case ({REPEATS})")
    parser.add_argument("--only", choices=CASES, action="append", help="measure only this case")
    parser.add_argument("--before", type=Path, help="folder with the package of an older build to measure, too")
    parser.add_argument("--folder", type=Path, help="where to store, on the disk to measure")
    parser.add_argument("--debug", action="store_true", help="take a debug build, to see whether everything runs")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    if build_profile != "release" and not options.debug:
        print("benchmarks: the engine is a debug build and would be slow; run `make engine-release`", file=sys.stderr)
        return 1
    rows = run(options.only or list(CASES), options)
    print(table(rows))
    if options.json:
        figures: list[dict[str, Any]] = [msgspec.to_builtins(row) for row in rows]
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
