"""What the log of a table says at one version.

Invariant: `files` holds exactly the files whose rows are in the table; a file on disk that is not named here is either
about to be committed, or was replaced, or belongs to a batch that died.
"""

from typing import Protocol

import msgspec


class DataFile(msgspec.Struct, frozen=True):
    """One Parquet file of a table."""

    path: str
    """From the folder of the table, with `/` between its parts."""

    size_bytes: int
    rows: int
    partition: dict[str, str | None] = {}
    ranges: dict[str, tuple[int, int]] = {}
    """Least and greatest value of the columns that hold whole numbers."""


class Snapshot(msgspec.Struct, frozen=True):
    """A table at one version."""

    version: int
    columns: str
    """The columns as JSON, as Spark writes a `StructType`."""

    partition_by: list[str] = []
    files: dict[str, DataFile] = {}
    batches: dict[str, int] = {}
    """The last batch of every query that was committed; only a log of our own keeps it here, ask `Log.last_batch`."""

    removed_ms: dict[str, int] = {}
    """Files that counted once, and when they ceased to, for `vacuum`."""

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files.values())

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files.values())


class Change(msgspec.Struct, frozen=True):
    """One step from a snapshot to the next; all of it happens or nothing."""

    add: list[DataFile] = []
    remove: list[str] = []
    query: str = ""
    batch: int = -1
    columns: str = ""
    """The columns from now on; empty when they stay."""

    same_rows: bool = False
    """The rows are those that were there before, in other files."""


class LogConflictError(Exception):
    """Is raised when another writer took the version; the caller reads again and decides anew."""


class Log(Protocol):
    """The log of a table, of either kind."""

    kind: str

    def read(self) -> Snapshot | None:
        """Return the newest snapshot; None when there is no table."""
        ...

    def create(self, columns: str, partition_by: list[str]) -> Snapshot: ...

    def commit(self, snapshot: Snapshot, change: Change) -> Snapshot:
        """Make the next version. Raises `LogConflictError`."""
        ...

    def last_batch(self, snapshot: Snapshot, query: str) -> int | None:
        """Return the last batch of a query that is in the table."""
        ...

    def vacuum(self, snapshot: Snapshot, retention_s: float) -> list[str]:
        """Delete files that no longer count for at least so long, and return their paths."""
        ...
