"""Objects that nats-py wrote are read here, and the reverse, on both kinds of server."""

import io
import os
from collections.abc import AsyncIterator

import nats
import pytest
from nats.js import JetStreamContext
from nats.js.errors import ObjectNotFoundError


@pytest.fixture
async def jetstream(url: str) -> AsyncIterator[JetStreamContext]:
    connection = await nats.connect(url)
    yield connection.jetstream()
    await connection.close()


async def test_nats_py_reads_what_we_wrote(jetstream, store):
    data = os.urandom(2_500_000)
    info = await store.put("big/file.bin", data, description="ours")
    await store.put("empty", b"")
    await store.put("gone", b"x")
    await store.delete("gone")

    theirs = await jetstream.object_store(store.name)
    result = await theirs.get("big/file.bin")

    assert result.data == data
    assert (result.info.digest, result.info.size, result.info.description) == (info.digest, len(data), "ours")
    assert (await theirs.get("empty")).data == b""
    assert sorted(each.name for each in await theirs.list(ignore_deletes=True)) == ["big/file.bin", "empty"]
    with pytest.raises(ObjectNotFoundError):
        await theirs.get("gone")


async def test_we_read_what_nats_py_wrote(jetstream, stores, name):
    theirs = await jetstream.create_object_store(name)
    data = os.urandom(1_000_000)
    await theirs.put("file", io.BytesIO(data))
    await theirs.put("gone", b"x")
    await theirs.delete("gone")

    store = await stores.open(name)

    assert await store.get("file") == data
    assert [info.name for info in await store.list()] == ["file"]
    info = await store.info("file")
    assert (info.chunks, info.chunk_bytes) == (8, 128 * 1024)
    await store.put("file", b"replaced by us")
    assert (await theirs.get("file")).data == b"replaced by us"
    assert (await store.status()).bytes < 100_000


async def test_a_link_of_ours_is_followed_by_nats_py(jetstream, store):
    target = await store.put("target", b"contents")
    await store.add_link("link", target)

    theirs = await jetstream.object_store(store.name)

    assert (await theirs.get("link")).data == b"contents"
