"""Values of an answer as text for people and as JSON for programs.

Bytes are text where they are UTF-8, with escapes where they are not; times are RFC 3339 in UTC; decimals keep all their
digits, which a `float` would not.
"""

from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec

from jetlake.errors import ConfigurationError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["as_json", "as_text", "full_text", "plain", "rows_of"]

_write_json = msgspec.json.Encoder(decimal_format="number").encode


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it; a decimal is a number there, with all its digits."""
    if value is None or isinstance(value, bool | int | str | Decimal):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode(errors="backslashreplace")
    if isinstance(value, datetime):
        moment = value.astimezone(UTC) if value.tzinfo else value
        return moment.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return str(value)


def rows_of(batch: "pa.RecordBatch") -> list[dict[str, Any]]:
    """Return the rows of a batch as Python values; a map is a dict.

    Raises `ConfigurationError` for a value that Python does not have, such as a time that is infinite or before Christ.
    """
    try:
        rows: list[dict[str, Any]] = batch.to_pylist(maps_as_pydicts="lossy")
    except (OverflowError, ValueError) as error:
        named = zip(batch.schema.names, batch.columns, strict=True)
        name = next((name for name, column in named if not _can_be_read(column)), "?")
        raise ConfigurationError(
            f"column {name} has a value that cannot be shown ({error}); cast it to VARCHAR"
        ) from error
    return rows


def _can_be_read(column: "pa.Array") -> bool:
    try:
        column.to_pylist(maps_as_pydicts="lossy")
    except (OverflowError, ValueError):
        return False
    return True


def as_json(row: dict[str, Any]) -> bytes:
    """Return a row as one JSON object."""
    return _write_json({name: plain(value) for name, value in row.items()})


def full_text(value: Any) -> str:
    """Return a value as text that has all of it, line breaks included."""
    simple = plain(value)
    if isinstance(simple, str):
        return simple
    # `str` would write an exponent for small ones.
    return format(simple, "f") if isinstance(simple, Decimal) else _write_json(simple).decode()


def as_text(value: Any, length_max: int | None = None) -> str:
    """Return a value as one line of text, cut where it is longer than that."""
    text = "".join(character if character.isprintable() else " " for character in full_text(value))
    return text if length_max is None or len(text) <= length_max else f"{text[: length_max - 1]}…"
