"""Payloads that are JSON, as a column: a struct by its schema, or a VARIANT.

Arrow parses a struct for all payloads of a batch at once. A batch that Arrow refuses, because one payload is not JSON
or a value has another type than its field, is parsed again one by one: that payload or field becomes NULL, the others
stay. A row is never lost and never stops a query. Numbers of structs are decimals until the type of their field is
known, so they lose no digits.

Invariant: the result has one element per payload; it is NULL where the payload is NULL or not JSON. An element depends
on its own payload only, so Arrow gets nothing that it would read in another way than `parse_each`.
"""

import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import msgspec

from jetlake.spark.variant import VariantEncoder, nearest_double

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["decode_json"]

BLOCK_BYTES_SPARE = 1024
"""Room in Arrow's block beside the payloads, so that a batch is one block."""

DECIMAL_CONTEXT = Context(prec=76)
"""Digits of the widest decimal of Arrow; Python's usual 28 are too few for Spark's 38."""

LINE_BREAK = b"\n"
"""Between the payloads for Arrow, so not in one of them, though JSON has it between its tokens."""

YEAR_ZERO = (b'"0000-', b"\\u0030", b"\\u002d", b"\\u002D")
"""What the only timestamps that Arrow takes and Python does not have one of, with escapes or without."""

MINUS_ZERO = re.compile(rb"-0[\s,}\]]")
"""A double with a sign for Arrow, a whole number without one for msgspec."""


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
        ok, decoded = load(payload, float)
        try:
            value, names = encoder.encode(decoded)
        except RecursionError:
            ok = False
            value, names = encoder.encode(None)
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

    if payloads.null_count or not len(payloads) or not is_read_alike(kind):
        return None
    lines = payloads.to_pylist()
    text = LINE_BREAK.join(lines)
    if any(year in text for year in YEAR_ZERO) or MINUS_ZERO.search(text):
        return None
    if not are_objects(lines) or not is_utf8(text):
        return None
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
        parsed = pa.StructArray.from_arrays(columns, fields=list(kind))
        # Arrow reads decimals with more digits than their type has.
        parsed.validate(full=True)
    except (pa.ArrowException, KeyError):
        return None
    return parsed


def is_read_alike(kind: "pa.DataType") -> bool:
    """Tell whether Arrow reads values of this type as `maker` does.

    It takes days for a date, pairs for a map and a string for bytes, and rounds to a float once instead of twice.
    """
    import pyarrow as pa

    types = pa.types
    if types.is_struct(kind):
        return all(is_read_alike(child.type) for child in kind)
    if types.is_list(kind):
        return is_read_alike(kind.value_type)
    numbers = (types.is_integer, types.is_float64, types.is_decimal)
    return any(is_one(kind) for is_one in (*numbers, types.is_string, types.is_boolean, types.is_timestamp))


def are_objects(lines: list[bytes]) -> bool:
    """Tell whether each line is one complete JSON object.

    Arrow does not care about the breaks between lines: two objects in a line are two rows for it, and an object that
    goes on in the next line is one.
    """
    try:
        for line in lines:
            if LINE_BREAK in line or not line.lstrip().startswith(b"{"):
                return False
            SCANNER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def is_utf8(text: bytes) -> bool:
    """Tell whether the payloads are UTF-8, in the fields that nobody asked for, too."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def parse_each(payloads: "pa.Array", kind: "pa.DataType") -> "pa.Array":
    """Return each payload as a struct, NULL where it is not one, with NULL fields where a value does not fit."""
    import pyarrow as pa

    make = maker(kind)
    rows = []
    for payload in payloads.to_pylist():
        ok, decoded = load(payload)
        rows.append(make(decoded) if ok else None)
    return pa.array(rows, kind)


def exact_number(text: str) -> Any:
    """Return a number with all its digits; the nearest double if its exponent is beyond those of decimals."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return float(text)


SCANNER = msgspec.json.Decoder(msgspec.Raw)
ENCODER = msgspec.json.Encoder(decimal_format="number")
DECODERS: dict[Callable[[str], Any], msgspec.json.Decoder[Any]] = {
    float: msgspec.json.Decoder(),
    exact_number: msgspec.json.Decoder(float_hook=exact_number),
}


def load(payload: bytes | None, number: Callable[[str], Any] = exact_number) -> tuple[bool, Any]:
    """Return whether a payload is JSON, and its value; `number` reads what has a point or an exponent."""
    if not payload:
        return False, None
    try:
        return True, DECODERS[number].decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return load_lenient(payload, number)
    except RecursionError:
        return False, None


def load_lenient(payload: bytes, number: Callable[[str], Any]) -> tuple[bool, Any]:
    """Load what Python takes and msgspec refuses: NaN, UTF-16, and numbers beyond a double or of 4,301 digits."""

    def whole_number(text: str) -> Any:
        try:
            return int(text)
        except ValueError:
            return number(text)

    try:
        value = json.loads(payload, parse_float=number, parse_int=whole_number)
        if not has_lone_surrogates(value):
            return True, value
    except (ValueError, RecursionError):
        pass
    return False, None


def has_lone_surrogates(value: Any) -> bool:
    """Tell whether a text in it is half a character, which no UTF-8 can hold."""
    if isinstance(value, str):
        return any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, dict):
        return any(has_lone_surrogates(name) or has_lone_surrogates(inner) for name, inner in value.items())
    return isinstance(value, list) and any(has_lone_surrogates(inner) for inner in value)


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
        return double_of
    if types.is_decimal(kind):
        return lambda value: decimal_of(value, kind)
    if types.is_timestamp(kind):
        return timestamp_of
    if types.is_date(kind):
        return date_of
    return lambda _: None


def text_of(value: Any) -> str | None:
    """Return a string as it is, and anything else as the JSON it was; None for what is nested too deeply."""
    if value is None or isinstance(value, str):
        return value
    try:
        return ENCODER.encode(value).decode()
    except RecursionError:
        return None


def integer_of(value: Any, bits: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    # The range first: a whole number may have more digits than fit into memory, and NaN is in no range.
    if not -(1 << bits) <= value < 1 << bits:
        return None
    whole = int(value)
    return whole if whole == value else None


def double_of(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return nearest_double(value)


def decimal_of(value: Any, kind: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        return None
    try:
        exact = Decimal(str(value) if isinstance(value, float) else value)
        if not exact.is_finite():
            return None
        number = exact.quantize(Decimal(1).scaleb(-kind.scale), context=DECIMAL_CONTEXT)
    except InvalidOperation:
        return None
    return number if len(number.as_tuple().digits) <= kind.precision else None


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
