"""Rows that cross from Python to Spark as lines of JSON, and how a table takes them.

Each row of a batch has the name of a table (`target`) and many lines for it. A time is in microseconds since 1970, a
day any time of that day, and bytes are base64, as Spark itself writes them.

Invariant: `pick` and `take` give the same rows; Spark runs the first, and the second needs no job of Spark.
"""

import base64
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column, DataFrame

IN_JSON = {"TIMESTAMP": "BIGINT", "ARRAY<TIMESTAMP>": "ARRAY<BIGINT>", "DATE": "BIGINT", "BINARY": "STRING"}
"""How types are spelled in JSON that it does not have."""

BLOCK_BYTES_MIN = 1 << 20
"""Of JSON that is parsed at a time; more if a text is longer, because a line must fit into it."""


@dataclass(frozen=True)
class Lines:
    """The rows of one table among those of all tables."""

    target: str
    columns: Mapping[str, str]
    """Types by name, as Spark spells them."""

    def pick(self, rows: "DataFrame") -> "DataFrame":
        """Return the rows of this table."""
        from pyspark.sql import functions

        fields = ", ".join(f"{name} {IN_JSON.get(kind, kind)}" for name, kind in self.columns.items())
        lines = rows.where(functions.col("target") == self.target).select(
            functions.explode(functions.split("lines", "\n")).alias("_line")
        )
        parsed = lines.select(functions.from_json("_line", fields).alias("_row"))
        return parsed.select(*(converted(name, kind) for name, kind in self.columns.items()))

    def take(self, rows: "pyarrow.Table") -> "pyarrow.Table":
        """Return the same of rows that are in this process."""
        import pyarrow
        from pyarrow import compute, json

        schema = arrow_schema(self.columns)
        texts = rows.filter(compute.equal(rows["target"], self.target))["lines"].to_pylist()
        if not texts:
            return schema.empty_table()
        longest = max(len(text.encode()) for text in texts)
        table = json.read_json(
            io.BytesIO("\n".join(texts).encode()),
            read_options=json.ReadOptions(block_size=max(BLOCK_BYTES_MIN, longest + 1)),
            parse_options=json.ParseOptions(
                explicit_schema=arrow_schema({name: IN_JSON.get(kind, kind) for name, kind in self.columns.items()}),
                unexpected_field_behavior="ignore",
            ),
        )
        columns = [in_arrow(table[field.name], field.type) for field in schema]
        return pyarrow.Table.from_arrays(columns, schema=schema)


def converted(name: str, kind: str) -> "Column":
    """Return a column of parsed JSON in its own type."""
    from pyspark.sql import functions

    own: dict[str, Callable[[Column], Column]] = {
        "TIMESTAMP": functions.timestamp_micros,
        "ARRAY<TIMESTAMP>": lambda column: functions.transform(column, functions.timestamp_micros),
        "DATE": lambda column: functions.to_date(functions.timestamp_micros(column)),
        "BINARY": functions.unbase64,
    }
    column = functions.col(f"_row.{name}")
    return (own[kind](column) if kind in own else column).alias(name)


def in_arrow(column: "pyarrow.ChunkedArray", kind: "pyarrow.DataType") -> Any:
    """Return the same for a column of Arrow."""
    import pyarrow

    if pyarrow.types.is_date(kind):
        return column.cast(pyarrow.timestamp("us", "UTC")).cast(kind)
    if pyarrow.types.is_binary(kind):
        return pyarrow.array([None if text is None else base64.b64decode(text) for text in column.to_pylist()], kind)
    return column.cast(kind)


def arrow_schema(columns: Mapping[str, str]) -> "pyarrow.Schema":
    """Return columns that Spark spells as those of Arrow."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    spelled: StructType = StructType.fromDDL(", ".join(f"{name} {kind}" for name, kind in columns.items()))  # type: ignore[assignment]
    return to_arrow_schema(spelled, timezone="UTC")
