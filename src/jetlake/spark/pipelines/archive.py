"""The pipeline `archive`: any stream, or all that match a pattern, into a table with every column, by day.

What a stream forgets by its limits stays in the table, where Spark, pandas and every reader of Delta tables finds it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jetlake.spark.pipelines.model import Pipeline, StreamInput, TableOutput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ABOUT = "Any stream into a table with every column, by day."


@dataclass(frozen=True)
class Parameters:
    """What can be set with `--set` or under `with`."""

    stream: str = ""
    pattern: str = ""
    subjects: str = ""
    table: str = "archive"
    start: str = "earliest"
    trigger: str = "10 seconds"


def build(name: str, parameters: Parameters) -> Pipeline:
    """Return the pipeline. Without a stream and a pattern it takes every stream."""
    pattern = parameters.pattern or ("" if parameters.stream else ".*")
    return Pipeline(
        name=name,
        about=ABOUT,
        inputs={
            "messages": StreamInput(
                stream=parameters.stream,
                pattern=pattern,
                subjects=tuple(part.strip() for part in parameters.subjects.split(",") if part.strip()),
                start=parameters.start,
            )
        },
        transform=lambda frames: {parameters.table: archived(frames["messages"])},
        outputs=(TableOutput(parameters.table, partition_by=("day",)),),
        trigger=parameters.trigger,
    )


def archived(messages: "DataFrame") -> "DataFrame":
    """Messages → the same with the day on which they were stored."""
    from pyspark.sql import functions

    return messages.withColumn("day", functions.to_date("timestamp"))
