"""One table of a lake: rows are appended or upserted once per batch, whatever dies in between.

The promise and why it holds: a batch is named by (query, batch). `append` looks the query's last batch up in the log
and does nothing when this one is there; otherwise it writes files, which no reader sees, and one commit that names
the files and the batch together. A crash before the commit leaves files that do not count; a crash after it leaves a
batch that is found when Spark runs it again. Of two writers one fails at the commit and looks again.

`upsert` keeps the same promise for a table with one row per key: the newest row wins, see `upserts`.
"""

import logging
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jetlake.errors import ConfigurationError
from jetlake.spark.lake import columns, compaction, staging, upserts
from jetlake.spark.lake.as_of import AsOf
from jetlake.spark.lake.delta_log import DeltaLog, is_delta
from jetlake.spark.lake.snapshot import LogConflictError, Snapshot, TableChange

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

log = logging.getLogger("jetlake.lake")

CONFLICTS_MAX = 20
"""Writers of one table that get in each other's way more often than this in a row are a mistake."""

RETENTION_S = 7 * 24 * 3600.0
"""How long replaced files are kept by default for readers that have begun."""

UPSERT_RETENTION_S = 3600.0
"""The same for a table that is upserted: every batch replaces files of it, some hundred thousand in a week."""

THINNED_S = 3600.0
"""For an upserted table, one version per this time stays readable for `RETENTION_S`; all do for the first hour."""


class Appended(NamedTuple):
    """What one batch did to a table."""

    rows: int
    files: int
    version: int
    already_there: bool = False


