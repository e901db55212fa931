"""The tables of a pipeline in numbers: what `show` prints and plots, read without Spark."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jetlake.spark.lake.as_of import AsOf
from jetlake.spark.lake.folder import Lake
from jetlake.spark.lake.snapshot import Snapshot
from jetlake.spark.lake.table import LakeTable
from jetlake.units import shown_size

if TYPE_CHECKING:
    import pyarrow

NEWEST_ROWS_MAX = 10
SERIES_ROWS_MAX = 500_000
"""Newest rows that a plot is made of."""

SERIES_MAX = 8
"""Lines in one plot; more cannot be told apart."""

BUCKETS = 60
MICROSECONDS = 1_000_000

TIME_COLUMNS = ("window_start", "timestamp")
"""Columns a plot goes by, the first that is there; else the first column that holds times."""

CATEGORY_COLUMNS = ("level", "kind", "reason", "source", "stream", "subject")
WEIGHT_COLUMNS = ("lines",)
"""Columns with the number of records that a row stands for."""

Series = dict[str, list[tuple[float, float]]]


@dataclass
class TableSummary:
    """One table."""

    name: str
    version: int
    rows: int
    files: int
    size_bytes: int
    columns: list[tuple[str, str]]
    newest: list[dict[str, Any]] = field(default_factory=list)
    partitions: list[tuple[str, int]] = field(default_factory=list)
    partition_name: str = ""
    series: Series = field(default_factory=dict)
    """Points (seconds since 1970, rows) by category."""

    series_name: str = ""


def summarize(lake: Lake, name: str, as_of: AsOf | None = None) -> TableSummary | None:
    """Return the numbers of a table, now or at a version or a time; None when it is not there yet."""
    table = lake.table(name)
    if not table.exists():
        return None
    snapshot = table.snapshot(as_of)
    columns = [(column["name"], simple(column["type"])) for column in fields_of(snapshot)]
    series, series_name = series_of(table, snapshot, columns)
    return TableSummary(
        name=name,
        version=snapshot.version,
        rows=snapshot.rows,
        files=len(snapshot.files),
        size_bytes=snapshot.size_bytes,
        columns=columns,
        newest=newest(table, snapshot, columns),
        partitions=partitions_of(snapshot),
        partition_name=snapshot.partition_by[0] if snapshot.partition_by else "",
        series=series,
        series_name=series_name,
    )


def fields_of(snapshot: Snapshot) -> list[dict[str, Any]]:
    import json

    fields: list[dict[str, Any]] = json.loads(snapshot.columns)["fields"]
    return fields


def simple(kind: Any) -> str:
    """Return a type as one word."""
    return kind if isinstance(kind, str) else str(kind.get("type", "struct"))


def newest(table: LakeTable, snapshot: Snapshot, columns: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the rows that were added last, the last one first."""
    rows = table.to_arrow(rows_max=NEWEST_ROWS_MAX, snapshot=snapshot)
    order = next((name for name, kind in columns if name == "sequence" or kind == "timestamp"), None)
    if order is not None and len(rows):
        rows = rows.sort_by([(order, "descending")])
    found: list[dict[str, Any]] = rows.slice(0, NEWEST_ROWS_MAX).to_pylist()
    return found


def partitions_of(snapshot: Snapshot) -> list[tuple[str, int]]:
    """Return how many rows every value of the first partition column has."""
    if not snapshot.partition_by:
        return []
    column = snapshot.partition_by[0]
    counts: dict[str, int] = {}
    for file in snapshot.files.values():
        value = file.partition.get(column) or "NULL"
        counts[value] = counts.get(value, 0) + file.rows
    return sorted(counts.items())


def series_of(table: LakeTable, snapshot: Snapshot, columns: list[tuple[str, str]]) -> tuple[Series, str]:
    """Return rows over time by category, and the name of the category."""
    kinds = dict(columns)
    times = [name for name, kind in columns if kind == "timestamp"]
    moment = next((name for name in TIME_COLUMNS if name in times), times[0] if times else None)
    if moment is None or not snapshot.files:
        return {}, ""
    category = next((name for name in CATEGORY_COLUMNS if kinds.get(name) == "string"), "")
    weight = next((name for name in WEIGHT_COLUMNS if kinds.get(name) == "long"), "")
    wanted = [name for name in (moment, category, weight) if name]
    rows = table.to_arrow(wanted, rows_max=SERIES_ROWS_MAX, snapshot=snapshot)
    return bucketed(rows, moment, category, weight), category


def bucketed(rows: "pyarrow.Table", moment: str, category: str, weight: str) -> Series:
    """Return sums per bucket of time and category; the rarest categories are together as `other`."""
    import pyarrow
    from pyarrow import compute

    rows = rows.filter(compute.is_valid(rows[moment]))
    if not len(rows):
        return {}
    micros = compute.cast(compute.cast(rows[moment], pyarrow.timestamp("us", "UTC")), pyarrow.int64())
    low, high = compute.min(micros).as_py(), compute.max(micros).as_py()
    width = bucket_width(high - low)
    bucket = compute.divide(compute.subtract(micros, low - low % width), width)
    weights = rows[weight] if weight else pyarrow.array([1] * len(rows))
    names = compute.fill_null(rows[category], "NULL") if category else pyarrow.array(["rows"] * len(rows))
    flat = pyarrow.table({"bucket": bucket, "name": names, "weight": weights})
    sums = flat.group_by(["name", "bucket"]).aggregate([("weight", "sum")]).to_pylist()
    totals: dict[str, int] = {}
    for row in sums:
        totals[row["name"]] = totals.get(row["name"], 0) + (row["weight_sum"] or 0)
    shown = sorted(totals, key=lambda name: (-totals[name], name))
    shown = shown if len(shown) <= SERIES_MAX else shown[: SERIES_MAX - 1]
    count = (high - (low - low % width)) // width + 1
    values: dict[str, list[float]] = {name: [0.0] * count for name in shown}
    if len(totals) > len(shown):
        values["other"] = [0.0] * count
    for row in sums:
        name = row["name"] if row["name"] in shown else "other"
        values[name][row["bucket"]] += row["weight_sum"] or 0
    begin = low - low % width
    return {
        name: [((begin + index * width) / MICROSECONDS, value) for index, value in enumerate(points)]
        for name, points in values.items()
    }


def bucket_width(span: int) -> int:
    """Return a width in microseconds that is a good unit of time and gives at most `BUCKETS` buckets."""
    second = MICROSECONDS
    units = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 604800, 2592000]
    return next((unit * second for unit in units if span <= unit * second * BUCKETS), span // BUCKETS + 1)


def shown(value: Any, length_max: int = 60) -> str:
    """Return a value of a row as text for people."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        text = value.decode(errors="replace")
    elif isinstance(value, datetime):
        text = f"{value.astimezone(UTC) if value.tzinfo else value:%Y-%m-%d %H:%M:%S}"
    elif isinstance(value, float):
        text = f"{value:,.3f}".rstrip("0").rstrip(".")
    elif isinstance(value, list) and all(isinstance(part, tuple) for part in value):
        text = ", ".join(f"{key}: {part}" for key, part in value)
    else:
        text = str(value)
    text = "".join(character if character.isprintable() else "·" for character in text)
    return text if len(text) <= length_max else text[: length_max - 1] + "…"


def size(count: int) -> str:
    """Return a number of bytes for people."""
    return shown_size(count)
