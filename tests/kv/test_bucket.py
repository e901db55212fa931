"""Reading and writing keys, on both kinds of server."""

import asyncio
import time

import pytest

from jetlake import kv
from jetlake.client.access import Access
from jetlake.errors import ApiError, ClientError, ConfigurationError, ConflictError, NotFoundError
from jetlake.kv import BucketConfig, Operation
from tests.lossy_proxy import LossyProxy
from tests.waiting import WAIT_S_MAX, until


async def test_a_value_is_read_back(buckets, name):
    bucket = await buckets.create(name, str)
    before_ns = time.time_ns()

    revision = await bucket.put("auth.username", "bob")
    entry = await bucket.get("auth.username")

    assert revision == entry.revision == 1
    assert (entry.bucket, entry.key, entry.value, entry.operation) == (name, "auth.username", "bob", Operation.PUT)
    assert abs(entry.created_ns - before_ns) < WAIT_S_MAX * 1e9
    assert entry.created.timestamp() == pytest.approx(entry.created_ns / 1e9, abs=1e-3)
    assert await bucket.get("auth.username", consistent=True) == entry


async def test_a_key_that_is_not_there_is_not_found(buckets, name):
    bucket = await buckets.create(name, str)
    await bucket.put("a", "1")

    with pytest.raises(NotFoundError, match=r"key 'b' of bucket .* does not exist"):
        await bucket.get("b")
    with pytest.raises(NotFoundError):
        await bucket.get("b", consistent=True)
    with pytest.raises(NotFoundError, match="has no revision 1"):
        await bucket.get("b", revision=1)
    with pytest.raises(NotFoundError, match="has no revision 99"):
        await bucket.get("a", revision=99)
    assert await bucket.find("b") is None
    assert (await bucket.find("a")).value == "1"


async def test_a_revision_is_read_back(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, history=5), str)
    for value in ("one", "two", "three"):
        await bucket.put("a", value)

    assert (await bucket.get("a", revision=2)).value == "two"


async def test_create_refuses_a_key_that_has_a_value(buckets, name):
    bucket = await buckets.create(name, str)
    assert await bucket.create("a", "1") == 1

    with pytest.raises(ConflictError, match="exists already: it has revision 1"):
        await bucket.create("a", "2")
    assert (await bucket.get("a")).value == "1"


@pytest.mark.parametrize("way", ["delete", "purge"])
async def test_create_takes_a_key_that_was_deleted(buckets, name, way):
    bucket = await buckets.create(BucketConfig(bucket=name, history=3), str)
    await bucket.create("a", "1")
    await getattr(bucket, way)("a")

    assert await bucket.create("a", "2") == 3
    assert (await bucket.get("a")).value == "2"


async def test_update_needs_the_last_revision(buckets, name):
    bucket = await buckets.create(name, str)
    first = await bucket.put("a", "1")
    second = await bucket.update("a", "2", first)

    with pytest.raises(ConflictError, match=f"its last revision is {second}, not {first}"):
        await bucket.update("a", "3", first)
    with pytest.raises(ConflictError, match="it is not there, not 7"):
        await bucket.update("none", "3", 7)
    assert await bucket.update("new", "3", 0) == second + 1


async def test_delete_keeps_the_history_and_purge_does_not(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, history=5), str)
    await bucket.put("a", "1")
    await bucket.put("a", "2")
    marker = await bucket.delete("a")

    assert await bucket.find("a") is None
    history = await bucket.history("a")
    assert [(entry.operation, entry.value, entry.delta) for entry in history] == [
        (Operation.PUT, "1", 2),
        (Operation.PUT, "2", 1),
        (Operation.DELETE, None, 0),
    ]
    assert history[-1].revision == marker

    await bucket.put("a", "3")
    await bucket.purge("a")
    assert [entry.operation for entry in await bucket.history("a")] == [Operation.PURGE]


async def test_delete_and_purge_may_be_conditional(buckets, name):
    bucket = await buckets.create(name, str)
    revision = await bucket.put("a", "1")

    for way in (bucket.delete, bucket.purge):
        with pytest.raises(ConflictError):
            await way("a", revision=revision + 5)
    assert (await bucket.get("a")).value == "1"
    await bucket.delete("a", revision=revision)
    assert await bucket.find("a") is None


