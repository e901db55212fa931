"""How much one account, or a client without credentials, slows another account down and adds to the server's memory.

Each flood runs in a process of its own against a new server with two accounts. A client of the second account stores
messages and asks about its stream meanwhile, one request after the other. The floods:

- sockets: 2,000 connections that say nothing, and come again when they are cut off;
- passwords: 64 clients at a time that log in with a wrong password against a bcrypt hash;
- batches: atomic batches of 256 KB messages that are never committed, by a user who may only publish;
- uploads: rows that are never committed;
- scans: scans of a large stream whose rows nobody takes;
- snapshots: snapshots of a large stream whose chunks nobody acknowledges;
- restores: restores that send a little every second and never end;
- consumers: restores of an archive with 10,000 consumers, one after the other;
- creates: STREAM.CREATE with 80,000 subjects;
- refusals: requests that are refused, each told by an advisory, beside 2,000 other connections.

Shown are p50, p99 and the longest time of the second account's requests, in quiet and under the flood, and by how much
the server's resident memory grew at most. Run `python -m benchmarks.floods`; figures count on a release build.
`--server nats-server` floods that one instead, for comparison; uploads and scans are requests that it does not know.
`--json` prints them for a comparison of two builds; floods can be named, `python -m benchmarks.floods batches scans`.
"""

import argparse
import json
import multiprocessing
import os
import re
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks.consumer_archive import archive_of_consumers
from benchmarks.report import PLAIN_COLUMNS
from benchmarks.servers import JETLAKE, REFERENCE, BenchmarkError, ServerProcess, commands, raise_open_file_limit
from jetlake.client.load import build_profile

SOCKETS = 2_000
LOGINS = 64
CHUNK = bytes(256 * 1024)
SCANNED_MESSAGES = 400
SUBJECTS = 80_000
CONSUMERS = 10_000
LISTENERS = 2_000

ONLY_JETLAKE = frozenset({"uploads", "scans"})
"""Floods of requests that nats-server does not have."""

ANSWER_S_MAX = 30.0
"""A second account that waits for longer is shut out, and the flood has won."""

WRONG_PASSWORD_HASH = "$2a$11$3kIDaCxw.Glsl1.u5nKa6eUnNDLV5HV9tIuUp7EHhMt6Nm9myW1aS"

CONFIG = """
jetstream {{ store_dir: "{folder}" }}
max_payload: 8MB
accounts {{
  ONE {{ jetstream: enabled, users: [
    {{ user: owner, password: p }},
    {{ user: publisher, password: p, permissions: {{ publish: ["s.>"], subscribe: ["_INBOX.>"] }} }},
    {{ user: hashed, password: "{hash}" }} ] }}
  TWO {{ jetstream: enabled, users: [{{ user: two, password: p }}] }}
}}
"""

MESSAGE = re.compile(rb"MSG (\S+) 1 (\d+)\r\n|HMSG (\S+) 1 \d+ (\d+)\r\n")


