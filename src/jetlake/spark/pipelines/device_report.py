"""What the pipeline `devices` has to say about its tables: who is online, what changes, how fast commands are answered.

Everything is read from the tables without Spark. Devices go by the name they give themselves, where they have one.
"""

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from jetlake.spark.pipelines import charts
from jetlake.spark.pipelines.device_bus_report import bus, pending
from jetlake.spark.pipelines.device_figures import duration, named, names_of, quantile, share
from jetlake.spark.pipelines.sections import Fact, Facts, Part, Plot, ReportSection, Rows, Tables, Tone
from jetlake.spark.pipelines.summary import bucketed

if TYPE_CHECKING:
    import pyarrow

ROWS_SHOWN = 10
POINTS = 80
"""Of a line over time."""

LATENCY_MS_WARNING, LATENCY_MS_BAD = 1_000.0, 5_000.0
"""Of the slowest twentieth of the commands: what a person notices, and what a person gives up on."""

IN_SYNC_WARNING = 0.9
"""Share of the twins of connected devices that should be in sync."""

OUTCOMES = ("ok", "error", "canceled", "open", "expired")
TONES: dict[str, Tone] = {
    "ok": "good",
    "error": "bad",
    "canceled": "warning",
    "open": "",
    "expired": "bad",
    "IN_SYNC": "good",
    "SYNCING": "warning",
    "OUT_OF_SYNC": "bad",
    "DISABLED": "",
    "offline": "good",
    "takeover": "warning",
    "service": "bad",
}


def report(tables: Tables) -> list[ReportSection]:
    """Return the sections of the page."""
    names = names_of(tables)
    found = [
        overview(tables),
        changes(tables, names),
        commands(tables, names),
        pending(tables, names),
        sessions(tables, names),
        twins(tables, names),
        bus(tables, names),
        unread(tables),
    ]
    return [section for section in found if section is not None]


def overview(tables: Tables) -> ReportSection | None:
    """Return the numbers at a glance and how many devices were online."""
    there = tables.find("sessions", ["device_id", "started_at", "ended_at", "is_open"])
    resources = tables.find("resources", ["device_id", "is_removed"])
    if there is None and resources is None:
        return None
    online = set(there.filter(there["is_open"])["device_id"].to_pylist()) if there is not None else set()
    known = set(there["device_id"].to_pylist()) if there is not None else set()
    known |= set(resources["device_id"].to_pylist()) if resources is not None else set()
    removed = sum(resources["is_removed"].to_pylist()) if resources is not None else 0
    facts = [
        Fact("devices", f"{len(known):,}"),
        Fact("online", f"{len(online):,}", "good" if online else "bad", share(len(online), len(known))),
        Fact("resources", f"{(len(resources) if resources is not None else 0) - removed:,}"),
        *sync_fact(tables),
        *command_facts(tables),
        *bad_fact(tables),
    ]
    parts: list[Part] = [Facts(tuple(facts))]
    if there is not None:
        series = online_over_time(there, tables.now)
        parts.append(Plot("Devices online", charts.lines({"online": series}, "devices online over time")))
    return ReportSection("At a glance", tuple(parts))


def sync_fact(tables: Tables) -> list[Fact]:
    found = tables.find("twins", ["state", "is_open"])
    states = [row["state"] for row in found.to_pylist() if row["is_open"]] if found is not None else []
    if not states:
        return []
    in_sync = states.count("IN_SYNC")
    tone: Tone = "good" if in_sync >= IN_SYNC_WARNING * len(states) else "warning"
    return [Fact("twins in sync", share(in_sync, len(states)), tone, f"{in_sync:,} of {len(states):,} connected")]


def command_facts(tables: Tables) -> list[Fact]:
    found = tables.find("commands", ["outcome", "latency_ms", "valid_until"])
    if found is None:
        return []
    latencies = sorted(value for value in found["latency_ms"].to_pylist() if value is not None)
    slow = quantile(latencies, 0.95)
    tone: Tone = "bad" if slow > LATENCY_MS_BAD else "warning" if slow > LATENCY_MS_WARNING else "good"
    waiting = Counter(outcomes(found, tables.now))
    expired = f"; {waiting['expired']:,} have expired" if waiting["expired"] else ""
    note = f"of {len(found):,}{expired}"
    return [
        Fact("slowest 5 % take", duration(slow), tone if latencies else "", "from request to confirmation"),
        Fact("open commands", f"{waiting['open']:,}", "", note),
    ]


def bad_fact(tables: Tables) -> list[Fact]:
    found = tables.find("bad", ["reason"])
    count = 0 if found is None else len(found)
    return [Fact("unreadable events", f"{count:,}", "bad" if count else "good")]