async def test_the_history_is_limited(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, history=3), str)
    for number in range(10):
        await bucket.put("a", str(number))
        await bucket.put("b", str(number))

    assert [entry.value for entry in await bucket.history("a")] == ["7", "8", "9"]
    assert await bucket.history("none") == []


async def test_keys_are_listed_without_the_deleted_ones(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, history=2), str)
    for key in ("auth.user", "auth.password", "db.user", "old"):
        await bucket.put(key, "x")
    await bucket.delete("old")

    assert sorted(await bucket.keys()) == ["auth.password", "auth.user", "db.user"]
    assert sorted(await bucket.keys("auth.>")) == ["auth.password", "auth.user"]
    assert sorted(await bucket.keys("*.user", "auth.password")) == ["auth.password", "auth.user", "db.user"]
    assert await bucket.keys("none.>") == []
    assert {entry.key: entry.value for entry in await bucket.entries("auth.*")} == {
        "auth.user": "x",
        "auth.password": "x",
    }


async def test_an_empty_bucket_has_no_keys(buckets, name):
    bucket = await buckets.create(name, str)

    assert await bucket.keys() == []
    assert await bucket.entries() == []


async def test_a_bucket_of_many_keys_is_listed_completely(buckets, name, url):
    bucket = await buckets.create(name)
    # Not all at once: each has only so many seconds, on a busy machine too.
    for start in range(0, 10_000, 1_000):
        await asyncio.gather(*(bucket.put(f"key.{number}", b"%d" % number) for number in range(start, start + 1_000)))

    assert sorted(await bucket.keys()) == sorted(f"key.{number}" for number in range(10_000))
    assert {entry.key: entry.value for entry in await bucket.entries()} == {
        f"key.{number}": b"%d" % number for number in range(10_000)
    }


async def test_a_key_gets_an_earlier_value_again(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, history=5), str)
    await bucket.put("a", "good")
    await bucket.put("a", "bad")

    assert await bucket.revert("a", 1) == 3
    assert (await bucket.get("a")).value == "good"
    await bucket.delete("a")
    assert await bucket.revert("a", 1) == 5
    with pytest.raises(NotFoundError, match="was deleted in revision 4"):
        await bucket.revert("a", 4)


async def test_values_expire_with_the_bucket_and_with_their_key(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, ttl_s=1.5), str)
    other = await buckets.create(BucketConfig(bucket=f"{name}K"), str)
    await bucket.put("a", "1")
    await other.create("short", "1", ttl_s=1)
    await other.put("long", "1")

    async def is_gone() -> bool:
        return not await bucket.keys() and await other.keys() == ["long"]

    await until(is_gone)
    with pytest.raises(ConfigurationError, match="at least one second"):
        await other.create("b", "1", ttl_s=0.2)


async def test_an_expired_key_leaves_a_marker_that_is_a_purge(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, limit_marker_ttl_s=60), str)
    await bucket.create("a", "1", ttl_s=1)

    async def has_marker() -> bool:
        return [entry.operation for entry in await bucket.history("a")] == [Operation.PURGE]

    await until(has_marker)
    assert await bucket.find("a") is None
    assert await bucket.create("a", "2") > 1


async def test_compact_removes_what_is_left_of_deleted_keys(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, history=5), str)
    for key in ("a", "b", "c"):
        await bucket.put(key, "1")
        await bucket.put(key, "2")
    await bucket.delete("a")
    await bucket.delete("b")

    # The markers are young, so they stay and their values go.
    assert await bucket.compact() == 2
    assert [entry.operation for entry in await bucket.history("a")] == [Operation.DELETE]
    assert await bucket.compact(older_than_s=0) == 2
    assert await bucket.history("a") == []
    assert await bucket.compact(older_than_s=0) == 0
    assert (await bucket.get("c")).value == "2"
    assert (await bucket.status()).values == 2


