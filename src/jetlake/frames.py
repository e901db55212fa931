"""`table`: a stream as Arrow or pandas, without Spark and without Java.

```python
orders = jetlake.table("ORDERS", server, subjects="orders.eu.>", limit=1000)
orders.schema
frame = orders.to_pandas()
```

It needs the extra `arrow` and nothing else. It reads like the Spark format; options that mean something only to a
running query are refused.

Invariant: a table covers the sequences that existed when it was made; each use reads them again.
"""

import html
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from jetlake.client.connection import DEFAULT_URL, HasUrl, login_of
from jetlake.errors import NOT_FOUND, ConfigurationError, MissingDependencyError, NotFoundError
from jetlake.suggestions import hint

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from jetlake.spark.planning import StreamRange

__all__ = ["Table", "table"]

SHOWN_ROWS = 10
"""Rows that a notebook shows of a table: its beginning, enough to see what it is."""

SHOWN_LETTERS_MAX = 80
"""Letters of one cell that a notebook shows."""

OF_QUERIES = {
    "maxRowsPerTrigger",
    "maxBytesPerTrigger",
    "minRowsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRowsPerPartition",
    "pollTimeoutMs",
    "progressConsumer",
    "deleteOnCommit",
}
"""Options of reading that mean something only to a Spark query, which has tasks and micro-batches."""

OF_VALUES = {"decode", "valueSchema"}
"""Options that add the column `value`, whose type VARIANT is Spark's own."""


def table(
    stream: str,
    server: str | HasUrl = DEFAULT_URL,
    *,
    columns: list[str] | None = None,
    limit: int | None = None,
    **options: Any,
) -> "Table":
    """Return a stream as a table of what it holds now.

    `columns` are those of a message, all of them if not given; `limit` is the number of rows at most. The options are
    those of the Spark format for reading a batch, in Python's spelling: `subjects`, `starting_sequence`,
    `ending_timestamp`, `decompress`, `credentials_file`. Raises `ConfigurationError` for options that are unknown or
    would have no effect, `NotFoundError` if there is no such stream, `ClientError` if the server cannot be reached,
    and `MissingDependencyError` without pyarrow.
    """
    try:
        import pyarrow as pa  # noqa: F401  # asked for here so that the error comes before anything is read
    except ImportError as error:
        raise MissingDependencyError("a table needs pyarrow: run `pip install 'jetlake[arrow]'`") from error
    from jetlake.spark.columns import MESSAGE
    from jetlake.spark.options import parse

    unknown = sorted(set(columns or []) - set(MESSAGE))
    if unknown:
        raise ConfigurationError(f"a message has no column {', '.join(unknown)}: there are {', '.join(MESSAGE)}")
    if limit is not None and limit < 0:
        raise ConfigurationError(f"limit is {limit}: it must be 0 or more")
    given = {_spelled(name): _text(value) for name, value in options.items()}
    _refuse_ineffective(given)
    login = {} if isinstance(server, str) else login_of(server)
    url = server if isinstance(server, str) else server.url
    values = parse({**login, "url": url, **given, "stream": stream}, "read")
    return Table(values, tuple(columns or MESSAGE), _planned(values), limit)


