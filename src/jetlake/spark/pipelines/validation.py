"""What is wrong with a pipeline, before it runs: names, types, and what sample rows give.

In this order, because each needs the one before: streams and tables that should be there, steps that Spark can
understand, outputs that fit their tables, rows of the sample. Everything that is found is told, not only the first.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jetlake.errors import ConfigurationError, JetlakeError
from jetlake.spark.columns import COLUMNS
from jetlake.spark.lake import columns, upserts
from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines import messages
from jetlake.spark.pipelines.flows import divided
from jetlake.spark.pipelines.model import Frames, Pipeline, StreamInput, StreamOutput, TableOutput
from jetlake.spark.pipelines.outgoing import as_messages
from jetlake.spark.pipelines.runner import SETTINGS
from jetlake.spark.pipelines.steps import explained, quieten
from jetlake.spark.pipelines.stream_names import check_streams
from jetlake.spark.pipelines.trial import Trial, collect, message_frame, table_frame
from jetlake.spark.sessions import new_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_SHOWN_MAX = 5


@dataclass
class ValidationResult:
    """What is wrong, and what the sample gave."""

    pipeline: str
    problems: list[str] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)
    """Of every output, as Spark writes them."""

    trial: Trial | None = None

    @property
    def is_good(self) -> bool:
        return not self.problems


def check_tables(pipeline: Pipeline, lake: Lake) -> list[str]:
    """Return what is wrong with the tables a pipeline reads."""
    problems = []
    for name, given in pipeline.tables.items():
        try:
            lake.existing(given.table)
        except ConfigurationError as error:
            if not pipeline.sample.get(name):
                problems.append(f"input {name}: {error}")
    return problems


def validate(
    pipeline: Pipeline, spark: "SparkSession", lake: Lake, stream_names: Sequence[str] | None
) -> ValidationResult:
    """Return everything that is wrong. `stream_names` is None when no server was asked."""
    quieten()
    verdict = ValidationResult(pipeline.name)
    verdict.problems += check_tables(pipeline, lake)
    if stream_names is not None:
        verdict.problems += check_streams(pipeline, stream_names)
    with new_session(spark, SETTINGS) as session:
        try_out(pipeline, session, lake, verdict)
    return verdict


def try_out(pipeline: Pipeline, session: "SparkSession", lake: Lake, verdict: ValidationResult) -> None:
    """Have Spark read the steps, and work on the rows of the sample; note what is wrong."""
    frames = tried(verdict, lambda: samples(pipeline, session, lake, verdict))
    if frames is None:
        return
    results = tried(verdict, lambda: pipeline.transform(frames))
    if results is None:
        return
    if pipeline.streams:
        tried(verdict, lambda: check_on_a_stream(pipeline, session, frames))
    for output in pipeline.outputs:
        tried(verdict, lambda output=output: check_output(pipeline, output, results, lake, verdict))  # type: ignore[misc]
    if verdict.is_good and pipeline.sample:
        assert verdict.trial is not None, "made with the samples"
        tried(verdict, lambda: collect(pipeline, results, verdict.trial or Trial()))
        verdict.problems += differences(pipeline, verdict.trial)


def tried(verdict: ValidationResult, work: Callable[[], Any]) -> Any:
    """Do something, and note what it refuses."""
    from pyspark.errors import PySparkException

    from jetlake.spark.pipelines.steps import sentence

    try:
        return work()
    except JetlakeError as error:
        verdict.problems.append(str(error).removeprefix(f"pipeline {verdict.pipeline}, "))
    except PySparkException as error:
        verdict.problems.append(sentence(error))
    return None


def samples(pipeline: Pipeline, spark: "SparkSession", lake: Lake, verdict: ValidationResult) -> Frames:
    """Return the inputs with the rows of the sample, and note what the sample sets aside."""
    from jetlake.spark.pipelines.trial import as_rows

    frames: dict[str, DataFrame] = {}
    verdict.trial = Trial()
    for name, given in pipeline.inputs.items():
        where = f"input {name}"
        rows = pipeline.sample.get(name, [])
        if isinstance(given, StreamInput):
            raw = message_frame(spark, rows, given, where)
            ready = explained(lambda raw=raw, given=given, where=where: messages.prepared(raw, given, where), where)  # type: ignore[misc]
            if rows:
                verdict.trial.bad += as_rows(messages.bad(ready, name), where)
            frames[name] = messages.good(ready)
        else:
            table = lake.table(given.table)
            there = table.read(spark) if table.exists() else None
            frames[name] = table_frame(spark, rows, there, where)
    return frames


def check_on_a_stream(pipeline: Pipeline, spark: "SparkSession", frames: Frames) -> None:
    """Refuse what Spark would refuse when the rows come from a stream, with streams that have the same columns."""
    from pyspark.sql.types import StructType

    with tempfile.TemporaryDirectory() as folder:
        streaming: dict[str, DataFrame] = dict(frames)
        for name, given in pipeline.streams.items():
            raw = spark.readStream.schema(StructType.fromDDL(given.schema or COLUMNS)).parquet(folder)  # type: ignore[arg-type]
            streaming[name] = messages.good(messages.prepared(raw, given, f"input {name}"))
        divided(pipeline, pipeline.transform(streaming))


def check_output(
    pipeline: Pipeline, output: TableOutput | StreamOutput, results: Frames, lake: Lake, verdict: ValidationResult
) -> None:
    """Refuse rows that do not fit where they go."""
    frame = pipeline.rows_of(output, results)
    if isinstance(output, StreamOutput):
        verdict.columns[output.name] = as_messages(frame, output).schema.simpleString()
        return
    columns.check_partition(output.table, frame.schema, list(output.partition_by))
    upserts.check_key(output.table, frame.schema, output.key, output.order_by)
    table = lake.table(output.table)
    if table.exists():
        columns.merged(output.table, table.schema(), frame.schema)
    verdict.columns[output.name] = frame.schema.simpleString()


def differences(pipeline: Pipeline, trial: Trial) -> list[str]:
    """Return where the sample gave something else than was expected."""
    problems = []
    for name, wanted in pipeline.expected.items():
        got = trial.outputs.get(name, [])
        if len(got) != len(wanted):
            problems.append(f"output {name}: the sample gives {len(got)} rows, and {len(wanted)} are expected")
            continue
        left = list(got)
        for row in wanted:
            match = next((index for index, there in enumerate(left) if fits(row, there)), None)
            if match is None:
                shown = "; ".join(str(brief(there, row)) for there in left[:ROWS_SHOWN_MAX])
                problems.append(f"output {name}: the sample gives no row {row}; left are {shown}")
            else:
                left.pop(match)
    return problems


def fits(wanted: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether a row has the values that are wanted, as text where YAML has no such type."""
    return all(name in row and (row[name] == value or str(row[name]) == str(value)) for name, value in wanted.items())


def brief(row: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a row that was asked for."""
    return {name: row.get(name) for name in wanted}
