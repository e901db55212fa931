"""What WebSocket costs: the CPU of a server per message over it, as a multiple of that over plain TCP, at both servers.

Method: each server listens on both ports. A round measures the two one after the other, in turns; the ratio is the
median of the rounds. The goal for Jetlake is at most twice the CPU per message.

Run `python -m benchmarks.websocket_cost`, on a release build.
"""

import argparse
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from benchmarks.servers import JETLAKE, START_S_MAX, BenchmarkError, ServerProcess, commands, free_port
from jetlake._engine import EngineError, build_profile, run_load

GOAL_RATIO = 2.0

ROUND_S = 0.5
"""How long one measurement takes, about."""

FIRST_MESSAGES = 100_000


def main() -> int:
    options = read_options()
    if build_profile != "release":
        print("websocket_cost: the engine is a debug build; run `make engine-release` first", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="jetlake-bench-") as folder, ExitStack() as stack:
        servers = {}
        for name, command in commands().items():
            port = free_port()
            path = Path(folder) / f"{name}.conf"
            path.write_text(f'websocket {{ listen: "127.0.0.1:{port}", no_tls: true }}\n')
            server = stack.enter_context(WebSocketServerProcess(name, [*command, "-c", str(path)], port))
            servers[name] = server
        ratios = {name: measure(server, options) for name, server in servers.items()}
    report = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
        "payload_bytes": options.size,
        "rounds": options.rounds,
        "servers": ratios,
    }
    print(json.dumps(report, indent=2))
    return 0 if ratios[JETLAKE]["ratio"] <= GOAL_RATIO else 1


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="how often each pair is measured")
    parser.add_argument("--size", type=int, default=128, help="bytes of payload")
    return parser.parse_args()


class WebSocketServerProcess(ServerProcess):
    """A server with a second port, for WebSocket. It is ready when both accept."""

    def __init__(self, name: str, command: list[str], websocket_port: int) -> None:
        super().__init__(name, command)
        self.websocket_port = websocket_port

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        give_up_at = time.monotonic() + START_S_MAX
        while not (accepts(self.port) and accepts(self.websocket_port)):
            if time.monotonic() > give_up_at or self._process.poll() is not None:
                self.__exit__()
                raise BenchmarkError(f"{self.name} does not start with WebSocket; start it by hand to see why")
            time.sleep(0.01)
        return self


def accepts(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=START_S_MAX):
            return True
    except ConnectionRefusedError:
        return False


def measure(server: WebSocketServerProcess, options: argparse.Namespace) -> dict[str, float]:
    """Return how much more CPU a message takes by WebSocket, and the best rates."""
    first = run(server, FIRST_MESSAGES, options.size, websocket=False)
    messages = max(1, int(first[1] * ROUND_S))
    pairs: list[tuple[tuple[float, float], tuple[float, float]]] = []
    for number in range(options.rounds):
        order = (False, True) if number % 2 else (True, False)
        results = {websocket: run(server, messages, options.size, websocket=websocket) for websocket in order}
        pairs.append((results[False], results[True]))
    return {
        "ratio": round(statistics.median(websocket[0] / plain[0] for plain, websocket in pairs), 2),
        "plain_us_per_message": round(statistics.median(plain[0] for plain, _ in pairs), 3),
        "websocket_us_per_message": round(statistics.median(websocket[0] for _, websocket in pairs), 3),
        "plain_best": round(max(plain[1] for plain, _ in pairs)),
        "websocket_best": round(max(websocket[1] for _, websocket in pairs)),
    }


def run(server: WebSocketServerProcess, messages: int, size: int, *, websocket: bool) -> tuple[float, float]:
    """Send messages from one publisher to one subscriber; return the server's CPU per message in µs, and the rate."""
    plan = {
        "url": f"127.0.0.1:{server.websocket_port}" if websocket else server.address,
        "workload": "pubsub",
        "publishers": 1,
        "subscribers": 1,
        "payload_bytes": size,
        "messages": messages,
        "subject": "bench",
        "user": None,
        "password": None,
        "token": None,
        "websocket": websocket,
    }
    before = server.cpu_us()
    try:
        figures = json.loads(run_load(json.dumps(plan).encode()))
    except EngineError as error:
        raise BenchmarkError(f"{server.name}: {error.args[-1]}") from error
    cpu_us = (server.cpu_us() - before) / messages
    deliver_rate: float = figures["deliver_rate"]
    return cpu_us, deliver_rate


if __name__ == "__main__":
    sys.exit(main())
