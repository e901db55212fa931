"""Writes whose acknowledgement is lost on its way are stored once and reported right, on both kinds of server."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from jetlake import kv
from jetlake.client.access import Access
from jetlake.errors import ConflictError
from jetlake.kv import BucketConfig, Operation
from tests.lossy_proxy import LossyProxy
from tests.waiting import until

TIMEOUT_S = 0.5
"""So that a lost acknowledgement is missed soon. What is not answered in this time is asked again."""


@pytest.fixture
async def proxy(url: str) -> AsyncIterator[LossyProxy]:
    async with LossyProxy(url) as started:
        yield started


@pytest.fixture
async def bucket(proxy: LossyProxy, name: str) -> AsyncIterator[kv.Bucket[str]]:
    async with kv.connect(Access(url=proxy.url)) as buckets:
        created = await buckets.create(BucketConfig(bucket=name, history=10), str)
        # Not before: neither a connection nor a creation is tried again.
        buckets._api.access = Access(url=proxy.url, timeout_s=TIMEOUT_S)
        yield created


def lose_acknowledgements(proxy: LossyProxy, name: str, count: int) -> None:
    """Lose the next acknowledgements of a bucket, refusals included."""

    def lose(frame: bytes) -> bool:
        is_acknowledgement = f'"stream":"KV_{name}"'.encode() in frame and b'"seq":' in frame
        return is_acknowledgement and len(proxy.lost) < count

    proxy.lost.clear()
    proxy.lose = lose


@pytest.mark.parametrize("count", [1, 2])
async def test_create_does_not_conflict_with_itself(proxy, bucket, name, count):
    lose_acknowledgements(proxy, name, count)

    revision = await bucket.create("a", "1")

    assert len(proxy.lost) == count
    assert [(entry.revision, entry.value) for entry in await bucket.history("a")] == [(revision, "1")]


async def test_create_after_a_delete_does_not_conflict_with_itself(proxy, bucket, name):
    await bucket.put("a", "0")
    await bucket.delete("a")
    # The first one lost is the refusal of a key that has a marker.
    lose_acknowledgements(proxy, name, 3)

    revision = await bucket.create("a", "1")

    assert [(entry.revision, entry.value) for entry in await bucket.history("a")][-1] == (revision, "1")
    assert len(await bucket.history("a")) == 3


async def test_update_does_not_conflict_with_itself(proxy, bucket, name):
    first = await bucket.put("a", "1")
    lose_acknowledgements(proxy, name, 1)

    second = await bucket.update("a", "2", first)

    assert [(entry.revision, entry.value) for entry in await bucket.history("a")] == [(first, "1"), (second, "2")]


async def test_update_finds_its_own_revision_below_a_later_one(proxy, bucket, name, url):
    first = await bucket.put("a", "1")

    async with kv.connect(url) as others:
        other = await others.open(name, str)

        def lose(frame: bytes) -> bool:
            return f'"stream":"KV_{name}"'.encode() in frame and not proxy.lost

        proxy.lose = lose

        writing = asyncio.create_task(bucket.update("a", "2", first))
        await until(lambda: bool(proxy.lost))
        latest = await other.put("a", "3")

        assert await writing == latest - 1
    assert [entry.value for entry in await bucket.history("a")] == ["1", "2", "3"]


async def test_a_real_conflict_is_still_one(proxy, bucket, name):
    first = await bucket.put("a", "1")
    second = await bucket.put("a", "2")
    lose_acknowledgements(proxy, name, 1)

    with pytest.raises(ConflictError, match=f"its last revision is {second}, not {first}"):
        await bucket.update("a", "3", first)
    lose_acknowledgements(proxy, name, 1)
    with pytest.raises(ConflictError, match="exists already"):
        await bucket.create("a", "3")
    assert (await bucket.get("a")).value == "2"


async def test_put_delete_and_purge_are_stored_once(proxy, bucket, name):
    lose_acknowledgements(proxy, name, 1)
    await bucket.put("a", "1")
    lose_acknowledgements(proxy, name, 1)
    await bucket.delete("a")

    assert [entry.operation for entry in await bucket.history("a")] == [Operation.PUT, Operation.DELETE]
    lose_acknowledgements(proxy, name, 1)
    await bucket.purge("a")
    assert [entry.operation for entry in await bucket.history("a")] == [Operation.PURGE]
    assert (await bucket.status()).last_revision == 3


async def test_a_read_whose_answer_is_lost_is_asked_again(proxy, bucket, name):
    await bucket.put("a", "1")
    proxy.lose = lambda frame: f"Nats-Stream: KV_{name}".encode() in frame and not proxy.lost

    assert (await bucket.get("a")).value == "1"
    assert len(proxy.lost) == 1
