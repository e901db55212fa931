"""Values in the binary form of Spark's VARIANT: what JSON holds, with the names of its fields in a dictionary.

The form is Spark's own (and Parquet's): a value begins with a byte whose low two bits say what it is, a primitive, a
short string, an object or an array; objects name their fields by numbers of the dictionary, in the order of the names.
Numbers with a point become doubles, as do whole numbers of more than 64 bits.

Invariant: `metadata` holds every name that `value` refers to; equal lists of names give the same bytes of metadata.
"""

import math
import struct
from decimal import Decimal
from typing import Any

__all__ = ["METADATA_CACHE_MAX", "VariantEncoder", "nearest_double"]

METADATA_CACHE_MAX = 1024
"""Different lists of names that are remembered; messages of a stream have few."""

NULL = b"\x00"
TRUE = b"\x04"
FALSE = b"\x08"
DOUBLE = struct.Struct("<Bd")
INT8 = struct.Struct("<Bb")
INT16 = struct.Struct("<Bh")
INT32 = struct.Struct("<Bi")
INT64 = struct.Struct("<Bq")
LONG_STRING = struct.Struct("<BI")

SHORT_STRING_BYTES_MAX = 63
SMALL_COUNT_MAX = 255


class VariantEncoder:
    """Turns decoded JSON into pairs of value and metadata."""

    def __init__(self) -> None:
        self._metadata: dict[tuple[str, ...], bytes] = {}
        self._names: dict[str, int] = {}

    def encode(self, value: Any) -> tuple[bytes, bytes]:
        """Return the bytes of a value and of its dictionary."""
        self._names = {}
        body = self._value(value)
        names = tuple(self._names)
        metadata = self._metadata.get(names)
        if metadata is None:
            if len(self._metadata) >= METADATA_CACHE_MAX:
                self._metadata.clear()
            metadata = self._metadata[names] = metadata_of(names)
        return body, metadata

    def _value(self, value: Any) -> bytes:
        if isinstance(value, str):
            return string(value)
        if value is None:
            return NULL
        if value is True:
            return TRUE
        if value is False:
            return FALSE
        if isinstance(value, int):
            return integer(value)
        if isinstance(value, float):
            return DOUBLE.pack(7 << 2, value)
        if isinstance(value, dict):
            return self._object(value)
        return self._array(value)

    def _object(self, value: dict[str, Any]) -> bytes:
        names = self._names
        ids = []
        bodies = []
        for name in sorted(value):
            ids.append(names.setdefault(name, len(names)))
            bodies.append(self._value(value[name]))
        offsets, total = offsets_of(bodies)
        id_size = size_of(max(ids, default=0))
        offset_size = size_of(total)
        large = len(ids) > SMALL_COUNT_MAX
        header = 2 | ((large << 4) | (id_size - 1) << 2 | (offset_size - 1)) << 2
        return b"".join(
            [
                bytes([header]),
                len(ids).to_bytes(4 if large else 1, "little"),
                numbers(ids, id_size),
                numbers(offsets, offset_size),
                *bodies,
            ]
        )

    def _array(self, value: list[Any]) -> bytes:
        bodies = [self._value(element) for element in value]
        offsets, total = offsets_of(bodies)
        offset_size = size_of(total)
        large = len(bodies) > SMALL_COUNT_MAX
        header = 3 | ((large << 2) | (offset_size - 1)) << 2
        count = len(bodies).to_bytes(4 if large else 1, "little")
        return b"".join([bytes([header]), count, numbers(offsets, offset_size), *bodies])


def string(value: str) -> bytes:
    raw = value.encode()
    if len(raw) <= SHORT_STRING_BYTES_MAX:
        return bytes([1 | len(raw) << 2]) + raw
    return LONG_STRING.pack(16 << 2, len(raw)) + raw


def integer(value: int) -> bytes:
    if -128 <= value < 128:
        return INT8.pack(3 << 2, value)
    if -(1 << 15) <= value < 1 << 15:
        return INT16.pack(4 << 2, value)
    if -(1 << 31) <= value < 1 << 31:
        return INT32.pack(5 << 2, value)
    if -(1 << 63) <= value < 1 << 63:
        return INT64.pack(6 << 2, value)
    return DOUBLE.pack(7 << 2, nearest_double(value))


def nearest_double(value: float | Decimal) -> float:
    """Return the nearest double; for a number beyond all doubles, infinity, as for 1e400."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def metadata_of(names: tuple[str, ...]) -> bytes:
    """Return the dictionary of these names, which are in the order of their numbers."""
    raw = [name.encode() for name in names]
    offsets, total = offsets_of(raw)
    size = size_of(max(total, len(raw)))
    header = 1 | (size - 1) << 6
    return b"".join([bytes([header]), len(raw).to_bytes(size, "little"), numbers(offsets, size), *raw])


def offsets_of(pieces: list[bytes]) -> tuple[list[int], int]:
    """Return where each piece begins and the last one ends, and the latter once more."""
    offsets = [0]
    total = 0
    for piece in pieces:
        total += len(piece)
        offsets.append(total)
    return offsets, total


def size_of(value: int) -> int:
    """Return how many bytes a number up to this one needs."""
    return max((value.bit_length() + 7) // 8, 1)


def numbers(values: list[int], size: int) -> bytes:
    if size == 1:
        return bytes(values)
    return b"".join(value.to_bytes(size, "little") for value in values)
