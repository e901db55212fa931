"""Buckets with three replicas on a cluster of nats-server, one server killed in the middle."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator

import pytest

from jetlake import kv
from jetlake.cli.choria_kv_api import add_api_flags, run_api
from jetlake.client.access import Access
from jetlake.errors import ConflictError
from jetlake.kv import BucketConfig, Operation
from tests.cluster import Cluster
from tests.waiting import until

pytestmark = [pytest.mark.timeout(180), pytest.mark.compatibility]

OPERATION_S_MAX = 90.0
"""For everything a test does while a server is down."""


@pytest.fixture
async def buckets(cluster: Cluster) -> AsyncIterator[kv.Buckets]:
    async with kv.connect(Access(url=cluster.url)) as connected:
        yield connected


async def replicated(buckets: kv.Buckets, name: str) -> kv.Bucket[str]:
    return await buckets.create(BucketConfig(bucket=name, history=5, replicas=3), str)


async def test_the_seed_bucket_has_three_replicas(buckets, name):
    bucket = await replicated(buckets, name)
    await bucket.put("auth.username", "bob")

    status = await bucket.status()

    assert status.config.replicas == 3
    assert len(status.stream["cluster"]["replicas"]) == 2
    assert (await bucket.get("auth.username", consistent=True)).value == "bob"


async def test_programs_change_the_replicas_of_a_bucket_that_keeps_its_values(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, history=5, max_value_bytes=10240), str)
    await bucket.put("a", "1")
    words = ["--ensure", "--force", "--name", name, "--replicas", "3"]
    flags = argparse.ArgumentParser()
    add_api_flags(flags)

    assert await run_api(buckets, flags.parse_args(words)) == 0

    assert (await buckets.status(name)).config.replicas == 3

    async def is_there() -> bool:
        found = await bucket.find("a")
        return found is not None and found.value == "1"

    await until(is_there)


async def test_everything_works_with_replicas(buckets, name):
    bucket = await replicated(buckets, name)
    first = await bucket.create("a", "1")
    second = await bucket.update("a", "2", first)
    with pytest.raises(ConflictError):
        await bucket.update("a", "3", first)
    with pytest.raises(ConflictError, match="exists already"):
        await bucket.create("a", "3")
    await bucket.put("b", "x")
    await bucket.delete("b")

    async def read() -> tuple[list[int], list[str], list[object]]:
        async with bucket.watch() as watcher:
            entries = [await anext(watcher) for _ in range(3)]
        return (
            [entry.revision for entry in await bucket.history("a")],
            await bucket.keys(),
            [entry and (entry.key, entry.operation) for entry in entries],
        )

    everything = ([first, second], ["a"], [("a", Operation.PUT), ("b", Operation.DELETE), None])
    # A server that lags behind the leader of the stream shows what was there a moment ago.
    async with asyncio.timeout(OPERATION_S_MAX):
        while (found := await read()) != everything:
            print("not yet:", found)
    assert await bucket.compact(older_than_s=0) == 1


async def test_no_write_is_lost_or_stored_twice_when_the_leader_is_killed(cluster, buckets, name):
    bucket = await replicated(buckets, name)
    written: dict[str, int] = {}

    async def write(writer: int) -> None:
        for number in range(40):
            written[f"k{writer}.{number}"] = await bucket.put(f"k{writer}.{number}", f"{number}")

    async with asyncio.timeout(OPERATION_S_MAX):
        writing = asyncio.gather(*(write(writer) for writer in range(5)))
        await until(lambda: len(written) >= 20)
        leader = cluster.leader_of(f"KV_{name}")
        cluster.kill(leader)
        await writing
        entries = {entry.key: entry for entry in await bucket.entries()}
        status = await bucket.status()
    await asyncio.to_thread(cluster.restart, leader)

    assert len(written) == 200
    assert {key: entry.revision for key, entry in entries.items()} == written
    # Each key was written once: one message for each, and no revision without one.
    assert status.values == status.last_revision == 200


async def test_compare_and_set_counts_right_while_a_server_is_killed(cluster, buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, history=1, replicas=3), int)
    await bucket.put("counter", 0)
    increments = 0

    async def increment(times: int) -> None:
        nonlocal increments
        done = 0
        while done < times:
            entry = await bucket.get("counter", consistent=True)
            try:
                await bucket.update("counter", entry.value + 1, entry.revision)
            except ConflictError:
                continue
            done += 1
            increments += 1

    async with asyncio.timeout(OPERATION_S_MAX):
        work = asyncio.gather(*(increment(25) for _ in range(3)))
        await until(lambda: increments >= 10)
        leader = cluster.leader_of(f"KV_{name}")
        cluster.kill(leader)
        await work
        total = await bucket.get("counter", consistent=True)
    await asyncio.to_thread(cluster.restart, leader)

    assert (total.value, total.revision) == (75, 76)


async def test_a_watch_sees_every_change_while_servers_are_killed(cluster, buckets, name):
    bucket = await replicated(buckets, name)
    seen: list[str] = []

    async def watch() -> None:
        async with bucket.watch() as watcher:
            async for entry in watcher:
                if entry is not None:
                    seen.append(entry.value)
                    if len(seen) == 60:
                        return

    async with asyncio.timeout(OPERATION_S_MAX):
        watching = asyncio.create_task(watch())
        for number in range(60):
            await bucket.put(f"k.{number}", f"{number}")
            if number == 20:
                await until(lambda: len(seen) >= 5)
                leader = cluster.leader_of(f"KV_{name}")
                cluster.kill(leader)
        await watching
    await asyncio.to_thread(cluster.restart, leader)

    assert seen == [f"{number}" for number in range(60)]
