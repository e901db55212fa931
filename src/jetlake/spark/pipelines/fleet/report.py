"""The page about the fleet: how many nodes are up, what is wrong, what changed, who holds the governors.

Everything is counted by the time of the events, and "now" is the newest of them: a fleet that was simulated or
replayed is shown as it was then.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jetlake.spark.pipelines import charts
from jetlake.spark.pipelines.sections import Fact, Facts, Plot, ReportSection, Rows, Tables, Tone

if TYPE_CHECKING:
    import pyarrow

SILENT_S = 3900
"""A node that is up says so every half an hour; one that missed two of those may be gone."""

POINTS = 72
"""Of a plot over time."""

ROWS_SHOWN = 12

STATUSES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
STATUS_COLOURS = {
    "OK": charts.TONES["good"],
    "WARNING": charts.TONES["warning"],
    "CRITICAL": charts.TONES["bad"],
    "UNKNOWN": "#9a63d2",
}
STATUS_TONES: tuple[tuple[str, Tone], ...] = (
    ("OK", "good"),
    ("WARNING", "warning"),
    ("CRITICAL", "bad"),
    ("UNKNOWN", "warning"),
)
STATE_COLOURS = {"up": charts.TONES["good"], "down": charts.TONES[""], "silent": charts.TONES["bad"]}


def report(tables: Tables) -> list[ReportSection]:
    """Return the sections of the page."""
    nodes = tables.find("nodes")
    if nodes is None:
        return []
    rows = nodes.to_pylist()
    now = max((row["last_event_at"] for row in rows if row["last_event_at"]), default=tables.now)
    # What a node that is down said last about its checks is not how they are.
    down = {row["identity"] for row in rows if row["state"] == "down"}
    checks = [row for row in rows_of(tables.find("checks")) if row["identity"] not in down]
    sections = [overview(rows, checks, now, tables)]
    sections += availability(rows, rows_of(tables.find("sessions")), now)
    sections += check_section(checks, rows_of(tables.find("check_changes")), now)
    sections += machine_section(rows_of(tables.find("machines")), rows_of(tables.find("transitions")), now)
    sections += governor_section(rows_of(tables.find("leases")), rows, now)
    sections += inventory_section(rows, tables)
    return sections


def overview(nodes: list[dict[str, Any]], checks: list[dict[str, Any]], now: datetime, tables: Tables) -> ReportSection:
    """Return the numbers at the top."""
    states = Counter(state_of(row, now) for row in nodes)
    statuses = Counter(row["status"] for row in checks)
    flapping = sum(bool(row["flapping"]) for row in checks)
    facts = [
        Fact("nodes", f"{len(nodes):,}"),
        Fact("up", f"{states['up']:,}", "good"),
        Fact("down", f"{states['down']:,}"),
        Fact("silent", f"{states['silent']:,}", "bad" if states["silent"] else "good", "up, but not heard of"),
        Fact("critical checks", f"{statuses['CRITICAL']:,}", "bad" if statuses["CRITICAL"] else "good"),
        Fact("warnings", f"{statuses['WARNING']:,}", "warning" if statuses["WARNING"] else "good"),
        Fact("flapping checks", f"{flapping:,}", "warning" if flapping else "good"),
    ]
    bad = tables.find("bad", ["reason"])
    if bad is not None:
        facts.append(Fact("messages set aside", f"{len(bad):,}", "warning"))
    return ReportSection(f"The fleet at {now:%Y-%m-%d %H:%M:%S} UTC", (Facts(tuple(facts)),))


def availability(nodes: list[dict[str, Any]], sessions: list[dict[str, Any]], now: datetime) -> list[ReportSection]:
    """Return who is up, and who was."""
    states = Counter(state_of(row, now) for row in nodes)
    shares = [(name, float(states[name])) for name in ("up", "silent", "down", "unknown") if states[name]]
    parts: list[Any] = [Plot("Nodes now", charts.shares(shares, "nodes by state", STATE_COLOURS), half=True)]
    versions = Counter(row["version"] or "unknown" for row in nodes)
    parts.append(Plot("Versions", charts.ranked([*versions.items()], "nodes by version"), half=True))
    up = occupied([(row["started_at"], row["ended_at"]) for row in sessions], now)
    parts.append(Plot("Nodes up over time", charts.lines({"up": up}, "nodes up over time")))
    lost = sorted((row for row in sessions if row["end"] == "lost"), key=lambda row: row["ended_at"], reverse=True)
    if lost:
        shown = [(row["identity"], row["started_at"], row["ended_at"], row["version"]) for row in lost[:ROWS_SHOWN]]
        parts.append(
            Rows(
                "Sessions that ended without a shutdown",
                ("node", "up since", "last heard", "version"),
                shown,
                note=f"{len(lost):,} in all; the newest first",
            )
        )
    return [ReportSection("Availability", tuple(parts))]


def check_section(checks: list[dict[str, Any]], changes: list[dict[str, Any]], now: datetime) -> list[ReportSection]:
    """Return what is wrong, and what changes all the time."""
    if not checks:
        return []
    statuses = Counter(row["status"] for row in checks)
    order = [*STATUSES, *sorted(set(statuses) - set(STATUSES))]
    shares = [(status, float(statuses[status])) for status in order if statuses[status]]
    names = Counter(row["check"] for row in checks if row["status"] != "OK")
    parts: list[Any] = [
        Plot("Checks now", charts.shares(shares, "checks by status", STATUS_COLOURS), half=True),
        Plot("Not OK, by check", charts.ranked([*names.items()], "checks that are not OK by name"), half=True),
    ]
    bad = [row for row in changes if row["changed"] and row["to_status"] != "OK"]
    by_status = {
        status: counted([row["changed_at"] for row in bad if row["to_status"] == status], changes, "changed_at", now)
        for status in STATUSES[1:]
    }
    over_time = charts.areas(
        {name: points for name, points in by_status.items() if points}, "new problems", STATUS_COLOURS
    )
    parts.append(Plot("Checks that went wrong over time", over_time))
    failing = sorted((row for row in checks if row["status"] != "OK"), key=lambda row: (severity(row), row["since"]))
    parts.append(
        Rows(
            "Not OK for the longest time",
            ("node", "check", "status", "since", "last run", "runs", "changes"),
            [
                (
                    row["identity"],
                    row["check"],
                    row["status"],
                    row["since"],
                    row["checked_at"],
                    row["runs"],
                    row["changes"],
                )
                for row in failing[:ROWS_SHOWN]
            ],
            note=f"{len(failing):,} of {len(checks):,} checks are not OK",
            tones=STATUS_TONES,
        )
    )
    flapping = sorted((row for row in checks if row["flapping"]), key=lambda row: -row["changes"])
    if flapping:
        parts.append(
            Rows(
                "Flapping",
                ("node", "check", "status", "changes of the last 16 runs", "changes", "runs"),
                [
                    (row["identity"], row["check"], row["status"], row["recent_changes"], row["changes"], row["runs"])
                    for row in flapping[:ROWS_SHOWN]
                ],
                note=f"{len(flapping):,} checks change their status all the time",
                tones=STATUS_TONES,
            )
        )
    return [ReportSection("Checks", tuple(parts))]


def machine_section(machines: list[dict[str, Any]], steps: list[dict[str, Any]], now: datetime) -> list[ReportSection]:
    """Return what autonomous agents do."""
    if not machines:
        return []
    states = Counter(f"{row['machine']}: {row['state'] or 'no transition yet'}" for row in machines)
    ends = sorted({row["to_state"] for row in steps if row["to_state"]})
    series = {
        state: counted([row["at"] for row in steps if row["to_state"] == state], steps, "at", now) for state in ends[:8]
    }
    runs = sum(row["runs"] for row in machines)
    failed = sum(row["failed_runs"] for row in machines)
    facts = Facts(
        (
            Fact("machines", f"{len(machines):,}"),
            Fact("transitions", f"{sum(row['transitions'] for row in machines):,}"),
            Fact("runs", f"{runs:,}"),
            Fact("failed runs", f"{failed:,}", "warning" if failed else "good", f"{failed / max(runs, 1):.1%} of all"),
        )
    )
    worst = sorted((row for row in machines if row["failed_runs"]), key=lambda row: -row["failed_runs"])
    parts: list[Any] = [
        facts,
        Plot("States now", charts.ranked([*states.items()], "machines by state"), half=True),
        Plot(
            "Transitions over time, by the state they lead to", charts.lines(series, "transitions over time"), half=True
        ),
    ]
    if worst:
        parts.append(
            Rows(
                "Most failed runs",
                ("node", "machine", "state", "since", "runs", "failed"),
                [
                    (row["identity"], row["machine"], row["state"], row["since"], row["runs"], row["failed_runs"])
                    for row in worst[:ROWS_SHOWN]
                ],
            )
        )
    return [ReportSection("Machines", tuple(parts))]


def governor_section(leases: list[dict[str, Any]], nodes: list[dict[str, Any]], now: datetime) -> list[ReportSection]:
    """Return who holds the governors, over time."""
    if not leases:
        return []
    names = sorted({row["governor"] for row in leases})
    series = {
        name: occupied(
            [(row["entered_at"], row["left_at"] or row["abandoned_at"]) for row in leases if row["governor"] == name],
            now,
        )
        for name in names[:8]
    }
    held = [row for row in leases if row["entered_at"] and not row["left_at"] and not row["abandoned_at"]]
    abandoned = sum(bool(row["abandoned_at"]) for row in leases)
    refused = sum(row["governor_refusals"] for row in nodes)
    facts = Facts(
        (
            Fact("slots held", f"{len(held):,}"),
            Fact("slots taken so far", f"{len(leases):,}"),
            Fact("never given back", f"{abandoned:,}", "warning" if abandoned else "good", "the node started again"),
            Fact("refused", f"{refused:,}", "warning" if refused else "good", "no slot was free in time"),
        )
    )
    return [
        ReportSection("Governors", (facts, Plot("Slots held over time", charts.lines(series, "slots held over time"))))
    ]


def inventory_section(nodes: list[dict[str, Any]], tables: Tables) -> list[ReportSection]:
    """Return what was registered and what changed."""
    history = tables.find("inventory_history", ["identity", "file", "file_changed_at", "registered_at", "size_bytes"])
    if history is None:
        return []
    newest = history.sort_by([("registered_at", "descending")]).slice(0, ROWS_SHOWN).to_pylist()
    registered = sum(bool(row["registrations"]) for row in nodes)
    facts = Facts(
        (
            Fact("nodes that registered", f"{registered:,}", "", f"of {len(nodes):,}"),
            Fact("registrations", f"{sum(row['registrations'] for row in nodes):,}"),
            Fact("inventories", f"{len(history):,}", "", "those that were replaced too"),
        )
    )
    rows = Rows(
        "Newest inventories",
        ("node", "registered", "file", "changed", "bytes"),
        [
            (row["identity"], row["registered_at"], row["file"], row["file_changed_at"], row["size_bytes"])
            for row in newest
        ],
    )
    return [ReportSection("Inventory", (facts, rows))]


def state_of(node: dict[str, Any], now: datetime) -> str:
    """Return up, down, silent or unknown."""
    state = str(node["state"])
    if state == "up" and node["last_event_at"] and (now - node["last_event_at"]).total_seconds() > SILENT_S:
        return "silent"
    return state


def severity(check: dict[str, Any]) -> int:
    return {"CRITICAL": 0, "UNKNOWN": 1, "WARNING": 2}.get(str(check["status"]), 3)


def rows_of(table: "pyarrow.Table | None") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [] if table is None else table.to_pylist()
    return found


def grid_of(first: float, last: float) -> list[float]:
    """Return the moments of a plot."""
    step = (last - first) / POINTS
    return [first + step * index for index in range(POINTS + 1)] if step > 0 else [first]


def occupied(spans: Sequence[tuple[datetime | None, datetime | None]], now: datetime) -> list[tuple[float, float]]:
    """Return how many spans are open at each moment; one without an end is open until now."""
    begun = sorted(start.timestamp() for start, _ in spans if start is not None)
    ended = sorted(end.timestamp() for start, end in spans if start is not None and end is not None)
    if not begun:
        return []
    points = []
    opened = closed = 0
    for moment in grid_of(begun[0], now.timestamp()):
        while opened < len(begun) and begun[opened] <= moment:
            opened += 1
        while closed < len(ended) and ended[closed] <= moment:
            closed += 1
        points.append((moment, float(opened - closed)))
    return points


def counted(
    moments: Sequence[datetime], all_rows: Sequence[dict[str, Any]], column: str, now: datetime
) -> list[tuple[float, float]]:
    """Return how many moments fall into each part of the time that all rows span."""
    if not all_rows:
        return []
    grid = grid_of(min(row[column] for row in all_rows).timestamp(), now.timestamp())
    step = grid[1] - grid[0] if len(grid) > 1 else 1.0
    begins = grid[:-1] or grid
    counts = [0.0] * len(begins)
    for moment in moments:
        counts[min(max(int((moment.timestamp() - grid[0]) // step), 0), len(begins) - 1)] += 1
    return list(zip(begins, counts, strict=True))
