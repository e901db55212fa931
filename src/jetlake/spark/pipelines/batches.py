"""What happens to one micro-batch: rows to every output, bad ones aside, each table committed once per batch.

Why a restart is exact: Spark notes which sequences batch n has before it runs it, and runs batch n with the same
sequences again when it did not get to note its end. Each table remembers batch n of this query in the commit that
adds its rows, so running it again adds what is missing and nothing else. That note of Spark's is synced before a table
commits, or a power cut could leave a table that remembers a batch Spark has forgotten.
"""

import json
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from jetlake.spark.lake.folder import Lake
from jetlake.spark.lake.syncing import sync_file, sync_folder
from jetlake.spark.lake.table import UPSERT_RETENTION_S, LakeTable
from jetlake.spark.pipelines import messages
from jetlake.spark.pipelines.model import Frames, Ordered, Pipeline, StreamOutput, TableOutput, picked
from jetlake.spark.pipelines.outgoing import as_messages
from jetlake.spark.pipelines.tallies import with_totals

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

TIDY_EVERY = 64
"""Batches after which the files of a table are merged where there are many small ones."""

WRITERS_MAX = 4
"""Tables that are written at a time; each holds its rows of the batch in memory until it is."""

LATE_SUFFIX = "-late"
"""Of the name under which a table remembers batches of late rows."""

log = logging.getLogger("jetlake.pipelines")


@dataclass
class TargetTable:
    """A table, and what is known about writing it."""

    table: LakeTable
    upserted: bool = False
    batches: int = 0


