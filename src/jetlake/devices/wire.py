"""Protobuf messages in one buffer, read together with numpy: one step takes the next field of every message.

A loop over events in Python costs ten microseconds each; a step over a batch costs a few nanoseconds per message. The
price is that only the usual is read here: fields of the expected form, each at most once. A message with anything else
is `odd`, and the caller reads it again with the protobuf library, which alone decides what is malformed.

Invariants: no bytes make `scan` read outside the buffer or loop for longer than the longest message has fields. A
message that is not odd gives the values that the protobuf library gives.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

VARINT = 0
BYTES = 2
"""The two forms of fields that the messages of the bus have."""

PADDING_BYTES = 16
"""After the last message, so that a number which does not end is read to its limit and detected afterwards."""

NUMBER_BYTES_MAX = 10
"""Of a number of 64 bits."""

FIELDS_MAX = 4096
"""Of one message; one with more is odd, or a single message would hold up its whole batch."""

Numbers = np.ndarray[Any, np.dtype[Any]]


class WireField(NamedTuple):
    """One field of many messages: numbers, or where the bytes are."""

    # Whether a message has the field.
    present: Numbers
    # The number, of a field of that form.
    value: Numbers
    offset: Numbers
    length: Numbers


class Repeated(NamedTuple):
    """A repeated field of many messages: which message has how many, and where the bytes are, message by message."""

    # Of each message.
    counts: Numbers
    offset: Numbers
    length: Numbers


class Scan(NamedTuple):
    """What the fields of many messages are."""

    fields: dict[int, WireField]
    repeated: dict[int, Repeated]
    # Messages that need the protobuf library.
    odd: Numbers


def padded(data: Numbers) -> Numbers:
    """Return a buffer that `scan` may read."""
    return np.concatenate([data, np.zeros(PADDING_BYTES, np.uint8)])


def varints(data: Numbers, position: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return the numbers at these positions, the positions after them, and the indices of those that do not end."""
    byte = data[position]
    value = (byte & 0x7F).astype(np.uint64)
    behind = position + 1
    more = np.flatnonzero(byte >= 0x80)
    for index in range(1, NUMBER_BYTES_MAX):
        if not more.size:
            break
        byte = data[behind[more]]
        value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * index)
        behind[more] += 1
        more = more[byte >= 0x80]
    return value, behind, more


def scan(data: Numbers, start: Numbers, end: Numbers, wanted: Mapping[int, int], repeated: Sequence[int] = ()) -> Scan:
    """Return the wanted fields (number: form) of the messages between `start` and `end`; others are passed over."""
    count = len(start)
    found = {
        number: WireField(
            np.zeros(count, bool), np.zeros(count, np.uint64), np.zeros(count, np.int64), np.zeros(count, np.int64)
        )
        for number in wanted
    }
    pieces: dict[int, list[tuple[Numbers, Numbers, Numbers]]] = {number: [] for number in repeated}
    odd = np.zeros(count, bool)
    rows = np.flatnonzero(start < end)
    position, stop = start[rows], end[rows]
    steps = 0
    while rows.size:
        tag, position, endless = varints(data, position)
        number, form = (tag >> 3).astype(np.int64), (tag & 7).astype(np.int8)
        wrong = (number == 0) | (tag >= 1 << 32) | ((form != VARINT) & (form != BYTES)) | (position >= stop)
        wrong[endless] = True
        # Whatever comes after the end is zeros or the next message; it is read, and thrown away with its row.
        value, offset, endless = varints(data, np.minimum(position, len(data) - PADDING_BYTES))
        wrong[endless] = True
        is_bytes = form == BYTES
        room = np.maximum(stop - offset, 0).astype(np.uint64)
        wrong |= (offset > stop) | (is_bytes & (value > room))
        length = np.where(is_bytes & ~wrong, value, 0).astype(np.int64)
        position = offset + length
        for wanted_number, wanted_form in wanted.items():
            hits = np.flatnonzero(number == wanted_number)
            if hits.size:
                _store(found[wanted_number], rows[hits], value[hits], offset[hits], length[hits], odd)
                odd[rows[hits[form[hits] != wanted_form]]] = True
        for repeated_number, kept in pieces.items():
            hits = np.flatnonzero((number == repeated_number) & is_bytes & ~wrong)
            if hits.size:
                kept.append((rows[hits], offset[hits], length[hits]))
        odd[rows[wrong]] = True
        steps += 1
        going_on = ~wrong & (position < stop)
        rows, position, stop = rows[going_on], position[going_on], stop[going_on]
        if steps >= FIELDS_MAX:
            odd[rows] = True
            break
    return Scan(found, {number: _joined(kept, count) for number, kept in pieces.items()}, odd)


def _store(field: WireField, rows: Numbers, value: Numbers, offset: Numbers, length: Numbers, odd: Numbers) -> None:
    # The library takes the last of several numbers and merges several messages; it may do so.
    odd[rows[field.present[rows]]] = True
    field.present[rows] = True
    field.value[rows] = value
    field.offset[rows] = offset
    field.length[rows] = length


def _joined(kept: list[tuple[Numbers, Numbers, Numbers]], count: int) -> Repeated:
    if not kept:
        nothing = np.zeros(0, np.int64)
        return Repeated(np.zeros(count, np.int64), nothing, nothing)
    rows, offset, length = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    # Steps go along the messages, so a stable order by message keeps the order inside each.
    order = np.argsort(rows, kind="stable")
    return Repeated(np.bincount(rows, minlength=count), offset[order], length[order])


def gathered(data: Numbers, offset: Numbers, length: Numbers) -> tuple[Numbers, Numbers]:
    """Return pieces of a buffer as Arrow wants them: the ends of all pieces after a zero, and their bytes."""
    ends = np.zeros(len(length) + 1, np.int32)
    np.cumsum(length, out=ends[1:])
    total = int(ends[-1])
    if not total:
        return ends, np.zeros(0, np.uint8)
    width = int(length[0])
    if width and bool((length == width).all()):
        # Of one width, as ids are: whole rows are copied instead of bytes.
        windows = np.lib.stride_tricks.sliding_window_view(data, width)
        return ends, windows[offset].reshape(-1)
    index = np.repeat(offset - ends[:-1], length) + np.arange(total)
    return ends, data[index]
