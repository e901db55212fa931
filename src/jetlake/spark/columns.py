"""The columns of a message, and which of them a query wants.

Spark prunes no columns of a Python source, but what a user gives to `.schema()` arrives: any of these columns in any
order. Only those are asked of the server.

Invariant: every field is nullable, and a batch has exactly the Arrow types that Spark makes of the schema; Spark
refuses a batch that differs.
"""

from typing import TYPE_CHECKING, Any

import msgspec

from jetlake.errors import ConfigurationError
from jetlake.spark.decoders import INPUTS, load_decoder, load_packer
from jetlake.spark.packs import is_packed
from jetlake.suggestions import hint

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

__all__ = ["COLUMNS", "MESSAGE", "Narrowed", "arrow_schema", "ddl", "narrow"]

MESSAGE = {
    "stream": "STRING",
    "subject": "STRING",
    "sequence": "BIGINT",
    "timestamp": "TIMESTAMP",
    "time_ns": "BIGINT",
    "headers": "MAP<STRING, ARRAY<STRING>>",
    "data": "BINARY",
}
"""The columns of a message and their types."""

COLUMNS = ", ".join(f"{name} {kind}" for name, kind in MESSAGE.items())

VALUE = "value"
"""The column with the decoded payload."""


class Narrowed(msgspec.Struct, frozen=True, kw_only=True):
    """What a query wants."""

    # As the server is asked for them.
    asked: tuple[str, ...]
    # As Spark wants them.
    wanted: tuple[str, ...]
    # The Arrow schema of the batches, as its bytes: this crosses to other processes.
    arrow: bytes
    # What makes `value`; JSON is read unless it is given.
    decoder: str = ""

    def arrow_schema(self) -> "pa.Schema":
        import pyarrow as pa

        schema: pa.Schema = pa.ipc.read_schema(pa.py_buffer(self.arrow))
        return schema


def ddl(*, decode: str, value_schema: str, decoder: str = "") -> str:
    """Return the whole schema of a table as Spark's text."""
    value_schema = value_schema or (load_decoder(decoder).fields if decoder else "")
    if value_schema:
        return f"{COLUMNS}, {VALUE} STRUCT<{struct_fields(value_schema)}>"
    return f"{COLUMNS}, {VALUE} VARIANT" if decode == "json" else COLUMNS


def struct_fields(text: str) -> str:
    """Return the fields of a struct, whether they came as `id BIGINT` or as `STRUCT<id: BIGINT>`."""
    text = text.strip()
    if text.upper().startswith("STRUCT<") and text.endswith(">"):
        return text[len("STRUCT<") : -1]
    return text


def narrow(schema: "StructType", decoder: str = "") -> Narrowed:
    """Return what to ask for so that rows have this schema. Raises `ConfigurationError`."""
    from pyspark.sql.pandas.types import to_arrow_schema

    wanted = tuple(field.name for field in schema.fields)
    if decoder and is_packed(wanted):
        arrow = to_arrow_schema(schema, timezone="UTC").serialize().to_pybytes()
        return Narrowed(asked=load_packer(decoder).inputs, wanted=wanted, arrow=arrow, decoder=decoder)
    if not wanted:
        raise ConfigurationError(f"the schema given names no column: there are {', '.join([*MESSAGE, VALUE])}")
    for field in schema.fields:
        _check(field.name, field.dataType)
        if not field.nullable:
            raise ConfigurationError(
                f"the column {field.name} is NOT NULL in the schema given: every column may be NULL"
            )
    doubled = {name for name in wanted if wanted.count(name) > 1}
    if doubled:
        raise ConfigurationError(f"the schema names {', '.join(sorted(doubled))} twice: name each column once")
    asked = tuple(name for name in wanted if name != VALUE)
    if VALUE in wanted:
        asked += tuple(name for name in (INPUTS if decoder else ("data",)) if name not in asked)
    arrow = to_arrow_schema(schema, timezone="UTC").serialize().to_pybytes()
    return Narrowed(asked=asked, wanted=wanted, arrow=arrow, decoder=decoder)


def _check(name: str, kind: "DataType") -> None:
    from pyspark.sql.types import StructType, VariantType

    if name == VALUE:
        if not isinstance(kind, StructType | VariantType):
            raise ConfigurationError(f"the column value is a {kind.simpleString()}: it can be a VARIANT or a STRUCT")
        return
    if name not in MESSAGE:
        raise ConfigurationError(f"a message has no column {name!r}{hint(name, [*MESSAGE, VALUE])}")
    expected = MESSAGE[name].lower().replace(" ", "")
    if kind.simpleString() != expected:
        raise ConfigurationError(f"the column {name} is {expected}, and the schema given says {kind.simpleString()}")


def arrange(batch: Any, narrowed: Narrowed, schema: "pa.Schema") -> Any:
    """Return a batch of the columns asked for as one of the columns wanted."""
    import pyarrow as pa

    if narrowed.asked == narrowed.wanted:
        return batch
    columns = [
        _value(batch, narrowed, schema.field(VALUE)) if name == VALUE else batch.column(name)
        for name in narrowed.wanted
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _value(batch: Any, narrowed: Narrowed, field: "pa.Field") -> Any:
    from jetlake.spark.decoding import decode_json

    if narrowed.decoder:
        return load_decoder(narrowed.decoder).decode(batch, field.type)
    return decode_json(batch.column("data"), field)


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