@dataclass
class BatchWriter:
    """What all writers of batches share: the tables they write, and the query they belong to."""

    pipeline: Pipeline
    lake: Lake
    checkpoint: Path
    url: str = ""
    connection: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[TableOutput | StreamOutput, ...] = ()
    targets: dict[str, TargetTable] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    """Rows that reached each table in this run."""

    def query(self) -> str:
        """Return the id that Spark gave the query, which is that of its checkpoint."""
        text = (self.checkpoint / "metadata").read_text(encoding="utf-8")
        return str(json.loads(text)["id"])

    def sets_aside(self) -> bool:
        """Whether this query may add bad rows to the pipeline's table for them."""
        return False

    def query_for(self, output: TableOutput) -> str:
        """Return the name under which a table remembers the batches of an output.

        What a query writes to a table first has the query's own name. Each further output to the same table commits
        the same batch once more, so it needs another name: with the same one, its batch would already be there.
        """
        frames = [each.of for each in self.outputs if isinstance(each, TableOutput) and each.table == output.table]
        follows_bad_rows = self.sets_aside() and output.table == self.pipeline.bad_table
        if follows_bad_rows or output.of in frames[1:]:
            return f"{self.query()}-{output.of or output.table}"
        return self.query()

    def append(
        self, frame: "DataFrame", table: str, query: str, batch: int, partition_by: tuple[str, ...] = ()
    ) -> LakeTable:
        """Add the rows of a batch to a table, once, and tidy it now and then."""
        target = self._target(table)
        result = target.table.append(
            frame, query, batch, list(partition_by), before_commit=lambda: self._sync_offsets(batch)
        )
        self._written(target, result.rows)
        return target.table

    def write(self, frame: "DataFrame", output: TableOutput, batch: int) -> LakeTable:
        """Add the rows of a batch to the table of an output, or upsert them if it has a key."""
        if not output.key:
            return self.append(frame, output.table, self.query_for(output), batch, output.partition_by)
        target = self._target(output.table, upserted=True)
        result = target.table.upsert(
            frame,
            self.query_for(output),
            batch,
            output.key,
            output.order_by,
            list(output.partition_by),
            reduced=output.reduced or bool(output.sums),
            before_commit=lambda: self._sync_offsets(batch),
        )
        self._written(target, result.rows)
        return target.table

    def write_rows(self, rows: "pyarrow.Table", output: TableOutput, batch: int) -> None:
        """Do the same with rows that are in this process."""
        if not len(rows):
            # Repeated, the batch would give nothing again.
            return
        target = self._target(output.table, upserted=bool(output.key))
        result = target.table.write_rows(
            rows,
            self.query_for(output),
            batch,
            output.key,
            output.order_by,
            list(output.partition_by),
            before_commit=lambda: self._sync_offsets(batch),
        )
        self._written(target, result.rows)

    def put_in_order(self, rows: "pyarrow.Table", output: TableOutput, ordered: Ordered, batch: int) -> None:
        """Upsert rows that came late to a table, and those that follow another row because of them, once."""
        from pyspark.sql import SparkSession

        if not len(rows):
            return
        spark = SparkSession.getActiveSession()
        assert spark is not None, "a batch runs in a session"
        target = self._target(output.table)
        changed = ordered.reconciled(spark.createDataFrame(rows), target.table.read(spark))
        # A second commit of the same batch, so under a name of its own.
        target.table.upsert(changed, f"{self.query_for(output)}{LATE_SUFFIX}", batch, ordered.key, reduced=True)

    def _target(self, table: str, *, upserted: bool = False) -> TargetTable:
        if table not in self.targets:
            self.targets[table] = TargetTable(self.lake.table(table), upserted)
        return self.targets[table]

    def _written(self, target: TargetTable, rows: int) -> None:
        self.written[target.table.name] = self.written.get(target.table.name, 0) + rows
        target.batches += 1
        if target.batches % TIDY_EVERY == 0:
            tidy(target)

    def tidy(self) -> None:
        """Tidy every table that was written since the last time."""
        for target in self.targets.values():
            if target.batches % TIDY_EVERY:
                tidy(target)

    def deliver(self, frame: "DataFrame", output: TableOutput | StreamOutput, batch: int) -> None:
        """Bring the rows of a batch to an output, and what follows it."""
        if isinstance(output, StreamOutput):
            self.send(frame, output, self.url, batch)
            return
        if output.table == self.pipeline.bad_table and frame.isEmpty():
            # Mostly there are none, and looking is cheaper than a commit that says so.
            return
        if output.sums:
            table = self._target(output.table, upserted=True).table
            frame = with_totals(frame, table, output, self.query_for(output), batch)
        table = self.write(frame, output, batch)
        for derived in output.derived:
            follows = derived.function(frame, table.read(frame.sparkSession))
            self.write(follows, TableOutput(derived.table, partition_by=derived.partition_by, key=derived.key), batch)

    def send(self, frame: "DataFrame", output: StreamOutput, url: str, batch: int) -> None:
        """Publish the rows of a batch: repeated within the stream's duplicate window, it stores nothing twice."""
        options = {
            "url": url,
            "stream": output.stream,
            "writeId": f"{self.query()}-{batch}-{output.name}",
            **self.connection,
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
    tables: "Callable[[DataFrame], Frames]" = lambda _: {}
    """The inputs that are tables, as they are now."""

    def sets_aside(self) -> bool:
        """See `BatchWriter`."""
        return self.pipeline.streams[self.input_name].may_have_bad_rows

    def __call__(self, batch: "DataFrame", number: int) -> None:
        """Treat one batch."""
        sets_aside = self.sets_aside()
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
            self.append(rows, self.pipeline.bad_table, self.query(), number, ("day",))

    def _write(self, batch: "DataFrame", number: int) -> None:
        frames = self.pipeline.transform({self.input_name: messages.good(batch), **self.tables(batch)})
        for output in self.outputs:
            self.deliver(self.pipeline.rows_of(output, frames), output, number)


@dataclass
class ResultBatches(BatchWriter):
    """Rows that a query with state gives: the outputs that take them, and what follows those."""

    def __call__(self, batch: "DataFrame", number: int) -> None:
        """Treat one batch."""
        in_process = [
            output for output in self.outputs if isinstance(output, TableOutput) and output.rows_of is not None
        ]
        if len(in_process) == len(self.outputs):
            self._write_tables(batch.toArrow(), in_process, number)
            return
        # Every write is a job of its own, and each would run what keeps the state again.
        shared = len(self.outputs) > 1 or any(isinstance(each, TableOutput) and each.derived for each in self.outputs)
        if shared:
            batch.persist()
        try:
            for output in self.outputs:
                self.deliver(picked(output, batch), output, number)
        finally:
            if shared:
                batch.unpersist()

    def _write_tables(self, rows: "pyarrow.Table", outputs: list[TableOutput], number: int) -> None:
        """Write all tables from rows that are in this process, some at a time: mostly each waits for the disk."""

        def write(output: TableOutput) -> None:
            assert output.rows_of is not None
            self.write_rows(output.rows_of(rows), output, number)

        with ThreadPoolExecutor(WRITERS_MAX, thread_name_prefix="table-writer") as pool:
            # Exhausted, so that what went wrong is raised.
            for _ in pool.map(write, outputs):
                pass
        for output in outputs:
            if output.ordered is not None:
                self.put_in_order(output.ordered.late(rows), output, output.ordered, number)


def tidy(target: TargetTable) -> None:
    """Merge small files and delete those that ceased to count long ago. What goes wrong waits for the next time."""
    try:
        target.table.compact()
        if target.upserted:
            target.table.vacuum(UPSERT_RETENTION_S, thinned=True)
        else:
            target.table.vacuum()
    except OSError as error:
        log.warning("table %s was not tidied: %s", target.table.name, error)
