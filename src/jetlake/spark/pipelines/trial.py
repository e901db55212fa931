"""A pipeline on a few rows, without a stream: what tests and `validate` do.

```python
trial = try_out(pipeline, spark, {"orders": [{"subject": "orders.eu", "data": {"id": 1, "total": 150}}]})
assert trial.outputs["large_orders"] == [{"id": 1, "total": 150.0}]
```
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from jetlake.errors import ConfigurationError
from jetlake.spark.columns import COLUMNS, MESSAGE
from jetlake.spark.lake.columns import fitted
from jetlake.spark.pipelines import messages
from jetlake.spark.pipelines.model import Frames, Pipeline, StreamInput, TableOutput
from jetlake.spark.pipelines.steps import explained
from jetlake.suggestions import nearest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

EPOCH = datetime(2026, 1, 31, 12, tzinfo=UTC)
"""When the first row of a sample was stored, unless it says so; the next ones follow by the second."""

ROWS_MAX = 1000
"""Of one output: a trial is for looking at rows, not for work."""


@dataclass
class Trial:
    """What came out: rows by output, and those that were set aside."""

    outputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    bad: list[dict[str, Any]] = field(default_factory=list)


def try_out(
    pipeline: Pipeline,
    spark: "SparkSession",
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
    tables: "Mapping[str, DataFrame] | None" = None,
) -> Trial:
    """Run a pipeline on rows by input. Raises `ConfigurationError`.

    A row of a stream may have `subject`, `data` (text, bytes, or anything that JSON can say), `headers`, `timestamp`,
    `sequence` and `stream`; what is not given has a value that makes sense. Rows of an input that is a table are rows
    of that table; its columns are those of `tables` where given.
    """
    frames: dict[str, DataFrame] = {}
    trial = Trial()
    for name, given in pipeline.inputs.items():
        where = f"pipeline {pipeline.name}, input {name}"
        if isinstance(given, StreamInput):
            raw = message_frame(spark, rows.get(name, ()), given, where)
            ready = explained(lambda raw=raw, given=given, where=where: messages.prepared(raw, given, where), where)  # type: ignore[misc]
            trial.bad += as_rows(messages.bad(ready, name), where)
            frames[name] = messages.good(ready)
        else:
            frames[name] = table_frame(spark, rows.get(name, ()), (tables or {}).get(name), where)
    collect(pipeline, pipeline.transform(frames), trial)
    return trial


def collect(pipeline: Pipeline, frames: Frames, trial: Trial) -> None:
    """Put the rows of every output, and of the tables that follow it, into the trial."""
    for output in pipeline.outputs:
        frame = pipeline.rows_of(output, frames)
        trial.outputs[output.name] = as_rows(frame, f"output {output.name}")
        if isinstance(output, TableOutput):
            for derived in output.derived:
                trial.outputs[derived.table] = as_rows(derived.function(frame, frame), f"output {derived.table}")


def message_frame(
    spark: "SparkSession", rows: Sequence[Mapping[str, Any]], given: StreamInput, where: str
) -> "DataFrame":
    """Return rows of a sample as messages."""
    made = [message(row, number, given, where) for number, row in enumerate(rows, 1)]
    frame = spark.createDataFrame(made, COLUMNS)
    # What a decoder would make of the payloads is not there.
    return fitted(frame, fields_of(given.schema)) if given.schema else frame


def fields_of(schema: str) -> "StructType":
    """Return columns from their text."""
    from pyspark.sql.types import StructType

    fields = StructType.fromDDL(schema)
    assert isinstance(fields, StructType), "a list of columns makes a structure"
    return fields


def message(row: Mapping[str, Any], number: int, given: StreamInput, where: str) -> tuple[Any, ...]:
    """Return one row of a sample as the columns of a message."""
    for key in row:
        if key not in MESSAGE:
            near = nearest(key, MESSAGE)
            raise ConfigurationError(
                f"{where}, row {number} of the sample: a message has no {key}"
                + (f"; did you mean {near}?" if near else "; fields of the payload belong under data")
            )
    stored = row.get("timestamp", EPOCH + timedelta(seconds=number - 1))
    if isinstance(stored, str):
        try:
            stored = datetime.fromisoformat(stored)
        except ValueError as error:
            raise ConfigurationError(f"{where}, row {number} of the sample: {stored!r} is not a time") from error
    stored = stored if stored.tzinfo else stored.replace(tzinfo=UTC)
    headers = {
        str(name): [str(part) for part in (value if isinstance(value, list) else [value])]
        for name, value in (row.get("headers") or {}).items()
    }
    return (
        row.get("stream", given.stream or "SAMPLE"),
        row.get("subject", given.subjects[0] if given.subjects else "sample"),
        row.get("sequence", number),
        stored,
        int(stored.timestamp() * 1_000_000) * 1000,
        headers,
        payload(row.get("data", b"")),
    )


def payload(value: Any) -> bytearray:
    """Return the payload that stands for a value of a sample: text as it is, anything else as JSON."""
    if isinstance(value, bytes | bytearray):
        return bytearray(value)
    return bytearray(value.encode() if isinstance(value, str) else json.dumps(value, default=str).encode())


def table_frame(
    spark: "SparkSession", rows: Sequence[Mapping[str, Any]], there: "DataFrame | None", where: str
) -> "DataFrame":
    """Return rows of a sample as a table with the columns it has, or those the rows show."""
    if there is not None:
        made = [tuple(row.get(name) for name in there.columns) for row in rows]
        return spark.createDataFrame(made, there.schema)
    if not rows:
        raise ConfigurationError(f"{where}: the table is not there and the sample has no rows for it; give some")
    return spark.createDataFrame([dict(row) for row in rows])


def as_rows(frame: "DataFrame", where: str) -> list[dict[str, Any]]:
    """Return rows as Python values."""
    from pyspark.errors import PySparkException

    from jetlake.spark.pipelines.steps import sentence

    try:
        return [row.asDict(recursive=True) for row in frame.limit(ROWS_MAX).collect()]
    except PySparkException as error:
        raise ConfigurationError(f"{where}: {sentence(error)}") from error
