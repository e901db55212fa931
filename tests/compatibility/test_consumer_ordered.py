"""The everyday use of nats-py: ordered consumers, fetching, pushing to queues, key-value buckets, object stores."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
from collections.abc import AsyncIterator, Callable

import nats
import nats.errors
import nats.js.errors
import pytest
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, ConsumerInfo, DeliverPolicy, KeyValueConfig, ObjectMeta

from tests.compatibility import jetstream
from tests.compatibility.server_process import ServerProcess

js_server, stream = jetstream.js_server, jetstream.stream

# How long a message may take that is on its way, and how long to look for one that must not come.
SECONDS = 60.0
SECONDS_SILENT = 0.2

# How long to wait for more messages than there are: those that are there may be late on a busy machine.
SECONDS_INCOMPLETE = 5.0


@pytest.fixture
async def library(js_server: ServerProcess) -> AsyncIterator[JetStreamContext]:
    """JetStream as nats-py offers it."""
    client = await nats.connect(js_server.url, allow_reconnect=False)
    yield client.jetstream(timeout=SECONDS)
    await client.close()


async def fill(library: JetStreamContext, stream: str, count: int) -> None:
    """Create a stream of `count` messages, whose payloads are their sequences."""
    await library.add_stream(name=stream, subjects=[f"{stream}.>"])
    for number in range(1, count + 1):
        await library.publish(f"{stream}.{number % 2}", b"%d" % number)


async def wait_for(library: JetStreamContext, stream: str, condition: Callable[[ConsumerInfo], bool]) -> ConsumerInfo:
    """Ask for the information of the consumer "worker" until it fulfils `condition`."""
    for _ in range(1000):
        information = await library.consumer_info(stream, "worker")
        if condition(information):
            return information
        await asyncio.sleep(SECONDS / 1000)
    raise AssertionError(f"the consumer stays {information}")


def numbers(messages: list[Msg]) -> list[int]:
    return [int(message.data) for message in messages]


# Fetching


async def test_fetch_gives_what_is_there(library: JetStreamContext, stream: str) -> None:
    await fill(library, stream, 5)
    subscription = await library.pull_subscribe(f"{stream}.>", "worker")

    first = await subscription.fetch(3, timeout=SECONDS)
    rest = await subscription.fetch(3, timeout=SECONDS_INCOMPLETE)

    assert (numbers(first), numbers(rest)) == ([1, 2, 3], [4, 5])
    with pytest.raises(nats.errors.TimeoutError):
        await subscription.fetch(1, timeout=SECONDS_SILENT)


async def test_fetch_waits_for_messages(library: JetStreamContext, stream: str) -> None:
    await fill(library, stream, 0)
    subscription = await library.pull_subscribe(f"{stream}.>", "worker")

    fetching = asyncio.create_task(subscription.fetch(1, timeout=SECONDS))
    await wait_for(library, stream, lambda information: information.num_waiting == 1)
    await library.publish(f"{stream}.a", b"1")

    assert numbers(await fetching) == [1]


async def test_fetch_with_heartbeats_waits_for_messages(library: JetStreamContext, stream: str) -> None:
    await fill(library, stream, 0)
    subscription = await library.pull_subscribe(f"{stream}.>", "worker")

    fetching = asyncio.create_task(subscription.fetch(1, timeout=SECONDS, heartbeat=0.1))
    await asyncio.sleep(0.3)
    await library.publish(f"{stream}.a", b"1")

    assert numbers(await fetching) == [1]


async def test_metadata_of_a_message_is_read_from_its_ack_subject(library: JetStreamContext, stream: str) -> None:
    await fill(library, stream, 3)
    subscription = await library.pull_subscribe(f"{stream}.>", "worker")

    first, second = (await subscription.fetch(2, timeout=SECONDS))[:2]

    assert (first.metadata.stream, first.metadata.consumer) == (stream, "worker")
    assert (first.metadata.sequence.stream, first.metadata.sequence.consumer) == (1, 1)
    assert [message.metadata.num_pending for message in (first, second)] == [2, 1]
    assert second.metadata.num_delivered == 1


async def test_every_kind_of_acknowledgement_is_understood(library: JetStreamContext, stream: str) -> None:
    await fill(library, stream, 5)
    subscription = await library.pull_subscribe(f"{stream}.>", "worker")
    done, confirmed, refused, delayed, terminated = await subscription.fetch(5, timeout=SECONDS)

    await done.in_progress()
    await done.ack()
    await confirmed.ack_sync(timeout=SECONDS)
    await refused.nak()
    await delayed.nak(delay=30)
    await terminated.term()
    again = await subscription.fetch(1, timeout=SECONDS)
    await again[0].ack_sync(timeout=SECONDS)

    information = await subscription.consumer_info()
    assert numbers(again) == [3]
    assert again[0].metadata.num_delivered == 2
    assert (information.ack_floor.stream_seq, information.num_ack_pending) == (3, 1)


async def test_durable_consumer_goes_on_where_another_subscription_ended(
    library: JetStreamContext, stream: str
) -> None:
    await fill(library, stream, 4)
    first = await library.pull_subscribe(f"{stream}.>", "worker")
    for message in await first.fetch(2, timeout=SECONDS):
        await message.ack_sync(timeout=SECONDS)
    await first.unsubscribe()

    second = await library.pull_subscribe_bind("worker", stream=stream)

    assert numbers(await second.fetch(2, timeout=SECONDS)) == [3, 4]


async def test_consumer_without_a_name_is_gone_when_it_is_deleted(library: JetStreamContext, stream: str) -> None:
    await fill(library, stream, 2)
    subscription = await library.pull_subscribe(f"{stream}.>")
    name = (await subscription.consumer_info()).name

    fetched = await subscription.fetch(2, timeout=SECONDS)
    await library.delete_consumer(stream, name)

    assert numbers(fetched) == [1, 2]
    with pytest.raises(nats.js.errors.NotFoundError):
        await library.consumer_info(stream, name)


async def test_consumer_may_start_at_a_sequence(library: JetStreamContext, stream: str) -> None:
    await fill(library, stream, 4)
    config = ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=3)

    subscription = await library.pull_subscribe(f"{stream}.>", "worker", config=config)

    assert numbers(await subscription.fetch(2, timeout=SECONDS)) == [3, 4]


# Pushing


async def test_subscription_gets_old_and_new_messages(library: JetStreamContext, stream: str) -> None:
    await fill(library, stream, 2)
    subscription = await library.subscribe(f"{stream}.>")

    await library.publish(f"{stream}.a", b"3")
    messages = [await subscription.next_msg(timeout=SECONDS) for _ in range(3)]

    assert numbers(messages) == [1, 2, 3]


async def test_subscription_gets_the_messages_of_its_subject(library: JetStreamContext, stream: str) -> None:
    await fill(library, stream, 4)

    subscription = await library.subscribe(f"{stream}.0")

    assert numbers([await subscription.next_msg(timeout=SECONDS) for _ in range(2)]) == [2, 4]


async def test_callback_acknowledges_by_itself(library: JetStreamContext, stream: str) -> None:
    await fill(library, stream, 3)
    received: list[Msg] = []
    done = asyncio.Event()

    async def keep(message: Msg) -> None:
        received.append(message)
        if len(received) == 3:
            done.set()

    await library.subscribe(f"{stream}.>", durable="worker", cb=keep)
    await asyncio.wait_for(done.wait(), SECONDS)
    information = await wait_for(library, stream, lambda information: information.num_ack_pending == 0)

    assert numbers(received) == [1, 2, 3]
    assert information.ack_floor.stream_seq == 3


async def test_durable_subscription_goes_on_where_it_ended(library: JetStreamContext, stream: str) -> None:
    await fill(library, stream, 2)
    config = ConsumerConfig(deliver_subject=f"deliver.{stream}", durable_name="worker", ack_policy=AckPolicy.EXPLICIT)
    await library.add_consumer(stream, config)
    first = await library.subscribe_bind(stream, config, "worker", manual_ack=True)
    for _ in range(2):
        await (await first.next_msg(timeout=SECONDS)).ack_sync(timeout=SECONDS)
    await first.unsubscribe()
    await library.publish(f"{stream}.a", b"3")
    second = await library.subscribe_bind(stream, config, "worker", manual_ack=True)

    assert numbers([await second.next_msg(timeout=SECONDS)]) == [3]
    assert (await second.consumer_info()).ack_floor.stream_seq == 2


async def test_queue_group_shares_a_stream(library: JetStreamContext, stream: str) -> None:
    await fill(library, stream, 0)
    shares: list[list[Msg]] = [[], []]
    done = asyncio.Event()

    def keeper(member: int):
        async def keep(message: Msg) -> None:
            shares[member].append(message)
            if sum(len(share) for share in shares) == 100:
                done.set()

        return keep

    for member in range(2):
        await library.subscribe(f"{stream}.>", queue="workers", cb=keeper(member))
    for number in range(100):
        await library.publish(f"{stream}.a", b"%d" % number)
    await asyncio.wait_for(done.wait(), SECONDS)

    assert sorted(numbers(shares[0]) + numbers(shares[1])) == list(range(100))
    assert (await library.consumer_info(stream, "workers")).delivered.stream_seq == 100


async def test_flow_control_lets_a_large_stream_through(library: JetStreamContext, stream: str) -> None:
    await library.add_stream(name=stream, subjects=[f"{stream}.>"], storage="memory")
    for _ in range(60):
        await library.publish(f"{stream}.a", b"x" * 100_000)

    subscription = await library.subscribe(
        f"{stream}.>", config=ConsumerConfig(flow_control=True, idle_heartbeat=0.5, ack_policy=AckPolicy.NONE)
    )
    messages = [await subscription.next_msg(timeout=SECONDS) for _ in range(60)]

    assert [message.metadata.sequence.stream for message in messages] == list(range(1, 61))


# Ordered consumers


async def test_ordered_consumer_gets_everything_in_order(library: JetStreamContext, stream: str) -> None:
    await fill(library, stream, 50)
    subscription = await library.subscribe(f"{stream}.>", ordered_consumer=True)

    old = [await subscription.next_msg(timeout=SECONDS) for _ in range(50)]
    await library.publish(f"{stream}.a", b"51")
    new = await subscription.next_msg(timeout=SECONDS)

    assert numbers(old) == list(range(1, 51))
    assert numbers([new]) == [51]
    config = (await subscription.consumer_info()).config
    assert (config.ack_policy, config.max_deliver, config.flow_control) == (AckPolicy.NONE, 1, True)


async def test_ordered_consumer_gets_the_messages_of_its_subject(library: JetStreamContext, stream: str) -> None:
    await fill(library, stream, 6)

    subscription = await library.subscribe(f"{stream}.1", ordered_consumer=True)

    assert numbers([await subscription.next_msg(timeout=SECONDS) for _ in range(3)]) == [1, 3, 5]


async def test_ordered_consumer_may_start_at_the_last_message(library: JetStreamContext, stream: str) -> None:
    await fill(library, stream, 6)

    subscription = await library.subscribe(
        f"{stream}.>", ordered_consumer=True, deliver_policy=DeliverPolicy.LAST_PER_SUBJECT
    )

    assert numbers([await subscription.next_msg(timeout=SECONDS) for _ in range(2)]) == [5, 6]


async def test_ordered_consumer_that_is_lost_is_made_again(library: JetStreamContext, stream: str) -> None:
    await fill(library, stream, 2)
    subscription = await library.subscribe(f"{stream}.>", ordered_consumer=True, idle_heartbeat=0.1)
    before = [await subscription.next_msg(timeout=SECONDS) for _ in range(2)]

    # On a busy machine the library misses heartbeats and makes another one by itself: then that one is deleted.
    is_deleted = False
    while not is_deleted:
        with contextlib.suppress(nats.js.errors.NotFoundError):
            is_deleted = await library.delete_consumer(stream, (await subscription.consumer_info()).name)
    await library.publish(f"{stream}.a", b"3")

    assert numbers(before) == [1, 2]
    assert numbers([await subscription.next_msg(timeout=SECONDS)]) == [3]


async def test_ordered_consumer_that_ends_leaves_no_consumer(library: JetStreamContext, stream: str) -> None:
    await fill(library, stream, 1)
    subscription = await library.subscribe(f"{stream}.>", ordered_consumer=True)
    await subscription.next_msg(timeout=SECONDS)
    name = (await subscription.consumer_info()).name

    await subscription.unsubscribe()
    await library.delete_consumer(stream, name)

    assert (await library.consumers_info(stream)) == []


# Key-value buckets


async def test_bucket_keeps_the_last_value_of_each_key(library: JetStreamContext, stream: str) -> None:
    bucket = await library.create_key_value(config=KeyValueConfig(bucket=stream, history=5))

    revisions = [
        await bucket.put("colour", b"red"),
        await bucket.put("size", b"7"),
        await bucket.put("colour", b"blue"),
    ]
    entry = await bucket.get("colour")

    assert revisions == [1, 2, 3]
    assert (entry.key, entry.value, entry.revision) == ("colour", b"blue", 3)
    assert (await bucket.get("colour", revision=1)).value == b"red"
    assert sorted(await bucket.keys()) == ["colour", "size"]
    assert [entry.value for entry in await bucket.history("colour")] == [b"red", b"blue"]
    assert (await bucket.status()).values == 3


async def test_bucket_refuses_an_update_of_another_revision(library: JetStreamContext, stream: str) -> None:
    bucket = await library.create_key_value(bucket=stream)

    first = await bucket.create("key", b"1")
    second = await bucket.update("key", b"2", last=first)

    assert second == 2
    with pytest.raises(nats.js.errors.KeyWrongLastSequenceError):
        await bucket.create("key", b"3")
    with pytest.raises(nats.js.errors.KeyWrongLastSequenceError):
        await bucket.update("key", b"3", last=first)


@pytest.mark.parametrize("is_purged", [False, True])
async def test_key_that_is_deleted_is_not_found(library: JetStreamContext, stream: str, is_purged: bool) -> None:
    bucket = await library.create_key_value(config=KeyValueConfig(bucket=stream, history=5))
    await bucket.put("key", b"1")

    await (bucket.purge("key") if is_purged else bucket.delete("key"))

    for key in ("key", "other"):
        with pytest.raises(nats.js.errors.KeyNotFoundError):
            await bucket.get(key)
    with pytest.raises(nats.js.errors.NoKeysError):
        await bucket.keys()
    assert len(await bucket.history("key")) == (1 if is_purged else 2)
    assert await bucket.create("key", b"2") == 3


async def test_watcher_sees_the_present_values_and_then_every_change(library: JetStreamContext, stream: str) -> None:
    bucket = await library.create_key_value(config=KeyValueConfig(bucket=stream, history=5))
    for key, value in (("a.x", b"1"), ("a.x", b"2"), ("b", b"3"), ("a.y", b"4")):
        await bucket.put(key, value)
    watcher = await bucket.watch("a.*")

    present = [await watcher.updates(timeout=SECONDS) for _ in range(3)]
    await bucket.put("b", b"5")
    await bucket.put("a.x", b"6")
    await bucket.delete("a.y")
    changes = [await watcher.updates(timeout=SECONDS) for _ in range(2)]
    await watcher.stop()

    assert [entry and (entry.key, entry.value, entry.delta) for entry in present] == [
        ("a.x", b"2", 1),
        ("a.y", b"4", 0),
        None,
    ]
    assert [(entry.key, entry.operation, entry.revision) for entry in changes] == [("a.x", None, 6), ("a.y", "DEL", 7)]


async def test_watcher_of_an_empty_bucket_is_told_so(library: JetStreamContext, stream: str) -> None:
    bucket = await library.create_key_value(bucket=stream)
    watcher = await bucket.watchall()

    nothing = await watcher.updates(timeout=SECONDS)
    await bucket.put("key", b"1")
    entry = await watcher.updates(timeout=SECONDS)
    await watcher.stop()

    assert nothing is None
    assert (entry.key, entry.value) == ("key", b"1")


async def test_watcher_may_see_the_history_or_the_keys_only(library: JetStreamContext, stream: str) -> None:
    bucket = await library.create_key_value(config=KeyValueConfig(bucket=stream, history=5))
    for value in (b"1", b"2"):
        await bucket.put("key", value)

    with_history = await bucket.watch("key", include_history=True)
    of_keys = await bucket.watch("key", meta_only=True)
    history = [await with_history.updates(timeout=SECONDS) for _ in range(3)]
    keys = [await of_keys.updates(timeout=SECONDS) for _ in range(2)]
    await with_history.stop()
    await of_keys.stop()

    assert [entry and entry.value for entry in history] == [b"1", b"2", None]
    assert [entry and (entry.key, entry.value) for entry in keys] == [("key", b""), None]


# Object stores


@pytest.mark.parametrize("size_bytes", [0, 1, 128 * 1024, 300 * 1000])
async def test_object_comes_back_as_it_was_put(library: JetStreamContext, stream: str, size_bytes: int) -> None:
    store = await library.create_object_store(stream)
    contents = bytes(number % 251 for number in range(size_bytes))

    put = await store.put("file", contents, ObjectMeta(description="numbers"))
    result = await store.get("file")
    written = io.BytesIO()
    await store.get("file", writeinto=written)

    digest = hashlib.sha256(contents).digest()
    assert (put.size, put.chunks) == (size_bytes, -(-size_bytes // (128 * 1024)))
    assert hashlib.sha256(result.data or b"").digest() == digest
    assert written.getvalue() == contents
    assert (result.info.name, result.info.description) == ("file", "numbers")


async def test_object_that_is_put_again_replaces_the_first(library: JetStreamContext, stream: str) -> None:
    store = await library.create_object_store(stream)

    await store.put("file", b"one")
    await store.put("file", b"two")
    await store.put("other", b"three")

    assert (await store.get("file")).data == b"two"
    assert sorted(entry.name for entry in await store.list()) == ["file", "other"]
    assert (await library.stream_info(f"OBJ_{stream}")).state.messages == 4


async def test_object_that_is_deleted_is_not_found(library: JetStreamContext, stream: str) -> None:
    store = await library.create_object_store(stream)
    await store.put("file", b"one")

    await store.delete("file")

    with pytest.raises(nats.js.errors.ObjectNotFoundError):
        await store.get("file")
    with pytest.raises(nats.js.errors.NotFoundError):
        await store.list(ignore_deletes=True)
    assert (await library.stream_info(f"OBJ_{stream}")).state.messages == 1


async def test_watcher_of_objects_sees_them(library: JetStreamContext, stream: str) -> None:
    store = await library.create_object_store(stream)
    await store.put("file", b"one")
    watcher = await store.watch()

    present = [await watcher.updates(timeout=SECONDS) for _ in range(2)]
    await store.put("other", b"two")
    change = await watcher.updates(timeout=SECONDS)
    await watcher.stop()

    assert [entry and entry.name for entry in present] == ["file", None]
    assert (change.name, change.size) == ("other", 3)
