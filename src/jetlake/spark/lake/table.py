"""One table of a lake: rows are appended once per batch, whatever dies in between.

The promise and why it holds: a batch is named by (query, batch). `append` looks the query's last batch up in the log
and does nothing when this one is there; otherwise it writes files, which no reader sees, and one commit that names
the files and the batch together. A crash before the commit leaves files that do not count; a crash after it leaves a
batch that is found when Spark runs it again. Of two writers one fails at the commit and looks again.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jetlake.errors import ConfigurationError
from jetlake.spark.lake import columns, compaction, staging
from jetlake.spark.lake.delta_log import DeltaLog, delta_is_there, is_delta
from jetlake.spark.lake.parquet_log import FOLDER, ParquetLog
from jetlake.spark.lake.snapshot import Change, Log, LogConflictError, Snapshot

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

KINDS = ("delta", "parquet")

CONFLICTS_MAX = 20
"""Writers of one table that get in each other's way more often than this in a row are a mistake."""

RETENTION_S = 7 * 24 * 3600.0
"""How long replaced files are kept for readers that have begun, unless `vacuum` is told otherwise."""


class Appended(NamedTuple):
    """What one batch did to a table."""

    rows: int
    files: int
    version: int
    already_there: bool = False


class LakeTable:
    """See the module. `kind` matters only for a table that does not exist yet: `delta`, `parquet` or empty.

    Empty means Delta when the package deltalake is installed, else Parquet.
    """

    def __init__(self, path: Path, kind: str = "") -> None:
        if kind and kind not in KINDS:
            raise ConfigurationError(f"table {path.name}: no kind {kind!r}; use delta or parquet")
        self.path = path
        self.log: Log = self._log_of(kind)
        # Queries whose last batch went well: nothing of theirs lies around, so nobody need look for it.
        self._clean: set[str] = set()

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def kind(self) -> str:
        return self.log.kind

    def exists(self) -> bool:
        return is_delta(self.path) or (self.path / FOLDER).is_dir()

    def snapshot(self) -> Snapshot:
        """Return what the log says now. Raises `ConfigurationError` when there is no such table."""
        snapshot = self.log.read()
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
        last = self.log.last_batch(snapshot, query)
        if last is not None and last >= batch:
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

        def change(newest: Snapshot) -> Change | None:
            known = self.log.last_batch(newest, query)
            if known is not None and known >= batch:
                return None
            wanted = columns.merged(self.name, parse_columns(newest.columns), after)
            added = "" if wanted == parse_columns(newest.columns) else wanted.json()
            return Change(files, list(newest.files) if replace else [], query, batch, added)

        result = self._commit(snapshot, change)
        if result is None:
            return Appended(0, 0, snapshot.version, already_there=True)
        self._clean.add(query)
        return Appended(sum(file.rows for file in files), len(files), result.version)

    def read(self, spark: "SparkSession", snapshot: Snapshot | None = None) -> "DataFrame":
        """Return the rows as a frame, as they are now: later batches do not change it."""
        snapshot = snapshot or self.snapshot()
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
        self, wanted: list[str] | None = None, rows_max: int | None = None, snapshot: Snapshot | None = None
    ) -> "pyarrow.Table":
        """Return rows, newest files first, without Spark; files after the one that fills `rows_max` are not opened."""
        import pyarrow

        snapshot = snapshot or self.snapshot()
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
            piece = opened.read(columns=[name for name in names if name in in_file])
        result = {}
        for name in names:
            if name in in_file:
                result[name] = piece.column(name)
            elif name in file.partition:
                value = partition_value(file.partition[name], fields[name])
                result[name] = pyarrow.array([value] * file.rows)
            else:
                result[name] = pyarrow.nulls(file.rows)
        return pyarrow.table(result)

    def compact(self, files_min: int = compaction.FILES_MIN) -> int:
        """Merge small files where a partition has at least so many; return how many files were merged."""
        merged = 0
        snapshot = self.snapshot()
        for group in compaction.groups(snapshot, files_min):
            prepared = compaction.merge(self.path, group)

            def change(newest: Snapshot, prepared: Change = prepared) -> Change | None:
                return prepared if all(path in newest.files for path in prepared.remove) else None

            result = self._commit(snapshot, change)
            if result is None:
                (self.path / prepared.add[0].path).unlink(missing_ok=True)
                snapshot = self.snapshot()
                continue
            merged += len(group)
            snapshot = result
        return merged

    def vacuum(self, retention_s: float = RETENTION_S) -> list[str]:
        """Delete files that have not counted for so long; return their paths.

        Shorter than the longest query that reads, and that query may miss a file.
        """
        return self.log.vacuum(self.snapshot(), retention_s)

    def _log_of(self, kind: str) -> Log:
        if is_delta(self.path):
            return DeltaLog(self.path)
        if (self.path / FOLDER).is_dir():
            return ParquetLog(self.path)
        if kind == "parquet" or (not kind and not delta_is_there()):
            return ParquetLog(self.path)
        return DeltaLog(self.path)

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

    def _commit(self, snapshot: Snapshot, change: Callable[[Snapshot], Change | None]) -> Snapshot | None:
        """Commit what `change` makes of the newest snapshot; None when it makes nothing."""
        for _ in range(CONFLICTS_MAX):
            wanted = change(snapshot)
            if wanted is None:
                return None
            try:
                return self.log.commit(snapshot, wanted)
            except LogConflictError:
                snapshot = self.snapshot()
        raise ConfigurationError(
            f"table {self.name}: {CONFLICTS_MAX} commits in a row were overtaken by another writer; let only one "
            "pipeline write it"
        )


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
