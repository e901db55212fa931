"""The pipeline `dead`: what consumers have given up on, why, who suffers most, and whether it gets worse.

| table            | a row is                                                | key                                    |
|------------------|---------------------------------------------------------|----------------------------------------|
| `dead_letters`   | a dead letter: what it was, who gave it up, why         | keeper, letter                         |
| `dead_reasons`   | a cause: how many letters of which consumer, since when | keeper, stream, consumer, cause        |
| `dead_offenders` | a subject whose messages are given up                   | keeper, stream, subject                |
| `dead_trends`    | letters of a consumer in a window of time               | window_start, keeper, stream, consumer |
| `dead_bad`       | a message that is not a dead letter                     |                                        |

`dead_letters` feeds `jetlake dead redrive --from-table`. A cause is a reason with numbers and ids left out, so that
"order 17 not found" and "order 18 not found" are one.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jetlake.client.dead_letters import CAUSE_CHARACTERS_MAX, CHANGING
from jetlake.spark.pipelines.dead_report import report
from jetlake.spark.pipelines.messages import BAD
from jetlake.spark.pipelines.model import Frames, Pipeline, StreamInput, TableOutput, duration_s

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

__all__ = ["ABOUT", "Parameters", "build", "report"]

ABOUT = "Dead letters: reasons, offenders and trends; feeds `jetlake dead redrive`."

OF_SERVER, OF_CLIENTS = "Jetlake-Dead-", "Jetlake-Client-Dead-"
"""How the headers of a letter begin: of one that the server has written, which publishers cannot forge, and of one that
a service has written, which is not redriven."""

HEADERS = {
    "stream": "Stream",
    "consumer": "Consumer",
    "reason": "Reason",
    "subject": "Subject",
    "original_sequence": "Sequence",
    "deliveries": "Deliveries",
}
"""What a dead letter says about itself."""

NO_LETTER = "it does not say where it comes from: it is not a dead letter"

REASONS, OFFENDERS = "reasons", "offenders"


@dataclass(frozen=True)
class Parameters:
    """What can be set with `--set` or under `with`."""

    stream: str = "DEAD"
    """The stream that keeps the letters."""

    window: str = "1 minute"
    """Of the trends."""

    delay: str = "1 hour"
    """How long a window is kept open for letters that were stored in it."""

    prefix: str = "dead"
    start: str = "earliest"
    trigger: str = "5 seconds"


def build(name: str, parameters: Parameters) -> Pipeline:
    """Return the pipeline."""
    duration_s(parameters.window, f"pipeline {name}, window")
    duration_s(parameters.delay, f"pipeline {name}, delay")

    def transform(frames: Frames) -> Frames:
        letters = frames["messages"]
        return {
            "letters": with_day(letters),
            "counts": counted(letters),
            "trends": trends(letters, parameters.window, parameters.delay),
        }

    prefix = parameters.prefix
    return Pipeline(
        name=name,
        about=ABOUT,
        inputs={"messages": StreamInput(stream=parameters.stream, start=parameters.start, prepare=parse_letters)},
        transform=transform,
        outputs=(
            TableOutput(f"{prefix}_letters", of="letters", partition_by=("day",)),
            TableOutput(
                f"{prefix}_reasons",
                of="counts",
                key=("keeper", "stream", "consumer", "cause"),
                order_by=("letters",),
                reduced=True,
                pick=picker(REASONS, ("keeper", "stream", "consumer", "cause")),
            ),
            TableOutput(
                f"{prefix}_offenders",
                of="counts",
                key=("keeper", "stream", "subject"),
                order_by=("letters",),
                reduced=True,
                pick=picker(OFFENDERS, ("keeper", "stream", "subject")),
            ),
            TableOutput(
                f"{prefix}_trends",
                of="trends",
                key=("window_start", "keeper", "stream", "consumer"),
                order_by=("letters",),
                reduced=True,
            ),
        ),
        trigger=parameters.trigger,
    )


def parse_letters(messages: "DataFrame") -> "DataFrame":
    """Messages → dead letters: what each says about where it comes from."""
    from pyspark.sql import functions

    def said(name: str) -> "Column":
        values = functions.try_element_at("headers", functions.lit(name))
        return functions.try_element_at(values, functions.lit(1))

    is_of_server = said(f"{OF_SERVER}Stream").isNotNull()
    first = {
        name: functions.when(is_of_server, said(f"{OF_SERVER}{key}")).otherwise(said(f"{OF_CLIENTS}{key}"))
        for name, key in HEADERS.items()
    }
    reason = functions.coalesce(first["reason"], functions.lit(""))
    complete = first["stream"].isNotNull() & first["consumer"].isNotNull() & first["subject"].isNotNull()
    return messages.select(
        functions.col("stream").alias("keeper"),
        functions.col("sequence").alias("letter"),
        functions.col("timestamp").alias("died_at"),
        first["stream"].alias("stream"),
        first["consumer"].alias("consumer"),
        reason.alias("reason"),
        cause_of(reason).alias("cause"),
        first["subject"].alias("subject"),
        first["original_sequence"].try_cast("bigint").alias("original_sequence"),
        first["deliveries"].try_cast("bigint").alias("deliveries"),
        functions.length("data").cast("bigint").alias("bytes"),
        is_of_server.alias("is_of_server"),
        # As the table of bad rows has them.
        "sequence",
        "timestamp",
        "data",
        functions.when(~functions.coalesce(complete, functions.lit(False)), NO_LETTER).alias(BAD),
    )


def cause_of(reason: "Column") -> "Column":
    """Return a reason without what differs from letter to letter."""
    from pyspark.sql import functions

    return functions.substring(functions.regexp_replace(reason, CHANGING, "#"), 1, CAUSE_CHARACTERS_MAX)


def with_day(letters: "DataFrame") -> "DataFrame":
    """Letters → the same with the day they died, and without their payload, which stays in the stream."""
    from pyspark.sql import functions

    return letters.drop("sequence", "timestamp", "data").withColumn("day", functions.to_date("died_at"))


def counted(letters: "DataFrame") -> "DataFrame":
    """Letters → how many there are of each cause and of each subject, in one pass."""
    from pyspark.sql import functions

    nothing = functions.lit(None).cast("string")
    group = functions.explode(
        functions.array(
            functions.struct(
                functions.lit(REASONS).alias("target"),
                functions.col("consumer").alias("of_consumer"),
                functions.col("cause").alias("of_cause"),
                nothing.alias("of_subject"),
            ),
            functions.struct(
                functions.lit(OFFENDERS).alias("target"),
                nothing.alias("of_consumer"),
                nothing.alias("of_cause"),
                functions.col("subject").alias("of_subject"),
            ),
        )
    )
    return (
        letters.withColumn("_group", group)
        .groupBy("keeper", "stream", "_group.target", "_group.of_consumer", "_group.of_cause", "_group.of_subject")
        .agg(
            functions.count("*").alias("letters"),
            functions.min("died_at").alias("first_at"),
            functions.max("died_at").alias("last_at"),
            functions.min("letter").alias("first_letter"),
            functions.max("letter").alias("last_letter"),
            functions.max("deliveries").alias("deliveries_max"),
            functions.max_by("reason", "letter").alias("last_reason"),
            functions.max_by("subject", "letter").alias("last_subject"),
            functions.max_by("consumer", "letter").alias("last_consumer"),
        )
    )


def picker(target: str, key: tuple[str, ...]) -> "Callable[[DataFrame], DataFrame]":
    """Return what takes the rows of one table out of all counts."""
    own = {"consumer": "of_consumer", "cause": "of_cause", "subject": "of_subject"}
    about = ("letters", "first_at", "last_at", "first_letter", "last_letter", "deliveries_max", "last_reason")
    seen = tuple(name for name in ("last_subject", "last_consumer") if name.removeprefix("last_") not in key)

    def pick(rows: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions

        chosen = [functions.col(own.get(name, name)).alias(name) for name in key]
        return rows.where(functions.col("target") == target).select(*chosen, *about, *seen)

    return pick


def trends(letters: "DataFrame", window: str, delay: str) -> "DataFrame":
    """Letters → how many of each consumer there were in each window of time."""
    from pyspark.sql import functions

    return (
        letters.withWatermark("died_at", delay)
        .groupBy(functions.window("died_at", window), "keeper", "stream", "consumer")
        .agg(functions.count("*").alias("letters"))
        .select(
            functions.col("window.start").alias("window_start"),
            functions.col("window.end").alias("window_end"),
            "keeper",
            "stream",
            "consumer",
            "letters",
        )
    )
