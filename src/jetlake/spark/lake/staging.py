"""How a frame becomes files that are in place before the log names them.

Spark writes into `_staging/<label>` of the table, where no reader looks; then this process moves each file to its
place (`day=2026-01-31/<label>-00000-<random>.parquet`) and syncs it. The label names query and batch, so what a dead
run left behind can be told from what counts, and is deleted before the batch is written again.
"""

import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from jetlake.spark.lake.snapshot import DataFile, Snapshot
from jetlake.spark.lake.syncing import sync_file, sync_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOLDER = "_staging"

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""How a NULL is spelled in the name of a folder."""

COMPRESSION = "zstd"

TIMESTAMP_SETTING = "spark.sql.parquet.outputTimestampType"
TIMESTAMP_TYPE = "TIMESTAMP_MICROS"
"""Spark's own choice is a form that other readers take for a time without a zone."""


def label_of(query: str, batch: int) -> str:
    """Return the name that all files of a batch begin with."""
    return f"{query}-{batch}"


def write(frame: "DataFrame", table: Path, partition_by: list[str], label: str) -> list[DataFile]:
    """Write the rows of a frame and return the files, which are in place and synced but not yet in the log."""
    staging = table / FOLDER / label
    frame.sparkSession.conf.set(TIMESTAMP_SETTING, TIMESTAMP_TYPE)
    writer = frame.write.mode("overwrite").option("compression", COMPRESSION)
    (writer.partitionBy(*partition_by) if partition_by else writer).parquet(str(staging))
    files = []
    folders = {table}
    for index, path in enumerate(sorted(staging.rglob("*.parquet"))):
        described = describe(path, staging)
        if described.rows == 0:
            continue
        folder = (table / described.path).parent
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"{label}-{index:05}-{uuid.uuid4().hex[:8]}.parquet"
        path.rename(target)
        sync_file(target)
        folders.add(folder)
        files.append(
            DataFile(
                target.relative_to(table).as_posix(),
                described.size_bytes,
                described.rows,
                described.partition,
                described.ranges,
            )
        )
    for folder in folders:
        sync_folder(folder)
    shutil.rmtree(staging)
    return files


def describe(path: Path, root: Path) -> DataFile:
    """Return what the footer and the folders of a Parquet file say about it."""
    from pyarrow import parquet

    metadata = parquet.read_metadata(path)
    relative = path.relative_to(root)
    partition: dict[str, str | None] = {}
    for part in relative.parts[:-1]:
        name, _, value = part.partition("=")
        partition[unquote(name)] = None if value == NO_VALUE else unquote(value)
    return DataFile(relative.as_posix(), path.stat().st_size, metadata.num_rows, partition, _ranges(metadata))


def sweep(table: Path, snapshot: Snapshot, label: str) -> list[str]:
    """Delete what an earlier attempt at this batch left and the log does not name; return the paths."""
    shutil.rmtree(table / FOLDER / label, ignore_errors=True)
    left = []
    for path in table.rglob(f"{label}-*.parquet"):
        name = path.relative_to(table).as_posix()
        if name not in snapshot.files:
            path.unlink()
            left.append(name)
    return left


def _ranges(metadata: object) -> dict[str, tuple[int, int]]:
    """Return the range of every top-level column of whole numbers that has one in all row groups."""
    ranges: dict[str, tuple[int, int]] = {}
    incomplete = set()
    for group_index in range(metadata.num_row_groups):  # type: ignore[attr-defined]
        group = metadata.row_group(group_index)  # type: ignore[attr-defined]
        for column_index in range(group.num_columns):
            column = group.column(column_index)
            name, statistics = column.path_in_schema, column.statistics
            if "." in name or name in incomplete:
                continue
            whole = statistics is not None and statistics.has_min_max and isinstance(statistics.min, int)
            if not whole or isinstance(statistics.min, bool):
                incomplete.add(name)
                ranges.pop(name, None)
                continue
            least, greatest = ranges.get(name, (statistics.min, statistics.max))
            ranges[name] = (min(least, statistics.min), max(greatest, statistics.max))
    return ranges
