"""Values that nats-py wrote are read here, and the reverse, on both kinds of server."""

from collections.abc import AsyncIterator

import nats
import pytest
from nats.js import JetStreamContext
from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError

from jetlake.errors import ConflictError
from jetlake.kv import BucketConfig, Operation


@pytest.fixture
async def jetstream(url: str) -> AsyncIterator[JetStreamContext]:
    connection = await nats.connect(url)
    yield connection.jetstream()
    await connection.close()


async def test_nats_py_reads_what_we_wrote(jetstream, buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, history=5, ttl_s=3600), str)
    await bucket.put("a", "1")
    second = await bucket.put("a", "2")
    await bucket.create("b", "x")
    await bucket.delete("b")
    await bucket.put("c", "y")
    await bucket.purge("c")

    theirs = await jetstream.key_value(name)

    entry = await theirs.get("a")
    assert (entry.value, entry.revision) == (b"2", second)
    assert (await theirs.get("a", revision=1)).value == b"1"
    assert await theirs.keys() == ["a"]
    assert [each.value for each in await theirs.history("a")] == [b"1", b"2"]
    assert [each.operation for each in await theirs.history("b")] == [None, "DEL"]
    assert [each.operation for each in await theirs.history("c")] == ["PURGE"]
    for key in ("b", "c"):
        with pytest.raises(KeyNotFoundError):
            await theirs.get(key)
    status = await theirs.status()
    assert (status.history, status.ttl) == (5, 3600)
    with pytest.raises(KeyWrongLastSequenceError):
        await theirs.update("a", b"3", last=1)
    assert await theirs.create("b", b"again") == 7


async def test_we_read_what_nats_py_wrote(jetstream, buckets, name):
    theirs = await jetstream.create_key_value(bucket=name, history=5)
    await theirs.put("a", b"1")
    await theirs.put("a", b"2")
    await theirs.put("b", b"x")
    await theirs.delete("b")
    await theirs.put("c", b"y")
    await theirs.purge("c")

    bucket = await buckets.open(name, str)

    assert (await bucket.get("a")).value == "2"
    assert await bucket.keys() == ["a"]
    assert [entry.value for entry in await bucket.history("a")] == ["1", "2"]
    assert [entry.operation for entry in await bucket.history("b")] == [Operation.PUT, Operation.DELETE]
    assert [entry.operation for entry in await bucket.history("c")] == [Operation.PURGE]
    with pytest.raises(ConflictError):
        await bucket.update("a", "3", 1)
    assert await bucket.create("b", "again") == 7
    assert (await bucket.status()).config.history == 5


async def test_each_watches_what_the_other_writes(jetstream, buckets, name):
    bucket = await buckets.create(name, str)
    theirs = await jetstream.key_value(name)
    watcher = await theirs.watchall()
    assert await watcher.updates(30) is None

    async with bucket.watch() as ours:
        assert await anext(ours) is None
        await theirs.put("t", b"theirs")
        await bucket.put("o", "ours")
        assert [(entry.key, entry.value) for entry in [await anext(ours) for _ in range(2)]] == [
            ("t", "theirs"),
            ("o", "ours"),
        ]
    assert [(entry.key, entry.value) for entry in [await watcher.updates(30) for _ in range(2)]] == [
        ("t", b"theirs"),
        ("o", b"ours"),
    ]
    await watcher.stop()
