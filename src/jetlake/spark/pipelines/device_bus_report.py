"""What the pipeline `devices` has to say about commands that wait for an answer, and about the bus itself.

Invariant: whatever depends on the time of day, such as what has expired, is worked out here, from the moment that the
report is about.
"""

from datetime import datetime
from typing import Any

from jetlake.spark.pipelines import charts
from jetlake.spark.pipelines.device_figures import duration, named
from jetlake.spark.pipelines.sections import Fact, Facts, Part, Plot, ReportSection, Rows, Tables, Tone

ROWS_SHOWN = 10

FAULTS: dict[str, Tone] = {"missing": "bad", "duplicates": "warning", "reordered": "warning", "undecodable": "bad"}
"""Columns that count what the bus did wrong, and how that is meant."""


def pending(tables: Tables, names: dict[str, str]) -> ReportSection | None:
    """Return which resources owe an answer; None if none does."""
    found = tables.find("pending", ["device_id", "href", "open", "oldest_requested_at", "valid_until"])
    rows = [row for row in found.to_pylist() if row["open"]] if found is not None else []
    if not rows:
        return None
    expired = sum(expired_of(row, tables.now) for row in rows)
    oldest = min(row["oldest_requested_at"] for row in rows)
    facts = (
        Fact("open commands", f"{sum(row['open'] for row in rows):,}"),
        Fact("expired", f"{expired:,}", "bad" if expired else "good"),
        Fact("oldest", age(oldest, tables.now)),
    )
    longest = sorted(rows, key=lambda row: row["oldest_requested_at"])[:ROWS_SHOWN]
    return ReportSection(
        "Commands that wait for an answer",
        (
            Facts(facts),
            Rows(
                "Waiting longest",
                ("device", "resource", "open", "expired", "oldest"),
                [
                    (
                        named(names, row),
                        row["href"],
                        row["open"],
                        expired_of(row, tables.now),
                        age(row["oldest_requested_at"], tables.now),
                    )
                    for row in longest
                ],
            ),
        ),
    )


def expired_of(row: dict[str, Any], now: datetime) -> int:
    """Return how many open commands of a resource are not valid any more."""
    return sum(limit < now for limit in row["valid_until"])


def age(since: datetime, now: datetime) -> str:
    return duration(max(0.0, (now - since).total_seconds() * 1000))


def bus(tables: Tables, names: dict[str, str]) -> ReportSection | None:
    """Return what the bus lost, repeated, reordered and delayed."""
    wanted = ["device_id", "href", "events", *FAULTS, "lateness_ms_mean", "lateness_ms_max"]
    found = tables.find("bus_quality", wanted)
    if found is None:
        return None
    rows = found.to_pylist()
    totals = {name: sum(row[name] for row in rows) for name in FAULTS}
    late = [row for row in rows if row["lateness_ms_max"] is not None]
    slowest = max((row["lateness_ms_max"] for row in late), default=0)
    facts = (
        Fact("messages", f"{sum(row['events'] for row in rows):,}", "", f"of {len(rows):,} aggregates"),
        *(
            Fact(name, f"{count:,}", FAULTS[name] if count else "good", "versions" if name == "missing" else "messages")
            for name, count in totals.items()
        ),
        Fact("largest lateness", duration(max(0.0, slowest)), "", "from the event to the stream"),
    )
    parts: list[Part] = [Facts(facts)]
    if any(totals.values()):
        parts.append(
            Plot("Faults", charts.bars([(name, float(count)) for name, count in totals.items()], "faults of the bus"))
        )
    worst = sorted(rows, key=lambda row: -sum(row[name] for name in FAULTS))[:ROWS_SHOWN]
    faulty = [row for row in worst if any(row[name] for name in FAULTS)]
    if faulty:
        parts.append(
            Rows(
                "Aggregates with most faults",
                ("device", "resource", "messages", *FAULTS, "usually late by"),
                [
                    (
                        named(names, row),
                        row["href"],
                        row["events"],
                        *(row[name] for name in FAULTS),
                        "" if row["lateness_ms_mean"] is None else duration(max(0.0, row["lateness_ms_mean"])),
                    )
                    for row in faulty
                ],
            )
        )
    return ReportSection("Quality of the bus", tuple(parts))
