"""A pipeline as queries of Spark.

- Outputs that treat every row by itself share one query, which reads the stream once, writes them all and sets bad
  rows aside.
- An output that keeps state (it groups by time, joins two streams, removes repetitions) is a query of its own.
- A pipeline from tables only is not a stream: it is recomputed whenever one of its tables has changed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from jetlake.errors import ConfigurationError
from jetlake.spark.lake.folder import Lake
from jetlake.spark.lake.upserts import SEQUENCE
from jetlake.spark.pipelines import messages
from jetlake.spark.pipelines.batches import BatchWriter, ResultBatches, RowBatches
from jetlake.spark.pipelines.model import ONCE, Frames, Output, Pipeline, StreamInput, StreamOutput, TableOutput
from jetlake.spark.pipelines.model import trigger_s as seconds_of
from jetlake.spark.pipelines.outgoing import as_messages
from jetlake.spark.pipelines.plans import check_streaming, keeps_state
from jetlake.spark.pipelines.refresh import Refresh
from jetlake.spark.pipelines.state import PipelineFiles
from jetlake.spark.pipelines.steps import explained

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    Reader = Callable[[SparkSession, StreamInput, str], DataFrame]


@dataclass(frozen=True)
class Flow:
    """One query that can be started, and started again."""

    name: str
    start: "Callable[[], StreamingQuery | Refresh]"
    writer: BatchWriter | None = None


@dataclass(frozen=True)
class Setting:
    """What the queries of a pipeline run in."""

    spark: "SparkSession"
    lake: Lake
    url: str
    files: PipelineFiles
    once: bool = False
    reader: "Reader | None" = None
    connection: Mapping[str, str] = field(default_factory=dict)
    """How to connect, as options of the format `jetlake`: credentials, TLS. Those of an input or output go before."""

    def read(self, given: StreamInput) -> "DataFrame":
        """Return the messages of an input as a stream."""
        connected = replace(given, options={**self.connection, **given.options})
        return (self.reader or read_stream)(self.spark, connected, self.url)


def read_stream(spark: "SparkSession", given: StreamInput, url: str) -> "DataFrame":
    """Return messages through the format `jetlake`."""
    reader = spark.readStream.format("jetlake").options(**given.read_options(url))
    return (reader.schema(given.schema) if given.schema else reader).load()


def plan(pipeline: Pipeline, setting: Setting) -> list[Flow]:
    """Return the queries of a pipeline. Raises `ConfigurationError`."""
    if not pipeline.streams:
        return [refresh_flow(pipeline, setting)]
    ready = {}
    for name, given in pipeline.streams.items():
        where = f"pipeline {pipeline.name}, input {name}"
        ready[name] = explained(
            lambda given=given, where=where: messages.prepared(setting.read(given), given, where),  # type: ignore[misc]
            where,
        )
    return flows_of(pipeline, setting, ready)


def flows_of(pipeline: Pipeline, setting: Setting, ready: "Mapping[str, DataFrame]") -> list[Flow]:
    """Return the queries over inputs that are ready."""
    tables = table_frames(pipeline, setting.lake, setting.spark)
    frames = pipeline.transform({name: messages.good(frame) for name, frame in ready.items()} | dict(tables))
    alone, apart = divided(pipeline, frames)
    flows = []
    for name, frame in ready.items():
        outputs = alone if len(ready) == 1 else ()
        if outputs or pipeline.streams[name].may_have_bad_rows:
            flows.append(row_flow(pipeline, setting, name, frame, outputs))
    own = apart if len(ready) == 1 else pipeline.outputs
    groups = sharing(own)
    return flows + [result_flow(pipeline, setting, each, pipeline.frame_of(each[0], frames)) for each in groups]


def sharing(outputs: tuple[Output, ...]) -> list[tuple[Output, ...]]:
    """Return the outputs in groups that take one frame by its name; the state of a frame is kept once."""
    groups: dict[str, list[Output]] = {}
    for output in outputs:
        groups.setdefault(output.of or f"/{output.name}", []).append(output)
    return [tuple(group) for group in groups.values()]


def divided(pipeline: Pipeline, frames: Frames) -> tuple[tuple[Output, ...], tuple[Output, ...]]:
    """Return the outputs without state and those with. Raises `ConfigurationError` for what no stream can do."""
    alone: list[Output] = []
    apart: list[Output] = []
    for output in pipeline.outputs:
        frame = pipeline.frame_of(output, frames)
        if not frame.isStreaming:
            raise ConfigurationError(
                f"pipeline {pipeline.name}: output {output.name} takes nothing from a stream; make it a pipeline of "
                "its own, from tables only"
            )
        check_streaming(frame, f"pipeline {pipeline.name}, output {output.name}", mode_of((output,)))
        if keeps_state(frame):
            apart.append(output)
        else:
            check_order(pipeline, output, frame)
            alone.append(output)
    return tuple(alone), tuple(apart)


def check_order(pipeline: Pipeline, output: Output, frame: "DataFrame") -> None:
    """Refuse rows without a state if nothing says which of a key is the newest. Raises `ConfigurationError`."""
    if not isinstance(output, TableOutput) or not output.key or output.order_by:
        return
    if output.reduced or output.sums or output.pick is not None:
        # Every key is there once, or the rows are known only when there is a batch.
        return
    has_one_stream = len(pipeline.streams) == 1 and not any(given.pattern for given in pipeline.streams.values())
    if SEQUENCE not in frame.columns or not (has_one_stream or "stream" in output.key):
        raise ConfigurationError(
            f"pipeline {pipeline.name}, table {output.table}: a batch may have several rows of a key, and nothing says "
            f"which is the newest; give `order_by`, or select the column {SEQUENCE} of a single stream"
        )


def table_frames(pipeline: Pipeline, lake: Lake, spark: "SparkSession") -> Frames:
    """Return the inputs that are tables, as they are now."""
    return {name: lake.existing(given.table).read(spark) for name, given in pipeline.tables.items()}


def row_flow(
    pipeline: Pipeline, setting: Setting, input_name: str, frame: "DataFrame", outputs: tuple[Output, ...]
) -> Flow:
    """Return the query that treats every row by itself."""
    name = pipeline.name if len(pipeline.streams) == 1 else f"{pipeline.name}.{input_name}"
    writer = RowBatches(
        pipeline=pipeline,
        lake=setting.lake,
        checkpoint=setting.files.checkpoint(name),
        input_name=input_name,
        outputs=outputs,
        tables=lambda batch: table_frames(pipeline, setting.lake, batch.sparkSession),
        url=setting.url,
        connection=setting.connection,
    )
    query = frame.writeStream.foreachBatch(writer)
    return Flow(name, lambda: start(query, name, pipeline, setting), writer)


def result_flow(pipeline: Pipeline, setting: Setting, outputs: tuple[Output, ...], frame: "DataFrame") -> Flow:
    """Return the query of the outputs that share a frame which keeps state."""
    first = outputs[0]
    name = f"{pipeline.name}.{first.name if len(outputs) == 1 else first.of}"
    if len(outputs) == 1 and isinstance(first, StreamOutput):
        options = {"url": setting.url, "stream": first.stream, **setting.connection, **first.options}
        sink = as_messages(frame, first).writeStream.format("jetlake").options(**options)
        return Flow(name, lambda: start(sink, name, pipeline, setting))
    writer = ResultBatches(
        pipeline=pipeline,
        lake=setting.lake,
        checkpoint=setting.files.checkpoint(name),
        outputs=outputs,
        url=setting.url,
        connection=setting.connection,
    )
    query = frame.writeStream.outputMode(mode_of(outputs)).foreachBatch(writer)
    return Flow(name, lambda: start(query, name, pipeline, setting), writer)


def mode_of(outputs: tuple[Output, ...]) -> str:
    """Return how Spark gives results: rows that a key replaces as they fill, others when they are complete."""
    return "update" if any(isinstance(output, TableOutput) and output.key for output in outputs) else "append"


def start(query: "DataStreamWriter", name: str, pipeline: Pipeline, setting: Setting) -> "StreamingQuery":
    """Start a query with its name, checkpoint and trigger."""
    named = query.queryName(name).option("checkpointLocation", str(setting.files.checkpoint(name)))
    if setting.once or pipeline.trigger == ONCE:
        return named.trigger(availableNow=True).start()
    seconds = seconds_of(pipeline.trigger)
    assert seconds is not None, "`once` was treated above"
    return named.trigger(processingTime=f"{int(seconds * 1000)} milliseconds").start()


def refresh_flow(pipeline: Pipeline, setting: Setting) -> Flow:
    """Return the work of a pipeline from tables only."""
    for output in pipeline.outputs:
        if not isinstance(output, TableOutput):
            raise ConfigurationError(
                f"pipeline {pipeline.name}: a pipeline from tables only cannot write to stream {output.stream}; "
                "read a stream, or write a table"
            )
    once = setting.once or pipeline.trigger == ONCE
    pause_s = None if once else seconds_of(pipeline.trigger)
    return Flow(
        pipeline.name,
        lambda: Refresh(pipeline, setting.spark, setting.lake, setting.files.checkpoint(pipeline.name), pause_s),
    )
