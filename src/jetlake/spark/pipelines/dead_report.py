"""What the pipeline `dead` has to say about its tables: what was given up, why, by whom, and how to redrive it.

Everything is read from the tables without Spark. Each cause comes with the command that publishes its messages again.
"""

import shlex
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

from jetlake.spark.pipelines import charts
from jetlake.spark.pipelines.sections import Fact, Facts, Part, Plot, ReportSection, Rows, Tables, Tone
from jetlake.spark.pipelines.summary import bucketed

if TYPE_CHECKING:
    import pyarrow

ROWS_SHOWN = 12
RECENT = timedelta(hours=1)
"""What counts as news."""


def report(tables: Tables) -> list[ReportSection]:
    """Return the sections of the page."""
    letters = tables.find(
        "letters", ["keeper", "letter", "died_at", "stream", "consumer", "cause", "subject", "reason"]
    )
    if letters is None:
        return []
    return [overview(tables, letters), causes(tables), offenders(tables, letters), newest(letters)]


def overview(tables: Tables, letters: "pyarrow.Table") -> ReportSection:
    """Return the numbers at a glance, and whether it gets worse."""
    died = letters["died_at"].to_pylist()
    recent = sum(moment >= tables.now - RECENT for moment in died)
    before = sum(tables.now - 2 * RECENT <= moment < tables.now - RECENT for moment in died)
    tone: Tone = "bad" if recent > before else "good" if not recent else "warning"
    facts = (
        Fact("dead letters", f"{len(letters):,}"),
        Fact("in the last hour", f"{recent:,}", tone, f"{before:,} in the hour before"),
        Fact("causes", f"{len(set(letters['cause'].to_pylist())):,}"),
        Fact("consumers", f"{len(set(consumers(letters))):,}"),
        Fact("subjects", f"{len(set(letters['subject'].to_pylist())):,}"),
    )
    parts: list[Part] = [Facts(facts)]
    trends = tables.find("trends", ["window_start", "stream", "consumer", "letters"])
    if trends is not None:
        series = bucketed(with_consumer(trends), "window_start", "by", "letters")
        parts.append(Plot("Dead letters over time, by consumer", charts.areas(series, "dead letters over time")))
    return ReportSection("At a glance", tuple(parts))


def causes(tables: Tables) -> ReportSection:
    """Return why messages were given up, and how to redrive them."""
    found = tables.find("reasons")
    rows = sorted(found.to_pylist(), key=lambda row: -row["letters"]) if found is not None else []
    table = next((name for name in tables.names if name.endswith("_letters")), "dead_letters")
    place = str(tables.lake.folder / table)
    totals: Counter[str] = Counter()
    for row in rows:
        totals[row["cause"] or "no reason given"] += row["letters"]
    return ReportSection(
        "Causes",
        (
            Plot("Letters by cause", charts.ranked([(name, float(count)) for name, count in totals.items()], "causes")),
            Rows(
                "Causes",
                ("letters", "stream", "consumer", "cause", "first", "last", "deliveries"),
                [
                    (
                        row["letters"],
                        row["stream"],
                        row["consumer"],
                        row["cause"],
                        row["first_at"],
                        row["last_at"],
                        row["deliveries_max"],
                    )
                    for row in rows[:ROWS_SHOWN]
                ],
            ),
            Rows(
                "Redrive",
                ("letters", "command"),
                [(row["letters"], redrive_command(place, row)) for row in rows[:ROWS_SHOWN]],
                note="publishes the messages again where they came from",
                is_whole=True,
            ),
        ),
    )


def redrive_command(place: str, row: dict[str, object]) -> str:
    """Return the command that redrives the letters of one cause."""
    parts = ["jetlake", "dead", "redrive", str(row["keeper"]), "--from-table", place]
    parts += ["--stream", str(row["stream"]), "--consumer", str(row["consumer"]), "--cause", str(row["cause"])]
    return shlex.join(parts)


def offenders(tables: Tables, letters: "pyarrow.Table") -> ReportSection:
    """Return whose messages are given up, and who gives them up."""
    found = tables.find("offenders", ["stream", "subject", "letters"])
    subjects = [(row["subject"], float(row["letters"])) for row in found.to_pylist()] if found is not None else []
    by_consumer = [(name, float(count)) for name, count in Counter(consumers(letters)).most_common()]
    return ReportSection(
        "Offenders",
        (
            Plot("Subjects", charts.ranked(subjects, "dead letters by subject"), half=True),
            Plot("Consumers", charts.ranked(by_consumer, "dead letters by consumer"), half=True),
        ),
    )


def newest(letters: "pyarrow.Table") -> ReportSection:
    """Return the letters that came last."""
    rows = letters.sort_by([("died_at", "descending")]).slice(0, ROWS_SHOWN).to_pylist()
    columns = ("letter", "died", "from", "consumer", "subject", "reason")
    return ReportSection(
        "Letters",
        (
            Rows(
                "Newest letters",
                columns,
                [
                    (row["letter"], row["died_at"], row["stream"], row["consumer"], row["subject"], row["reason"])
                    for row in rows
                ],
            ),
        ),
    )


def consumers(rows: "pyarrow.Table") -> list[str]:
    """Return stream and consumer of each row as one name."""
    pairs = zip(rows["stream"].to_pylist(), rows["consumer"].to_pylist(), strict=True)
    return [f"{stream}/{consumer}" for stream, consumer in pairs]


def with_consumer(rows: "pyarrow.Table") -> "pyarrow.Table":
    import pyarrow

    return rows.append_column("by", pyarrow.array(consumers(rows), pyarrow.string()))
