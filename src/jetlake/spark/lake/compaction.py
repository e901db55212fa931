"""Many small files into few large ones.

Every batch leaves its own files, and a reader pays for each. The files of one partition are merged in the order in
which they came, one row group after the other, so memory is bounded; the log then names the new file instead of the
old ones in one step. The old ones stay until `vacuum`, for readers that have begun.
"""

import uuid
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from jetlake.spark.lake import columns, staging
from jetlake.spark.lake.snapshot import DataFile, Snapshot, TableChange
from jetlake.spark.lake.syncing import sync_file, sync_folder

if TYPE_CHECKING:
    import pyarrow

TARGET_BYTES = 128 * 1024 * 1024
"""A file of this size is read fast and still small enough to be divided among cores."""

SMALL_BYTES = TARGET_BYTES // 2
"""Files below this size are merged."""

FILES_MIN = 8
"""Fewer small files in a partition are left alone: rewriting them gains nothing."""

ROW_GROUP_BYTES_MAX = 64 * 1024 * 1024
"""What is held in memory before it is written."""


def groups(snapshot: Snapshot, files_min: int = FILES_MIN) -> list[list[DataFile]]:
    """Return the lists of files that are worth merging, each of one partition."""
    by_partition: dict[tuple[tuple[str, str | None], ...], list[DataFile]] = defaultdict(list)
    for file in snapshot.files.values():
        if file.size_bytes < SMALL_BYTES:
            by_partition[tuple(sorted(file.partition.items()))].append(file)
    found = []
    for files in by_partition.values():
        group: list[DataFile] = []
        size_bytes = 0
        for file in files:
            if size_bytes + file.size_bytes > TARGET_BYTES and group:
                found.append(group)
                group, size_bytes = [], 0
            group.append(file)
            size_bytes += file.size_bytes
        found.append(group)
    return [group for group in found if len(group) >= max(files_min, 2)]


def merge(table: Path, files: list[DataFile]) -> TableChange:
    """Write one file with the rows of these, and return the change that makes it count instead of them."""
    import pyarrow
    from pyarrow import parquet

    paths = [table / file.path for file in files]
    found = pyarrow.unify_schemas(
        [columns.plain_schema(parquet.read_schema(path)) for path in paths], promote_options="permissive"
    )
    schema = pyarrow.schema([field.with_nullable(True) for field in found])
    target = paths[0].parent / f"compacted-{uuid.uuid4().hex}.parquet"
    temporary = table / staging.FOLDER / target.name
    temporary.parent.mkdir(exist_ok=True)
    with parquet.ParquetWriter(temporary, schema, compression=staging.COMPRESSION) as writer:
        held: list[pyarrow.Table] = []
        for path in paths:
            with parquet.ParquetFile(path) as file:
                for index in range(file.num_row_groups):
                    held.append(completed(file.read_row_group(index), schema))
                    if sum(piece.nbytes for piece in held) >= ROW_GROUP_BYTES_MAX:
                        writer.write_table(pyarrow.concat_tables(held))
                        held = []
        if held:
            writer.write_table(pyarrow.concat_tables(held))
    temporary.rename(target)
    sync_file(target)
    sync_folder(target.parent)
    described = staging.describe(target, table)
    assert described.rows == sum(file.rows for file in files), "a merge keeps every row"
    added = DataFile(described.path, described.size_bytes, described.rows, files[0].partition, described.ranges)
    return TableChange(add=[added], remove=[file.path for file in files], same_rows=True)


def completed(piece: "pyarrow.Table", schema: "pyarrow.Schema") -> "pyarrow.Table":
    """Return the rows with the columns that were added after they were written."""
    import pyarrow

    arranged = [
        piece.column(field.name).cast(field.type)
        if field.name in piece.column_names
        else pyarrow.nulls(len(piece), field.type)
        for field in schema
    ]
    return pyarrow.table(arranged, schema=schema)
