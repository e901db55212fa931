"""Creating, listing, copying and saving buckets, on both kinds of server."""

import msgspec
import nats
import pytest

from jetlake import kv
from jetlake.errors import ApiError, ClientError, ConfigurationError, ConflictError, NotFoundError
from jetlake.kv import BucketConfig, Origin, Republish
from tests.waiting import WAIT_S_MAX, until


async def test_a_bucket_is_made_as_configured(buckets, name):
    config = BucketConfig(
        bucket=name,
        description="settings",
        history=7,
        ttl_s=3600,
        max_value_bytes=1024,
        max_bytes=1 << 20,
        storage="memory",
        compression=False,
        limit_marker_ttl_s=5,
        metadata={"team": "a"},
    )
    await buckets.create(config)

    status = await buckets.status(name)

    assert status.config == config
    assert (status.values, status.keys, status.last_revision) == (0, 0, 0)


async def test_a_bucket_can_be_compressed(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, compression=True))
    await bucket.put("a", b"x" * 10_000)

    assert (await buckets.status(name)).config.compression
    assert (await bucket.get("a")).value == b"x" * 10_000


async def test_a_bucket_is_made_twice_with_the_same_configuration_only(buckets, name):
    await buckets.create(BucketConfig(bucket=name, history=2))
    await buckets.create(BucketConfig(bucket=name, history=2))

    with pytest.raises(ApiError, match=f"bucket {name} exists with another configuration"):
        await buckets.create(BucketConfig(bucket=name, history=3))


async def test_a_bucket_is_changed(buckets, name):
    bucket = await buckets.create(BucketConfig(bucket=name, history=1))
    await bucket.put("a", b"1")

    changed = await buckets.update(BucketConfig(bucket=name, history=5, description="more"))

    assert (changed.config.history, changed.config.description, changed.values) == (5, "more", 1)
    with pytest.raises(NotFoundError):
        await buckets.update(BucketConfig(bucket="NONE"))


async def test_a_change_keeps_what_another_client_has_configured(buckets, name, url):
    connection = await nats.connect(url)
    jetstream = connection.jetstream()
    for origin in ("one", "two"):
        await jetstream.add_stream(name=f"KV_{name}{origin}", subjects=[f"$KV.{name}{origin}.>"])
    source = {
        "name": f"KV_{name}one",
        "opt_start_seq": 5,
        "subject_transforms": [{"src": f"$KV.{name}one.x.>", "dest": f"$KV.{name}.y.>"}],
    }
    stream = {
        "name": f"KV_{name}",
        "subjects": [f"$KV.{name}.>"],
        "discard": "old",
        "max_msgs": 1000,
        "max_msgs_per_subject": -1,
        "duplicate_window": 5_000_000_000,
        "allow_rollup_hdrs": True,
        "allow_direct": True,
        "sources": [source],
    }
    await connection.request(f"$JS.API.STREAM.CREATE.KV_{name}", msgspec.json.encode(stream))
    await connection.close()
    bucket = await buckets.open(name, str)
    for number in range(100):
        await bucket.put("a", str(number))
    before = await buckets.status(name)

    changed = await buckets.update(msgspec.structs.replace(before.config, description="more"))

    assert changed.stream["config"] == before.stream["config"] | {"description": "more"}
    assert before.stream["config"]["sources"] == [source]
    assert len(await bucket.history("a")) == 100


async def test_buckets_are_listed_and_deleted(buckets, name):
    await buckets.create(f"{name}x")
    bucket = await buckets.create(f"{name}y")
    await bucket.put("a", b"1")

    assert {f"{name}x", f"{name}y"} <= set(await buckets.names())
    statuses = {status.bucket: status for status in await buckets.list()}
    assert statuses[f"{name}y"].values == statuses[f"{name}y"].keys == 1
    await buckets.delete(f"{name}x")
    assert f"{name}x" not in await buckets.names()


async def test_a_bucket_that_is_not_there_is_not_found(buckets):
    for work in (buckets.open("NONE"), buckets.status("NONE"), buckets.delete("NONE")):
        with pytest.raises(NotFoundError, match="bucket NONE does not exist"):
            await work
    with pytest.raises(ConfigurationError, match="invalid bucket name"):
        await buckets.open("a.b")


