"""Snappy blocks of many events, decompressed into one buffer.

Most events are too small to have repetitions; their block is one literal, and its bytes are used where they lie. Only
the others go through the snappy library, one by one.

Invariant: `inflate` either gives the bytes that the snappy library gives, or counts the block as odd.
"""

from typing import NamedTuple

import cramjam
import numpy as np

from jetlake.devices.codec import UNCOMPRESSED_BYTES_MAX
from jetlake.devices.wire import Numbers, padded, varints

_decompress = cramjam.snappy.decompress_raw

_LITERAL = 0
_LENGTH_IN_1_BYTE = 60
_LENGTH_IN_2_BYTES = 61


class Inflated(NamedTuple):
    """Where the events are."""

    data: Numbers
    start: Numbers
    end: Numbers
    odd: Numbers


def inflate(data: Numbers, offset: Numbers, length: Numbers, skip: Numbers) -> Inflated:
    """Return the content of the blocks at these places of a padded buffer; those to be skipped are odd."""
    end = offset + length
    claimed, first, endless = varints(data, offset)
    odd = skip | (length == 0) | (claimed > UNCOMPRESSED_BYTES_MAX) | (first > end)
    odd[endless] = True
    tag = data[first].astype(np.int64)
    code = tag >> 2
    second, third = data[first + 1].astype(np.int64), data[first + 2].astype(np.int64)
    size = np.select(
        [code < _LENGTH_IN_1_BYTE, code == _LENGTH_IN_1_BYTE, code == _LENGTH_IN_2_BYTES],
        [code + 1, second + 1, (second | third << 8) + 1],
        -1,
    )
    header = np.select([code < _LENGTH_IN_1_BYTE, code == _LENGTH_IN_1_BYTE], [1, 2], 3)
    is_literal = (tag & 3 == _LITERAL) & (size == claimed.astype(np.int64)) & (first + header + size == end)
    is_empty = (claimed == 0) & (first == end)
    start = np.where(is_empty, end, first + header)
    rest = np.flatnonzero(~(is_literal | is_empty | odd))
    if rest.size:
        data, start, end = _through_library(data, (offset, end, claimed), rest, start, odd)
    start[odd] = end[odd] = 0
    return Inflated(data, start, end, odd)


def _through_library(
    data: Numbers, blocks: tuple[Numbers, Numbers, Numbers], rest: Numbers, start: Numbers, odd: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    offset, end, claimed = blocks
    view = data.data
    pieces = []
    sizes = np.zeros(len(rest), np.int64)
    begins, ends, lengths = offset[rest].tolist(), end[rest].tolist(), claimed[rest].tolist()
    for index, (begin, stop, wanted) in enumerate(zip(begins, ends, lengths, strict=True)):
        try:
            piece = _decompress(view[begin:stop])
        except cramjam.DecompressionError:
            odd[rest[index]] = True
            continue
        if len(piece) != wanted:
            odd[rest[index]] = True
            continue
        sizes[index] = wanted
        pieces.append(piece)
    base = len(data)
    inflated = np.frombuffer(b"".join(pieces), np.uint8)
    ends_of_pieces = np.cumsum(sizes) + base
    start, end = start.copy(), end.copy()
    start[rest], end[rest] = ends_of_pieces - sizes, ends_of_pieces
    return padded(np.concatenate([data, inflated])), start, end
