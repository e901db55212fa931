"""One row per key, the newest wins: how a batch is reduced, and when a row of it replaces the one that is there.

What is newest is said by columns, compared one after the other; nothing there is older than anything. A row that comes
late, or twice, therefore changes nothing, in whatever order batches and rows arrive. Of equal rows the one that came
last stays, so end the order with a column that never repeats, such as the sequence.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jetlake.errors import ConfigurationError
from jetlake.spark.lake.columns import listed

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

THERE, NEW = "there", "new"
"""Names of the table and of the batch in conditions."""

ROW = "_row"

SEQUENCE = "sequence"
"""The column that says in which order the rows of a batch came, as messages have it."""

KEY_TYPES = {"string", "long", "integer", "short", "byte", "date", "timestamp", "boolean"}
"""Types whose values are equal or not for every reader."""


def check_key(table: str, columns: "StructType", key: Sequence[str], order_by: Sequence[str]) -> None:
    """Refuse a key or an order that the rows do not have. Raises `ConfigurationError`."""
    types = {field.name: field.dataType.typeName() for field in columns.fields}
    for name in (*key, *order_by):
        if name not in types:
            what = "key" if name in key else "order_by"
            raise ConfigurationError(f"table {table}: there is no column {name} for its {what}; {listed(types)}")
    for name in key:
        if types[name] not in KEY_TYPES:
            raise ConfigurationError(
                f"table {table}: column {name} is {types[name]}, which makes no key; use a "
                f"{', '.join(sorted(KEY_TYPES))}"
            )


def newest(frame: "DataFrame", key: Sequence[str], order_by: Sequence[str]) -> "DataFrame":
    """Return the newest row of every key; without an order that is the one with the highest sequence.

    Without either it is any of them: Spark keeps no order of the rows of a frame.
    """
    from pyspark.sql import functions

    order_by = order_by or [name for name in frame.columns if name == SEQUENCE]
    if not order_by:
        return frame.dropDuplicates(list(key))
    row = functions.struct(*(functions.col(f"`{name}`") for name in frame.columns))
    order = functions.struct(*(functions.col(f"`{name}`") for name in order_by))
    reduced = frame.groupBy(*(functions.col(f"`{name}`") for name in key)).agg(functions.max_by(row, order).alias(ROW))
    return reduced.select(*(functions.col(f"{ROW}.`{name}`").alias(name) for name in frame.columns))


def newest_rows(rows: "pyarrow.Table", key: Sequence[str], order_by: Sequence[str]) -> "pyarrow.Table":
    """Return the same for rows that are in this process; of equal ones the last."""
    import pyarrow
    from pyarrow import compute

    if order_by:
        # Nothing is older than anything, so whether there is a value is compared before the value.
        columns: dict[str, pyarrow.ChunkedArray] = {}
        for number, name in enumerate(order_by):
            columns[f"{number} there"] = compute.cast(compute.is_valid(rows.column(name)), pyarrow.int8())
            columns[f"{number} value"] = rows.column(name)
        rows = rows.take(compute.sort_indices(pyarrow.table(columns), [(name, "ascending") for name in columns]))
    numbered = rows.select(list(key)).append_column(ROW, pyarrow.array(range(len(rows)), pyarrow.int64()))
    last = numbered.group_by(list(key), use_threads=False).aggregate([(ROW, "max")])
    return rows if len(last) == len(rows) else rows.take(last.column(f"{ROW}_max"))


def with_key(rows: "pyarrow.Table", key: Sequence[str]) -> "pyarrow.Table":
    """Return the rows whose key is there: one that names nothing can never be found again."""
    from pyarrow import compute

    for name in key:
        if rows.column(name).null_count:
            rows = rows.filter(compute.is_valid(rows.column(name)))
    return rows


def same_key(key: Sequence[str]) -> str:
    """Return the condition under which two rows are about the same thing."""
    return " AND ".join(f"{THERE}.{quoted(name)} = {NEW}.{quoted(name)}" for name in key)


def is_newer(order_by: Sequence[str]) -> str:
    """Return the condition under which a row replaces the one that is there; empty for always."""
    condition = ""
    for name in reversed(order_by):
        there, new = f"{THERE}.{quoted(name)}", f"{NEW}.{quoted(name)}"
        equal = f"({there} = {new} OR ({there} IS NULL AND {new} IS NULL))"
        tail = f"{equal} AND ({condition})" if condition else equal
        condition = f"{new} > {there} OR ({there} IS NULL AND {new} IS NOT NULL) OR ({tail})"
    return condition


def quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