def changes(tables: Tables, names: dict[str, str]) -> ReportSection | None:
    """Return how much changes, and where."""
    found = tables.find("changes", ["changed_at", "device_id", "href"])
    if found is None:
        return None
    over_time = bucketed(found, "changed_at", "href", "")
    by_device = Counter(found["device_id"].to_pylist()).most_common(ROWS_SHOWN)
    by_href = Counter(found["href"].to_pylist()).most_common(ROWS_SHOWN)
    parts: list[Part] = [
        Plot("Changes over time, by resource", charts.areas(over_time, "changes over time by resource")),
        Plot(
            "Busiest devices",
            charts.ranked(
                [(names.get(str(name), str(name)), float(count)) for name, count in by_device], "changes by device"
            ),
            half=True,
        ),
        Plot(
            "Busiest resources",
            charts.ranked([(str(name), float(count)) for name, count in by_href], "changes by resource"),
            half=True,
        ),
    ]
    newest = tables.find("resources", ["changed_at", "device_id", "href", "value", "status", "version"])
    if newest is not None:
        rows = sorted(newest.to_pylist(), key=lambda row: row["changed_at"], reverse=True)[:ROWS_SHOWN]
        parts.append(
            Rows(
                "What changed last",
                ("when", "device", "resource", "value", "status", "version"),
                [
                    (row["changed_at"], named(names, row), row["href"], row["value"], row["status"], row["version"])
                    for row in rows
                ],
                tones=(("OK", "good"), ("NOT_FOUND", "warning"), ("ERROR", "bad")),
            )
        )
    return ReportSection("Changes", tuple(parts))


def commands(tables: Tables, names: dict[str, str]) -> ReportSection | None:
    """Return what became of commands and how long that took."""
    wanted = ["requested_at", "device_id", "href", "kind", "outcome", "latency_ms", "valid_until", "requester"]
    found = tables.find("commands", wanted)
    if found is None:
        return None
    counted = Counter(outcomes(found, tables.now))
    shares = [(name, float(counted[name])) for name in OUTCOMES]
    rows = found.to_pylist()
    parts: list[Part] = [
        Plot("Outcomes", charts.shares(shares, "outcomes of commands", colours(OUTCOMES)), half=True),
        Plot("Answered within", charts.bars(latency_steps(rows), "commands by latency"), half=True),
        Plot("Time to confirmation, in ms", charts.lines(latency_over_time(rows), "latency over time")),
    ]
    slow = sorted((row for row in rows if row["latency_ms"] is not None), key=lambda row: -row["latency_ms"])
    columns = ("requested", "device", "resource", "kind", "outcome", "took", "by")
    parts.append(
        Rows(
            "Slowest commands",
            columns,
            [
                (
                    row["requested_at"],
                    named(names, row),
                    row["href"],
                    row["kind"],
                    row["outcome"],
                    duration(row["latency_ms"]),
                    row["requester"],
                )
                for row in slow[:ROWS_SHOWN]
            ],
            tones=tuple(TONES.items()),
        )
    )
    return ReportSection("Commands", tuple(parts))


def sessions(tables: Tables, names: dict[str, str]) -> ReportSection | None:
    """Return how connections ended, and who connects most often."""
    found = tables.find(
        "sessions", ["device_id", "connection_id", "started_at", "ended_at", "ended_by", "seconds", "protocol"]
    )
    if found is None:
        return None
    rows = found.to_pylist()
    ends = Counter(row["ended_by"] or "open" for row in rows)
    often = Counter(row["device_id"] for row in rows).most_common(ROWS_SHOWN)
    last = sorted(rows, key=lambda row: row["started_at"], reverse=True)[:ROWS_SHOWN]
    return ReportSection(
        "Sessions",
        (
            Plot(
                "How sessions ended",
                charts.shares([(name, float(count)) for name, count in ends.most_common()], "ends", colours(ends)),
                half=True,
            ),
            Plot(
                "Devices that reconnect most",
                charts.ranked([(names.get(name, name), float(count)) for name, count in often], "sessions by device"),
                half=True,
            ),
            Rows(
                "Newest sessions",
                ("started", "device", "connection", "protocol", "ended", "by", "lasted"),
                [
                    (
                        row["started_at"],
                        named(names, row),
                        row["connection_id"],
                        row["protocol"],
                        row["ended_at"],
                        row["ended_by"],
                        "" if row["seconds"] is None else duration(row["seconds"] * 1000),
                    )
                    for row in last
                ],
                tones=tuple(TONES.items()),
            ),
        ),
    )


