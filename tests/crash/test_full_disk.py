"""A real file system that is full: refused with the reason, readable, and writable again when there is space."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import nats
import nats.js.errors
import pytest
from nats.js import JetStreamContext

DISK_MIB = 24
PAYLOAD = bytes(range(256)) * 64
PUBLISHED_MAX = 4 * DISK_MIB * 1024 * 1024 // len(PAYLOAD)
ANSWER_SECONDS_MAX = 60.0

MOUNTED = 'mount -t tmpfs -o size={size}m tmpfs "{store}" && exec "$@"'
"""The file system is seen by the server alone, and goes with it."""


def in_small_disk(store: Path, *command: str) -> list[str]:
    return ["unshare", "-r", "-m", "sh", "-c", MOUNTED.format(size=DISK_MIB, store=store), "sh", *command]


@pytest.fixture
def server_url(tmp_path: Path) -> Iterator[str]:
    store = tmp_path / "store"
    store.mkdir()
    if subprocess.run(in_small_disk(store, "true"), capture_output=True, check=False, timeout=60).returncode:
        pytest.skip("a file system can be mounted neither by this user nor in a namespace of its own")
    ports = tmp_path / "ports"
    ports.mkdir()
    # Else three quarters of the disk would be the limit of what may be stored.
    config = tmp_path / "server.conf"
    config.write_text(f'jetstream {{ store_dir: "{store}", max_file: 1G }}\n')
    flags = ["-a", "127.0.0.1", "-p", "-1", "-c", str(config), "--ports_file_dir", str(ports)]
    process = subprocess.Popen(in_small_disk(store, sys.executable, "-m", "jetlake", "server", *flags))
    try:
        yield f"nats://127.0.0.1:{port_of(ports)}"
    finally:
        process.terminate()
        process.wait(60)


def port_of(folder: Path) -> int:
    """Return the port of the server that writes its file into this folder."""
    for _ in range(1_200):
        for file in folder.glob("*.ports"):
            text = file.read_text()
            if text.endswith("}"):
                return int(text.partition('"nats://127.0.0.1:')[2].partition('"')[0])
        time.sleep(0.05)
    raise AssertionError("the server did not start")


async def fill(stream: JetStreamContext) -> tuple[int, nats.js.errors.APIError]:
    """Publish until it is refused; return the last sequence that was acknowledged, and the refusal."""
    last = 0
    for _ in range(PUBLISHED_MAX):
        try:
            last = (await stream.publish("s", PAYLOAD, timeout=ANSWER_SECONDS_MAX)).seq
        except nats.js.errors.APIError as refusal:
            return last, refusal
    raise AssertionError(f"{PUBLISHED_MAX} messages went onto a disk of {DISK_MIB} MiB")


async def publish_again(stream: JetStreamContext) -> int:
    """Publish until it is taken; return its sequence."""
    for _ in range(200):
        try:
            return (await stream.publish("s", b"again", timeout=ANSWER_SECONDS_MAX)).seq
        except nats.js.errors.APIError:
            await asyncio.sleep(0.1)
    raise AssertionError("there is space, and nothing is stored")


async def test_a_full_disk_refuses_at_once_is_readable_and_goes_on_when_there_is_space(server_url: str):
    connection = await nats.connect(server_url)
    stream = connection.jetstream()
    await stream.add_stream(name="S", subjects=["s"])
    await stream.add_consumer("S", durable_name="C", ack_policy="explicit")

    last, refusal = await fill(stream)

    assert last * len(PAYLOAD) > DISK_MIB * 1024 * 1024 // 4
    assert "the disk is full" in str(refusal.description)
    # Reads, acknowledgements and information go on.
    state = (await stream.stream_info("S")).state
    assert (state.messages, state.last_seq) == (last, last)
    assert (await stream.get_msg("S", last)).data == PAYLOAD
    subscription = await stream.pull_subscribe_bind("C", "S")
    (message,) = await subscription.fetch(1, timeout=ANSWER_SECONDS_MAX)
    await message.ack_sync(timeout=ANSWER_SECONDS_MAX)
    # What makes room is not refused, and then everything goes on by itself.
    await stream.purge_stream("S", keep=10)
    sequence = await publish_again(stream)
    assert sequence > last
    state = (await stream.stream_info("S")).state
    assert (state.messages, state.last_seq) == (11, sequence)
    assert (await stream.get_msg("S", last)).data == PAYLOAD
    await connection.close()


async def test_what_was_refused_on_a_full_disk_is_not_there_and_other_streams_can_be_made_afterwards(server_url: str):
    connection = await nats.connect(server_url)
    stream = connection.jetstream()
    await stream.add_stream(name="S", subjects=["s"])
    last, _ = await fill(stream)
    for _ in range(5):
        with pytest.raises(nats.js.errors.APIError):
            await stream.publish("s", PAYLOAD, timeout=ANSWER_SECONDS_MAX)

    await stream.delete_stream("S")
    await stream.add_stream(name="T", subjects=["t"])
    stored = await stream.publish("t", PAYLOAD)

    assert last > 0
    assert stored.seq == 1
    await connection.close()


async def test_the_retry_of_a_publish_is_not_a_duplicate_if_the_publish_is_refused(server_url: str):
    connection = await nats.connect(server_url)
    stream = connection.jetstream()
    await stream.add_stream(name="S", subjects=["s"])

    # The retry comes while its original waits for the disk.
    for number in range(PUBLISHED_MAX):
        publishes = [
            stream.publish("s", PAYLOAD, timeout=ANSWER_SECONDS_MAX, headers={"Nats-Msg-Id": str(number)})
            for _ in range(2)
        ]
        original, retry = await asyncio.gather(*publishes, return_exceptions=True)
        if isinstance(original, nats.js.errors.APIError):
            break
        assert (retry.duplicate, retry.seq) == (True, original.seq)
    else:
        raise AssertionError(f"{PUBLISHED_MAX} messages went onto a disk of {DISK_MIB} MiB")

    # A retry may find room that its original did not; then it is stored itself.
    is_stored = not isinstance(retry, nats.js.errors.APIError)
    assert not (is_stored and retry.duplicate), retry
    assert (await stream.stream_info("S")).state.messages == number + is_stored
    await connection.close()
