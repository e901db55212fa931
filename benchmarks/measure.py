"""One workload, once, at one server: its metrics by name."""

import json
from typing import Any, Self

from benchmarks import workloads
from benchmarks.cold_start import start_once_ms
from benchmarks.idle_memory import bytes_per_connection
from benchmarks.servers import ServerProcess
from benchmarks.workloads import IDLE_CONNECTIONS, IDLE_SUBSCRIPTIONS, Load, Workload
from jetlake._engine import run_load

Metrics = dict[str, float]

FIRST_RUN_S = 0.2
"""The run that finds out how many messages fill the time of a repeat; it also warms the server up."""

FIRST_RUN_MESSAGES = 200
MESSAGES_MAX = 50_000_000


class Bench:
    """The measurements of one workload. Its repeats share running servers, except where each needs a new one."""

    def __init__(self, workload: Workload, commands: dict[str, list[str]], seconds: float, open_files_max: int) -> None:
        self.workload = workload
        self._commands = commands
        self._seconds = seconds
        self._open_files_max = open_files_max
        self._running: dict[str, ServerProcess] = {}
        self._messages: dict[str, int] = {}

    def __enter__(self) -> Self:
        if self.workload.load is not None:
            for name, command in self._commands.items():
                self._running[name] = ServerProcess(name, command).__enter__()
                self._messages[name] = self._calibrate(self._running[name], self.workload.load)
        elif self.workload.kind == "cold start":
            # The very first start reads everything from disk, which is another measurement.
            for command in self._commands.values():
                start_once_ms(command)
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._running.values():
            server.__exit__()

    def measure(self, name: str) -> Metrics:
        """Measure once."""
        match self.workload.kind:
            case "load":
                assert self.workload.load is not None
                return self._load(name, self.workload.load)
            case "flatness":
                return self._flatness(name)
            case "idle memory":
                with ServerProcess(name, self._commands[name]) as server:
                    return {workloads.MEMORY: bytes_per_connection(server, IDLE_CONNECTIONS, self._open_files_max)}
            case "cold start":
                return {workloads.COLD_START: start_once_ms(self._commands[name])}

    def _calibrate(self, server: ServerProcess, load: Load) -> int:
        """Return how many messages per publisher fill the time of a repeat at this server."""
        if load.rate > 0:
            generate(server, load, messages=max(1, int(load.rate * FIRST_RUN_S)))
            return max(1, int(load.rate * self._seconds))
        messages = FIRST_RUN_MESSAGES
        while True:
            seconds = generate(server, load, messages)["seconds"]
            if seconds >= FIRST_RUN_S or messages >= MESSAGES_MAX:
                return max(1, min(MESSAGES_MAX, int(messages * self._seconds / seconds)))
            messages = int(messages * min(10.0, 1.5 * FIRST_RUN_S / max(seconds, 1e-6)))

    def _load(self, name: str, load: Load, idle_subscriptions: int = 0) -> Metrics:
        server = self._running[name]
        cpu_before = server.cpu_us()
        figures = generate(server, load, self._messages[name], idle_subscriptions)
        cpu_us = server.cpu_us() - cpu_before
        rate = figures["publish_rate"] if load.workload == "publish" else figures["deliver_rate"]
        metrics = {workloads.RATE: rate, workloads.CPU: cpu_us / figures["published"]}
        if figures["latency_us"] is not None:
            metrics |= {workloads.P50: figures["latency_us"]["p50"], workloads.P99: figures["latency_us"]["p99"]}
        return metrics

    def _flatness(self, name: str) -> Metrics:
        load = self.workload.load
        assert load is not None
        cpu = [self._load(name, load, count)[workloads.CPU] for count in IDLE_SUBSCRIPTIONS]
        metrics = {f"{workloads.CPU}_{count}": value for count, value in zip(IDLE_SUBSCRIPTIONS, cpu, strict=True)}
        return metrics | {workloads.GROWTH: cpu[-1] / cpu[0]}


def generate(server: ServerProcess, load: Load, messages: int, idle_subscriptions: int = 0) -> dict[str, Any]:
    """Run the native load generator and return its figures."""
    plan = {
        "url": server.address,
        "workload": load.workload,
        "publishers": load.publishers,
        "subscribers": load.subscribers,
        "payload_bytes": load.payload_bytes,
        "messages": messages,
        "subject": "bench",
        "user": None,
        "password": None,
        "token": None,
        "rate": load.rate,
        "idle_subscriptions": idle_subscriptions,
    }
    figures: dict[str, Any] = json.loads(run_load(json.dumps(plan).encode()))
    return figures
