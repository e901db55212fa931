"""The log of a table: Delta's, so that any Delta reader understands it, written by the package deltalake.

A commit carries the transaction of its batch (`txn`: query and batch), so a batch is in the table once whatever
happens between the commit and Spark's own note that the batch is done. No jar is needed: Spark writes the files, this
process writes the log. Only an upsert is worked out here, by deltalake: it reads the table, and writes the files again
that have rows which change.
"""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from jetlake.errors import ConfigurationError, MissingDependencyError
from jetlake.spark.lake import upserts
from jetlake.spark.lake.as_of import AsOf
from jetlake.spark.lake.snapshot import DataFile, LogConflictError, Snapshot, TableChange

if TYPE_CHECKING:
    import pyarrow
    from deltalake import CommitProperties, DeltaTable

FOLDER = "_delta_log"

COMMIT_RETRIES_MAX = 0
"""A conflict is ours to decide about: the batch may be in the table already."""

SECONDS_PER_HOUR = 3600

SETTINGS = {"delta.logRetentionDuration": "interval 8 days", "delta.checkpointInterval": "50"}
"""Of new tables. A pipeline commits every few seconds: entries of versions that cannot be read any more go."""


def is_delta(table: Path) -> bool:
    """Whether there is a Delta table in this folder."""
    return (table / FOLDER).is_dir()


