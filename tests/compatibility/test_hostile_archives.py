"""STREAM.RESTORE of archives that somebody made to do harm: nothing is made of them, and nothing of them is left.

An archive has no paths: names in it are those of subjects and consumers. The older form is a tar, which has them.
"""

from __future__ import annotations

import io
import json
import struct
import sys
import tarfile
import time
from pathlib import Path

import pytest

from tests.compatibility import jetstream
from tests.compatibility.archives import (
    END,
    S2_NAME,
    Entry,
    Snapshot,
    archive,
    frame,
    masked_crc,
    restore,
    varint,
)
from tests.compatibility.jetstream import JetStream, error_of
from tests.compatibility.origins import payloads, publish_numbers, wait_for_messages, wait_until
from tests.compatibility.server_process import ServerProcess

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream

NOT_FOUND = (404, 10059, "stream not found")

STATE = b'{"messages":1,"first_seq":1,"last_seq":1}'
NOTHING = {"consumer_seq": 0, "stream_seq": 0}

MEBIBYTE = 1024 * 1024

BLOCK_BYTES = 64 * 1024
"""Of a bomb: its checksum is computed in Python."""


def with_consumers(*names: str, count: int | None = None) -> bytes:
    """An archive of consumers; it says that it has `count`, as many as there are unless that is a lie."""
    entries = []
    for name in names:
        config = {"durable_name": name, "deliver_policy": "all", "ack_policy": "explicit", "replay_policy": "instant"}
        state = {"delivered": NOTHING, "ack_floor": NOTHING}
        body = {"config": config, "created": "2026-01-01T00:00:00Z", "state": state}
        entries.append(Entry(b"consumers/" + name.encode(), payload=json.dumps(body).encode()))
    state_entry = {"first_seq": 1, "consumer_count": len(names) if count is None else count}
    return frame(archive(*entries, state=json.dumps(state_entry).encode()))


