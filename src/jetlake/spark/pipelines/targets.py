"""The rows of many tables in one frame: packs, each with the name of the table whose rows it has.

A state that gives rows of ten tables would need a job of Spark for each. Packed they leave it together and are taken
apart where tables are written.

Invariant: `Target.pick` and `Target.rows_of` give the same rows; Spark runs the first, and the second needs no job of
Spark.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from jetlake.spark.packs import pack, unpacked

if TYPE_CHECKING:
    import pandas
    import pyarrow as pa
    from pyspark.sql import DataFrame

SCHEMA = "target STRING, pack BINARY"
"""The columns of such a frame."""


@dataclass(frozen=True)
class Target:
    """The rows of one table among those of all tables."""

    name: str
    columns: Mapping[str, str]
    """Types by name, as Spark spells them."""

    def pick(self, rows: "DataFrame") -> "DataFrame":
        """Return the rows of this table."""
        from pyspark.sql import functions

        def unpack(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
            for batch in batches:
                table = unpacked(batch.column("pack").to_pylist())
                if table is not None:
                    yield from table.to_batches()

        spelled = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        mine = rows.where(functions.col("target") == self.name).select("pack")
        return mine.mapInArrow(unpack, spelled)

    def rows_of(self, rows: "pa.Table") -> "pa.Table":
        """Return the same of rows that are in this process."""
        from pyarrow import compute

        packs = rows.filter(compute.equal(rows.column("target"), self.name)).column("pack").to_pylist()
        found = unpacked(packs)
        return arrow_schema(self.columns).empty_table() if found is None else found


def packs_of(tables: "Mapping[str, pa.Table]") -> "pandas.DataFrame":
    """Return tables by target as rows of such a frame; those without rows are left out."""
    import pandas

    packs = [(target, pack(table)) for target, table in tables.items() if table.num_rows]
    return pandas.DataFrame(packs, columns=["target", "pack"])


def arrow_schema(columns: Mapping[str, str]) -> "pa.Schema":
    """Return columns that Spark spells as those of Arrow."""
    import pyarrow as pa

    return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in columns.items()])


def arranged(columns: Mapping[str, Any], wanted: Mapping[str, str]) -> "pa.Table":
    """Return columns of Arrow in the order and with the types of a table."""
    import pyarrow as pa

    schema = arrow_schema(wanted)
    return pa.table([columns[field.name].cast(field.type) for field in schema], schema=schema)


def table_of(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> "pa.Table":
    """Return rows as a table; times in them are microseconds since 1970."""
    import pyarrow as pa

    schema = arrow_schema(columns)
    if not rows:
        return schema.empty_table()
    in_columns = zip(*map(itemgetter(*columns), rows), strict=True)
    arrays = [
        pa.array(values, arrow_type(kind.replace("TIMESTAMP", "BIGINT"))).cast(field.type)
        for values, field, kind in zip(in_columns, schema, columns.values(), strict=True)
    ]
    return pa.table(arrays, schema=schema)


@cache
def arrow_type(kind: str) -> "pa.DataType":
    """Return a type that Spark spells as Spark itself makes it in Arrow; workers have no Spark to ask."""
    import pyarrow as pa

    plain = {
        "STRING": pa.string(),
        "BINARY": pa.binary(),
        "BIGINT": pa.int64(),
        "INT": pa.int32(),
        "DOUBLE": pa.float64(),
        "BOOLEAN": pa.bool_(),
        "TIMESTAMP": pa.timestamp("us", "UTC"),
        "DATE": pa.date32(),
    }
    if kind in plain:
        return plain[kind]
    outer, _, inner = kind.removesuffix(">").partition("<")
    if outer == "ARRAY":
        return pa.list_(pa.field("element", arrow_type(inner)))
    assert outer == "STRUCT", f"{kind} is not among the types of these tables"
    fields = [field.split(": ") for field in inner.split(", ")]
    return pa.struct([pa.field(name, arrow_type(spelled)) for name, spelled in fields])
