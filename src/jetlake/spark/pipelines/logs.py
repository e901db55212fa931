"""The pipeline `logs`: lines that a shipper publishes on `logs.>`, their rates, and what is unusual about them.

Rates go by the time at which a line was stored, not by the time it claims: one machine with a clock in the future
would otherwise close every window there is. What a line claims is kept in `logged_at`.

Invariant of the rates: the lines of a window, a source and a level are counted once, when the window is over.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines.messages import BAD, NOT_TEXT
from jetlake.spark.pipelines.model import Derived, Frames, Pipeline, StreamInput, TableOutput, duration_s

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

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
    delay: str = "10 seconds"
    """How long after its end a window waits for lines that were stored in it."""

    history: int = 30
    """Windows that tell what is usual."""

    threshold: float = 4.0
    """How many times the usual spread a window must be away to be unusual."""

    prefix: str = "log"
    """The tables are `<prefix>_lines`, `<prefix>_rates` and `<prefix>_anomalies`."""

    start: str = "earliest"
    kind: str = ""
    trigger: str = "5 seconds"


def build(name: str, parameters: Parameters) -> Pipeline:
    """Return the pipeline."""
    window_s = duration_s(parameters.window, f"pipeline {name}, window")
    duration_s(parameters.delay, f"pipeline {name}, delay")
    if parameters.history < 2 or parameters.threshold <= 0:
        raise ConfigurationError(
            f"pipeline {name}: history is {parameters.history} and threshold {parameters.threshold}; "
            "it takes at least 2 windows to know what is usual, and a threshold above 0"
        )

    def transform(frames: Frames) -> Frames:
        lines = frames["messages"]
        return {"lines": with_day(lines), "rates": rates(lines, parameters.window, parameters.delay)}

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
            TableOutput(f"{parameters.prefix}_lines", of="lines", partition_by=("day",), kind=parameters.kind),
            TableOutput(
                f"{parameters.prefix}_rates",
                of="rates",
                partition_by=("day",),
                kind=parameters.kind,
                derived=(Derived(f"{parameters.prefix}_anomalies", unusual),),
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
            _moment(in_json["time"]), functions.try_to_timestamp(functions.nullif(stamp, functions.lit("")))
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


def rates(lines: "DataFrame", window: str, delay: str) -> "DataFrame":
    """Lines → how many of each source and level there were in each window of time."""
    from pyspark.sql import functions

    counted = (
        lines.withWatermark("timestamp", delay)
        .groupBy(functions.window("timestamp", window), "source", "level")
        .agg(functions.count("*").alias("lines"))
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

    A window without lines counts as zero. The spread is at least that of lines that come by chance, so that a source
    which logs two lines instead of one is left in peace; a source is judged when it is known for half of `history`.
    """
    from pyspark.sql import Window, functions

    first_new = new.agg(functions.min("window_start")).first()
    begin = first_new[0] if first_new is not None else None
    if begin is None:
        usual = new.where("false")
    else:
        cut = functions.lit(begin) - functions.make_dt_interval(secs=functions.lit(window_s * history))
        before = all_rates.where(functions.col("window_start") >= cut).where(functions.col("window_start") < begin)
        usual = before.select(*new.columns).unionByName(new)
    start = functions.unix_micros("window_start")
    window_us = int(window_s * 1_000_000)
    kin = Window.partitionBy("source", "level").orderBy(start)
    earlier = kin.rangeBetween(-window_us * history, -1)
    known = (start - functions.min(start).over(kin.rangeBetween(-window_us * history, 0))) / window_us
    windows = functions.least(known, functions.lit(float(history)))
    total = functions.coalesce(functions.sum("lines").over(earlier), functions.lit(0))
    squares = functions.coalesce(
        functions.sum(functions.col("lines") * functions.col("lines")).over(earlier), functions.lit(0)
    )
    measured = usual.select("*", windows.alias("_windows"), total.alias("_total"), squares.alias("_squares"))
    mean = functions.col("_total") / functions.col("_windows")
    variance = functions.col("_squares") / functions.col("_windows") - mean * mean
    spread = functions.sqrt(functions.greatest(variance, mean, functions.lit(1.0)))
    score = (functions.col("lines") - functions.col("usual_lines")) / functions.col("spread")
    judged = (
        measured.where(functions.col("_windows") >= history / 2)
        .withColumns({"usual_lines": mean, "spread": spread})
        .withColumn("score", score)
    )
    kind = functions.when(functions.col("score") > 0, "burst").otherwise("drop")
    recent = judged if begin is None else judged.where(functions.col("window_start") >= begin)
    return recent.where(functions.abs("score") >= threshold).select(
        "window_start", "window_end", "source", "level", kind.alias("kind"), "lines", "usual_lines", "spread", "score"
    )


def _first_key(keys: tuple[str, ...]) -> "Column":
    from pyspark.sql import functions

    return functions.coalesce(*(functions.get_json_object("_text", f"$['{key}']") for key in keys))


def _level(word: "Column") -> "Column":
    """Return one of the six levels for a word, or NULL."""
    from pyspark.sql import functions

    known = functions.create_map(*(functions.lit(part) for pair in LEVELS.items() for part in pair))
    return functions.try_element_at(known, functions.lower(word))


def _moment(text: "Column") -> "Column":
    """Return a time from text in ISO form or from seconds since 1970, or NULL."""
    from pyspark.sql import functions

    number = text.try_cast("double")
    return functions.coalesce(functions.when(number.isNotNull(), number.cast("timestamp")), text.try_cast("timestamp"))
