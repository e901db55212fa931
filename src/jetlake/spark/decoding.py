"""Payloads that are JSON, as a column: a struct by its schema, or a VARIANT.

Arrow parses a struct for all payloads of a batch at once. A batch that Arrow refuses, because one payload is not JSON
or a value has another type than its field, is parsed again one by one: that payload or field becomes NULL, the others
stay. A row is never lost and never stops a query.

Invariant: the result has one element per payload; it is NULL where the payload is NULL or not JSON.
"""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import msgspec

from jetlake.spark.variant import VariantEncoder

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["decode_json"]

BLOCK_BYTES_SPARE = 1024
"""Room in Arrow's block beside the payloads, so that a batch is one block."""

NEVER_IN_JSON = b"\n"


def decode_json(payloads: "pa.Array", field: "pa.Field") -> "pa.Array":
    """Return the payloads as the type of this field."""
    if is_variant(field):
        return variants(payloads, field.type)
    parsed = parse_all(payloads, field.type)
    return parse_each(payloads, field.type) if parsed is None else parsed


def is_variant(field: "pa.Field") -> bool:
    """Tell whether Spark means a VARIANT: a struct whose metadata says so."""
    import pyarrow as pa

    if not pa.types.is_struct(field.type):
        return False
    return any((child.metadata or {}).get(b"variant") == b"true" for child in field.type)


def variants(payloads: "pa.Array", kind: "pa.DataType") -> "pa.Array":
    import pyarrow as pa

    encoder = VariantEncoder()
    values: list[bytes] = []
    metadata: list[bytes] = []
    missing: list[bool] = []
    for payload in payloads.to_pylist():
        ok, decoded = load(payload)
        value, names = encoder.encode(decoded)
        values.append(value)
        metadata.append(names)
        missing.append(not ok)
    children = {"value": pa.array(values, pa.binary()), "metadata": pa.array(metadata, pa.binary())}
    return pa.StructArray.from_arrays(
        [children[child.name] for child in kind],
        fields=list(kind),
        mask=pa.array(missing, pa.bool_()),
    )


def parse_all(payloads: "pa.Array", kind: "pa.DataType") -> "pa.Array | None":
    """Return all payloads as structs at once; None when one of them needs a closer look."""
    import pyarrow as pa
    from pyarrow import json as arrow_json

    if payloads.null_count or not len(payloads):
        return None
    lines = payloads.to_pylist()
    if any(NEVER_IN_JSON in line or not line.lstrip().startswith(b"{") for line in lines):
        return None
    text = b"\n".join(lines)
    try:
        table = arrow_json.read_json(
            pa.BufferReader(text),
            read_options=arrow_json.ReadOptions(block_size=len(text) + BLOCK_BYTES_SPARE, use_threads=False),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=pa.schema(list(kind)), unexpected_field_behavior="ignore"
            ),
        )
        if table.num_rows != len(payloads):
            return None
        columns = [table.column(child.name).combine_chunks().cast(child.type) for child in kind]
    except (pa.ArrowException, KeyError):
        return None
    return pa.StructArray.from_arrays(columns, fields=list(kind))


def parse_each(payloads: "pa.Array", kind: "pa.DataType") -> "pa.Array":
    """Return each payload as a struct, NULL where it is not one, with NULL fields where a value does not fit."""
    import pyarrow as pa

    make = maker(kind)
    rows = []
    for payload in payloads.to_pylist():
        ok, decoded = load(payload)
        rows.append(make(decoded) if ok else None)
    return pa.array(rows, kind)


def load(payload: bytes | None) -> tuple[bool, Any]:
    """Return whether a payload is JSON, and its value."""
    if not payload:
        return False, None
    try:
        return True, msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        # Python takes some that the faster one refuses: numbers beyond a double, for one.
        return True, json.loads(payload)
    except (ValueError, RecursionError):
        return False, None


Maker = Callable[[Any], Any]


def maker(kind: "pa.DataType") -> Maker:
    """Return a function from decoded JSON to what Arrow takes for this type; what does not fit becomes None."""
    import pyarrow as pa

    types = pa.types
    if types.is_struct(kind):
        children = [(child.name, maker(child.type)) for child in kind]
        return lambda value: (
            {name: make(value.get(name)) for name, make in children} if isinstance(value, dict) else None
        )
    if types.is_list(kind):
        element = maker(kind.value_type)
        return lambda value: [element(one) for one in value] if isinstance(value, list) else None
    if types.is_map(kind):
        item = maker(kind.item_type)
        return lambda value: [(key, item(one)) for key, one in value.items()] if isinstance(value, dict) else None
    if types.is_string(kind):
        return text_of
    if types.is_boolean(kind):
        return lambda value: value if isinstance(value, bool) else None
    if types.is_integer(kind):
        bits = kind.bit_width - 1
        return lambda value: integer_of(value, bits)
    if types.is_floating(kind):
        return lambda value: float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    if types.is_decimal(kind):
        return lambda value: decimal_of(value, kind)
    if types.is_timestamp(kind):
        return timestamp_of
    if types.is_date(kind):
        return date_of
    return lambda _: None


def text_of(value: Any) -> str | None:
    """Return a string as it is, and anything else as the JSON it was."""
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def integer_of(value: Any, bits: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        return None
    whole = int(value)
    return whole if -(1 << bits) <= whole < 1 << bits else None


def decimal_of(value: Any, kind: Any) -> Decimal | None:
    try:
        number = Decimal(str(value)).quantize(Decimal(1).scaleb(-kind.scale))
    except InvalidOperation:
        return None
    return number if not isinstance(value, bool) and len(number.as_tuple().digits) <= kind.precision else None


def timestamp_of(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def date_of(value: Any) -> date | None:
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
