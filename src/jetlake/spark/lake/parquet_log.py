"""The log of a table of kind `parquet`: numbered JSON files in `_log`, and a checkpoint now and then.

What is durable: `commit` returns after the entry and its folder are synced, and the data files it names were synced
before. An entry is written under another name and linked to its own, so it is there whole or not at all, and of two
writers of one version one fails. What a crash can leave: data files no entry names (deleted by the next run of the
same query, or by `vacuum`) and a temporary file beside the entries (ignored). The checkpoint only saves reading: it
is replaced by renaming, and older entries are deleted after it is synced.
"""

import os
import time
import uuid
from pathlib import Path

import msgspec

from jetlake.errors import ConfigurationError
from jetlake.spark.lake.snapshot import Change, DataFile, LogConflictError, Snapshot

FOLDER = "_log"
CHECKPOINT = "checkpoint.json"

CHECKPOINT_EVERY = 32
"""Entries between two checkpoints: opening a table reads at most so many small files."""

DIGITS = 20
"""Of the number in an entry's name, so that names sort as numbers."""


class Entry(msgspec.Struct, frozen=True):
    """What one version changed."""

    version: int
    time_ms: int
    add: list[DataFile] = []
    remove: list[str] = []
    query: str = ""
    batch: int = -1
    columns: str = ""
    partition_by: list[str] = []


class ParquetLog:
    """See the module."""

    kind = "parquet"

    def __init__(self, table: Path) -> None:
        self.table = table
        self.folder = table / FOLDER

    def read(self) -> Snapshot | None:
        try:
            return self._read()
        except msgspec.MsgspecError as error:
            raise ConfigurationError(
                f"the log of table {self.table} cannot be read ({error}): restore {self.folder} from a backup"
            ) from error

    def _read(self) -> Snapshot | None:
        snapshot: Snapshot | None = None
        checkpoint = self.folder / CHECKPOINT
        if checkpoint.exists():
            snapshot = msgspec.json.decode(checkpoint.read_bytes(), type=Snapshot)
        version = snapshot.version + 1 if snapshot else 0
        while True:
            try:
                encoded = self._path(version).read_bytes()
            except FileNotFoundError:
                return snapshot
            snapshot = applied(snapshot, msgspec.json.decode(encoded, type=Entry))
            version += 1

    def create(self, columns: str, partition_by: list[str]) -> Snapshot:
        self.folder.mkdir(parents=True, exist_ok=True)
        entry = Entry(version=0, time_ms=now_ms(), columns=columns, partition_by=partition_by)
        self._write(entry)
        return applied(None, entry)

    def commit(self, snapshot: Snapshot, change: Change) -> Snapshot:
        entry = Entry(
            version=snapshot.version + 1,
            time_ms=now_ms(),
            add=change.add,
            remove=change.remove,
            query=change.query,
            batch=change.batch,
            columns=change.columns,
        )
        self._write(entry)
        result = applied(snapshot, entry)
        if result.version % CHECKPOINT_EVERY == 0:
            self._write_checkpoint(result)
        return result

    def last_batch(self, snapshot: Snapshot, query: str) -> int | None:
        return snapshot.batches.get(query)

    def vacuum(self, snapshot: Snapshot, retention_s: float) -> list[str]:
        limit_ms = now_ms() - int(retention_s * 1000)
        deleted = []
        for path in sorted(self.table.rglob("*.parquet")):
            name = path.relative_to(self.table).as_posix()
            if name in snapshot.files or name.startswith("_"):
                continue
            ended_ms = snapshot.removed_ms.get(name, int(path.stat().st_mtime * 1000))
            if ended_ms <= limit_ms:
                path.unlink()
                deleted.append(name)
        return deleted

    def _path(self, version: int) -> Path:
        return self.folder / f"{version:0{DIGITS}}.json"

    def _write(self, entry: Entry) -> None:
        # A version that a checkpoint has swallowed must not be made again by a writer that looked long ago.
        newest = self.read()
        if newest is not None and newest.version >= entry.version:
            raise LogConflictError(f"version {entry.version} of {self.table} is there already")
        temporary = self.folder / f".{entry.version}.{uuid.uuid4().hex}"
        write_synced(temporary, msgspec.json.encode(entry))
        try:
            os.link(temporary, self._path(entry.version))
        except FileExistsError as error:
            raise LogConflictError(f"version {entry.version} of {self.table} is there already") from error
        finally:
            temporary.unlink()
        sync_folder(self.folder)

    def _write_checkpoint(self, snapshot: Snapshot) -> None:
        there = {path.relative_to(self.table).as_posix() for path in self.table.rglob("*.parquet")}
        # What `vacuum` has deleted need not be remembered.
        removed = {path: time for path, time in snapshot.removed_ms.items() if path in there}
        kept = msgspec.structs.replace(snapshot, removed_ms=removed)
        temporary = self.folder / f".checkpoint.{uuid.uuid4().hex}"
        write_synced(temporary, msgspec.json.encode(kept))
        temporary.replace(self.folder / CHECKPOINT)
        sync_folder(self.folder)
        for version in range(snapshot.version - CHECKPOINT_EVERY, snapshot.version + 1):
            if version >= 0:
                self._path(version).unlink(missing_ok=True)


def applied(snapshot: Snapshot | None, entry: Entry) -> Snapshot:
    """Return the snapshot after one entry."""
    before = snapshot or Snapshot(version=-1, columns="")
    assert entry.version == before.version + 1, "entries are read in order"
    removed = set(entry.remove)
    files = {path: file for path, file in before.files.items() if path not in removed}
    files |= {file.path: file for file in entry.add}
    batches = before.batches | ({entry.query: entry.batch} if entry.query else {})
    return Snapshot(
        version=entry.version,
        columns=entry.columns or before.columns,
        partition_by=entry.partition_by or before.partition_by,
        files=files,
        batches=batches,
        removed_ms=before.removed_ms | dict.fromkeys(entry.remove, entry.time_ms),
    )


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def write_synced(path: Path, content: bytes) -> None:
    """Write a file so that a power cut after the return cannot take it back."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_file(path: Path) -> None:
    """Have the disk keep what others wrote into this file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Have the disk keep the names in this folder."""
    sync_file(path)
