"""`kill -9` on a real file system that is full: everything that was confirmed holds."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nats
import nats.errors
import nats.js.errors
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from tests.crash.test_full_disk import DISK_MIB, in_small_disk, port_of

PAYLOAD = b"x" * 1500
ANSWER_SECONDS_MAX = 60.0

ROUNDS = int(os.environ.get("JETLAKE_FULL_ROUNDS", "120"))
"""Consumers that each of the creators tries to make."""

CREATORS = 6

CHANGING = 4
"""Messages that are reported to be in progress all the time, so that the state of their consumer changes."""

FILLER = "x" * 1000
"""Makes a consumer large enough that the room which its journal has taken ahead is soon used up."""

FULL_SECONDS = 0.12
"""The disk is full, or is not, for so long: a store tries a disk that was full again after a tenth of a second."""

REFUSED_SECONDS = 0.01
"""Who was refused waits so long."""

BALLAST_BYTES = (512 * 1024, 32 * 1024, 2 * 1024)
"""Messages that fill the disk, ever smaller ones."""

LIVES = 'ports="$0"; "$@"; rm -f "$ports"/*.ports; exec "$@"'
"""The server again on the same file system when the first one is dead."""


@dataclass
class Ledger:
    """What clients were told."""

    consumers: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    stored: set[int] = field(default_factory=set)
    removed: set[int] = field(default_factory=set)
    acknowledged: set[int] = field(default_factory=set)
    refusals: int = 0


@pytest.fixture
def ports(tmp_path: Path) -> Iterator[Path]:
    """Where two servers, one after the other on one small file system, say where they listen."""
    store, ports = tmp_path / "store", tmp_path / "ports"
    store.mkdir()
    ports.mkdir()
    if subprocess.run(in_small_disk(store, "true"), capture_output=True, check=False, timeout=60).returncode:
        pytest.skip("a file system can be mounted neither by this user nor in a namespace of its own")
    flags = ["-a", "127.0.0.1", "-p", "-1", "-js", "-sd", str(store), "--ports_file_dir", str(ports)]
    command = ["sh", "-c", LIVES, str(ports), sys.executable, "-m", "jetlake", "server", *flags]
    process = subprocess.Popen(in_small_disk(store, *command), start_new_session=True)
    try:
        yield ports
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)


def kill_server(ports: Path) -> None:
    """Kill the server, whose process id is part of the name of its file, and wait until that is gone."""
    (file,) = ports.glob("*.ports")
    os.kill(int(file.stem.rpartition("_")[2]), signal.SIGKILL)
    while file.exists():
        time.sleep(0.01)


async def ask(connection: Client, subject: str, body: object) -> bool:
    """Send a request; return whether it was granted."""
    answer = await connection.request(f"$JS.API.{subject}", json.dumps(body).encode(), timeout=ANSWER_SECONDS_MAX)
    return "error" not in json.loads(answer.data)


async def create_and_delete(connection: Client, ledger: Ledger, number: int) -> None:
    """Make consumers and delete every other one."""
    for turn in range(ROUNDS):
        name = f"c{number}_{turn}"
        config = {"durable_name": name, "name": name, "ack_policy": "explicit", "metadata": {"filler": FILLER}}
        body = {"stream_name": "S", "config": config}
        if not await ask(connection, f"CONSUMER.DURABLE.CREATE.S.{name}", body):
            ledger.refusals += 1
            await asyncio.sleep(REFUSED_SECONDS)
            continue
        ledger.consumers.add(name)
        if turn % 2:
            ledger.consumers.discard(name)
            if await ask(connection, f"CONSUMER.DELETE.S.{name}", {}):
                ledger.deleted.add(name)


async def acknowledge(connection: Client, ledger: Ledger, done: asyncio.Event) -> None:
    """Take messages and acknowledge them, each with a confirmation."""
    js = connection.jetstream()
    subscription = await js.pull_subscribe_bind("C", "S")

    async def one(message: Msg) -> None:
        try:
            await message.ack_sync(timeout=ANSWER_SECONDS_MAX)
        except (nats.errors.Error, TimeoutError):
            return
        ledger.acknowledged.add(message.metadata.sequence.stream)

    async def change(message: Msg) -> None:
        """Have the state of the consumer written, again and again."""
        while not done.is_set():
            with contextlib.suppress(nats.errors.Error, TimeoutError):
                await connection.request(message.reply, b"+WPI", timeout=1.0)

    kept = await subscription.fetch(CHANGING, timeout=ANSWER_SECONDS_MAX)
    changing = [asyncio.create_task(change(message)) for message in kept]
    while not done.is_set():
        try:
            messages = await subscription.fetch(10, timeout=0.5)
        except (nats.errors.TimeoutError, TimeoutError):
            continue
        await asyncio.gather(*map(one, messages))
    await asyncio.gather(*changing)


async def fill_up(js: JetStreamContext, ledger: Ledger, done: asyncio.Event) -> None:
    """Publish until it is refused, and remove a little where it is: the disk is full, and again not quite."""
    for turn in itertools.count():
        if done.is_set():
            return
        try:
            ledger.stored.add((await js.publish("s", PAYLOAD, timeout=ANSWER_SECONDS_MAX)).seq)
        except nats.js.errors.APIError:
            ledger.refusals += 1
            await asyncio.sleep(REFUSED_SECONDS)
            oldest = min(ledger.stored, default=None)
            if oldest is None:
                continue
            # What may be removed or not is neither expected nor missed.
            ledger.stored.discard(oldest)
            if turn % 5 == 0 and await js.delete_msg("S", oldest):
                ledger.removed.add(oldest)


@pytest.mark.timeout(240)
async def test_everything_confirmed_on_a_full_disk_holds_after_a_kill(ports: Path) -> None:
    ledger = Ledger()
    url = f"nats://127.0.0.1:{port_of(ports)}"
    connection = await nats.connect(url, allow_reconnect=False)
    js = connection.jetstream(timeout=ANSWER_SECONDS_MAX)
    await js.add_stream(name="S", subjects=["s"])
    await js.add_consumer("S", durable_name="C", ack_policy="explicit", ack_wait=60)
    for _ in range(200):
        ledger.stored.add((await js.publish("s", PAYLOAD)).seq)
    done = asyncio.Event()
    tasks = (acknowledge(connection, ledger, done), fill_up(js, ledger, done), breathe(js, done))
    others = [asyncio.create_task(task) for task in tasks]
    await asyncio.gather(*(create_and_delete(connection, ledger, number) for number in range(CREATORS)))
    done.set()
    await asyncio.gather(*others)
    kill_server(ports)
    await connection.close()

    connection = await nats.connect(f"nats://127.0.0.1:{port_of(ports)}", allow_reconnect=False)
    js = connection.jetstream(timeout=ANSWER_SECONDS_MAX)
    print(f"{len(ledger.consumers)} consumers made, {len(ledger.deleted)} deleted, {ledger.refusals} refusals")
    names = {consumer.name for consumer in await all_consumers(js)}
    assert ledger.refusals > 0
    assert ledger.consumers - names == set()
    assert ledger.deleted & names == set()
    there = {sequence for sequence in ledger.stored | ledger.removed if await is_there(js, sequence)}
    assert ledger.stored - there == set()
    assert ledger.removed & there == set()
    subscription = await js.pull_subscribe_bind("C", "S")
    again = set()
    with contextlib.suppress(nats.errors.TimeoutError, TimeoutError):
        while True:
            messages = await subscription.fetch(50, timeout=1.0)
            again |= {message.metadata.sequence.stream for message in messages}
    assert ledger.acknowledged & again == set()
    await connection.close()


async def breathe(js: JetStreamContext, done: asyncio.Event) -> None:
    """Fill the disk with ballast, and throw it away, in turns."""
    while not done.is_set():
        with contextlib.suppress(nats.js.errors.APIError):
            await js.add_stream(name="BALLAST", subjects=["ballast"])
            for size in BALLAST_BYTES:
                await load(js, size)
        await asyncio.sleep(FULL_SECONDS)
        with contextlib.suppress(nats.js.errors.APIError):
            await js.delete_stream("BALLAST")
        await asyncio.sleep(FULL_SECONDS)


async def load(js: JetStreamContext, size: int) -> None:
    """Publish messages of this size until one is refused."""
    for _ in range(2 * DISK_MIB * 1024 * 1024 // size):
        try:
            await js.publish("ballast", bytes(size), timeout=ANSWER_SECONDS_MAX)
        except nats.js.errors.APIError:
            await asyncio.sleep(FULL_SECONDS)
            return


async def all_consumers(js: JetStreamContext) -> list[nats.js.api.ConsumerInfo]:
    found: list[nats.js.api.ConsumerInfo] = []
    while True:
        more = await js.consumers_info("S", offset=len(found))
        if not more:
            return found
        found += more


async def is_there(js: JetStreamContext, sequence: int) -> bool:
    try:
        return (await js.get_msg("S", sequence)).seq == sequence
    except nats.js.errors.NotFoundError:
        return False
