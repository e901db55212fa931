"""What a leaf node costs: its CPU per message that it forwards to its hub, and per message that comes from there.

Method: the hub is a nats-server, the same for both. A leaf node of each kind connects to it. In one direction a client
of the leaf node publishes and one of the hub listens, in the other the two change places. A round measures both leaf
nodes one after the other, in turns; the ratio is the median of the rounds. The goal for Jetlake is at most 0.3 times
the CPU of nats-server's leaf node for messages that are forwarded.

Run `python -m benchmarks.leaf_cost`, on a release build.
"""

import argparse
import json
import os
import platform
import socket
import statistics
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from benchmarks.servers import (
    JETLAKE,
    REFERENCE,
    START_S_MAX,
    BenchmarkError,
    ServerProcess,
    commands,
    connected,
    free_port,
)
from jetlake._engine import EngineError, build_profile, run_load

GOAL_RATIO = 0.3

SUBJECT = "bench"

READ_BYTES = 1 << 20

LINKED_S_MAX = 20.0


def main() -> int:
    options = read_options()
    if build_profile != "release":
        print("leaf_cost: the engine is a debug build; run `make engine-release` first", file=sys.stderr)
        return 1
    report: dict[str, object] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
        "payload_bytes": options.size,
        "messages": options.messages,
        "rounds": options.rounds,
    }
    is_met = True
    for compression in ("s2_auto", "off"):
        figures = measure(compression, options)
        report[compression] = figures
        is_met &= figures["forwarded"]["ratio"] <= GOAL_RATIO
    print(json.dumps(report, indent=2))
    return 0 if is_met else 1


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="how often each pair is measured")
    parser.add_argument("--size", type=int, default=128, help="bytes of payload")
    parser.add_argument("--messages", type=int, default=300_000, help="messages of one measurement")
    return parser.parse_args()


def measure(compression: str, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Return the figures of both directions with this compression of the link."""
    with tempfile.TemporaryDirectory(prefix="jetlake-bench-") as folder, ExitStack() as stack:
        port = free_port()
        path = Path(folder) / "hub.conf"
        path.write_text(f'leafnodes {{ listen: "127.0.0.1:{port}", compression: {compression} }}\n')
        hub = stack.enter_context(ServerProcess("hub", [*commands()[REFERENCE], "-c", str(path)]))
        leaves = {}
        for name, command in commands().items():
            path = Path(folder) / f"{name}.conf"
            remote = f'{{ url: "nats-leaf://127.0.0.1:{port}", compression: {compression} }}'
            path.write_text(f"server_name: {name}\nleafnodes {{ remotes: [ {remote} ] }}\n")
            leaves[name] = stack.enter_context(ServerProcess(name, [*command, "-c", str(path)]))
        forwarded = rounds(leaves, options, lambda leaf: run(leaf, leaf, hub, options))
        received = rounds(leaves, options, lambda leaf: run(leaf, hub, leaf, options))
    return {"forwarded": forwarded, "received": received}


def rounds(leaves, options, measured) -> dict[str, float]:  # type: ignore[no-untyped-def]
    """Measure both leaf nodes in turns, and return the CPU per message of each, and their ratio."""
    for leaf in leaves.values():
        measured(leaf)
    figures: dict[str, list[float]] = {name: [] for name in leaves}
    for number in range(options.rounds):
        for name in sorted(leaves, reverse=bool(number % 2)):
            figures[name].append(measured(leaves[name]))
    ratios = [own / other for own, other in zip(figures[JETLAKE], figures[REFERENCE], strict=True)]
    return {
        "ratio": round(statistics.median(ratios), 3),
        **{f"{name}_us_per_message": round(statistics.median(each), 3) for name, each in figures.items()},
    }


def run(leaf: ServerProcess, publisher: ServerProcess, listener: ServerProcess, options: argparse.Namespace) -> float:
    """Publish at one server, hear all of it at the other; return the CPU of the leaf node per message, in µs."""
    subject = f"{SUBJECT}.{leaf.name}"
    with Listener(listener, subject, options.messages, options.size) as heard:
        heard.wait_until_linked(publisher)
        plan = {
            "url": publisher.address,
            "workload": "publish",
            "publishers": 1,
            "subscribers": 0,
            "payload_bytes": options.size,
            "messages": options.messages,
            "subject": subject,
            "user": None,
            "password": None,
            "token": None,
            "websocket": False,
        }
        before = leaf.cpu_us()
        try:
            run_load(json.dumps(plan).encode())
        except EngineError as error:
            raise BenchmarkError(f"{publisher.name}: {error.args[-1]}") from error
        heard.wait()
        return (leaf.cpu_us() - before) / options.messages


class Listener:
    """A client that counts the bytes of what it hears, in a thread."""

    def __init__(self, server: ServerProcess, subject: str, messages: int, size: int) -> None:
        self._subject = subject
        self._socket: socket.socket = connected(server.port)
        self._socket.sendall(f"SUB {subject} 1\r\nSUB {subject}.linked 2\r\nPING\r\n".encode())
        self._wanted = messages * (len(f"MSG {subject} 1 {size}\r\n") + size + 2)
        self._is_linked = threading.Event()
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def wait_until_linked(self, publisher: ServerProcess) -> None:
        give_up_at = time.monotonic() + LINKED_S_MAX
        with connected(publisher.port) as client:
            while not self._is_linked.wait(0.05):
                if time.monotonic() > give_up_at:
                    raise BenchmarkError(f"{publisher.name} is not linked; start it by hand to see why")
                client.sendall(f"PUB {self._subject}.linked 0\r\n\r\n".encode())
        # What was sent while it became linked comes through before anything is counted.
        time.sleep(0.2)

    def wait(self) -> None:
        if not self._is_done.wait(START_S_MAX * 3):
            raise BenchmarkError("not every message came through")

    def _read(self) -> None:
        """Count what comes on the subject; the few messages of the beginning are all on the other one."""
        received = 0
        while not self._is_done.is_set():
            try:
                data = self._socket.recv(READ_BYTES)
            except OSError:
                return
            if not data:
                return
            if not received and f"MSG {self._subject} 1 ".encode() not in data:
                if b".linked 2 " in data:
                    self._is_linked.set()
                continue
            received += len(data)
            if received >= self._wanted:
                self._is_done.set()


if __name__ == "__main__":
    sys.exit(main())