def twins(tables: Tables, names: dict[str, str]) -> ReportSection | None:
    """Return how far the twins of connected devices are."""
    wanted = ["device_id", "connection_id", "state", "is_open", "sync_seconds", "seconds_to_in_sync", "changed_at"]
    found = tables.find("twins", wanted)
    if found is None:
        return None
    rows = found.to_pylist()
    states = Counter(row["state"] for row in rows if row["is_open"])
    waits = sorted(row["seconds_to_in_sync"] * 1000 for row in rows if row["seconds_to_in_sync"] is not None)
    lagging = sorted(
        (row for row in rows if row["is_open"] and row["state"] != "IN_SYNC"), key=lambda row: row["changed_at"]
    )
    facts = (
        Fact("usual time to in sync", duration(quantile(waits, 0.5))),
        Fact("slowest 5 % take", duration(quantile(waits, 0.95))),
        Fact("never in sync", f"{sum(row['seconds_to_in_sync'] is None for row in rows):,}", "", "connections"),
    )
    parts: list[Part] = [
        Facts(facts),
        Plot(
            "Twins of connected devices",
            charts.shares([(name, float(count)) for name, count in states.most_common()], "states", colours(states)),
        ),
    ]
    if lagging:
        parts.append(
            Rows(
                "Connected, and not in sync",
                ("since", "device", "connection", "state"),
                [
                    (row["changed_at"], named(names, row), row["connection_id"], row["state"])
                    for row in lagging[:ROWS_SHOWN]
                ],
                tones=tuple(TONES.items()),
            )
        )
    return ReportSection("Twins", tuple(parts))


def unread(tables: Tables) -> ReportSection | None:
    """Return why events could not be read."""
    found = tables.find("bad", ["reason", "subject", "sequence"])
    if found is None:
        return None
    rows = found.to_pylist()
    reasons = Counter(row["reason"] for row in rows)
    example = {row["reason"]: row for row in rows}
    return ReportSection(
        "Events that cannot be read",
        (
            Rows(
                "Reasons",
                ("events", "reason", "for example", "sequence"),
                [
                    (count, reason, example[reason]["subject"], example[reason]["sequence"])
                    for reason, count in reasons.most_common(ROWS_SHOWN)
                ],
            ),
        ),
    )


# Numbers.


def online_over_time(rows: "pyarrow.Table", now: datetime) -> list[tuple[float, float]]:
    """Return how many devices were online, from the first session to the last that happened."""
    steps: list[tuple[float, int]] = []
    for row in rows.to_pylist():
        steps.append((row["started_at"].timestamp(), 1))
        if row["ended_at"] is not None:
            steps.append((row["ended_at"].timestamp(), -1))
    steps.sort()
    last = min(now.timestamp(), steps[-1][0])
    first = steps[0][0]
    width = max((last - first) / POINTS, 1e-9)
    points, count, index = [], 0, 0
    for number in range(POINTS + 1):
        moment = first + width * number
        while index < len(steps) and steps[index][0] <= moment + 1e-6:
            count += steps[index][1]
            index += 1
        points.append((moment, float(count)))
    return points


def outcomes(rows: "pyarrow.Table", now: datetime) -> list[str]:
    """Return the outcome of each command; an open one whose time is over has expired."""
    limits = rows["valid_until"].to_pylist()
    pairs = zip(rows["outcome"].to_pylist(), limits, strict=True)
    return [
        "expired" if outcome == "open" and limit is not None and limit < now else outcome for outcome, limit in pairs
    ]


def latency_steps(rows: list[dict[str, Any]]) -> list[tuple[str, float]]:
    """Return how many commands were answered within which time."""
    limits = (("50 ms", 50), ("100 ms", 100), ("250 ms", 250), ("500 ms", 500), ("1 s", 1000), ("2 s", 2000))
    steps = [*limits, ("5 s", 5000), ("later", float("inf"))]
    counts = dict.fromkeys((name for name, _ in steps), 0.0)
    for row in rows:
        if row["latency_ms"] is not None:
            counts[next(name for name, limit in steps if row["latency_ms"] <= limit)] += 1
    return list(counts.items())


def latency_over_time(rows: list[dict[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    """Return the usual and the slow latency over time."""
    answered = sorted((row["requested_at"], row["latency_ms"]) for row in rows if row["latency_ms"] is not None)
    if not answered:
        return {}
    first, last = answered[0][0], answered[-1][0]
    width = max((last - first) / 40, timedelta(seconds=1))
    buckets: dict[int, list[float]] = {}
    for moment, latency in answered:
        buckets.setdefault((moment - first) // width, []).append(latency)
    series: dict[str, list[tuple[float, float]]] = {"half of them": [], "95 % of them": []}
    for number, latencies in sorted(buckets.items()):
        latencies.sort()
        at = (first + number * width).timestamp()
        series["half of them"].append((at, quantile(latencies, 0.5)))
        series["95 % of them"].append((at, quantile(latencies, 0.95)))
    return series


def colours(names: "tuple[str, ...] | Counter[str]") -> dict[str, str]:
    """Return the colours of names that mean something."""
    return {name: charts.TONES[TONES[name]] for name in names if name in TONES}
