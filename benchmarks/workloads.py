"""What is measured, and the goals, as data.

A metric of a goal is either compared with nats-server's in the same repeat (`ratio`) or taken as it is (`value`).
"""

from dataclasses import dataclass
from typing import Literal, Protocol

RATE = "rate"
"""Messages per second: delivered, acknowledged or answered, or published where nobody listens."""

CPU = "cpu_us"
"""Microseconds of CPU that the server spent per message published."""

P50 = "p50_us"
P99 = "p99_us"
GROWTH = "growth"
"""CPU per message with the most idle subscriptions, as a multiple of that with the fewest."""

MEMORY = "bytes_per_connection"
COLD_START = "cold_start_ms"

MEMORY_MB = "memory_mb"
OPEN = "open_ms"
STREAM_BYTES = "bytes_per_stream"

KEPT = "kept"
"""The rate with something beside or in the way, as a part of the rate without it, at the same server."""

CPU_GROWTH = "cpu_growth"
CREATE = "create_ms"
FIRST = "first_ms"

UNITS = {
    RATE: "messages/s",
    CPU: "µs of server CPU per message",
    P50: "µs, median latency",
    P99: "µs, 99th percentile of latency",
    GROWTH: "times the CPU per message of 1 idle subscription, with 10,000",
    MEMORY: "bytes of memory per idle connection",
    COLD_START: "ms from start to first PONG",
    MEMORY_MB: "MB of memory after the load",
    OPEN: "ms from start to the first answer about the stream",
    STREAM_BYTES: "bytes of memory per idle stream",
    KEPT: "part of the rate without",
    CPU_GROWTH: "times the CPU per message without",
    CREATE: "ms until a new consumer is answered",
    FIRST: "ms from asking for a new consumer to its first message",
}

HIGHER_IS_BETTER = frozenset({RATE})

IDLE_SUBSCRIPTIONS = (1, 100, 10_000)
"""On subjects that get no message, for the workload `flatness`."""

IDLE_CONNECTIONS = 5_000


@dataclass(frozen=True)
class Goal:
    """A bound on the median of a metric."""

    metric: str
    relation: Literal["at least", "at most"]
    bound: float
    of: Literal["ratio", "value"] = "ratio"

    def __str__(self) -> str:
        return f"{'ratio ' if self.of == 'ratio' else ''}{self.relation} {self.bound:,g}"

    def is_met_by(self, median: float) -> bool:
        return median >= self.bound if self.relation == "at least" else median <= self.bound


class Measured(Protocol):
    """What a report says of a workload: a row per metric."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def metrics(self) -> tuple[str, ...]: ...
    @property
    def goals(self) -> tuple[Goal, ...]: ...


@dataclass(frozen=True)
class Load:
    """One plan of the native load generator; how many messages is found out by a first short run."""

    workload: Literal["publish", "pubsub", "request"]
    publishers: int = 1
    subscribers: int = 1
    payload_bytes: int = 128
    rate: int = 0
    """Messages per second and publisher; 0 is as fast as it goes."""


@dataclass(frozen=True)
class Workload:
    """One row of the report."""

    name: str
    title: str
    kind: Literal["load", "flatness", "idle memory", "cold start"]
    metrics: tuple[str, ...]
    goals: tuple[Goal, ...]
    load: Load | None = None


MUCH_FASTER = (Goal(RATE, "at least", 3.0), Goal(CPU, "at most", 0.35))
FASTER = (Goal(RATE, "at least", 1.5),)
NO_LATER = (Goal(P99, "at most", 1.0),)

PUBLISH_METRICS = (RATE, CPU)
LOAD_METRICS = (RATE, CPU, P50, P99)


def _publish(size: int) -> Workload:
    load = Load("publish", subscribers=0, payload_bytes=size)
    return Workload(f"publish-{size}", f"publish, nobody listens, {size} B", "load", PUBLISH_METRICS, (), load)


def _pubsub(publishers: int, subscribers: int, size: int, goals: tuple[Goal, ...]) -> Workload:
    load = Load("pubsub", publishers, subscribers, size)
    shape = f"{publishers} → {subscribers}"
    return Workload(
        f"{publishers}-{subscribers}-{size}", f"{shape}, {size:,} B", "load", LOAD_METRICS, goals + NO_LATER, load
    )


def _request(clients: int) -> Workload:
    load = Load("request", publishers=clients, subscribers=1, payload_bytes=16)
    title = f"request and reply, {clients} client{'s' if clients > 1 else ''}, 16 B"
    return Workload(f"request-{clients}", title, "load", LOAD_METRICS, FASTER + NO_LATER, load)


WORKLOADS: tuple[Workload, ...] = (
    _publish(16),
    _publish(128),
    _pubsub(1, 1, 16, MUCH_FASTER),
    _pubsub(1, 1, 128, MUCH_FASTER),
    _pubsub(1, 1, 4096, FASTER),
    _pubsub(1, 4, 16, MUCH_FASTER),
    _pubsub(1, 4, 128, MUCH_FASTER),
    _pubsub(4, 1, 128, FASTER),
    _request(1),
    _request(8),
    _request(64),
    Workload(
        "paced",
        "1 → 1, 128 B, 10,000 messages/s",
        "load",
        (CPU, P50, P99),
        NO_LATER,
        Load("pubsub", payload_bytes=128, rate=10_000),
    ),
    Workload(
        "flatness",
        "1 → 1, 128 B, beside idle subscriptions",
        "flatness",
        (*(f"{CPU}_{count}" for count in IDLE_SUBSCRIPTIONS), GROWTH),
        # What two runs of the same load differ by on a machine that is shared with its clients.
        (Goal(GROWTH, "at most", 1.15, "value"),),
        Load("pubsub", payload_bytes=128),
    ),
    Workload(
        "idle-memory",
        f"{IDLE_CONNECTIONS:,} idle connections",
        "idle memory",
        (MEMORY,),
        (Goal(MEMORY, "at most", 16_384, "value"),),
    ),
    Workload(
        "cold-start",
        "from start to first PONG",
        "cold start",
        (COLD_START,),
        (Goal(COLD_START, "at most", 150, "value"),),
    ),
)


def named(names: list[str]) -> list[Workload]:
    """Return the workloads of these names, all of them if none is given. Raises `ValueError` for an unknown name."""
    known = {workload.name: workload for workload in WORKLOADS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"no workload is called {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in names] if names else list(WORKLOADS)
