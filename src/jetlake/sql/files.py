"""An answer as a file: Parquet, CSV, or JSON with one object per line.

Invariant: a file has all rows of the answer or is not there; it is written under another name and renamed at the end.
"""

import csv
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from jetlake.errors import ConfigurationError, reason_of
from jetlake.sql.values import as_json, full_text, plain, rows_of
from jetlake.suggestions import hint

if TYPE_CHECKING:
    import pyarrow as pa

    from jetlake.sql.answers import QueryAnswer

__all__ = ["check_output", "csv_writer", "json_writer", "unfinished_name", "write_answer"]

RowWriter = Callable[[dict[str, Any]], object]

SUFFIXES = (".parquet", ".csv", ".json", ".jsonl", ".ndjson")

ROW_GROUP_ROWS = 122_880
"""Rows that Parquet keeps together: many batches of a scan, so that columns compress."""


def check_output(path: Path) -> None:
    """Refuse a file that could not be written, before anything is read. Raises `ConfigurationError`."""
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigurationError(
            f"{path}: the name must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
            f"{hint(path.suffix, SUFFIXES, 'it says how to write the rows') if path.suffix else ''}"
        )
    if not path.absolute().parent.is_dir():
        raise ConfigurationError(f"{path}: there is no folder {path.absolute().parent}; create it first")


def unfinished_name(path: Path) -> Path:
    """Return where a file is while it is written."""
    return path.with_name(f".{path.name}.unfinished")


def write_answer(answer: "QueryAnswer", path: Path) -> int:
    """Write all rows and return how many there were. Raises `ConfigurationError` when the disk refuses."""
    unfinished = unfinished_name(path)
    try:
        write = _parquet if path.suffix.lower() == ".parquet" else _text
        rows = write(answer, unfinished, path.suffix.lower())
        unfinished.replace(path)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {reason_of(error)}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return rows


def _parquet(answer: "QueryAnswer", path: Path, _suffix: str) -> int:
    import pyarrow as pa
    from pyarrow import parquet

    rows = 0
    table = answer.schema.empty_table()
    try:
        with parquet.ParquetWriter(path, answer.schema, compression="zstd") as writer:
            for table in _grouped(answer):
                writer.write_table(table)
                rows += table.num_rows
    except pa.ArrowException as error:
        raise _refusal(table, error) from error
    return rows


def _refusal(table: "pa.Table", failure: Exception) -> ConfigurationError:
    """Return an error that names the column which Parquet cannot hold: an interval, or a time far away."""
    import pyarrow as pa
    from pyarrow import parquet

    for name in table.column_names:
        try:
            parquet.write_table(table.select([name]), pa.BufferOutputStream())
        except pa.ArrowException as error:
            return ConfigurationError(f"column {name} does not fit into a Parquet file ({error}); cast it to VARCHAR")
    return ConfigurationError(f"the rows do not fit into a Parquet file: {failure}")


def _grouped(answer: "QueryAnswer") -> "Iterator[pa.Table]":
    """Yield the batches, several at a time."""
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in answer.batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= ROW_GROUP_ROWS:
            yield pa.Table.from_batches(waiting, answer.schema)
            waiting, count = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting, answer.schema)


def _text(answer: "QueryAnswer", path: Path, suffix: str) -> int:
    rows = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        write = csv_writer(answer.columns, file) if suffix == ".csv" else json_writer(file)
        for batch in answer.batches:
            for row in rows_of(batch):
                write(row)
            rows += batch.num_rows
    return rows


def csv_writer(columns: list[str], file: TextIO) -> RowWriter:
    """Return a function that writes a row as CSV; the header is written here. NULL is empty, lists are JSON."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    return lambda row: writer.writerow([_cell(row[name]) for name in columns])


def json_writer(file: TextIO) -> RowWriter:
    """Return a function that writes a row as one line of JSON."""
    return lambda row: file.write(as_json(row).decode() + "\n")


def _cell(value: Any) -> Any:
    simple = plain(value)
    return full_text(simple) if isinstance(simple, dict | list | bool | Decimal) else simple
