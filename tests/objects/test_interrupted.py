"""Uploads and downloads over a connection that loses messages, or is cut, on both kinds of server."""

import asyncio
import io
import os
from collections.abc import AsyncIterator

import pytest

from jetlake import objects
from jetlake.client.access import Access
from jetlake.client.api import open_api
from jetlake.errors import ClientError
from jetlake.objects.names import chunk_subject
from jetlake.objects.uploading import LostChunkError, upload
from tests.lossy_proxy import LossyProxy

TIMEOUT_S = 4.0
"""So that what is lost is missed soon, and an answer that is only late on a busy machine is not taken for lost."""


@pytest.fixture
async def proxy(url: str) -> AsyncIterator[LossyProxy]:
    async with LossyProxy(url) as started:
        yield started


@pytest.fixture
async def far(proxy: LossyProxy, store: objects.ObjectStore) -> AsyncIterator[objects.ObjectStore]:
    """The store behind the proxy."""
    async with objects.connect(Access(url=proxy.url, timeout_s=TIMEOUT_S)) as stores:
        yield await stores.open(store.name)


@pytest.mark.parametrize("lost", [1, 3])
async def test_lost_acknowledgements_store_no_chunk_twice(proxy, far, store, lost):
    data = os.urandom(300_000)
    proxy.lose = lambda frame: f'"stream":"OBJ_{store.name}"'.encode() in frame and len(proxy.lost) < lost

    info = await far.put("a", data, chunk_bytes=10_000)

    assert len(proxy.lost) == lost
    assert await store.get("a") == data
    assert info.chunks == 30
    # The chunks and the description, and nothing else.
    assert (await store.status()).stream["state"]["messages"] == 31


async def test_an_upload_that_lost_a_chunk_between_others_begins_anew(proxy, far, store):
    data = os.urandom(100_000)
    proxy.lose_sent = lambda frame: frame.startswith(b"HPUB $O") and b".3\r\n\r\n" in frame[:200] and not proxy.lost

    info = await far.put("a", io.BytesIO(data), chunk_bytes=10_000)

    assert len(proxy.lost) == 1
    assert await store.get("a") == data
    assert info.chunks == 10
    assert (await store.status()).stream["state"]["messages"] == 11


async def test_chunks_of_an_upload_that_was_given_up_are_removed_though_they_come_late(proxy, far, store, url):
    data = os.urandom(100_000)
    subjects: list[bytes] = []
    late: list[asyncio.Task] = []

    async with open_api(Access(url=url)) as api:

        def lose_sent(frame: bytes) -> bool:
            if not frame.startswith(f"HPUB $O.{store.name}.C.".encode()):
                return False
            if (subject := frame.split(b" ", 2)[1]) not in subjects:
                subjects.append(subject)
                if len(subjects) == 2:
                    late.append(asyncio.create_task(api.connection.request(subjects[0].decode(), b"late", timeout=60)))
            return b".3\r\n\r\n" in frame[:200] and not proxy.lost

        proxy.lose_sent = lose_sent
        # The second upload waits for an answer that does not come, and what is late is there by then.
        proxy.lose = lambda frame: len(subjects) == 2 and b'"stream":"OBJ_' in frame and len(proxy.lost) == 1

        await far.put("a", io.BytesIO(data), chunk_bytes=10_000)

        assert len(subjects) == 2
        await asyncio.gather(*late)
    assert await store.get("a") == data
    assert (await store.status()).stream["state"]["messages"] == 11


async def test_chunks_that_are_stored_out_of_order_are_not_taken_for_stored(url, store):
    subject = chunk_subject(store.name, "N")
    async with open_api(Access(url=url)) as api:
        await api.connection.request(subject, b"b" * 10, headers={"Nats-Msg-Id": "N.1"})

        with pytest.raises(LostChunkError):
            await upload(api, f"OBJ_{store.name}", subject, "N", io.BytesIO(b"a" * 10 + b"b" * 10), chunk_bytes=10)


async def test_a_source_that_cannot_be_read_again_ends_the_upload_with_nothing_stored(proxy, far, store):
    async def pieces():
        for _ in range(10):
            yield b"x" * 10_000

    proxy.lose_sent = lambda frame: frame.startswith(b"HPUB $O") and b".3\r\n\r\n" in frame[:200] and not proxy.lost

    with pytest.raises(ClientError, match="its source cannot be read again"):
        await far.put("a", pieces(), chunk_bytes=10_000)

    assert await store.list() == []
    assert (await store.status()).bytes == 0


async def test_an_object_that_is_put_while_another_of_its_name_is_renamed_stays(proxy, far, store):
    await store.put("a", b"old")
    puts: list[asyncio.Task] = []

    def lose_sent(frame: bytes) -> bool:
        if b"STREAM.PURGE." not in frame or puts:
            return False
        # The request is sent again when its answer stays away, and the other client is done by then.
        puts.append(asyncio.create_task(store.put("a", b"new")))
        return True

    proxy.lose_sent = lose_sent

    await far.update_meta("a", new_name="b")
    (put,) = await asyncio.gather(*puts)

    assert len(proxy.lost) == 1
    assert (await store.info("a")).nuid == put.nuid
    assert await store.get("a") == b"new"


async def test_an_upload_goes_on_after_the_connection_was_cut(proxy, far, store):
    data = os.urandom(400_000)
    told = 0

    def tell(count: int) -> None:
        nonlocal told
        told += count
        if told == 200_000:
            proxy.cut()

    async with asyncio.timeout(50):
        await far.put("a", io.BytesIO(data), chunk_bytes=10_000, tell=tell)

    assert await store.get("a") == data
    assert (await store.status()).stream["state"]["messages"] == 41


async def test_a_download_goes_on_after_the_connection_was_cut(proxy, far, store):
    data = os.urandom(4_000_000)
    await store.put("a", data, chunk_bytes=10_000)
    received = bytearray()

    async with asyncio.timeout(50):
        async for chunk in far.read("a"):
            received += chunk
            if len(received) == 1_000_000:
                proxy.cut()

    assert bytes(received) == data