class LakeTable:
    """See the module."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = DeltaLog(path)
        # Queries whose last batch went well: nothing of theirs lies around, so nobody need look for it.
        self._clean: set[str] = set()

    @property
    def name(self) -> str:
        return self.path.name

    def exists(self) -> bool:
        return is_delta(self.path)

    def snapshot(self, as_of: AsOf | None = None) -> Snapshot:
        """Return what the log says now, or said at a version or a time.

        Raises `ConfigurationError` when there is no such table or version.
        """
        snapshot = self.log.read() if as_of is None else self.log.read_at(as_of)
        if snapshot is None:
            raise ConfigurationError(f"there is no table {self.name} in {self.path.parent}")
        return snapshot

    def last_batch(self, query: str) -> int | None:
        """Return the last batch of a query that is in the table; None when there is none."""
        snapshot = self.log.read()
        return None if snapshot is None else self.log.last_batch(snapshot, query)

    def schema(self) -> "StructType":
        return parse_columns(self.snapshot().columns)

    def append(
        self,
        frame: "DataFrame",
        query: str,
        batch: int,
        partition_by: list[str] | None = None,
        before_commit: Callable[[], None] | None = None,
    ) -> Appended:
        """Add the rows of a batch, once. The first batch makes the table.

        `before_commit` runs when the files are written and before the log names them.
        """
        return self._write(frame, query, batch, partition_by or [], before_commit, replace=False)

    def replace(self, frame: "DataFrame", query: str, batch: int, partition_by: list[str] | None = None) -> Appended:
        """Have the rows of this frame be all rows; readers see the old ones or the new ones."""
        return self._write(frame, query, batch, partition_by or [], None, replace=True)

    def upsert(
        self,
        frame: "DataFrame",
        query: str,
        batch: int,
        key: Sequence[str],
        order_by: Sequence[str] = (),
        partition_by: list[str] | None = None,
        before_commit: Callable[[], None] | None = None,
        *,
        reduced: bool = False,
    ) -> Appended:
        """Have the table hold the newest row of every key, given the rows of one more batch, once.

        `order_by` says what is newest; without it that is the row of the last batch with the highest `sequence`. The
        batch is reduced to one row per key where its rows are (unless it is `reduced` already), and what is left comes
        together in this process.
        """
        upserts.check_key(self.name, frame.schema, key, order_by)
        snapshot = self._opened(frame.schema, partition_by or [])
        if self._has(snapshot, query, batch):
            return Appended(0, 0, snapshot.version, already_there=True)
        after = columns.merged(self.name, parse_columns(snapshot.columns), frame.schema)
        fitted = columns.fitted(frame, after)
        found = (fitted if reduced else upserts.newest(fitted, key, order_by)).toArrow()
        rows = upserts.with_key(found, key)
        if len(rows) < len(found):
            log.warning("table %s: %d rows without a key were left out", self.name, len(found) - len(rows))
        if before_commit is not None:
            before_commit()
        if not len(rows):
            # Repeated, the batch would give nothing again.
            return Appended(0, 0, snapshot.version)
        return self._commit_rows(snapshot, rows, query, batch, key, order_by, after)

    def write_rows(
        self,
        rows: "pyarrow.Table",
        query: str,
        batch: int,
        key: Sequence[str] = (),
        order_by: Sequence[str] = (),
        partition_by: list[str] | None = None,
        before_commit: Callable[[], None] | None = None,
    ) -> Appended:
        """Do the same with rows that are in this process; without a key they are added."""
        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

        schema = from_arrow_schema(rows.schema)
        if key:
            upserts.check_key(self.name, schema, key, order_by)
        snapshot = self._opened(schema, partition_by or [])
        if self._has(snapshot, query, batch):
            return Appended(0, 0, snapshot.version, already_there=True)
        after = columns.merged(self.name, parse_columns(snapshot.columns), schema)
        fitted = compaction.completed(rows, to_arrow_schema(after, timezone="UTC"))
        if key:
            fitted = upserts.newest_rows(upserts.with_key(fitted, key), key, order_by)
        if before_commit is not None:
            before_commit()
        return self._commit_rows(snapshot, fitted, query, batch, key, order_by, after)

    def _commit_rows(
        self,
        snapshot: Snapshot,
        rows: "pyarrow.Table",
        query: str,
        batch: int,
        key: Sequence[str],
        order_by: Sequence[str],
        after: "StructType",
    ) -> Appended:
        """Commit rows of this process, looking again when another writer was faster."""
        for _ in range(CONFLICTS_MAX):
            added = columns.merged(self.name, parse_columns(snapshot.columns), after)
            changed = "" if added == parse_columns(snapshot.columns) else added.json()
            change = TableChange(query=query, batch=batch, columns=changed)
            try:
                if key:
                    result = self.log.merge(snapshot, rows, list(key), list(order_by), change)
                else:
                    result = self.log.append(snapshot, rows, change)
            except LogConflictError:
                snapshot = self.snapshot()
                if self._has(snapshot, query, batch):
                    return Appended(0, 0, snapshot.version, already_there=True)
                continue
            return Appended(len(rows), len(result.files), result.version)
        raise self._overtaken()

    def _has(self, snapshot: Snapshot, query: str, batch: int) -> bool:
        """Whether a batch is in the table."""
        last = self.log.last_batch(snapshot, query)
        return last is not None and last >= batch

    def _write(
        self,
        frame: "DataFrame",
        query: str,
        batch: int,
        partition_by: list[str],
        before_commit: Callable[[], None] | None,
        *,
        replace: bool,
    ) -> Appended:
        snapshot = self._opened(frame.schema, partition_by)
        if self._has(snapshot, query, batch):
            return Appended(0, 0, snapshot.version, already_there=True)
        label = staging.label_of(query, batch)
        if query not in self._clean:
            staging.sweep(self.path, snapshot, label)
        self._clean.discard(query)
        there = parse_columns(snapshot.columns)
        after = columns.merged(self.name, there, frame.schema)
        files = staging.write(columns.fitted(frame, after), self.path, snapshot.partition_by, label)
        if before_commit is not None:
            before_commit()

        def change(newest: Snapshot) -> TableChange | None:
            if self._has(newest, query, batch):
                return None
            wanted = columns.merged(self.name, parse_columns(newest.columns), after)
            added = "" if wanted == parse_columns(newest.columns) else wanted.json()
            return TableChange(files, list(newest.files) if replace else [], query, batch, added)

        result = self._commit(snapshot, change)
        if result is None:
            return Appended(0, 0, snapshot.version, already_there=True)
        self._clean.add(query)
        return Appended(sum(file.rows for file in files), len(files), result.version)

    def read(
        self, spark: "SparkSession", snapshot: Snapshot | None = None, *, as_of: AsOf | None = None
    ) -> "DataFrame":
        """Return the rows as a frame, as they are now or were once: later batches do not change it."""
        snapshot = snapshot or self.snapshot(as_of)
        schema = parse_columns(snapshot.columns)
        if not snapshot.files:
            return spark.createDataFrame([], schema)
        # Files carry their own schema; where a column was added later, older files give NULL.
        paths = [str(self.path / path) for path in snapshot.files]
        return (
            spark.read.schema(schema)
            .option("basePath", str(self.path))
            .parquet(*paths)
            .select(*(f"`{name}`" for name in schema.names))
        )

    def to_arrow(
        self,
        wanted: list[str] | None = None,
        rows_max: int | None = None,
        snapshot: Snapshot | None = None,
        as_of: AsOf | None = None,
    ) -> "pyarrow.Table":
        """Return rows, newest files first, without Spark; files after the one that fills `rows_max` are not opened."""
        import pyarrow

        snapshot = snapshot or self.snapshot(as_of)
        fields = {field["name"]: field["type"] for field in _fields(snapshot.columns)}
        names = list(fields) if wanted is None else wanted
        pieces: list[pyarrow.Table] = []
        count = 0
        for path in reversed(snapshot.files):
            if rows_max is not None and count >= rows_max:
                break
            pieces.append(self._read_file(snapshot, path, names, fields))
            count += len(pieces[-1])
        if not pieces:
            return pyarrow.table({name: pyarrow.nulls(0) for name in names})
        return pyarrow.concat_tables(pieces, promote_options="permissive")

    def _read_file(self, snapshot: Snapshot, path: str, names: list[str], fields: dict[str, Any]) -> "pyarrow.Table":
        import pyarrow
        from pyarrow import parquet

        file = snapshot.files[path]
        with parquet.ParquetFile(self.path / path) as opened:
            in_file = set(opened.schema_arrow.names)
            piece = without_views(opened.read(columns=[name for name in names if name in in_file]))
        result = {}
        for name in names:
            if name in in_file:
                result[name] = piece.column(name).cast(columns.plain_type(piece.column(name).type))
            elif name in file.partition:
                value = partition_value(file.partition[name], fields[name])
                result[name] = pyarrow.array([value] * file.rows)
            else:
                result[name] = pyarrow.nulls(file.rows)
        return pyarrow.table(result)

    def compact(self, files_min: int = compaction.FILES_MIN) -> int:
        """Merge the small files of each partition with at least `files_min`; return how many files were merged."""
        merged = 0
        snapshot = self.snapshot()
        for group in compaction.groups(snapshot, files_min):
            prepared = compaction.merge(self.path, group)

            def change(newest: Snapshot, prepared: TableChange = prepared) -> TableChange | None:
                return prepared if all(path in newest.files for path in prepared.remove) else None

            result = self._commit(snapshot, change)
            if result is None:
                (self.path / prepared.add[0].path).unlink(missing_ok=True)
                snapshot = self.snapshot()
                continue
            merged += len(group)
            snapshot = result
        return merged

    def vacuum(self, retention_s: float = RETENTION_S, *, thinned: bool = False) -> list[str]:
        """Delete files that have been unused for this long; return their paths.

        Shorter than the longest query that reads, and that query may miss a file. With `thinned` one version an hour
        stays readable for `RETENTION_S`.
        """
        keep = kept_versions(self.log.versions(), time.time()) if thinned else []
        return self.log.vacuum(retention_s, keep)

    def _opened(self, schema: "StructType", partition_by: list[str]) -> Snapshot:
        snapshot = self.log.read()
        if snapshot is not None:
            return snapshot
        columns.check_partition(self.name, schema, partition_by)
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            return self.log.create(columns.nullable(schema).json(), partition_by)
        except LogConflictError:
            return self.snapshot()

    def _commit(self, snapshot: Snapshot, change: Callable[[Snapshot], TableChange | None]) -> Snapshot | None:
        """Commit what `change` makes of the newest snapshot; None when it makes nothing."""
        for _ in range(CONFLICTS_MAX):
            wanted = change(snapshot)
            if wanted is None:
                return None
            try:
                return self.log.commit(snapshot, wanted)
            except LogConflictError:
                snapshot = self.snapshot()
        raise self._overtaken()

    def _overtaken(self) -> ConfigurationError:
        return ConfigurationError(
            f"table {self.name}: {CONFLICTS_MAX} commits in a row were overtaken by another writer; let only one "
            "pipeline write it"
        )


def kept_versions(versions: Sequence[tuple[int, float]], now_s: float) -> list[int]:
    """Return the last version of every hour of the last days, of versions with the time at which each was made."""
    last_of_hour = {int(made_s // THINNED_S): number for number, made_s in versions if made_s >= now_s - RETENTION_S}
    return sorted(last_of_hour.values())


def without_views(rows: "pyarrow.Table") -> "pyarrow.Table":
    """Return rows with plain texts and bytes: a merge writes files that ask for views, which pyarrow cannot filter."""
    import pyarrow

    plain = {pyarrow.string_view(): pyarrow.string(), pyarrow.binary_view(): pyarrow.binary()}
    fields = [field.with_type(plain.get(field.type, field.type)) for field in rows.schema]
    return rows.cast(pyarrow.schema(fields))


def parse_columns(encoded: str) -> "StructType":
    """Return columns that a log holds as JSON."""
    import json

    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(encoded))


def partition_value(text: str | None, kind: str) -> object:
    """Return the value of a partition from its text in the log."""
    if text is None:
        return None
    if kind in {"integer", "long", "short", "byte"}:
        return int(text)
    if kind == "date":
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).date()
    return text


def _fields(encoded: str) -> list[dict[str, Any]]:
    import json

    fields: list[dict[str, Any]] = json.loads(encoded)["fields"]
    return fields