async def test_a_mirror_is_read_here_and_written_at_its_origin(buckets, name):
    origin = await buckets.create(BucketConfig(bucket=name, history=3), str)
    await origin.put("a", "1")
    mirror = await buckets.create(BucketConfig(bucket=f"{name}M", history=3, mirror=Origin(bucket=name)), str)

    async def is_copied() -> bool:
        return await mirror.keys() == ["a"]

    await until(is_copied)
    assert (await mirror.get("a")).value == "1"
    await mirror.put("b", "2")
    # A mirror may answer for its origin, and be late.
    assert (await origin.get("b", consistent=True)).value == "2"

    async def has_both() -> bool:
        return sorted(await mirror.keys()) == ["a", "b"]

    await until(has_both)
    async with mirror.watch() as watcher:
        assert [(await anext(watcher)).key for _ in range(2)] == ["a", "b"]
    assert (await buckets.open(f"{name}M", str)).name == f"{name}M"


async def test_sources_are_brought_together_under_their_keys(buckets, name):
    one = await buckets.create(f"{name}a", str)
    two = await buckets.create(f"{name}b", str)
    await one.put("x", "1")
    await two.put("keep.y", "2")
    await two.put("drop.y", "2")
    sources = (Origin(bucket=f"{name}a"), Origin(bucket=f"{name}b", keys=("keep.>",)))
    both = await buckets.create(BucketConfig(bucket=name, sources=sources), str)

    async def has_both() -> bool:
        return sorted(await both.keys()) == ["keep.y", "x"]

    await until(has_both)
    assert (await both.get("keep.y")).value == "2"
    await both.put("own", "3")
    assert (await both.get("own")).value == "3"


async def test_what_is_stored_is_republished(buckets, name, url):
    bucket = await buckets.create(BucketConfig(bucket=name, republish=Republish(destination=f"out.{name}.>")), str)
    connection = await nats.connect(url)
    subscription = await connection.subscribe(f"out.{name}.>")
    await connection.flush()

    await bucket.put("a.b", "1")
    message = await subscription.next_msg(WAIT_S_MAX)
    await connection.close()

    assert message.data == b"1"
    assert message.headers["Nats-Subject"] == f"$KV.{name}.a.b"


async def test_a_backup_is_restored_with_its_history(buckets, name, tmp_path):
    bucket = await buckets.create(BucketConfig(bucket=name, history=3), str)
    for value in ("1", "2"):
        await bucket.put("a", value)
    await bucket.put("b", "x")

    count = await buckets.backup(name, tmp_path / "saved")
    await buckets.delete(name)
    restored = await buckets.restore(tmp_path / "saved")

    assert count == (tmp_path / "saved" / "stream.tar.s2").stat().st_size
    assert (restored.bucket, restored.values, restored.config.history) == (name, 3, 3)
    again = await buckets.open(name, str)
    assert [entry.value for entry in await again.history("a")] == ["1", "2"]
    assert await again.update("b", "y", 3) == 4


async def test_a_backup_of_something_else_is_not_restored(buckets, tmp_path):
    with pytest.raises(ClientError, match="holds no backup"):
        await buckets.restore(tmp_path)
    (tmp_path / "backup.json").write_text('{"config": {"name": "ORDERS"}, "state": {}}')
    with pytest.raises(ClientError, match="backup of stream ORDERS, not of a bucket"):
        await buckets.restore(tmp_path)


async def test_a_connection_of_nats_py_can_be_used_and_goes_on_working(url, name):
    connection = await nats.connect(url)
    subscription = await connection.subscribe("greeting")

    async with kv.connect(connection) as buckets:
        bucket = await buckets.create(name, str)
        await bucket.put("a", "1")
        assert await bucket.keys() == ["a"]
        theirs = await connection.jetstream().key_value(name)
        assert (await theirs.get("a")).value == b"1"
        with pytest.raises(ConflictError):
            await bucket.create("a", "2")
    assert connection.is_connected
    await connection.publish("greeting", b"hello", headers={"Colour": "green"})
    message = await subscription.next_msg(WAIT_S_MAX)
    assert (message.data, message.headers) == (b"hello", {"Colour": "green"})
    await connection.close()


async def test_replicas_need_a_cluster(buckets, name):
    with pytest.raises(ApiError, match="replicas > 1 not supported in non-clustered mode"):
        await buckets.create(BucketConfig(bucket=name, replicas=3))
