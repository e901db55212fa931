"""What the log of a table says at one version.

Invariant: `files` holds exactly the files whose rows are in the table; a file on disk that is not named here is either
about to be committed, or was replaced, or belongs to a batch that died.
"""

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

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files.values())

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files.values())


class TableChange(msgspec.Struct, frozen=True):
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
    """Is raised when another writer took the version; the caller must read and decide again."""
