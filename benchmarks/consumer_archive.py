"""`archive_of_consumers`: the archive of an empty stream with many consumers, as STREAM.RESTORE takes it.

An archive is a list of named entries in an S2 stream. This one is not compressed, so that no library is needed; the
checksums are those of its blocks.
"""

import json
import struct

MAGIC = b"NATSARC1"
S2_NAME = b"\xff\x06\x00\x00S2sTwO"

BLOCK_BYTES = 64 * 1024
"""The most that a block of S2 frames holds by its rules for streams."""

_POLYNOMIAL = 0x82F63B78
"""Of CRC-32C, with its bits reversed."""


def archive_of_consumers(count: int) -> bytes:
    """Return the archive of a stream without messages and with so many consumers."""
    nothing = {"consumer_seq": 0, "stream_seq": 0}
    state = {"delivered": nothing, "ack_floor": nothing}
    entries = [_entry(b"state.json", json.dumps({"first_seq": 1, "consumer_count": count}).encode())]
    for number in range(count):
        name = f"C{number}"
        config = {"durable_name": name, "deliver_policy": "all", "ack_policy": "explicit", "replay_policy": "instant"}
        consumer = {"config": config, "created": "2026-01-01T00:00:00Z", "state": state}
        entries.append(_entry(f"consumers/{name}".encode(), json.dumps(consumer).encode()))
    return _framed(MAGIC + b"".join(entries) + _entry(b"", b""))


def _entry(name: bytes, payload: bytes) -> bytes:
    # The numbers in between are a time, a sequence and the length of headers, of which consumers have none.
    return b"".join(map(_varint, (len(name), 0, 0, 0, len(payload)))) + name + payload


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def _framed(data: bytes) -> bytes:
    table = _checksum_table()
    chunks = [S2_NAME]
    for start in range(0, len(data), BLOCK_BYTES):
        block = data[start : start + BLOCK_BYTES]
        length = struct.pack("<I", len(block) + 4)[:3]
        chunks.append(b"\x01" + length + struct.pack("<I", _masked_checksum(block, table)) + block)
    return b"".join(chunks)


def _checksum_table() -> list[int]:
    table = []
    for number in range(256):
        remainder = number
        for _ in range(8):
            remainder = remainder >> 1 ^ (_POLYNOMIAL if remainder & 1 else 0)
        table.append(remainder)
    return table


def _masked_checksum(block: bytes, table: list[int]) -> int:
    checksum = 0xFFFFFFFF
    for byte in block:
        checksum = checksum >> 8 ^ table[(checksum ^ byte) & 0xFF]
    checksum ^= 0xFFFFFFFF
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF
