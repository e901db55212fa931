"""Reading and writing objects, on both kinds of server."""

import asyncio
import hashlib
import io
import json
import os
import tracemalloc
from base64 import urlsafe_b64encode

import nats
import pytest

from jetlake.errors import ApiError, ClientError, ConfigurationError, NotFoundError
from jetlake.objects import Link, StoreConfig

SIZES = [0, 1, 1000, 1000 * 1024, 1000 * 1024 + 1, 3_500_000]


@pytest.mark.parametrize("size", SIZES)
async def test_an_object_of_any_size_is_read_back(store, size):
    data = os.urandom(size)

    info = await store.put("some/file name.bin", data)

    assert await store.get("some/file name.bin") == data
    assert (info.size, info.chunks) == (size, -(-size // (1000 * 1024)))
    assert info.digest == "SHA-256=" + urlsafe_b64encode(hashlib.sha256(data).digest()).decode()
    found = await store.info("some/file name.bin")
    assert (found.digest, found.nuid, found.size, found.revision) == (info.digest, info.nuid, size, info.revision)
    assert abs(found.modified_ns - info.modified_ns) < 60 * 10**9


async def pieces(data: bytes):
    for start in range(0, len(data), 777):
        yield data[start : start + 777]


async def test_an_object_is_made_of_a_file_an_iterator_or_a_path(store, tmp_path):
    data = os.urandom(100_000)
    path = tmp_path / "file.bin"
    path.write_bytes(data)

    with path.open("rb") as file:
        await store.put("file", file, chunk_bytes=1024)
    await store.put("iterator", pieces(data), chunk_bytes=1000)
    await store.put("list", [data[:10], data[10:]], chunk_bytes=1000)
    await store.put_file(path)
    await store.put_file(path, "other", description="the same")

    for name in ("file", "iterator", "list", "file.bin", "other"):
        assert await store.get(name) == data
    assert (await store.info("iterator")).chunks == 100
    assert (await store.info("other")).description == "the same"


async def test_what_is_no_source_is_refused(store, tmp_path):
    for source in ("text", 7, None):
        with pytest.raises(ConfigurationError, match="an object cannot be made of"):
            await store.put("a", source)
    with pytest.raises(ConfigurationError, match="binary mode"):
        await store.put("a", io.StringIO("text"))
    with pytest.raises(ClientError, match=r"cannot read .*: no such file"):
        await store.put_file(tmp_path / "none")
    with pytest.raises(ConfigurationError, match="it is empty"):
        await store.put("", b"x")
    with pytest.raises(ConfigurationError, match="chunk_bytes is 0"):
        await store.put("a", b"x", chunk_bytes=0)
    assert await store.list() == []
    assert (await store.status()).bytes == 0


async def test_a_source_that_fails_leaves_nothing_behind(store):
    async def failing():
        yield b"x" * 5000
        raise OSError("the tape broke")

    with pytest.raises(OSError, match="the tape broke"):
        await store.put("a", failing(), chunk_bytes=1000)

    assert await store.find("a") is None
    assert (await store.status()).bytes == 0


async def test_an_object_that_is_replaced_leaves_no_contents_behind(store):
    await store.put("a", b"x" * 100_000)
    before = (await store.status()).bytes
    await store.put("a", b"y" * 100_000)

    assert await store.get("a") == b"y" * 100_000
    assert (await store.status()).bytes == before


async def test_writers_of_one_name_leave_one_object_behind(store):
    await asyncio.gather(*(store.put("a", bytes([number]) * 50_000) for number in range(8)))

    data = await store.get("a")
    assert data == data[:1] * 50_000
    assert 50_000 < (await store.status()).bytes < 55_000


async def test_an_object_is_streamed_into_a_file(store, tmp_path):
    data = os.urandom(3_000_000)
    await store.put("a", data)
    told = []

    info = await store.get_file("a", tmp_path / "copy", tell=told.append)

    assert (tmp_path / "copy").read_bytes() == data
    assert sum(told) == info.size == len(data)
    assert b"".join([chunk async for chunk in store.read("a")]) == data
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]
    with pytest.raises(ClientError, match="cannot write"):
        await store.get_file("a", tmp_path / "none" / "copy")


async def test_a_large_object_needs_constant_memory(store, tmp_path):
    path = tmp_path / "large"
    size = 100 * 1024 * 1024
    with path.open("wb") as file:
        for _ in range(100):
            file.write(os.urandom(1024) * 1024)
    tracemalloc.start()

    await store.put_file(path, "large")
    await store.get_file("large", tmp_path / "copy")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (tmp_path / "copy").stat().st_size == size
    assert peak < size // 2


async def test_damaged_contents_are_told(store, stores, url):
    info = await store.put("a", b"x" * 3000, chunk_bytes=1000)
    connection = await nats.connect(url)
    jetstream = connection.jetstream()
    # One chunk is replaced by another of the same size.
    await jetstream.purge_stream(f"OBJ_{store.name}", subject=f"$O.{store.name}.C.{info.nuid}", keep=2)
    await jetstream.publish(f"$O.{store.name}.C.{info.nuid}", b"y" * 1000)
    with pytest.raises(ClientError, match=r"object a of .* is damaged"):
        await store.get("a")
    await jetstream.purge_stream(f"OBJ_{store.name}", subject=f"$O.{store.name}.C.{info.nuid}", keep=1)
    with pytest.raises(ClientError, match="is incomplete: 1,000 of 3,000 bytes"):
        await store.get("a")
    await connection.close()


async def test_a_failed_get_leaves_no_file(store, tmp_path, url):
    info = await store.put("a", b"x" * 3000, chunk_bytes=1000)
    connection = await nats.connect(url)
    await connection.jetstream().purge_stream(f"OBJ_{store.name}", subject=f"$O.{store.name}.C.{info.nuid}", keep=1)
    await connection.close()

    with pytest.raises(ClientError, match="incomplete"):
        await store.get_file("a", tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


async def test_an_object_is_deleted(store):
    await store.put("a", b"x" * 10_000)
    gone = await store.delete("a")

    assert gone.size == 10_000
    for work in (store.get("a"), store.info("a"), store.delete("a")):
        with pytest.raises(NotFoundError, match=r"object 'a' of .* does not exist"):
            await work
    assert await store.list() == []
    deleted = await store.list(deleted=True)
    assert [(info.name, info.deleted, info.size) for info in deleted] == [("a", True, 0)]
    assert (await store.find("a", deleted=True)).deleted
    await store.put("a", b"again")
    assert await store.get("a") == b"again"


async def put_description(url: str, store: str, name: str, description: bytes) -> str:
    """Write what another client says about an object, and return the subject."""
    subject = f"$O.{store}.M.{urlsafe_b64encode(name.encode()).decode()}"
    connection = await nats.connect(url)
    await connection.jetstream().publish(subject, description)
    await connection.close()
    return subject


@pytest.mark.parametrize("identity", ["", ">", "*", "*.>", "a.b", "a b", "a\u0007b"])
async def test_a_description_by_another_client_names_no_contents_but_its_own(store, url, identity):
    await store.put("one", b"1")
    await store.put("two", b"2")
    for name in ("deleted", "read", "replaced"):
        forged = {"name": name, "bucket": store.name, "nuid": identity, "size": 9, "chunks": 1}
        await put_description(url, store.name, name, json.dumps(forged).encode())

    await store.delete("deleted")
    await store.put("replaced", b"3")

    assert [info.name for info in await store.list()] == ["one", "read", "replaced", "two"]
    assert [await store.get(name) for name in ("one", "two", "replaced")] == [b"1", b"2", b"3"]
    with pytest.raises(ClientError, match="names no contents"):
        await store.get("read")


async def test_a_description_that_cannot_be_read_is_left_out_with_a_warning(store, url, caplog):
    await store.put("a", b"1")
    subject = await put_description(url, store.name, "broken", b"garbage")
    await store.put("z", b"2")

    listed = [info.name for info in await store.list()]
    listings = list(caplog.messages)
    async with asyncio.timeout(30), store.watch() as watcher:
        watched = [info and info.name for info in [await anext(watcher) for _ in range(3)]]

    assert (listed, watched) == (["a", "z"], ["a", "z", None])
    (warning,) = listings
    assert warning.startswith(
        f"'{subject}' of OBJ_{store.name} is left out: the description of an object cannot be read"
    )
    assert warning.endswith(f"`jetlake stream rm-msg OBJ_{store.name} 3` deletes it")
    assert caplog.messages == listings * 2
    with pytest.raises(ClientError, match="cannot be read"):
        await store.info("broken")


async def test_objects_are_listed_by_name(store):
    for name in ("b", "a", "ä/ö.txt"):
        await store.put(name, name.encode())

    assert [info.name for info in await store.list()] == ["a", "b", "ä/ö.txt"]


async def test_headers_and_metadata_are_kept(store):
    await store.put("a", b"x", description="d", headers={"Colour": ["green", "blue"]}, metadata={"team": "x"})

    info = await store.info("a")

    assert (info.description, info.headers, info.metadata) == ("d", {"Colour": ["green", "blue"]}, {"team": "x"})


async def test_what_is_known_of_an_object_is_changed(store):
    await store.put("a", b"contents", description="old")
    await store.put("taken", b"x")

    await store.update_meta("a", description="new", metadata={"k": "v"})
    assert ((await store.info("a")).description, (await store.info("a")).metadata) == ("new", {"k": "v"})
    await store.update_meta("a", new_name="b")

    assert await store.get("b") == b"contents"
    assert await store.find("a", deleted=True) is None
    with pytest.raises(ClientError, match=r"object taken of .* exists"):
        await store.update_meta("b", new_name="taken")


async def test_links_lead_to_objects_and_stores(store, stores, name):
    other = await stores.create(f"{name}other")
    target = await other.put("target", b"contents")

    link = await store.add_link("link", target)

    assert link.link == Link(bucket=f"{name}other", name="target")
    assert await store.get("link") == b"contents"
    assert (await store.resolve("link")).bucket == f"{name}other"
    with pytest.raises(ClientError, match="is a link: link to the object"):
        await store.add_link("second", link)
    await store.add_store_link("whole", f"{name}other")
    with pytest.raises(ClientError, match="link to the whole store"):
        await store.get("whole")
    await store.put("object", b"x")
    with pytest.raises(ClientError, match=r"object object of .* exists"):
        await store.add_link("object", target)
    gone = await other.delete("target")
    with pytest.raises(NotFoundError):
        await store.get("link")
    assert gone.name == "target"


async def test_a_circle_of_links_ends(store):
    from jetlake.objects.info import ObjectInfo

    one = ObjectInfo(name="one", bucket=store.name)
    await store.add_link("two", one)
    await store.add_link("one", ObjectInfo(name="two", bucket=store.name))

    with pytest.raises(ClientError, match="they are a circle"):
        await store.get("one")


async def test_a_sealed_store_cannot_be_changed(store):
    await store.put("a", b"x")
    await store.seal()

    assert (await store.status()).sealed
    assert await store.get("a") == b"x"
    with pytest.raises(ApiError):
        await store.put("b", b"x")
    with pytest.raises(ApiError):
        await store.delete("a")


async def test_objects_are_watched(store):
    await store.put("a", b"1")
    await store.put("b", b"2")

    async with asyncio.timeout(30), store.watch() as watcher:
        assert [info and info.name for info in [await anext(watcher) for _ in range(3)]] == ["a", "b", None]
        await store.delete("a")
        changed = await anext(watcher)
        assert (changed.name, changed.deleted) == ("a", True)
    async with asyncio.timeout(30), store.watch(ignore_deletes=True) as watcher:
        assert [info and info.name for info in [await anext(watcher) for _ in range(2)]] == ["b", None]
    async with asyncio.timeout(30), store.watch(updates_only=True) as watcher:
        assert await anext(watcher) is None
        await store.put("c", b"3")
        assert (await anext(watcher)).name == "c"


async def test_a_store_is_made_as_configured_listed_saved_and_deleted(stores, name, tmp_path):
    config = StoreConfig(
        store=name, description="files", ttl_s=3600, max_bytes=1 << 20, compression=True, metadata={"team": "a"}
    )
    store = await stores.create(config)
    await store.put("a", b"contents")

    assert (await stores.status(name)).config == config
    assert name in await stores.names()
    assert name in [status.store for status in await stores.list()]
    with pytest.raises(ApiError, match="exists with another configuration"):
        await stores.create(StoreConfig(store=name))
    await stores.backup(name, tmp_path / "saved")
    await stores.delete(name)
    with pytest.raises(NotFoundError, match=f"object store {name} does not exist"):
        await stores.open(name)
    assert (await stores.restore(tmp_path / "saved")).store == name
    assert await (await stores.open(name)).get("a") == b"contents"


async def test_a_full_store_refuses_an_object_and_keeps_no_part_of_it(stores, name):
    store = await stores.create(StoreConfig(store=name, max_bytes=100_000))

    with pytest.raises(ApiError, match="maximum bytes exceeded"):
        await store.put("a", b"x" * 200_000, chunk_bytes=10_000)

    assert await store.list() == []
    assert (await store.status()).bytes == 0


@pytest.mark.parametrize("fields", [{"store": "a.b"}, {"replicas": 9}, {"ttl_s": -1}])
def test_a_configuration_that_cannot_be_is_refused(fields):
    with pytest.raises(ConfigurationError):
        StoreConfig(**{"store": "B", **fields})
