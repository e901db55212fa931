"""Columns of a table are only ever added.

A frame may have columns that the table has not (they are added, and are NULL in older rows) and may lack columns that
the table has (they are NULL in the new rows). A column never changes its type and never goes away: a reader that
worked yesterday works today.
"""

from typing import TYPE_CHECKING

from jetlake.errors import ConfigurationError

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

PARTITION_TYPES = {"string", "date", "integer", "long", "short", "byte"}
"""Types whose text in the name of a folder is the same for every reader."""


def merged(table: str, there: "StructType", new: "StructType") -> "StructType":
    """Return the columns of a table after rows with these columns were added. Raises `ConfigurationError`."""
    from pyspark.sql.types import StructField, StructType

    types = {field.name: field.dataType for field in there.fields}
    known = {name.lower(): name for name in types}
    added = []
    for field in new.fields:
        if field.name in types:
            if not same_type(types[field.name], field.dataType):
                raise ConfigurationError(
                    f"table {table}: column {field.name} is {types[field.name].simpleString()} and would become "
                    f"{field.dataType.simpleString()}; columns are only added: cast it, or give it another name"
                )
        elif field.name.lower() in known:
            raise ConfigurationError(
                f"table {table}: column {field.name} differs from {known[field.name.lower()]} only in upper and lower "
                "case; use the name that is there"
            )
        else:
            added.append(StructField(field.name, field.dataType, nullable=True))
    return StructType([*there.fields, *added])


def same_type(one: object, other: object) -> bool:
    """Whether two types are equal but for what may be NULL."""
    return one.simpleString() == other.simpleString()  # type: ignore[attr-defined,no-any-return]


def nullable(columns: "StructType") -> "StructType":
    """Return the columns with every one of them allowed to be NULL: what is added later must be."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(field.name, field.dataType, nullable=True) for field in columns.fields])


def fitted(frame: "DataFrame", columns: "StructType") -> "DataFrame":
    """Return the frame with exactly these columns in this order; those it lacks are NULL."""
    from pyspark.sql import functions

    there = set(frame.columns)
    return frame.select(
        *(
            functions.col(f"`{field.name}`")
            if field.name in there
            else functions.lit(None).cast(field.dataType).alias(field.name)
            for field in columns.fields
        )
    )


def plain_type(kind: "pyarrow.DataType") -> "pyarrow.DataType":
    """Return an Arrow type as Spark's files have it: those of an upsert have another one for the same texts."""
    import pyarrow

    types = pyarrow.types
    if types.is_string_view(kind) or types.is_large_string(kind):
        return pyarrow.string()
    if types.is_binary_view(kind) or types.is_large_binary(kind):
        return pyarrow.binary()
    if types.is_list(kind) or types.is_large_list(kind):
        return pyarrow.list_(pyarrow.field("element", plain_type(kind.value_type)))
    if types.is_struct(kind):
        return pyarrow.struct([pyarrow.field(child.name, plain_type(child.type)) for child in kind])
    if types.is_map(kind):
        return pyarrow.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    return kind


def plain_schema(schema: "pyarrow.Schema") -> "pyarrow.Schema":
    """Return the columns of a file with plain types, and without what else it says about them."""
    import pyarrow

    return pyarrow.schema([pyarrow.field(field.name, plain_type(field.type)) for field in schema])


def check_partition(table: str, columns: "StructType", partition_by: list[str]) -> None:
    """Refuse columns to partition by that are not there or whose values do not make names of folders."""
    types = {field.name: field.dataType.typeName() for field in columns.fields}
    for name in partition_by:
        if name not in types:
            raise ConfigurationError(f"table {table}: there is no column {name} to partition by; {listed(types)}")
        if types[name] not in PARTITION_TYPES:
            raise ConfigurationError(
                f"table {table}: column {name} is {types[name]}, which makes no good folder names; partition by "
                f"a {', '.join(sorted(PARTITION_TYPES))}"
            )
    if partition_by and len(partition_by) == len(types):
        raise ConfigurationError(f"table {table}: partitioned by every column, so no column is left for the files")


def listed(names: object) -> str:
    """Return the columns as part of a sentence."""
    return "the columns are " + ", ".join(names)  # type: ignore[arg-type]
