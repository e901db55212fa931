"""Watching keys, on both kinds of server."""

import asyncio

import pytest

from jetlake import kv
from jetlake.errors import ApiError
from jetlake.kv import BucketConfig, Operation
from tests.lossy_proxy import LossyProxy
from tests.waiting import WAIT_S_MAX, until


async def take(watcher, count: int) -> list:
    """The next entries of a watcher, None among them."""
    async with asyncio.timeout(WAIT_S_MAX):
        return [await anext(watcher) for _ in range(count)]


def seen(entries) -> list:
    return [None if entry is None else (entry.operation, entry.key, entry.value) for entry in entries]


async def test_values_come_first_then_the_marker_then_changes(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, history=3), str)
    await bucket.put("a", "1")
    await bucket.put("a", "2")
    await bucket.put("b", "1")
    await bucket.delete("b")

    async with bucket.watch() as watcher:
        initial = await take(watcher, 3)
        await bucket.put("c", "1")
        await bucket.purge("a")
        changes = await take(watcher, 2)

    assert seen(initial) == [(Operation.PUT, "a", "2"), (Operation.DELETE, "b", None), None]
    assert seen(changes) == [(Operation.PUT, "c", "1"), (Operation.PURGE, "a", None)]
    assert [entry.revision for entry in changes] == [5, 6]


async def test_the_marker_comes_at_once_if_nothing_is_there(buckets, name):
    bucket = await buckets.create(name, str)
    await bucket.put("a", "1")

    async with bucket.watch("none.>") as watcher:
        assert await take(watcher, 1) == [None]
        await bucket.put("none.x", "1")
        assert seen(await take(watcher, 1)) == [(Operation.PUT, "none.x", "1")]


async def test_several_patterns_are_watched(buckets, name):
    bucket = await buckets.create(name, str)
    for key in ("a.x", "b.x", "c.x"):
        await bucket.put(key, "1")

    async with bucket.watch("a.*", "c.>") as watcher:
        assert seen(await take(watcher, 3)) == [(Operation.PUT, "a.x", "1"), (Operation.PUT, "c.x", "1"), None]


async def test_the_history_can_come_first(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, history=3), str)
    for value in ("1", "2", "3", "4"):
        await bucket.put("a", value)

    async with bucket.watch(include_history=True) as watcher:
        entries = await take(watcher, 4)

    assert [entry and entry.value for entry in entries] == ["2", "3", "4", None]
    assert [entry.delta for entry in entries[:3]] == [2, 1, 0]


async def test_deletes_can_be_left_out(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, history=3), str)
    await bucket.put("a", "1")
    await bucket.delete("a")

    async with bucket.watch(ignore_deletes=True) as watcher:
        assert await take(watcher, 1) == [None]
        await bucket.purge("a")
        await bucket.put("b", "1")
        assert seen(await take(watcher, 1)) == [(Operation.PUT, "b", "1")]


async def test_values_can_be_left_out(buckets, name):
    bucket = await buckets.create(name, str)
    await bucket.put("a", "12345")

    async with bucket.watch(meta_only=True) as watcher:
        entry, marker = await take(watcher, 2)

    assert (entry.key, entry.value, entry.size_bytes, entry.operation) == ("a", None, 5, Operation.PUT)
    assert marker is None


async def test_only_updates_come_if_asked_for(buckets, name):
    bucket = await buckets.create(name, str)
    await bucket.put("a", "old")

    async with bucket.watch(updates_only=True) as watcher:
        assert await take(watcher, 1) == [None]
        await bucket.put("a", "new")
        assert seen(await take(watcher, 1)) == [(Operation.PUT, "a", "new")]


async def test_a_watch_can_begin_with_a_revision(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, history=10), str)
    for value in ("1", "2", "3", "4"):
        await bucket.put("a", value)

    async with bucket.watch(from_revision=3) as watcher:
        assert [entry and entry.value for entry in await take(watcher, 3)] == ["3", "4", None]


async def test_a_watch_of_many_keys_is_complete_and_in_order(buckets, name):
    bucket = await buckets.create(name)
    await asyncio.gather(*(bucket.put(f"k.{number}", b"x" * 50) for number in range(9_000)))

    async with bucket.watch() as watcher:
        entries = await take(watcher, 9_001)

    assert entries[-1] is None
    revisions = [entry.revision for entry in entries[:-1]]
    assert revisions == sorted(revisions)
    assert len({entry.key for entry in entries[:-1]}) == 9_000


async def test_a_slow_watcher_holds_a_limited_number_of_entries(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, history=64))
    async with bucket.watch() as watcher:
        assert await take(watcher, 1) == [None]
        await asyncio.gather(*(bucket.put(f"k.{number}", b"x") for number in range(9_000)))

        # Beside messages there are statuses, which have no reply.
        assert sum(1 for message in watcher._reader.messages if message[1]) <= 4096
        assert len(await take(watcher, 9_000)) == 9_000


async def test_a_watch_goes_on_after_the_connection_was_lost(url, buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, history=64), str)
    await bucket.put("a", "1")

    async with LossyProxy(url) as proxy, kv.connect(proxy.url) as others:
        watched = await others.open(name, str)
        async with watched.watch() as watcher:
            assert seen(await take(watcher, 2)) == [(Operation.PUT, "a", "1"), None]
            proxy.cut()
            for value in ("2", "3"):
                await bucket.put("a", value)
            assert seen(await take(watcher, 2)) == [(Operation.PUT, "a", "2"), (Operation.PUT, "a", "3")]
            await bucket.put("a", "4")
            assert seen(await take(watcher, 1)) == [(Operation.PUT, "a", "4")]


async def test_a_watch_goes_on_after_messages_were_lost(url, buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, history=64), str)

    async with LossyProxy(url) as proxy, kv.connect(proxy.url) as others:
        watched = await others.open(name, str)
        async with watched.watch(updates_only=True) as watcher:
            assert await take(watcher, 1) == [None]
            proxy.lose = lambda frame: f"$KV.{name}.lost".encode() in frame
            await bucket.put("lost", "1")
            await until(lambda: bool(proxy.lost))
            proxy.lose = lambda _frame: False
            await bucket.put("b", "1")
            assert seen(await take(watcher, 2)) == [(Operation.PUT, "lost", "1"), (Operation.PUT, "b", "1")]


async def test_a_watch_ends_when_its_bucket_is_deleted(buckets, name):
    bucket = await buckets.create(name, str)

    async with bucket.watch() as watcher:
        assert await take(watcher, 1) == [None]
        await buckets.delete(name)
        with pytest.raises(ApiError, match="stream not found"):
            await take(watcher, 1)


async def test_a_watch_leaves_no_consumer_behind(buckets, name):
    bucket = await buckets.create(name, str)
    async with bucket.watch() as watcher:
        await take(watcher, 1)
        assert (await bucket.status()).stream["state"]["consumer_count"] == 1

    async def has_none() -> bool:
        return not (await bucket.status()).stream["state"]["consumer_count"]

    await until(has_none)
