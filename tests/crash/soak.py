"""A soak: mixed load for a long time, a kill each minute, and a table of what the server took and what was lost.

    python -m tests.crash.soak --minutes 20

Publishers, pullers that acknowledge in every way, a push consumer whose reader is slow, updates of keys of which only
the last value is kept, and purges, all at once. After every kill the streams are compared with what clients were told;
at the end everything is drained. It ends with an error if something is lost or wrong, or if memory or open files grow.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StreamConfig

from tests.conftest import ServerProcess
from tests.crash.consumer_load import ACK_WAIT_SECONDS, GONE, Known, Ledger, Puller, connect, end, publish

LOG_MESSAGES_MAX = 50_000
"""Far more than anybody is behind, so that only what is settled falls out."""

KEYS = 50
PURGED_AT_ONCE = 200
SLOW_SECONDS = 0.002
SLOW_PENDING_MAX = 50

SLOW_ACK_WAIT_SECONDS = 5.0
"""Longer than the reader takes for all that it may have, or it would read nothing but what it has read."""

SAMPLE_SECONDS = 2.0
SLOW_SUBJECT = "slow.reader"

# What may come on top of what the first life took before it counts as growth: caches fill, and machines differ.
GROWTH_FACTOR = 1.5
GROWTH_MIB = 32
GROWTH_FILES = 32

PULLED_STREAMS = {
    "LOG": RetentionPolicy.LIMITS,
    "QUEUE": RetentionPolicy.WORK_QUEUE,
    "INTEREST": RetentionPolicy.INTEREST,
}
DURABLES = [
    ("LOG", "one", AckPolicy.EXPLICIT),
    ("LOG", "upto", AckPolicy.ALL),
    ("QUEUE", "work", AckPolicy.EXPLICIT),
    ("INTEREST", "first", AckPolicy.EXPLICIT),
    ("INTEREST", "second", AckPolicy.ALL),
]

HEADINGS = "life  ready ms  stored/s  confirmed  again  slow read  updates  purges  MiB first/last/max  files  disk MiB"


@dataclass
class Life:
    """What one life of the server was like."""

    ready_ms: float = 0.0
    seconds: float = 0.0
    stored: int = 0
    confirmed: int = 0
    redelivered: int = 0
    read_slowly: int = 0
    updates: int = 0
    purges: int = 0
    memory_mib: list[float] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    disk_mib: float = 0.0


class Keys:
    """Writes values of keys; of each only the last is kept."""

    def __init__(self) -> None:
        self.sent = [0] * KEYS
        self.acknowledged = [0] * KEYS
        self.updates = 0

    async def run(self, js: JetStreamContext) -> None:
        while True:
            key = self.updates % KEYS
            self.sent[key] += 1
            await js.publish(f"$KV.SOAK.{key}", b"%d" % self.sent[key])
            self.acknowledged[key] = self.sent[key]
            self.updates += 1

    async def check(self, js: JetStreamContext) -> None:
        for key in range(KEYS):
            if self.acknowledged[key]:
                value = int((await js.get_last_msg("KV_SOAK", f"$KV.SOAK.{key}")).data or b"0")
                told = f"{self.acknowledged[key]} to {self.sent[key]}"
                assert self.acknowledged[key] <= value <= self.sent[key], f"key {key} is {value}, and not {told}"


class Purges:
    """Fills a stream and empties it."""

    def __init__(self) -> None:
        self.purged = 0
        self.count = 0

    async def run(self, js: JetStreamContext) -> None:
        while True:
            for _ in range(PURGED_AT_ONCE):
                last = (await js.publish("bin.a", b"x" * 100)).seq
            await js.purge_stream("BIN")
            self.purged = last
            self.count += 1

    async def check(self, js: JetStreamContext) -> None:
        first = (await js.stream_info("BIN")).state.first_seq
        assert self.purged == 0 or first > self.purged, f"{first} is there, and {self.purged} was purged"


class SlowReader:
    """Gets messages without asking, and takes its time for each.

    While it does, what it has not come to yet may be sent again; so only what earlier lives have confirmed counts.
    """

    def __init__(self, known: Known) -> None:
        self.known = known
        self.settled = frozenset(known.confirmed)

    async def run(self, client: Client) -> None:
        subscription = await client.subscribe(SLOW_SUBJECT)
        while True:
            try:
                message = await subscription.next_msg(timeout=60)
            except TimeoutError:
                continue
            if message.headers and message.headers.get("Status") == "100":
                await self.answer(client, message)
                continue
            sequence = message.metadata.sequence.stream
            assert sequence not in self.settled, f"{sequence} was confirmed, and comes again"
            await asyncio.sleep(SLOW_SECONDS)
            if sequence % 20:
                await message.ack()
            else:
                await message.ack_sync(timeout=60)
                self.known.confirmed.add(sequence)
            self.known.received.add(sequence)

    async def answer(self, client: Client, message: Msg) -> None:
        stalled = (message.headers or {}).get("Nats-Consumer-Stalled")
        if question := message.reply or stalled:
            await client.publish(question)


async def create_all(js: JetStreamContext) -> None:
    for name, retention in PULLED_STREAMS.items():
        limit = LOG_MESSAGES_MAX if name == "LOG" else -1
        config = StreamConfig(name=name, subjects=[f"{name.lower()}.>"], retention=retention, max_msgs=limit)
        await js.add_stream(config)
    await js.add_stream(StreamConfig(name="KV_SOAK", subjects=["$KV.SOAK.>"], max_msgs_per_subject=1))
    await js.add_stream(StreamConfig(name="BIN", subjects=["bin.>"]))
    for stream, durable, policy in DURABLES:
        config = ConsumerConfig(durable_name=durable, ack_policy=policy, ack_wait=ACK_WAIT_SECONDS)
        await js.add_consumer(stream, config)
    slow = ConsumerConfig(
        durable_name="slow",
        ack_policy=AckPolicy.EXPLICIT,
        deliver_subject=SLOW_SUBJECT,
        ack_wait=SLOW_ACK_WAIT_SECONDS,
        max_ack_pending=SLOW_PENDING_MAX,
        flow_control=True,
        idle_heartbeat=1.0,
    )
    await js.add_consumer("LOG", slow)


def memory_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def file_count(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def disk_mib(folder: Path) -> float:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file()) / (1 << 20)


class Soak:
    """All clients, over all lives of the server."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.ledger = Ledger()
        self.pullers = [Puller(self.ledger, *durable, random.Random(self.chance.random())) for durable in DURABLES]
        self.keys = Keys()
        self.purges = Purges()
        # Not in the ledger: nobody waits for it.
        self.slow = Known()
        self.lives: list[Life] = []

    def start(self) -> ServerProcess:
        command = [sys.executable, "-m", "jetlake.server.main", "-p", "-1", "-a", "127.0.0.1", "-js"]
        command += ["-sd", str(self.folder / "store")]
        server = ServerProcess(command, self.folder / f"server-{len(self.lives)}.log")
        server.wait_for_line("Server is ready")
        return server

    def totals(self) -> Life:
        """Return the sums of everything so far, in the place of a life."""
        return Life(
            stored=sum(len(sequences) for sequences in self.ledger.stored.values()),
            confirmed=sum(len(known.confirmed) for known in self.ledger.known.values()),
            redelivered=self.ledger.redelivered,
            read_slowly=len(self.slow.received),
            updates=self.keys.updates,
            purges=self.purges.count,
        )

    async def live(self, seconds: float) -> None:
        """Start a server, load it, watch it, kill it."""
        life, before = Life(), self.totals()
        begun = time.monotonic()
        server = await asyncio.to_thread(self.start)
        try:
            life.ready_ms = (time.monotonic() - begun) * 1000
            client = await connect(server.url)
            js = client.jetstream(timeout=60)
            if not self.lives:
                await create_all(js)
            await self.keys.check(js)
            await self.purges.check(js)
            jobs: list[Callable[[JetStreamContext], Coroutine[Any, Any, None]]] = [self.keys.run, self.purges.run]
            jobs += [puller.run for puller in self.pullers]
            tasks = [asyncio.create_task(job(js)) for job in jobs]
            tasks.append(asyncio.create_task(publish(js, self.ledger, list(PULLED_STREAMS))))
            tasks.append(asyncio.create_task(SlowReader(self.slow).run(client)))
            await self.watch(server, life, tasks, seconds)
            server.send(signal.SIGKILL)
            await asyncio.to_thread(server.wait)
            await end(client, tasks)
        finally:
            server.close()
        life.seconds = time.monotonic() - begun
        life.disk_mib = await asyncio.to_thread(disk_mib, self.folder / "store")
        now = self.totals()
        for name in ("stored", "confirmed", "redelivered", "read_slowly", "updates", "purges"):
            setattr(life, name, getattr(now, name) - getattr(before, name))
        self.lives.append(life)
        self.print_life(life)

    async def watch(self, server: ServerProcess, life: Life, tasks: list[asyncio.Task[None]], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            done, _ = await asyncio.wait(tasks, timeout=min(SAMPLE_SECONDS, left), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                # A client that ends while the server lives has failed.
                task.result()
            life.memory_mib.append(memory_mib(server.pid))
            life.files.append(file_count(server.pid))

    def print_life(self, life: Life) -> None:
        memory = f"{life.memory_mib[0]:.0f}/{life.memory_mib[-1]:.0f}/{max(life.memory_mib):.0f}"
        print(
            f"{len(self.lives):4}  {life.ready_ms:8.0f}  {life.stored / life.seconds:8.0f}  {life.confirmed:9}  "
            f"{life.redelivered:5}  {life.read_slowly:9}  {life.updates:7}  {life.purges:6}  {memory:>18}  "
            f"{max(life.files):5}  {life.disk_mib:8.1f}",
            flush=True,
        )

    async def drain(self) -> None:
        """Take everything that is left, and compare."""
        server = await asyncio.to_thread(self.start)
        try:
            client = await connect(server.url)
            js = client.jetstream(timeout=60)
            await self.keys.check(js)
            await self.purges.check(js)
            drained = await asyncio.gather(*(puller.drain(js) for puller in self.pullers))
            left = [(await js.stream_info(name)).state.messages for name in ("QUEUE", "INTEREST")]
            assert left == [0, 0], f"messages that everybody has acknowledged are there: {left}"
            await client.close()
        finally:
            server.close()
        total = self.totals()
        print(
            f"{len(self.lives)} kills, {total.stored} stored, {total.confirmed} confirmed, {total.updates} key updates"
        )
        print(f"{sum(len(sequences) for sequences in drained)} delivered at the end, nothing lost, nothing wrong")

    def check_growth(self) -> None:
        first, rest = self.lives[0], self.lives[1:]
        memory_max = max(first.memory_mib) * GROWTH_FACTOR + GROWTH_MIB
        files_max = max(first.files) + GROWTH_FILES
        for number, life in enumerate(rest, 2):
            assert max(life.memory_mib) <= memory_max, f"life {number} took {max(life.memory_mib):.0f} MiB"
            assert max(life.files) <= files_max, f"life {number} had {max(life.files)} files open"


def ignore_client_noise(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Tasks that the client has for itself end with an error when the server dies; anything else is told."""
    if not isinstance(context.get("exception"), GONE):
        loop.default_exception_handler(context)


async def run(minutes: float, kill_seconds: float, seed: int) -> None:
    asyncio.get_running_loop().set_exception_handler(ignore_client_noise)
    with tempfile.TemporaryDirectory(prefix="jetlake-soak-") as folder:
        soak = Soak(Path(folder), seed)
        print(f"seed {seed}\n{HEADINGS}", flush=True)
        for _ in range(max(1, round(minutes * 60 / kill_seconds))):
            await soak.live(kill_seconds)
        await soak.drain()
        soak.check_growth()


def main() -> None:
    parser = argparse.ArgumentParser(description="Mixed load for a long time, with kills; prints what it took.")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--kill-seconds", type=float, default=60.0, help="how long a server lives")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    asyncio.run(run(arguments.minutes, arguments.kill_seconds, arguments.seed))


if __name__ == "__main__":
    main()
