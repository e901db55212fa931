"""`table`: a stream as Arrow or pandas, without Spark and without Java.

```python
orders = jetlake.table("ORDERS", subjects="orders.eu.>")
frame = orders.to_pandas()
```

Invariant: a table is the sequences that were there when it was made; it is read anew each time it is asked for.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jetlake.errors import ConfigurationError, MissingDependencyError
from jetlake.spark.columns import MESSAGE
from jetlake.spark.options import parse

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from jetlake.client.connection import HasUrl

__all__ = ["Table", "table"]


def table(
    stream: str, server: "str | HasUrl" = "nats://127.0.0.1:4222", *, columns: list[str] | None = None, **options: Any
) -> "Table":
    """Return a stream as a table of what it holds now.

    `columns` are those of a message, all of them if not given; the options are those of the Spark format for reading,
    such as `subjects`, `startingSequence`, `endingTimestamp`, `decompress` or `credentialsFile`. Raises `ClientError`,
    `ConfigurationError`, and `MissingDependencyError` without pyarrow.
    """
    try:
        import pyarrow as pa  # noqa: F401  # asked for here so that the error comes before anything is read
    except ImportError as error:
        raise MissingDependencyError("a table needs pyarrow: run `pip install 'jetlake[spark]'`") from error
    unknown = sorted(set(columns or []) - set(MESSAGE))
    if unknown:
        raise ConfigurationError(f"a message has no column {', '.join(unknown)}: there are {', '.join(MESSAGE)}")
    text = {name: _text(value) for name, value in options.items()}
    url = server if isinstance(server, str) else server.url
    values = parse({"url": url, **text, "stream": stream}, "read")
    return Table(values, tuple(columns or MESSAGE))


class Table:
    """The messages of a stream as they were when this was made."""

    def __init__(self, values: dict[str, Any], columns: tuple[str, ...]) -> None:
        # Only here: the engine is not needed to say what a table is.
        from jetlake.spark.plan_once import plan_once

        self._values = values
        self._columns = columns
        self._ranges = plan_once({**values, "minPartitions": 1})

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """Yield the rows in batches of at most 8,192 rows or 8 MB: for streams larger than the memory."""
        from jetlake.spark.ranges import read_range

        for wanted in self._ranges:
            yield from read_range(wanted, self._columns, self._values, executor=False)

    def to_arrow(self) -> "pa.Table":
        """Return all rows as an Arrow table."""
        import pyarrow as pa

        schema = arrow_schema(self._columns)
        return pa.Table.from_batches(list(self.batches()), schema)

    def to_pandas(self) -> "pd.DataFrame":
        """Return all rows as a frame of pandas."""
        return self.to_arrow().to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand all rows to whatever takes Arrow: Polars, DuckDB, pyarrow itself."""
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(arrow_schema(self._columns), self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        ranges = ", ".join(f"{one.start} to {one.end - 1}" for one in self._ranges) or "empty"
        return f"<jetlake table {self._values['stream']}: {ranges}>"


def arrow_schema(columns: tuple[str, ...]) -> "pa.Schema":
    """Return the Arrow types of these columns, as the engine makes them."""
    import pyarrow as pa

    kinds = {
        "stream": pa.string(),
        "subject": pa.string(),
        "sequence": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "time_ns": pa.int64(),
        "headers": pa.map_(pa.string(), pa.list_(pa.field("element", pa.string()))),
        "data": pa.binary(),
    }
    return pa.schema([(name, kinds[name]) for name in columns])


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
