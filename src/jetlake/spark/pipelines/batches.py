"""What happens to one micro-batch: rows to every output, bad ones aside, each table committed once per batch.

Why a restart is exact: Spark notes which sequences batch n has before it runs it, and runs batch n with the same
sequences again when it did not get to note its end. Each table remembers batch n of this query in the commit that
adds its rows, so running it again adds what is missing and nothing else. That note of Spark's is synced before a table
commits, or a power cut could leave a table that remembers a batch Spark has forgotten.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from jetlake.spark.lake.folder import Lake
from jetlake.spark.lake.parquet_log import sync_file, sync_folder
from jetlake.spark.lake.table import LakeTable
from jetlake.spark.pipelines import messages
from jetlake.spark.pipelines.model import Frames, Pipeline, StreamOutput, TableOutput
from jetlake.spark.pipelines.outgoing import as_messages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TIDY_EVERY = 64
"""Batches after which the files of a table are merged where there are many small ones."""

log = logging.getLogger("jetlake.pipelines")


@dataclass
class Target:
    """A table, and what is known about writing it."""

    table: LakeTable
    partition_by: tuple[str, ...]
    batches: int = 0


@dataclass
class BatchWriter:
    """What all writers of batches share: the tables they write, and the query they belong to."""

    pipeline: Pipeline
    lake: Lake
    checkpoint: Path
    targets: dict[str, Target] = field(default_factory=dict)

    def query(self) -> str:
        """Return the id that Spark gave the query, which is that of its checkpoint."""
        text = (self.checkpoint / "metadata").read_text(encoding="utf-8")
        return str(json.loads(text)["id"])

    def append(
        self, frame: "DataFrame", table: str, batch: int, partition_by: tuple[str, ...] = (), kind: str = ""
    ) -> LakeTable:
        """Add the rows of a batch to a table, once, and tidy it now and then."""
        target = self.targets.get(table)
        if target is None:
            target = self.targets[table] = Target(self.lake.table(table, kind), partition_by)
        target.table.append(
            frame, self.query(), batch, list(partition_by), before_commit=lambda: self._sync_offsets(batch)
        )
        target.batches += 1
        if target.batches % TIDY_EVERY == 0:
            tidy(target.table)
        return target.table

    def tidy(self) -> None:
        """Tidy every table that was written since the last time."""
        for target in self.targets.values():
            if target.batches % TIDY_EVERY:
                tidy(target.table)

    def send(self, frame: "DataFrame", output: StreamOutput, url: str, batch: int) -> None:
        """Publish the rows of a batch, once: repeated, the batch has the same name and stores nothing twice."""
        options = {
            "url": url,
            "stream": output.stream,
            "writeId": f"{self.query()}-{batch}-{output.name}",
            **output.options,
        }
        as_messages(frame, output).write.format("jetlake").mode("append").options(**options).save()

    def _sync_offsets(self, batch: int) -> None:
        note = self.checkpoint / "offsets" / str(batch)
        if note.exists():
            sync_file(note)
            sync_folder(note.parent)


@dataclass
class RowBatches(BatchWriter):
    """Rows of one stream, each treated by itself: outputs without state, and rows that are set aside."""

    input_name: str = ""
    outputs: tuple[TableOutput | StreamOutput, ...] = ()
    tables: "Callable[[DataFrame], Frames]" = lambda _: {}
    """The inputs that are tables, as they are now."""

    url: str = ""

    def __call__(self, batch: "DataFrame", number: int) -> None:
        """Treat one batch."""
        sets_aside = self.pipeline.streams[self.input_name].may_have_bad_rows
        # Every write is a job of its own, and each would read the stream again.
        shared = sets_aside + len(self.outputs) > 1
        if shared:
            batch.persist()
        try:
            if sets_aside:
                self._set_aside(messages.bad(batch, self.input_name), number)
            if self.outputs:
                self._write(batch, number)
        finally:
            if shared:
                batch.unpersist()

    def _set_aside(self, rows: "DataFrame", number: int) -> None:
        # Mostly there are none, and looking is cheaper than a commit that says so.
        if not rows.isEmpty():
            self.append(rows, self.pipeline.bad_table, number, ("day",))

    def _write(self, batch: "DataFrame", number: int) -> None:
        frames = self.pipeline.transform({self.input_name: messages.good(batch), **self.tables(batch)})
        for output in self.outputs:
            frame = self.pipeline.frame_of(output, frames)
            if isinstance(output, TableOutput):
                table = self.append(frame, output.table, number, output.partition_by, output.kind)
                self._follow(output, frame, table, number)
            else:
                self.send(frame, output, self.url, number)

    def _follow(self, output: TableOutput, frame: "DataFrame", table: LakeTable, number: int) -> None:
        for derived in output.derived:
            follows = derived.function(frame, table.read(frame.sparkSession))
            self.append(follows, derived.table, number, derived.partition_by, output.kind)


@dataclass
class ResultBatches(BatchWriter):
    """Rows that a query with state gives: one table, and those that follow it."""

    output: TableOutput | None = None

    def __call__(self, batch: "DataFrame", number: int) -> None:
        """Treat one batch."""
        output = self.output
        assert output is not None, "made with its output"
        if output.derived:
            batch.persist()
        try:
            table = self.append(batch, output.table, number, output.partition_by, output.kind)
            for derived in output.derived:
                follows = derived.function(batch, table.read(batch.sparkSession))
                self.append(follows, derived.table, number, derived.partition_by, output.kind)
        finally:
            if output.derived:
                batch.unpersist()


def tidy(table: LakeTable) -> None:
    """Merge small files and delete those that ceased to count long ago. What goes wrong waits for the next time."""
    try:
        table.compact()
        table.vacuum()
    except OSError as error:
        log.warning("table %s was not tidied: %s", table.name, error)