class Table:
    """The messages of a stream as they were when this was made."""

    def __init__(
        self, values: dict[str, Any], columns: tuple[str, ...], ranges: "Sequence[StreamRange]", limit: int | None
    ) -> None:
        self._values = values
        self._columns = columns
        self._ranges = ranges
        self._limit = limit

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._columns)

    @property
    def schema(self) -> "pa.Schema":
        """The names and Arrow types of the columns."""
        from jetlake.spark.columns import arrow_schema

        return arrow_schema(self._columns)

    def limit(self, rows: int) -> "Table":
        """Return this table with at most this many rows, the first ones."""
        if rows < 0:
            raise ConfigurationError(f"limit is {rows}: it must be 0 or more")
        fewest = rows if self._limit is None else min(rows, self._limit)
        return Table(self._values, self._columns, self._ranges, fewest)

    def count(self) -> int:
        """Return the number of rows; they are read for it, with the smallest column only."""
        narrow = Table(self._values, ("sequence",), self._ranges, self._limit)
        return sum(batch.num_rows for batch in narrow.batches())

    __len__ = count

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """Yield the rows in batches of at most 8,192 rows or 8 MB: for streams larger than the memory."""
        from jetlake.spark.ranges import read_range

        left = self._limit
        for wanted in self._ranges:
            for batch in read_range(wanted, self._columns, self._values, executor=False):
                if left is not None and batch.num_rows >= left:
                    yield batch.slice(0, left)
                    return
                yield batch
                left = None if left is None else left - batch.num_rows

    def to_arrow(self) -> "pa.Table":
        """Return all rows as an Arrow table."""
        import pyarrow as pa

        return pa.Table.from_batches(list(self.batches()), self.schema)

    def to_pandas(self) -> "pd.DataFrame":
        """Return all rows as a frame of pandas. Raises `MissingDependencyError` without pandas."""
        try:
            import pandas as pd  # noqa: F401  # pyarrow's own error names no command
        except ImportError as error:
            raise MissingDependencyError("to_pandas needs pandas: run `pip install pandas`") from error
        return self.to_arrow().to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand all rows to whatever takes Arrow: Polars, DuckDB, pyarrow itself."""
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        ranges = ", ".join(f"{one.start} to {one.end - 1}" for one in self._ranges) or "empty"
        return f"<jetlake table {self._values['stream']}: {ranges}>"

    def _repr_html_(self) -> str:
        """Show the first rows in a notebook."""
        rows = self.limit(SHOWN_ROWS).to_arrow().to_pylist()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self._columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_cell(row[name]))}</td>" for name in self._columns) + "</tr>"
            for row in rows
        )
        return (
            f"<table><caption>{html.escape(repr(self))}, first {len(rows)} rows</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


def _planned(values: dict[str, Any]) -> "Sequence[StreamRange]":
    """Return the sequences that a stream has now."""
    # Only here: the engine is not needed to say what a table is.
    from jetlake.client.raw_streams import RefusedError
    from jetlake.spark.plan_once import plan_once

    try:
        return plan_once({**values, "minPartitions": 1})
    except RefusedError as error:
        if error.code == NOT_FOUND:
            raise NotFoundError(str(error), error.error_code) from error
        raise


def _cell(value: Any) -> str:
    """Return a value as a notebook shows it: payloads as text if they are text."""
    if isinstance(value, bytes):
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = value.hex(" ")
    elif isinstance(value, list):
        text = ", ".join(f"{name}: {' '.join(values)}" for name, values in value)
    else:
        text = "" if value is None else str(value)
    return text if len(text) <= SHOWN_LETTERS_MAX else text[: SHOWN_LETTERS_MAX - 1] + "…"


def _spelled(name: str) -> str:
    """Return the name that an option has in the Spark format: `starting_sequence` is `startingSequence`."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _refuse_ineffective(given: dict[str, str]) -> None:
    from jetlake.spark.options import OPTIONS

    for name in given:
        if name in ("stream", "url"):
            raise ConfigurationError(f"{name} is the {'first' if name == 'stream' else 'second'} argument of `table`")
        if name in ("streams", "streamsPattern"):
            raise ConfigurationError(f"{_snake(name)}: a table is one stream; make a table of each")
        if name in OF_QUERIES:
            raise ConfigurationError(f"{_snake(name)} has no effect on a table: it is for Spark queries; leave it out")
        if name in OF_VALUES:
            raise ConfigurationError(
                f"{_snake(name)} makes a column that only Spark has: leave it out, and decode the column `data`"
            )
    sides = {option.name: option.side for option in OPTIONS}
    for name in given:
        if sides.get(name) == "write":
            better = "; to read, use `subjects`" if name == "subject" else ""
            raise ConfigurationError(f"`{_snake(name)}` is for writing{better}")
        if name not in sides:
            known = [_snake(each) for each, side in sides.items() if side != "write" and each not in OF_QUERIES]
            raise ConfigurationError(
                f"there is no option {_snake(name)!r}{hint(_snake(name), known, 'docs/reference/spark.md lists them')}"
            )


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
