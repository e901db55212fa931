"""The log of a table of kind `delta`: a Delta table that any Delta reader understands, committed by deltalake.

A commit carries the transaction of its batch (`txn`: query and batch), so a batch is in the table once whatever
happens between the commit and Spark's own note that the batch is done. No jar is needed: Spark writes the files, this
process writes the log.
"""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from jetlake.errors import ConfigurationError, MissingDependencyError
from jetlake.spark.lake.snapshot import Change, DataFile, LogConflictError, Snapshot

if TYPE_CHECKING:
    from deltalake import DeltaTable

COMMIT_RETRIES_MAX = 0
"""A conflict is ours to decide about: the batch may be in the table already."""

SECONDS_PER_HOUR = 3600


def delta_is_there() -> bool:
    """Whether the package deltalake can be imported."""
    try:
        import deltalake  # noqa: F401
    except ImportError:
        return False
    return True


class DeltaLog:
    """See the module."""

    kind = "delta"

    def __init__(self, table: Path) -> None:
        if not delta_is_there():
            raise MissingDependencyError(
                f"table {table} is of kind delta, and the package deltalake is not installed: run `pip install "
                "deltalake`, or use kind parquet for new tables"
            )
        self.table = table
        self._opened: DeltaTable | None = None

    def read(self) -> Snapshot | None:
        opened = self._open()
        return None if opened is None else self._snapshot(opened)

    def create(self, columns: str, partition_by: list[str]) -> Snapshot:
        from deltalake import DeltaTable, Schema
        from deltalake.exceptions import DeltaError

        try:
            schema = Schema.from_json(columns)
            self._opened = DeltaTable.create(self.table, schema, mode="error", partition_by=partition_by)
        except DeltaError as error:
            if self._open() is not None:
                raise LogConflictError(f"table {self.table} was made meanwhile") from error
            raise
        except ValueError as error:
            raise ConfigurationError(
                f"table {self.table}: Delta has no place for one of the columns ({error}); cast it, or use kind parquet"
            ) from error
        return self._snapshot(self._opened)

    def commit(self, snapshot: Snapshot, change: Change) -> Snapshot:
        from deltalake import CommitProperties, Schema, Transaction
        from deltalake.exceptions import CommitFailedError

        opened = self._open()
        assert opened is not None, "a table is created before its first commit"
        if opened.version() != snapshot.version:
            raise LogConflictError(f"table {self.table} is at version {opened.version()} now")
        if change.columns:
            self._add_columns(opened, change.columns)
        transactions = [Transaction(change.query, change.batch)] if change.query else None
        try:
            opened.create_write_transaction(
                [*self._removals(snapshot, change), *self._additions(change)],
                mode="append",
                schema=Schema.from_json(change.columns or snapshot.columns),
                partition_by=snapshot.partition_by,
                commit_properties=CommitProperties(
                    max_commit_retries=COMMIT_RETRIES_MAX, app_transactions=transactions
                ),
            )
        except CommitFailedError as error:
            raise LogConflictError(str(error)) from error
        opened.update_incremental()
        return self._snapshot(opened)

    def last_batch(self, snapshot: Snapshot, query: str) -> int | None:
        opened = self._open()
        assert opened is not None, f"version {snapshot.version} was read"
        return opened.transaction_version(query)

    def vacuum(self, snapshot: Snapshot, retention_s: float) -> list[str]:
        assert snapshot.version >= 0
        opened = self._open()
        assert opened is not None
        deleted = opened.vacuum(
            retention_hours=round(retention_s / SECONDS_PER_HOUR),
            dry_run=False,
            enforce_retention_duration=False,
            full=True,
        )
        opened.update_incremental()
        return [unquote(path) for path in deleted]

    def _open(self) -> "DeltaTable | None":
        from deltalake import DeltaTable

        if self._opened is None:
            if not (self.table / "_delta_log").is_dir() or not DeltaTable.is_deltatable(str(self.table)):
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

    def _additions(self, change: Change) -> list[Any]:
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

    def _removals(self, snapshot: Snapshot, change: Change) -> list[Any]:
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


def is_delta(table: Path) -> bool:
    """Whether there is a Delta table in this folder."""
    return (table / "_delta_log").is_dir()
