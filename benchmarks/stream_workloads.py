"""What is measured of streams, and the goals, as data.

Our server is durable in all of them: it acknowledges a message when it is on the disk. nats-server is measured as it
comes, which writes to the disk every two minutes, or with `sync_interval: always`, where a workload says so.
"""

from dataclasses import dataclass
from typing import Literal

from benchmarks.workloads import CPU, MEMORY_MB, OPEN, P50, P99, RATE, STREAM_BYTES, Goal

Kind = Literal["store", "direct get", "key value", "nats bench", "open after kill", "idle streams"]

Reference = Literal["default", "always"]

KEYS = 1_000_000
KEY_VALUE_MESSAGES = 2 * KEYS
"""Every key is made, and then every key is overwritten."""

DIRECT_GET_MESSAGES = 500_000
"""What the stream has that is read from."""

OPEN_MESSAGES = 10_000_000
QUICK_OPEN_MESSAGES = 2_000_000
OPEN_SUBJECTS = 1_000

IDLE_STREAMS = 1_000


@dataclass(frozen=True)
class StreamLoad:
    """One plan of the native load generator; how many messages is found out by a first short run."""

    connections: int = 1
    in_flight: int = 1_000
    payload_bytes: int = 128
    subjects: int = 1
    atomic_batch: int = 1
    storage: Literal["file", "memory"] = "file"


@dataclass(frozen=True)
class StreamWorkload:
    """One row of the report."""

    name: str
    title: str
    kind: Kind
    metrics: tuple[str, ...]
    goals: tuple[Goal, ...]
    load: StreamLoad = StreamLoad()
    against: Reference = "default"


LOAD_METRICS = (RATE, CPU, P50, P99)


def _store(
    name: str, title: str, load: StreamLoad, ratio: float, *more: Goal, against: Reference = "default"
) -> StreamWorkload:
    goals = (Goal(RATE, "at least", ratio), *more)
    return StreamWorkload(name, title, "store", LOAD_METRICS, goals, load, against)


STREAM_WORKLOADS: tuple[StreamWorkload, ...] = (
    _store("store", "1 connection, 1,000 in flight, 128 B", StreamLoad(), 3.0, Goal(CPU, "at most", 0.25)),
    _store("store-16", "16 connections, 64 in flight each, 128 B", StreamLoad(16, 64), 3.0),
    _store("store-256", "256 connections, 64 in flight each, 128 B", StreamLoad(256, 64), 3.0),
    _store("store-1k", "1 connection, 1,000 in flight, 1 KB", StreamLoad(payload_bytes=1_024), 1.5),
    _store("always", "1 connection, 1,000 in flight, 128 B; always", StreamLoad(), 150.0, against="always"),
    _store("always-1", "1 connection, 1 in flight, 128 B; always", StreamLoad(in_flight=1), 1.2, against="always"),
    _store("memory", "memory, 1 connection, 1,000 in flight, 128 B", StreamLoad(storage="memory"), 4.0),
    _store("atomic", "atomic batches of 500, 1,000 in flight, 128 B", StreamLoad(atomic_batch=500), 3.0),
    StreamWorkload(
        "key-value",
        f"{KEYS:,} keys made and overwritten, 128 B",
        "key value",
        (*LOAD_METRICS, MEMORY_MB),
        (Goal(RATE, "at least", 2.0), Goal(MEMORY_MB, "at most", 0.5)),
        StreamLoad(subjects=KEYS),
    ),
    StreamWorkload(
        "direct-get",
        "direct get, 4 connections, 64 in flight each, 128 B",
        "direct get",
        LOAD_METRICS,
        (Goal(RATE, "at least", 2.0),),
        StreamLoad(4, 64),
    ),
    StreamWorkload(
        "nats-bench",
        "`nats bench js pub async`, 1,000 in flight, 128 B",
        "nats bench",
        (RATE, CPU),
        (Goal(RATE, "at least", 1.3),),
    ),
    StreamWorkload(
        "open",
        "opening many messages after a kill",
        "open after kill",
        (OPEN,),
        (Goal(OPEN, "at most", 0.5),),
        StreamLoad(subjects=OPEN_SUBJECTS),
    ),
    StreamWorkload(
        "idle-streams",
        f"{IDLE_STREAMS:,} idle streams",
        "idle streams",
        (STREAM_BYTES,),
        (Goal(STREAM_BYTES, "at most", 20_480, "value"),),
    ),
)


def named(names: list[str]) -> list[StreamWorkload]:
    """Return the workloads of these names, all of them if none is given. Raises `ValueError` for an unknown name."""
    known = {workload.name: workload for workload in STREAM_WORKLOADS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"no workload is called {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in names] if names else list(STREAM_WORKLOADS)
