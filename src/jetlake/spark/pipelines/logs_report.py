"""What `show logs` says: lines by level over time, who logs most and who fails most, and what was unusual."""

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jetlake.spark.pipelines import charts
from jetlake.spark.pipelines.sections import Fact, Facts, Part, Plot, ReportSection, Rows, Tables, Tone
from jetlake.spark.pipelines.summary import bucketed

if TYPE_CHECKING:
    import pyarrow

__all__ = ["report"]

LEVELS = ("trace", "debug", "info", "unknown", "warning", "error", "critical")
"""From the bottom of a plot to its top."""

SEVERE = ("error", "critical")

COLOURS = {
    "trace": "#b9c1cb",
    "debug": "#8a929c",
    "info": "#3b7ddd",
    "unknown": "#9a63d2",
    "warning": charts.TONES["warning"],
    "error": charts.TONES["bad"],
    "critical": "#8f1d33",
}

TONES: tuple[tuple[str, Tone], ...] = (
    ("burst", "bad"),
    ("drop", "warning"),
    ("error", "bad"),
    ("critical", "bad"),
    ("warning", "warning"),
)

ANOMALIES_SHOWN_MAX = 20
BAD_SHOWN_MAX = 10


def report(tables: Tables) -> list[ReportSection]:
    """Return the sections; none before a line was counted."""
    rates = tables.find("rates", ["window_start", "window_end", "source", "level", "lines"])
    if rates is None:
        return []
    anomalies = tables.find("anomalies")
    bad = tables.find("bad", ["reason"])
    parts: list[Part] = [facts(rates, anomalies, bad), *plots(rates)]
    sections = [ReportSection("Log lines", tuple(parts)), ReportSection("Unusual", (unusual(anomalies),))]
    if bad is not None:
        reasons = Counter(bad.column("reason").to_pylist()).most_common(BAD_SHOWN_MAX)
        sections.append(
            ReportSection("Set aside", (Rows("Lines that could not be read", ("reason", "lines"), reasons),))
        )
    return sections


def facts(rates: "pyarrow.Table", anomalies: "pyarrow.Table | None", bad: "pyarrow.Table | None") -> Facts:
    """Return the numbers at a glance."""
    lines = Counter[str]()
    for level, count in zip(rates.column("level").to_pylist(), rates.column("lines").to_pylist(), strict=True):
        lines[level] += count
    total, severe = sum(lines.values()), sum(lines[level] for level in SEVERE)
    starts, ends = rates.column("window_start").to_pylist(), rates.column("window_end").to_pylist()
    unusual_count = len(anomalies) if anomalies is not None else 0
    return Facts(
        (
            Fact("lines", f"{total:,}", note=f"{between(min(starts), max(ends))} UTC"),
            Fact("sources", f"{len(set(rates.column('source').to_pylist())):,}"),
            Fact("errors", f"{severe:,}", "bad" if severe else "good", f"{severe / total:.1%} of all lines"),
            Fact("warnings", f"{lines['warning']:,}", "warning" if lines["warning"] else "good"),
            Fact("unusual windows", f"{unusual_count:,}", "warning" if unusual_count else "good"),
            Fact("set aside", f"{len(bad) if bad is not None else 0:,}", "warning" if bad is not None else "good"),
        )
    )


def between(start: datetime, end: datetime) -> str:
    """Return a range of time; the day of its end is left out where it is that of its start."""
    day = "" if start.date() == end.date() else f"{end:%Y-%m-%d} "
    return f"{start:%Y-%m-%d %H:%M} to {day}{end:%H:%M}"


def plots(rates: "pyarrow.Table") -> list[Part]:
    """Return lines by level over time, and the sources that log and fail most."""
    series = bucketed(rates, "window_start", "level", "lines")
    ordered = {level: series[level] for level in LEVELS if level in series}
    found: list[Part] = [Plot("Lines by level", charts.areas(ordered, "lines by level over time", COLOURS))]
    by_source, severe = Counter[str](), Counter[str]()
    columns = (rates.column(name).to_pylist() for name in ("source", "level", "lines"))
    for source, level, count in zip(*columns, strict=True):
        by_source[source] += count
        severe[source] += count if level in SEVERE else 0
    found.append(Plot("Top sources", charts.ranked(floats(by_source), "lines by source"), half=True))
    red = dict.fromkeys(severe, charts.TONES["bad"])
    found.append(Plot("Errors by source", charts.ranked(floats(severe), "errors by source", red), half=True))
    return found


def floats(counts: "Counter[str]") -> list[tuple[str, float]]:
    """Return what is there, the most first."""
    return [(name, float(count)) for name, count in counts.most_common() if count]


def unusual(anomalies: "pyarrow.Table | None") -> Rows:
    """Return the newest windows that were far from what is usual."""
    columns = ("window", "source", "level", "kind", "lines", "usual")
    title = "Windows far from what the same source and level did before"
    if anomalies is None:
        return Rows(title, columns, (), note="none so far")
    newest: list[dict[str, Any]] = anomalies.sort_by([("window_start", "descending")]).to_pylist()[:ANOMALIES_SHOWN_MAX]
    rows = [
        (row["window_start"], row["source"], row["level"], row["kind"], row["lines"], round(row["usual_lines"], 1))
        for row in newest
    ]
    more = len(anomalies) - len(newest)
    return Rows(title, columns, rows, note=f"and {more:,} before" if more else "", tones=TONES)