class DeltaLog:
    """See the module."""

    def __init__(self, table: Path) -> None:
        try:
            import deltalake  # noqa: F401
        except ImportError as error:
            raise MissingDependencyError(
                "tables are Delta tables, and the package deltalake is not installed: run `pip install "
                "'jetlake[spark]'`"
            ) from error
        self.table = table
        self._opened: DeltaTable | None = None

    def read(self) -> Snapshot | None:
        opened = self._open()
        return None if opened is None else self._snapshot(opened)

    def read_at(self, as_of: AsOf) -> Snapshot | None:
        """Return an earlier snapshot; None when there is no table. Raises `ConfigurationError`."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        if self._open() is None:
            return None
        try:
            if isinstance(as_of, int):
                return self._snapshot(DeltaTable(self.table, version=as_of))
            opened = DeltaTable(self.table)
            opened.load_as_version(as_of)
        except (DeltaError, ValueError, OverflowError) as error:
            raise ConfigurationError(
                f"table {self.table.name} has no version {as_of} any more or not yet: it is at version "
                f"{self._current_version()}"
            ) from error
        return self._snapshot(opened)

    def create(self, columns: str, partition_by: list[str]) -> Snapshot:
        from deltalake import DeltaTable, Schema
        from deltalake.exceptions import DeltaError

        try:
            schema = Schema.from_json(columns)
            self._opened = DeltaTable.create(
                self.table, schema, mode="error", partition_by=partition_by, configuration=SETTINGS
            )
        except DeltaError as error:
            if self._open() is not None:
                raise LogConflictError(f"table {self.table} was made meanwhile") from error
            raise
        except ValueError as error:
            raise ConfigurationError(
                f"table {self.table}: Delta has no place for one of the columns ({error}); cast it"
            ) from error
        return self._snapshot(self._opened)

    def commit(self, snapshot: Snapshot, change: TableChange) -> Snapshot:
        from deltalake import Schema
        from deltalake.exceptions import CommitFailedError

        opened = self._open_at(snapshot)
        if change.columns:
            self._add_columns(opened, change.columns)
        try:
            opened.create_write_transaction(
                [*self._removals(snapshot, change), *self._additions(change)],
                mode="append",
                schema=Schema.from_json(change.columns or snapshot.columns),
                partition_by=snapshot.partition_by,
                commit_properties=_transaction(change.query, change.batch),
            )
        except CommitFailedError as error:
            raise LogConflictError(str(error)) from error
        opened.update_incremental()
        return self._snapshot(opened)

    def merge(
        self,
        snapshot: Snapshot,
        rows: "pyarrow.Table",
        key: list[str],
        order_by: list[str],
        change: TableChange,
    ) -> Snapshot:
        """Make the next version: rows whose key is there replace it where they are newer, the others are added.

        Of `change` the batch and the columns count. Raises `LogConflictError`.
        """
        from deltalake import WriterProperties
        from deltalake.exceptions import CommitFailedError

        opened = self._open_at(snapshot)
        if change.columns:
            self._add_columns(opened, change.columns)
        merger = opened.merge(
            rows,
            upserts.same_key(key),
            source_alias=upserts.NEW,
            target_alias=upserts.THERE,
            writer_properties=WriterProperties(compression="ZSTD"),
            commit_properties=_transaction(change.query, change.batch),
        )
        try:
            merger.when_matched_update_all(upserts.is_newer(order_by) or None).when_not_matched_insert_all().execute()
        except CommitFailedError as error:
            raise LogConflictError(str(error)) from error
        opened.update_incremental()
        return self._snapshot(opened)

    def append(self, snapshot: Snapshot, rows: "pyarrow.Table", change: TableChange) -> Snapshot:
        """Make the next version with more rows. Of `change` the batch and the columns count. Raises as `merge` does."""
        from deltalake import WriterProperties, write_deltalake
        from deltalake.exceptions import CommitFailedError

        opened = self._open_at(snapshot)
        if change.columns:
            self._add_columns(opened, change.columns)
        try:
            write_deltalake(
                opened,
                rows,
                mode="append",
                writer_properties=WriterProperties(compression="ZSTD"),
                commit_properties=_transaction(change.query, change.batch),
            )
        except CommitFailedError as error:
            raise LogConflictError(str(error)) from error
        opened.update_incremental()
        return self._snapshot(opened)

    def last_batch(self, snapshot: Snapshot, query: str) -> int | None:
        opened = self._open()
        assert opened is not None, f"version {snapshot.version} was read"
        return opened.transaction_version(query)

    def versions(self) -> list[tuple[int, float]]:
        """Return the versions that the log still tells about, and when each was made, oldest first."""
        entries = (path for path in (self.table / FOLDER).glob("*.json") if path.stem.isdecimal())
        return sorted((int(path.stem), path.stat().st_mtime) for path in entries)

    def vacuum(self, retention_s: float, keep: list[int]) -> list[str]:
        """Delete files that have been unused for this long, and return their paths; those of some versions stay."""
        opened = self._open()
        assert opened is not None
        deleted = opened.vacuum(
            retention_hours=round(retention_s / SECONDS_PER_HOUR),
            dry_run=False,
            enforce_retention_duration=False,
            full=True,
            keep_versions=keep or None,
        )
        opened.update_incremental()
        return [unquote(path) for path in deleted]

    def _open_at(self, snapshot: Snapshot) -> "DeltaTable":
        opened = self._open()
        assert opened is not None, "a table is created before its first commit"
        if opened.version() != snapshot.version:
            raise LogConflictError(f"table {self.table} is at version {opened.version()} now")
        return opened

    def _current_version(self) -> int:
        opened = self._open()
        return -1 if opened is None else int(opened.version())

    def _open(self) -> "DeltaTable | None":
        from deltalake import DeltaTable

        if self._opened is None:
            if not is_delta(self.table) or not DeltaTable.is_deltatable(str(self.table)):
                return None
            self._opened = DeltaTable(self.table)
        else:
            self._opened.update_incremental()
        return self._opened

    def _snapshot(self, opened: "DeltaTable") -> Snapshot:
        import pyarrow

        partition_by = list(opened.metadata().partition_columns)
        rows = pyarrow.table(opened.get_add_actions(flatten=False)).to_pylist()
        files = {}
        for row in rows:
            path = unquote(row["path"])
            partition = {name: _text(value) for name, value in (row.get("partition") or {}).items()}
            files[path] = DataFile(path, row["size_bytes"], row.get("num_records") or 0, partition)
        return Snapshot(
            version=opened.version(),
            columns=opened.schema().to_json(),
            partition_by=partition_by,
            files=files,
        )

    def _add_columns(self, opened: "DeltaTable", columns: str) -> None:
        from deltalake import Schema

        known = {field.name for field in opened.schema().fields}
        new = [field for field in Schema.from_json(columns).fields if field.name not in known]
        if new:
            opened.alter.add_columns(new)
            opened.update_incremental()

    def _additions(self, change: TableChange) -> list[Any]:
        from deltalake.transaction import AddAction

        return [
            AddAction(
                path=file.path,
                size=file.size_bytes,
                partition_values=file.partition,
                modification_time=time.time_ns() // 1_000_000,
                data_change=not change.same_rows,
                stats=json.dumps(
                    {
                        "numRecords": file.rows,
                        "minValues": {name: least for name, (least, _) in file.ranges.items()},
                        "maxValues": {name: greatest for name, (_, greatest) in file.ranges.items()},
                    }
                ),
            )
            for file in change.add
        ]

    def _removals(self, snapshot: Snapshot, change: TableChange) -> list[Any]:
        from deltalake.transaction import RemoveAction

        return [
            RemoveAction(
                path=path,
                data_change=not change.same_rows,
                deletion_timestamp=time.time_ns() // 1_000_000,
                size=snapshot.files[path].size_bytes,
                partition_values=snapshot.files[path].partition,
            )
            for path in change.remove
        ]


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _transaction(query: str, batch: int) -> "CommitProperties":
    """Return what a commit remembers about the batch it is for."""
    from deltalake import CommitProperties, Transaction

    transactions = [Transaction(query, batch)] if query else None
    return CommitProperties(max_commit_retries=COMMIT_RETRIES_MAX, app_transactions=transactions)