def old_archive(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    """An archive as servers made them before 2.15, of one entry."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, link
        entry.size = 2 if kind == tarfile.REGTYPE else 0
        tar.addfile(entry, io.BytesIO(b"{}"))
    return frame(packed.getvalue())


def bomb(mebibytes: int) -> bytes:
    """An archive of one message that is twenty times as large as what is sent of it."""
    copies, rest = divmod(BLOCK_BYTES - 1, 64)
    # One letter, and then copies of up to 64 bytes from one byte before.
    block = varint(BLOCK_BYTES) + b"\x00a" + b"\xfe\x01\x00" * copies + bytes([(rest - 1) << 2 | 2, 1, 0])
    checksum = struct.pack("<I", masked_crc(b"a" * BLOCK_BYTES))
    chunk = b"\x00" + struct.pack("<I", len(block) + 4)[:3] + checksum + block
    head = archive(Entry(b"a", 1, lengths=(1, 0, mebibytes * MEBIBYTE)), state=STATE, end=b"")
    return frame(head) + chunk * (mebibytes * MEBIBYTE // BLOCK_BYTES) + frame(END.encode())[len(S2_NAME) :]


HOSTILE = {
    "consumer named like a path upwards": with_consumers("../../../x"),
    "consumer named like a path": with_consumers("a/b"),
    "consumer named like an absolute path": with_consumers("/etc/x"),
    "consumer with a zero byte": with_consumers("a\0b"),
    "consumer with a line break": with_consumers("a\nb"),
    "consumer named dot": with_consumers("."),
    "consumer named star": with_consumers("*"),
    "consumer with too long a name": with_consumers("c" * 300),
    "more consumers than it says": with_consumers("C", "D", count=1),
    "fewer consumers than it says": with_consumers("C", count=2**62),
    "state twice": frame(archive(Entry(b"state.json", payload=STATE), Entry(b"a", 1), state=STATE)),
    "last sequence beyond all": frame(
        archive(Entry(b"a", 1), state=b'{"first_seq":1,"last_seq":18446744073709551615}')
    ),
    "bytes damaged": frame(archive(Entry(b"a", 1), state=STATE))[:-1] + b"\x55",
    "message that grows when it is unpacked": bomb(64),
    "old, absolute path": old_archive("/etc/cron.d/x"),
    "old, path upwards": old_archive("../../../x"),
    "old, symbolic link": old_archive("msgs/1.blk", tarfile.SYMTYPE, "/etc/passwd"),
    "old, hard link": old_archive("meta.inf", tarfile.LNKTYPE, "/etc/passwd"),
    "old, device": old_archive("msgs/1.blk", tarfile.CHRTYPE),
    "old, pipe": old_archive("meta.inf", tarfile.FIFOTYPE),
    "old, folder": old_archive("msgs", tarfile.DIRTYPE),
}

TAKEN_BY_NATS_SERVER = {
    "subject with a line break": frame(archive(Entry(b"a\r\nPING", 1), state=STATE)),
    "subject with a zero byte": frame(archive(Entry(b"a\0b", 1), state=STATE)),
    "subject with a space": frame(archive(Entry(b"a b", 1), state=STATE)),
    "subject with wildcards": frame(archive(Entry(b"a.>", 1), state=STATE)),
    "subject with empty words": frame(archive(Entry(b"../../x", 1), state=STATE)),
    "sequence beyond all": frame(archive(Entry(b"a", 2**64 - 1), state=STATE)),
    "consumer twice": with_consumers("C", "C"),
    "another archive behind": frame(archive(Entry(b"a", 1), state=STATE) + archive(Entry(b"a", 2), state=STATE)),
    "garbage behind": frame(archive(Entry(b"a", 1), state=STATE) + b"garbage" * 50),
    "garbage behind the frames": frame(archive(Entry(b"a", 1), state=STATE)) + b"garbage" * 20,
}
"""It overlooks what follows the end, and checks no subjects."""


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_archive_is_refused_and_writes_nowhere(
    js: JetStream, js_server: ServerProcess, stream: str, what: str
) -> None:
    answer = restore(js, stream, Snapshot({"name": stream}, {}, HOSTILE[what]))

    assert error_of(answer)[:2] == (500, 10062)
    files = [path for path in Path(js_server.folder).rglob("*") if not path.is_dir()]
    assert [path for path in files if path.is_symlink() or path.name in ("x", "passwd")] == []
    assert not Path("/etc/cron.d/x").exists()
    if js_server.kind == "nats-server":
        # Of some it leaves an empty stream, or its files, behind.
        return
    assert js.error(f"STREAM.INFO.{stream}") == NOT_FOUND
    assert [path for path in files if stream in path.parts] == []
    js.create(stream)


@pytest.mark.parametrize("what", TAKEN_BY_NATS_SERVER)
def test_archive_that_says_something_impossible_is_refused(
    js: JetStream, server_kind: str, stream: str, what: str
) -> None:
    answer = restore(js, stream, Snapshot({"name": stream}, {}, TAKEN_BY_NATS_SERVER[what]))

    if server_kind == "nats-server":
        assert "error" not in answer
        return
    assert error_of(answer)[:2] == (500, 10062)
    assert js.error(f"STREAM.INFO.{stream}") == NOT_FOUND
    js.create(stream)


def most_kilobytes(server: ServerProcess) -> int:
    """The most memory that a server has held so far."""
    (line,) = [line for line in Path(f"/proc/{server.pid}/status").read_text().splitlines() if "VmHWM" in line]
    return int(line.split()[1])


@pytest.mark.skipif(sys.platform != "linux", reason="reads memory in /proc")
def test_message_that_grows_is_refused_before_it_has_grown(
    js: JetStream, js_server: ServerProcess, stream: str
) -> None:
    before = most_kilobytes(js_server)
    data = bomb(256)
    assert len(data) < 16 * MEBIBYTE

    answer = restore(js, stream, Snapshot({"name": stream}, {}, data))

    assert error_of(answer)[:2] == (500, 10062)
    assert most_kilobytes(js_server) - before < 64 * 1024


@pytest.mark.parametrize(("sequence", "copied"), [(2**63, []), (2**64 - 2, []), (2**64 - 1, ["1"]), (2**64, ["1"])])
def test_message_that_claims_a_huge_sequence_of_its_origin_stops_nothing(
    js: JetStream, server_kind: str, stream: str, sequence: int, copied: list[str]
) -> None:
    origin = f"{stream}-O"
    js.create(origin)
    publish_numbers(js, f"{origin}.a", 1)
    headers = f"NATS/1.0\r\nNats-Stream-Source: {origin} {sequence} > >\r\n\r\n".encode()
    entry = Entry(b"a", 1, time.time_ns(), headers, b"restored")
    config = {"name": stream, "sources": [{"name": origin}]}

    answer = restore(js, stream, Snapshot(config, {}, frame(archive(entry, state=STATE))))

    assert "error" not in answer
    if server_kind == "nats-server" and sequence == 2**64 - 1:
        # It goes on after this one too.
        copied = []
    position = 1 if copied else sequence
    wait_until(js, stream, lambda _: js.info(stream)["sources"][0].get("seq") == position)
    wait_until(js, stream, lambda _: js.info(stream)["sources"][0]["active"] >= 0)
    wait_for_messages(js, stream, 1 + len(copied))
    assert payloads(js, stream) == ["restored", *copied]
