"""Values of an answer as text for people and as JSON for programs.

Bytes are text where they are UTF-8, with escapes where they are not; times are RFC 3339 in UTC.
"""

from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["as_json", "as_text", "plain", "rows_of"]


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if value is None or isinstance(value, bool | int | str):
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
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return str(value)


def rows_of(batch: "pa.RecordBatch") -> list[dict[str, Any]]:
    """Return the rows of a batch as Python values; a map is a dict."""
    rows: list[dict[str, Any]] = batch.to_pylist(maps_as_pydicts="lossy")
    return rows


def as_json(row: dict[str, Any]) -> bytes:
    """Return a row as one JSON object."""
    return msgspec.json.encode({name: plain(value) for name, value in row.items()})


def as_text(value: Any, length_max: int | None = None) -> str:
    """Return a value as one line of text, cut where it is longer than that."""
    simple = plain(value)
    text = simple if isinstance(simple, str) else msgspec.json.encode(simple).decode()
    text = "".join(character if character.isprintable() else " " for character in text)
    return text if length_max is None or len(text) <= length_max else f"{text[: length_max - 1]}…"
