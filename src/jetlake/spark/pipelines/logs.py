"""The pipeline `logs`: lines that a shipper publishes on `logs.>`, their rates, and what is unusual about them.

Rates go by the time at which a line was stored, not by the time it claims: one machine with a clock in the future
would otherwise close every window there is. What a line claims is kept in `logged_at`.

Rates are counted as lines come: a window that is not over has the lines that are there. A burst is told as soon as it
is one, a drop when the window is over.

Invariant of the rates: each line is counted once, in the window in which it was stored, whenever it is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines.logs_report import report
from jetlake.spark.pipelines.messages import BAD, NOT_TEXT
from jetlake.spark.pipelines.model import Derived, Frames, Pipeline, StreamInput, TableOutput, duration_s

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column, DataFrame

__all__ = ["ABOUT", "Parameters", "build", "report"]

ABOUT = "Log lines on logs.>: parsed, counted per source and level, and what is unusual."

LEVELS = {
    "trace": "trace",
    "debug": "debug",
    "info": "info",
    "information": "info",
    "notice": "info",
    "warn": "warning",
    "warning": "warning",
    "err": "error",
    "error": "error",
    "crit": "critical",
    "critical": "critical",
    "fatal": "critical",
    "panic": "critical",
    "alert": "critical",
    "emerg": "critical",
}
"""Words for levels in the wild, and the six that are counted."""

UNKNOWN = "unknown"
EMPTY = "the line is empty"

HEAD_CHARACTERS = 200
"""Where the level of a line of text is looked for: further on it is part of what the line tells."""

ANOMALIES = (
    "window_start TIMESTAMP, window_end TIMESTAMP, source STRING, level STRING, kind STRING, lines BIGINT, "
    "usual_lines DOUBLE, spread DOUBLE, score DOUBLE"
)

KEY = ("window_start", "source", "level")

TIME_KEYS = ("time", "timestamp", "ts", "@timestamp")
LEVEL_KEYS = ("level", "severity", "lvl")
MESSAGE_KEYS = ("message", "msg")
SOURCE_KEYS = ("source", "host", "hostname")


@dataclass(frozen=True)
class Parameters:
    """What can be set with `--set` or under `with`."""

    stream: str = "LOGS"
    subjects: str = "logs.>"
    window: str = "1 minute"
    history: int = 30
    """Windows that tell what is usual."""

    threshold: float = 4.0
    """How many times the usual spread a window must be away to be unusual."""

    prefix: str = "log"
    """The tables are `<prefix>_lines`, `<prefix>_rates` and `<prefix>_anomalies`."""

    start: str = "earliest"
    trigger: str = "5 seconds"


def build(name: str, parameters: Parameters) -> Pipeline:
    """Return the pipeline."""
    window_s = duration_s(parameters.window, f"pipeline {name}, window")
    if parameters.history < 2 or parameters.threshold <= 0:
        raise ConfigurationError(
            f"pipeline {name}: history is {parameters.history} and threshold {parameters.threshold}; "
            "it takes at least 2 windows to know what is usual, and a threshold above 0"
        )

    def transform(frames: Frames) -> Frames:
        return {"lines": with_day(frames["messages"])}

    def unusual(new: "DataFrame", all_rates: "DataFrame") -> "DataFrame":
        return anomalies(new, all_rates, window_s=window_s, history=parameters.history, threshold=parameters.threshold)

    return Pipeline(
        name=name,
        about=ABOUT,
        inputs={
            "messages": StreamInput(
                stream=parameters.stream,
                subjects=tuple(part.strip() for part in parameters.subjects.split(",") if part.strip()),
                start=parameters.start,
                prepare=parse_lines,
            )
        },
        transform=transform,
        outputs=(
            TableOutput(f"{parameters.prefix}_lines", of="lines", partition_by=("day",)),
            TableOutput(
                f"{parameters.prefix}_rates",
                of="lines",
                pick=lambda lines: rates(lines, parameters.window),
                key=KEY,
                sums=("lines", "lines_per_second"),
                partition_by=("day",),
                derived=(Derived(f"{parameters.prefix}_anomalies", unusual, key=KEY),),
            ),
        ),
        trigger=parameters.trigger,
    )


def parse_lines(messages: "DataFrame") -> "DataFrame":
    """Messages → lines: source, level, what it says and when it says it was written.

    A payload is a JSON object with the usual keys, or a line of text. The source is the second token of the subject
    (`logs.web1.nginx` → `web1`) unless the line names one; a level may be the last token (`logs.web1.error`).
    """
    from pyspark.sql import functions

    text = functions.trim(functions.col("data").cast("string"))
    in_json = {
        name: _first_key(keys)
        for name, keys in {
            "time": TIME_KEYS,
            "level": LEVEL_KEYS,
            "message": MESSAGE_KEYS,
            "source": SOURCE_KEYS,
        }.items()
    }
    tokens = functions.split("subject", r"\.")
    last_token = functions.lower(functions.element_at(tokens, -1))
    words = "|".join(sorted(LEVELS, key=len, reverse=True))
    head = functions.substring("_text", 1, HEAD_CHARACTERS)
    in_text = functions.regexp_extract(head, rf"(?i)(?<![a-z])(?:level=\"?)?({words})(?![a-z])", 1)
    stamp = functions.regexp_extract(head, r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)", 1)
    return messages.withColumn("_text", text).select(
        "stream",
        "subject",
        "sequence",
        "timestamp",
        "data",
        functions.coalesce(
            in_json["source"], functions.try_element_at(tokens, functions.lit(2)), functions.lit(UNKNOWN)
        ).alias("source"),
        functions.coalesce(_level(in_json["level"]), _level(last_token), _level(in_text), functions.lit(UNKNOWN)).alias(
            "level"
        ),
        functions.coalesce(
            _timestamp(in_json["time"]), functions.try_to_timestamp(functions.nullif(stamp, functions.lit("")))
        ).alias("logged_at"),
        functions.coalesce(in_json["message"], "_text").alias("message"),
        functions.when(~functions.expr("is_valid_utf8(data)"), NOT_TEXT)
        .when(functions.coalesce(functions.length("_text"), functions.lit(0)) == 0, EMPTY)
        .alias(BAD),
    )


def with_day(lines: "DataFrame") -> "DataFrame":
    """Lines → the same with the day on which they were stored, and without the payload they were made of."""
    from pyspark.sql import functions

    return lines.drop("data").withColumn("day", functions.to_date("timestamp"))


def rates(lines: "DataFrame", window: str) -> "DataFrame":
    """Lines → how many of each source and level there were in each window of time."""
    from pyspark.sql import functions

    counted = lines.groupBy(functions.window("timestamp", window), "source", "level").agg(
        functions.count("*").alias("lines")
    )
    seconds = functions.unix_micros("window.end") - functions.unix_micros("window.start")
    return counted.select(
        functions.col("window.start").alias("window_start"),
        functions.col("window.end").alias("window_end"),
        "source",
        "level",
        "lines",
        (functions.col("lines") * 1_000_000 / seconds).alias("lines_per_second"),
        functions.to_date("window.start").alias("day"),
    )


def anomalies(
    new: "DataFrame", all_rates: "DataFrame", *, window_s: float, history: int, threshold: float
) -> "DataFrame":
    """New rates → those that are far from what their source and level did in the windows before.

    There are few of them, so they are looked at in this process; see `unusual_rates`. The window before the new ones is
    looked at too: it may be over only now.
    """
    from pyspark.sql import functions

    spark = new.sparkSession
    columns = [*KEY, "window_end", "lines"]
    fresh = new.select(*columns).toArrow().to_pylist()
    if not fresh:
        return spark.createDataFrame(as_arrow([]), ANOMALIES)
    window = timedelta(seconds=window_s)
    begin = min(row["window_start"] for row in fresh)
    cut = functions.lit(begin - 2 * history * window)
    earlier = all_rates.where(functions.col("window_start") >= cut).select(*columns).toArrow().to_pylist()
    before = max((row["window_start"] for row in earlier if row["window_start"] < begin), default=begin)
    # The new rows replace those of the table.
    rows = {tuple(row[name] for name in KEY): row for row in (*earlier, *fresh)}
    found = unusual_rates(list(rows.values()), since=before, window=window, history=history, threshold=threshold)
    return spark.createDataFrame(as_arrow(found), ANOMALIES)


def as_arrow(rows: list[tuple[Any, ...]]) -> "pyarrow.Table":
    """Return rows of `ANOMALIES` as Arrow: as Python's they would take a detour through pickles."""
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    columns = StructType.fromDDL(ANOMALIES)
    assert isinstance(columns, StructType), "a list of columns makes a structure"
    schema = to_arrow_schema(columns, timezone="UTC")
    return pyarrow.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def unusual_rates(
    rows: Sequence[Mapping[str, Any]], *, since: datetime, window: timedelta, history: int, threshold: float
) -> list[tuple[Any, ...]]:
    """Return the rates from a moment on that are far from those before, as rows of `ANOMALIES`.

    A window without lines counts as zero. The spread is at least that of lines that come by chance, so that a source
    which logs two lines instead of one is left in peace; a source is judged when it is known for half of `history`.
    """
    by_kin: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["window_start"]):
        by_kin.setdefault((row["source"], row["level"]), []).append(row)
    newest = max(row["window_start"] for row in rows)
    found = []
    for (source, level), kin in by_kin.items():
        for row in kin:
            start = row["window_start"]
            if start < since:
                continue
            earlier = [other for other in kin if start - history * window <= other["window_start"] < start]
            known = (start - earlier[0]["window_start"]) / window if earlier else 0.0
            if known < history / 2:
                continue
            mean = sum(other["lines"] for other in earlier) / known
            variance = sum(other["lines"] ** 2 for other in earlier) / known - mean * mean
            spread = max(variance, mean, 1.0) ** 0.5
            score = (row["lines"] - mean) / spread
            is_over = start < newest
            if score >= threshold or (score <= -threshold and is_over):
                kind = "burst" if score > 0 else "drop"
                found.append((start, row["window_end"], source, level, kind, row["lines"], mean, spread, score))
    return found


def _first_key(keys: tuple[str, ...]) -> "Column":
    from pyspark.sql import functions

    return functions.coalesce(*(functions.get_json_object("_text", f"$['{key}']") for key in keys))


def _level(word: "Column") -> "Column":
    """Return one of the six levels for a word, or NULL."""
    from pyspark.sql import functions

    known = functions.create_map(*(functions.lit(part) for pair in LEVELS.items() for part in pair))
    return functions.try_element_at(known, functions.lower(word))


def _timestamp(text: "Column") -> "Column":
    """Return a time from text in ISO form or from seconds since 1970, or NULL."""
    from pyspark.sql import functions

    number = text.try_cast("double")
    return functions.coalesce(functions.when(number.isNotNull(), number.cast("timestamp")), text.try_cast("timestamp"))
