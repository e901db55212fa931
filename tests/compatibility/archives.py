"""Takes snapshots and sends them back, and makes archives by hand, of which some are no good.

A `Snapshot` is what a client keeps of a stream: the answer's configuration and state, and the bytes of the archive.

    snapshot = take_snapshot(js, "S")
    answer = restore(js, "S", snapshot)
"""

from __future__ import annotations

import itertools
import struct
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.compatibility.jetstream import JetStream, Json, Message
from tests.compatibility.wire import TIMEOUT_SECONDS

CHUNK_BYTES = 64 * 1024

_deliver_numbers = itertools.count(1)

MAGIC = b"NATSARC1"
S2_NAME = b"\xff\x06\x00\x00S2sTwO"
BLOCK_BYTES = 64 * 1024


@dataclass(frozen=True)
class Snapshot:
    config: Json
    state: Json
    data: bytes
    chunks: tuple[Message, ...] = ()
    end: Message | None = None

    def renamed(self, name: str, **config: Any) -> Snapshot:
        return replace(self, config={**self.config, "name": name, **config})


@dataclass(frozen=True)
class Entry:
    """One entry of an archive; `lengths` are what it says of its headers and payload, unless that is a lie."""

    name: bytes
    sequence: int = 0
    time_ns: int = 0
    headers: bytes = b""
    payload: bytes = b""
    lengths: tuple[int, int, int] | None = field(default=None)

    def encode(self) -> bytes:
        name, headers, payload = self.lengths or (len(self.name), len(self.headers), len(self.payload))
        zigzag = (self.time_ns << 1) ^ (self.time_ns >> 63)
        head = b"".join(map(varint, (name, zigzag, self.sequence, headers, payload)))
        return head + self.name + self.headers + self.payload


END = Entry(b"")


def take_snapshot(js: JetStream, stream: str, **request: Any) -> Snapshot:
    """Return a snapshot, each chunk acknowledged when it comes."""
    # A subscription of its own: nats-server waits two seconds for one without wildcards.
    inbox = f"DELIVER.{next(_deliver_numbers)}"
    js.subscribe(inbox)
    answer = js.api(f"STREAM.SNAPSHOT.{stream}", {"deliver_subject": inbox, **request})
    assert "error" not in answer, answer
    chunks = []
    while (chunk := js.next(inbox)).data:
        chunks.append(chunk)
        if chunk.reply:
            js.send(chunk.reply)
    data = b"".join(each.data for each in chunks)
    return Snapshot(answer["config"], answer["state"], data, tuple(chunks), chunk)


def delete(js: JetStream, stream: str) -> None:
    """Delete a stream, and wait for its files to be gone: nats-server removes them behind the answer."""
    js.api(f"STREAM.DELETE.{stream}")
    deadline = time.monotonic() + TIMEOUT_SECONDS
    folders = list((Path(js.server.folder) / "store" / "jetstream").glob("*/streams"))
    while any((folder / name).exists() for folder in folders for name in (stream, f".{stream}")):
        assert time.monotonic() < deadline, f"the files of {stream} are still there"
        time.sleep(0.01)


def begin_restore(js: JetStream, stream: str, snapshot: Snapshot) -> str:
    """Return the subject that the chunks go to."""
    answer = js.api(f"STREAM.RESTORE.{stream}", {"config": snapshot.config, "state": snapshot.state})
    assert "error" not in answer, answer
    return str(answer["deliver_subject"])


def send_chunks(js: JetStream, subject: str, data: bytes, chunk_bytes: int = CHUNK_BYTES) -> Json | None:
    """Send the chunks; return the answer to one that is refused."""
    for start in range(0, len(data), chunk_bytes):
        answer = js.request(subject, data[start : start + chunk_bytes])
        if answer.data:
            return answer.json()
    return None


def restore(js: JetStream, stream: str, snapshot: Snapshot, chunk_bytes: int = CHUNK_BYTES) -> Json:
    """Return the answer to the end of a restore."""
    subject = begin_restore(js, stream, snapshot)
    refused = send_chunks(js, subject, snapshot.data, chunk_bytes)
    return refused or js.request(subject).json()


# Archives by hand


def varint(number: int) -> bytes:
    out = bytearray()
    number &= 2**64 - 1
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def _crc_table() -> list[int]:
    table = []
    for number in range(256):
        remainder = number
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
        table.append(remainder)
    return table


_CRC_TABLE = _crc_table()


def masked_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frame(data: bytes) -> bytes:
    """Return bytes as an S2 stream that compresses nothing."""
    out = [S2_NAME]
    for start in range(0, len(data), BLOCK_BYTES):
        block = data[start : start + BLOCK_BYTES]
        out.append(b"\x01" + struct.pack("<I", len(block) + 4)[:3] + struct.pack("<I", masked_crc(block)) + block)
    return b"".join(out)


def archive(*entries: Entry, state: bytes = b"{}", end: bytes = END.encode()) -> bytes:
    """Return an archive of these entries, as it is before compression."""
    first = Entry(b"state.json", payload=state)
    return MAGIC + b"".join(entry.encode() for entry in (first, *entries)) + end
