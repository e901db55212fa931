"""What is measured of consumers, and the goals, as data.

Most read one stream that is filled once: messages of 128 bytes on a thousand subjects, and one message in a million on
a subject that is rare. `fetch` has one request under way at a time, `consume` several, so that the server is never
idle.
"""

from dataclasses import dataclass
from typing import Literal

from benchmarks.workloads import CPU, CPU_GROWTH, CREATE, FIRST, KEPT, P50, P99, RATE, Goal

Kind = Literal["fetch", "replay", "idle consumers", "create", "filter all", "filter sparse", "start"]

MESSAGES = 10_000_000
QUICK_MESSAGES = 1_000_000
RARE_EVERY = 1_000_000
"""What the stream has, and how often the rare subject comes: always as the last of so many."""

SUBJECTS = 1_000
WIDE_SUBJECTS = 100_000
WIDE_MESSAGES = 1_000_000
"""Another stream, for the filter that everything passes."""

IDLE_CONSUMERS = 1_000
CREATED_CONSUMERS = 1_000

ACKNOWLEDGEMENTS_PENDING_MAX = 20_000
"""More than any batch, so that no request waits for acknowledgements of its own messages."""


@dataclass(frozen=True)
class ConsumerLoad:
    """How a consumer is read, or how consumers are made."""

    batch: int = 5_000
    in_flight: int = 2
    acknowledge: Literal["none", "read"] = "none"
    start: Literal["sequence", "time"] = "sequence"
    filter_subject: str = ""


@dataclass(frozen=True)
class ConsumerWorkload:
    """One row of the report."""

    name: str
    title: str
    kind: Kind
    metrics: tuple[str, ...]
    goals: tuple[Goal, ...]
    load: ConsumerLoad = ConsumerLoad()


LOAD_METRICS = (RATE, CPU, P50, P99)
MUCH_FASTER = (Goal(RATE, "at least", 3.0), Goal(CPU, "at most", 0.35))
SOON = 10.0
"""Milliseconds in which a position in many messages is found."""

CONSUMED_AT_ONCE = {1: 64, 100: 4, 5_000: 2}
"""Requests under way, by the size of a batch: enough for the server to have the next when it has filled one."""


def _fetch(verb: Literal["fetch", "consume"], batch: int, acknowledge: Literal["none", "read"]) -> ConsumerWorkload:
    goals = MUCH_FASTER if batch > 1 else (Goal(RATE, "at least", 1.3),)
    in_flight = 1 if verb == "fetch" else CONSUMED_AT_ONCE[batch]
    policy = "none" if acknowledge == "none" else "explicit"
    title = f"{verb}, ack {policy}, batch {batch:,}" + (f", {in_flight} under way" if in_flight > 1 else "")
    load = ConsumerLoad(batch, in_flight, acknowledge)
    return ConsumerWorkload(f"{verb}-{policy}-{batch}", title, "fetch", LOAD_METRICS, goals, load)


def _create(in_flight: int) -> ConsumerWorkload:
    load = ConsumerLoad(in_flight=in_flight)
    title = f"durable create, {in_flight} in flight"
    return ConsumerWorkload(f"create-{in_flight}", title, "create", LOAD_METRICS, (Goal(RATE, "at least", 5.0),), load)


def _sparse(name: str, title: str, filter_subject: str) -> ConsumerWorkload:
    load = ConsumerLoad(filter_subject=filter_subject)
    return ConsumerWorkload(
        name, title, "filter sparse", (CREATE, FIRST), (Goal(FIRST, "at most", SOON, "value"),), load
    )


def _start(at: Literal["sequence", "time"]) -> ConsumerWorkload:
    goals = (Goal(CREATE, "at most", SOON, "value"),)
    title = f"create at a {at} amid the stream"
    return ConsumerWorkload(f"start-{at}", title, "start", (CREATE, FIRST), goals, ConsumerLoad(start=at))


RARE_SUBJECT = "bench.rare.one"

CONSUMER_WORKLOADS: tuple[ConsumerWorkload, ...] = (
    *(_fetch("fetch", batch, "none") for batch in CONSUMED_AT_ONCE),
    *(_fetch("fetch", batch, "read") for batch in CONSUMED_AT_ONCE),
    *(_fetch("consume", batch, "none") for batch in CONSUMED_AT_ONCE),
    *(_fetch("consume", batch, "read") for batch in CONSUMED_AT_ONCE),
    ConsumerWorkload(
        "replay", "ordered replay of the whole stream", "replay", (RATE, CPU), (Goal(RATE, "at least", 3.0),)
    ),
    ConsumerWorkload(
        "idle-consumers",
        f"publish beside {IDLE_CONSUMERS:,} idle consumers",
        "idle consumers",
        (RATE, CPU, KEPT, CPU_GROWTH),
        (Goal(KEPT, "at least", 0.95, "value"),),
    ),
    _create(1),
    _create(16),
    ConsumerWorkload(
        "filter-all",
        f"a filter that matches all of {WIDE_SUBJECTS:,} subjects",
        "filter all",
        (RATE, CPU, KEPT),
        (Goal(KEPT, "at least", 0.9, "value"),),
        ConsumerLoad(filter_subject="wide.*"),
    ),
    _sparse("sparse-literal", "a filter for one message in 1,000,000, literal", RARE_SUBJECT),
    _sparse("sparse-wildcard", "a filter for one message in 1,000,000, wildcard", "bench.rare.*"),
    _start("sequence"),
    _start("time"),
)


def named(names: list[str]) -> list[ConsumerWorkload]:
    """Return the workloads of these names, all of them if none is given. Raises `ValueError` for an unknown name."""
    known = {workload.name: workload for workload in CONSUMER_WORKLOADS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"no workload is called {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in names] if names else list(CONSUMER_WORKLOADS)