class Client:
    """A client that asks one question after the other."""

    def __init__(self, port: int, user: str, password: str = "p") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        options = {"user": user, "pass": password, "headers": True, "verbose": False, "lang": "bench", "version": "1"}
        self.socket.sendall(f"CONNECT {json.dumps(options)}\r\nSUB _INBOX.own 1\r\nPING\r\n".encode())
        while b"PONG\r\n" not in self._received:
            self._receive()
            if b"-ERR" in self._received:
                raise BenchmarkError(f"the server refused {user}: {self._received!r}")
        self._received = b""

    def publish(self, subject: str, payload: bytes, headers: dict[str, str] | None = None, reply: str = "") -> None:
        """Send a message; whatever comes back is thrown away when there is too much of it."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        block = f"NATS/1.0\r\n{lines}\r\n".encode() if headers else b""
        sizes = f"{len(block)} {len(block) + len(payload)}" if headers else str(len(payload))
        verb = "HPUB" if headers else "PUB"
        self.socket.sendall(f"{verb} {subject} {reply} {sizes}\r\n".encode() + block + payload + b"\r\n")

    def ask(self, subject: str, payload: bytes, headers: dict[str, str] | None = None) -> bytes:
        """Send a request and return the answer."""
        self.publish(subject, payload, headers, "_INBOX.own")
        while True:
            found = MESSAGE.search(self._received)
            if found is not None:
                end = found.end() + int(found[2] or found[4])
                if len(self._received) >= end + 2:
                    answer = self._received[found.end() : end]
                    self._received = self._received[end + 2 :]
                    return answer
            self._receive()

    def drain(self) -> None:
        """Throw away what has come."""
        # `select` knows no sockets beyond the first thousand.
        ready = select.poll()
        ready.register(self.socket, select.POLLIN)
        while ready.poll(0):
            self._received = b""
            self._receive()
        self._received = b""

    def _receive(self) -> None:
        piece = self.socket.recv(256 * 1024)
        if not piece:
            raise BenchmarkError("the server cut a client off")
        self._received += piece
        if b"PING\r\n" in self._received:
            self._received = self._received.replace(b"PING\r\n", b"")
            self.socket.sendall(b"PONG\r\n")


def make_stream(client: Client, name: str, subject: str) -> None:
    config = {"name": name, "subjects": [subject], "allow_atomic": True}
    answer = client.ask(f"$JS.API.STREAM.CREATE.{name}", json.dumps(config).encode())
    if b'"error"' in answer:
        raise BenchmarkError(answer.decode())


def flood_sockets(port: int) -> Iterator[None]:
    held: list[socket.socket] = []
    while True:
        held += [socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S_MAX) for _ in range(50)]
        for old in held[:-SOCKETS]:
            old.close()
        del held[:-SOCKETS]
        yield


def flood_passwords(port: int) -> Iterator[None]:
    line = b'CONNECT {"user":"hashed","pass":"wrong","verbose":false}\r\nPING\r\n'
    while True:
        clients = [socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S_MAX) for _ in range(LOGINS)]
        for client in clients:
            client.sendall(line)
        yield
        # Some leave before they are answered.
        for client in clients[: LOGINS // 2]:
            client.close()
        select.select(clients[LOGINS // 2 :], [], [], 0.5)
        for client in clients[LOGINS // 2 :]:
            client.close()


def flood_batches(port: int) -> Iterator[None]:
    client = Client(port, "publisher")
    for number in count():
        for sequence in range(1, 1001):
            headers = {"Nats-Batch-Id": f"b{number % 40}", "Nats-Batch-Sequence": str(sequence)}
            client.publish("s.b", CHUNK, headers, "_INBOX.own")
            client.drain()
            yield


def flood_uploads(port: int) -> Iterator[None]:
    client = Client(port, "publisher")
    for number in count():
        for sequence in range(1, 201):
            begins = f"/q{number}/run" if sequence == 1 else ""
            client.publish("s.u", CHUNK, {"Jetlake-Upload": f"u{number}/{sequence}{begins}"}, "_INBOX.own")
            client.drain()
            yield


def flood_scans(port: int) -> Iterator[None]:
    client = Client(port, "owner")
    for _ in range(SCANNED_MESSAGES):
        client.ask("s.scanned", CHUNK)
    listener = Client(port, "owner")
    listener.socket.sendall(b"SUB rows.> 2\r\nPING\r\n")
    for number in count():
        request = {"deliver_subject": f"rows.{number}", "start": 1, "end": SCANNED_MESSAGES, "columns": ["data"]}
        client.ask("$JS.API.STREAM.SCAN.ROWS.S", json.dumps(request).encode())
        yield


def flood_restores(port: int) -> Iterator[None]:
    client = Client(port, "owner")
    held: list[str] = []
    for number in count():
        config = {"name": f"R{number}", "subjects": [f"r.{number}"], "storage": "file"}
        request = json.dumps({"config": config, "state": {}}).encode()
        answer = json.loads(client.ask(f"$JS.API.STREAM.RESTORE.R{number}", request))
        if "deliver_subject" in answer:
            held.append(answer["deliver_subject"])
        for subject in held[-16:]:
            client.publish(subject, b"x" * 1024, reply="_INBOX.thrown_away")
        yield


def flood_snapshots(port: int) -> Iterator[None]:
    client = Client(port, "owner")
    for _ in range(SCANNED_MESSAGES):
        client.ask("s.kept", CHUNK)
    listener = Client(port, "owner")
    listener.socket.sendall(b"SUB chunks.> 2\r\nPING\r\n")
    for number in count():
        request = {"deliver_subject": f"chunks.{number}", "window_size": 32 * 1024 * 1024}
        client.ask("$JS.API.STREAM.SNAPSHOT.S", json.dumps(request).encode())
        listener.drain()
        yield


def flood_consumers(port: int) -> Iterator[None]:
    client = Client(port, "owner")
    data = archive_of_consumers(CONSUMERS)
    for number in count():
        config = {"name": f"R{number}", "subjects": [f"r.{number}"]}
        request = json.dumps({"config": config, "state": {}}).encode()
        answer = json.loads(client.ask(f"$JS.API.STREAM.RESTORE.R{number}", request))
        for start in range(0, len(data), len(CHUNK)):
            client.ask(answer["deliver_subject"], data[start : start + len(CHUNK)])
        if b'"error"' in client.ask(answer["deliver_subject"], b""):
            raise BenchmarkError("the archive was refused")
        client.ask(f"$JS.API.STREAM.DELETE.R{number}", b"")
        yield


def flood_refusals(port: int) -> Iterator[None]:
    listeners = [Client(port, "owner") for _ in range(LISTENERS)]
    listeners[0].socket.sendall(b"SUB $JS.EVENT.> 2\r\nPING\r\n")
    client = Client(port, "owner")
    while True:
        for number in range(100):
            client.publish(f"$JS.API.STREAM.INFO.NONE{number}", b"", reply="_INBOX.own")
            client.publish(f"$JS.API.STREAM.CREATE.NONE{number}", b"{}", reply="_INBOX.own")
        client.ask("$JS.API.STREAM.INFO.NONE", b"")
        client.drain()
        listeners[0].drain()
        yield


def flood_creates(port: int) -> Iterator[None]:
    client = Client(port, "owner")
    for number in count():
        subjects = [f"c{number}.{token}" for token in range(SUBJECTS)]
        config = {"name": f"C{number}", "subjects": subjects}
        client.ask(f"$JS.API.STREAM.CREATE.C{number}", json.dumps(config).encode())
        yield


FLOODS: dict[str, Callable[[int], Iterator[None]]] = {
    "sockets": flood_sockets,
    "passwords": flood_passwords,
    "batches": flood_batches,
    "uploads": flood_uploads,
    "scans": flood_scans,
    "snapshots": flood_snapshots,
    "restores": flood_restores,
    "consumers": flood_consumers,
    "creates": flood_creates,
    "refusals": flood_refusals,
}


def run_flood(name: str, port: int) -> None:
    """Flood until this process is ended; what the server cuts off begins anew."""
    raise_open_file_limit()
    while True:
        try:
            for _ in FLOODS[name](port):
                pass
        except (OSError, BenchmarkError):
            time.sleep(0.05)


@dataclass
class Times:
    """Of requests, in milliseconds."""

    requests: int
    p50: float
    p99: float
    longest: float


@dataclass
class Outcome:
    """What one flood led to."""

    flood: str
    quiet: Times
    flooded: Times
    memory_mb: float


class Observer:
    """A client of the second account."""

    def __init__(self, server: ServerProcess, port: int) -> None:
        self._server = server
        self._client = Client(port, "two")
        make_stream(self._client, "T", "t")
        self.memory_bytes_most = 0

    def measure(self, seconds: float) -> Times:
        times = []
        over_at = time.perf_counter() + seconds
        while time.perf_counter() < over_at:
            begun_at = time.perf_counter()
            try:
                for subject, payload in (("t", b"x" * 100), ("$JS.API.STREAM.INFO.T", b"")):
                    if b'"error"' in self._client.ask(subject, payload):
                        raise BenchmarkError("the second account was refused")
            except TimeoutError:
                # Nobody answers any more, and whatever comes later is too late.
                times.append(ANSWER_S_MAX * 1_000)
                break
            times.append((time.perf_counter() - begun_at) * 500)
            self.memory_bytes_most = max(self.memory_bytes_most, self._server.memory_bytes())
        times.sort()
        return Times(len(times), times[len(times) // 2], times[len(times) * 99 // 100], times[-1])


def measure(name: str, seconds: float, kind: str) -> Outcome:
    """Make one flood on a new server of a kind."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "server.conf")
        config.write_text(CONFIG.format(folder=f"{folder}/store", hash=WRONG_PASSWORD_HASH))
        with ServerProcess(kind, [*commands()[kind], "-c", str(config)], user=("two", "p")) as server:
            owner = Client(server.port, "owner")
            make_stream(owner, "S", "s.>")
            observer = Observer(server, server.port)
            quiet = observer.measure(seconds / 2)
            before_bytes = server.memory_bytes()
            observer.memory_bytes_most = before_bytes
            flood = multiprocessing.get_context("spawn").Process(
                target=run_flood, args=(name, server.port), daemon=True
            )
            flood.start()
            try:
                flooded = observer.measure(seconds)
            finally:
                flood.terminate()
                flood.join()
                # One that has passwords to compare takes minutes to stop, and nothing of it is needed.
                os.kill(server.pid, signal.SIGKILL)
            return Outcome(name, quiet, flooded, (observer.memory_bytes_most - before_bytes) / 1e6)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("floods", nargs="*", help=f"of {', '.join(FLOODS)}; all unless given")
    parser.add_argument("--server", choices=(JETLAKE, REFERENCE), default=JETLAKE, help="which one to flood")
    parser.add_argument("--seconds", type=float, default=15.0, help="how long each flood lasts")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    unknown = set(options.floods) - set(FLOODS)
    if unknown:
        parser.error(f"unknown flood {', '.join(sorted(unknown))}; there are {', '.join(FLOODS)}")
    raise_open_file_limit()
    outcomes = []
    build = f"{JETLAKE}, {build_profile} build" if options.server == JETLAKE else options.server
    for name in options.floods or FLOODS:
        if options.server == REFERENCE and name in ONLY_JETLAKE:
            continue
        print(f"{name} ...", file=sys.stderr, flush=True)
        outcomes.append(measure(name, options.seconds, options.server))
    if options.json:
        print(json.dumps({"build": build, "floods": [asdict(outcome) for outcome in outcomes]}, indent=2))
    else:
        show(build, outcomes)
    return 0


def show(build: str, outcomes: list[Outcome]) -> None:
    console = Console(width=None if sys.stdout.isatty() else PLAIN_COLUMNS)
    console.print(f"{build}; times of the second account's requests in milliseconds")
    table = Table(box=SIMPLE)
    table.add_column("flood")
    for heading in ("quiet p50", "p99", "longest", "flooded p50", "p99", "longest", "memory"):
        table.add_column(heading, justify="right")
    for outcome in outcomes:
        times = [f"{value:,.1f}" for of in (outcome.quiet, outcome.flooded) for value in (of.p50, of.p99, of.longest)]
        table.add_row(outcome.flood, *times, f"{outcome.memory_mb:+,.0f} MB")
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