@pytest.mark.parametrize(("older_than_s", "marker"), [(0, []), (3600, [None])])
async def test_compact_keeps_values_that_are_set_while_it_runs(buckets, name, url, older_than_s, marker):
    bucket = await buckets.create(BucketConfig(bucket=name, history=5), str)
    await bucket.put("a", "1")
    await bucket.delete("a")

    async def put_again() -> None:
        for value in ("2", "3"):
            await bucket.put("a", value)

    async with LossyProxy(url) as proxy, kv.connect(Access(url=proxy.url, timeout_s=1)) as far:
        putting: list[asyncio.Task[None]] = []

        def lose_sent(frame: bytes) -> bool:
            # It is sent once more when it is not answered.
            if b"STREAM.PURGE" not in frame:
                return False
            putting[:] = putting or [asyncio.create_task(put_again())]
            return not putting[0].done()

        proxy.lose_sent = lose_sent
        assert await (await far.open(name, str)).compact(older_than_s=older_than_s) == 1

    assert proxy.lost
    assert [entry.value for entry in await bucket.history("a")] == [*marker, "2", "3"]


async def test_a_cleared_bucket_is_empty(buckets, name):
    bucket = await buckets.create(name, str)
    await bucket.put("a", "1")
    await bucket.put("b", "1")

    assert await bucket.clear() == 2
    assert await bucket.keys() == []


async def test_a_value_that_is_too_large_is_refused(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, max_value_bytes=1000))

    await bucket.put("a", b"x" * 100)
    with pytest.raises(ApiError, match="message size exceeds maximum") as refused:
        await bucket.put("a", b"x" * 2000)
    assert refused.value.error_code == 10054
    with pytest.raises(ClientError, match="is too large: the server takes"):
        await bucket.put("a", b"x" * (2 << 20))


async def test_a_bucket_that_is_full_refuses_more(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, max_bytes=2000))

    async def fill() -> None:
        for number in range(100):
            await bucket.put(f"k{number}", b"x" * 100)

    with pytest.raises(ApiError, match="maximum bytes exceeded"):
        await fill()


async def test_bad_keys_are_refused_before_anything_is_sent(buckets, name):
    bucket = await buckets.create(name, str)

    for work in (bucket.put("a b", "1"), bucket.get("a."), bucket.delete(""), bucket.history("*"), bucket.keys("a..b")):
        with pytest.raises(ConfigurationError, match="invalid key"):
            await work
    with pytest.raises(ConfigurationError, match="invalid key pattern"):
        bucket.watch("a..b")


async def test_a_bucket_that_was_deleted_is_told_at_once(buckets, name):
    bucket = await buckets.create(name, str)
    await buckets.delete(name)

    for work in (bucket.put("a", "1"), bucket.get("a"), bucket.get("a", consistent=True), bucket.keys()):
        with pytest.raises(ApiError, match="stream not found"):
            await work


async def test_a_bucket_without_direct_get_works_too(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, allow_direct=False, history=3), str)
    await bucket.put("a", "1")
    await bucket.put("a", "2")

    assert (await bucket.get("a")).value == "2"
    assert (await bucket.get("a", revision=1)).value == "1"
    assert await bucket.find("b") is None


async def test_one_of_many_creators_wins(buckets, name):
    bucket = await buckets.create(name, int)

    results = await asyncio.gather(*(bucket.create("a", number) for number in range(50)), return_exceptions=True)

    winners = [number for number, result in enumerate(results) if not isinstance(result, BaseException)]
    assert len(winners) == 1
    assert all(isinstance(result, ConflictError) for result in results if isinstance(result, BaseException))
    assert (await bucket.get("a", consistent=True)).value == winners[0]


async def test_a_counter_of_many_writers_loses_nothing(buckets, name):
    bucket = await buckets.create(name, int)
    await bucket.put("counter", 0)

    async def add_five() -> None:
        added = 0
        while added < 5:
            entry = await bucket.get("counter", consistent=True)
            try:
                await bucket.update("counter", entry.value + 1, entry.revision)
            except ConflictError:
                continue
            added += 1

    await asyncio.gather(*(add_five() for _ in range(8)))

    assert (await bucket.get("counter", consistent=True)).value == 40
