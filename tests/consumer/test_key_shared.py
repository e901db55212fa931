"""Key-shared groups with plain clients: one message of a key under way at a time, in order, many keys at once."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from nats.js.api import AckPolicy, ConsumerConfig

import jetlake
from tests.waiting import until

KEYS = 7
MESSAGES = 140
WAIT_S_MAX = 60.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[jetlake.Server]:
    with jetlake.Server(jetstream=True, store_directory=tmp_path) as running:
        yield running


def run(server: jetlake.Server, work: Callable[[Any, Any], Awaitable[None]]) -> None:
    async def connected() -> None:
        connection = await jetlake.connect(server)
        try:
            await work(connection, connection.jetstream())
        finally:
            await connection.close()

    asyncio.run(connected())


async def make(js: Any, key: str, **options: Any) -> None:
    await js.add_stream(name="S", subjects=["s.>"])
    config = ConsumerConfig(
        durable_name="C", ack_policy=AckPolicy.EXPLICIT, metadata={"jetlake.key": key}, ack_wait=30, **options
    )
    await js.add_consumer("S", config)


class Workers:
    """Clients that take messages, and what they saw of each key."""

    def __init__(self, server: jetlake.Server) -> None:
        self.server = server
        self.under_way: dict[str, int] = defaultdict(int)
        self.seen: dict[str, list[bytes]] = defaultdict(list)
        self.most_at_once = 0
        self.count = 0

    async def work(self, key_of: Callable[[Any], str], until: int) -> None:
        connection = await jetlake.connect(self.server)
        subscription = await connection.jetstream().pull_subscribe_bind("C", "S")
        while self.count < until:
            try:
                messages = await subscription.fetch(3, timeout=0.5)
            except TimeoutError:
                continue
            for message in messages:
                self.under_way[key_of(message)] += 1
                assert self.under_way[key_of(message)] == 1, "two of one key at once"
            self.most_at_once = max(self.most_at_once, sum(self.under_way.values()))
            await asyncio.sleep(random.random() / 200)
            for message in messages:
                key = key_of(message)
                self.seen[key].append(message.data)
                self.under_way[key] -= 1
                self.count += 1
                await message.ack()
        await connection.close()


def test_messages_of_one_key_come_in_order_and_one_at_a_time(server: jetlake.Server) -> None:
    async def work(_connection: Any, js: Any) -> None:
        await make(js, "subject.2")
        for number in range(MESSAGES):
            await js.publish(f"s.{number % KEYS}.x", b"%d" % number)
        workers = Workers(server)

        await asyncio.wait_for(
            asyncio.gather(*(workers.work(lambda message: message.subject.split(".")[1], MESSAGES) for _ in range(4))),
            WAIT_S_MAX,
        )

        for key in range(KEYS):
            assert workers.seen[str(key)] == [b"%d" % number for number in range(key, MESSAGES, KEYS)]
        assert workers.most_at_once > 1, "keys are worked on in parallel"

        async def is_all_acknowledged() -> bool:
            info = await js.consumer_info("S", "C")
            return (info.num_ack_pending, info.num_pending, info.ack_floor.stream_seq) == (0, 0, MESSAGES)

        # The acknowledgements are on their way on other connections.
        await until(is_all_acknowledged)

    run(server, work)


def test_key_can_be_a_header_and_messages_without_it_wait_for_nobody(server: jetlake.Server) -> None:
    async def work(_connection: Any, js: Any) -> None:
        await make(js, "header.Customer")
        for customer in ("a", "a", "b", None, None):
            await js.publish("s.x", b"", headers={"Customer": customer} if customer else None)
        subscription = await js.pull_subscribe_bind("C", "S")

        messages = await subscription.fetch(4, timeout=WAIT_S_MAX)

        assert [message.metadata.sequence.stream for message in messages] == [1, 3, 4, 5]
        assert (await js.consumer_info("S", "C")).num_pending == 1
        await messages[0].ack()
        (second,) = await subscription.fetch(1, timeout=WAIT_S_MAX)
        assert second.metadata.sequence.stream == 2

    run(server, work)


def test_refused_message_comes_again_before_the_next_of_its_key(server: jetlake.Server) -> None:
    async def work(_connection: Any, js: Any) -> None:
        await make(js, "subject.2")
        for number in range(3):
            await js.publish("s.k", b"%d" % number)
        subscription = await js.pull_subscribe_bind("C", "S")
        (first,) = await subscription.fetch(1, timeout=WAIT_S_MAX)
        await first.nak()

        (again,) = await subscription.fetch(1, timeout=WAIT_S_MAX)

        assert (again.data, again.metadata.num_delivered) == (b"0", 2)
        await again.ack()
        (second,) = await subscription.fetch(1, timeout=WAIT_S_MAX)
        assert second.data == b"1"

    run(server, work)


def test_key_is_handed_on_at_once_when_its_worker_leaves(server: jetlake.Server) -> None:
    async def work(_connection: Any, js: Any) -> None:
        await make(js, "subject.2")
        for number in range(2):
            await js.publish("s.k", b"%d" % number)
        leaving = await jetlake.connect(server)
        await (await leaving.jetstream().pull_subscribe_bind("C", "S")).fetch(1, timeout=WAIT_S_MAX)
        subscription = await js.pull_subscribe_bind("C", "S")
        with pytest.raises(TimeoutError):
            await subscription.fetch(1, timeout=0.3)

        await leaving.close()

        # Long before the 30 seconds that it may take to acknowledge.
        (again,) = await subscription.fetch(1, timeout=60)
        assert (again.data, again.metadata.num_delivered) == (b"0", 2)

    run(server, work)


async def expect_nothing_more(subscription: Any) -> None:
    with pytest.raises(TimeoutError):
        await subscription.fetch(1, timeout=0.3)

    async def is_over() -> bool:
        return (await subscription.consumer_info()).num_waiting == 0

    # The server may end the request later than the client, and would deliver what becomes free until then.
    await until(is_over)


def test_order_of_keys_survives_a_restart(tmp_path: Path) -> None:
    with jetlake.Server(jetstream=True, store_directory=tmp_path) as server:

        async def begin(_connection: Any, js: Any) -> None:
            await make(js, "subject.2")
            for number in range(6):
                await js.publish(f"s.{number % 2}", b"%d" % number)
            subscription = await js.pull_subscribe_bind("C", "S")
            messages = await subscription.fetch(2, timeout=WAIT_S_MAX)
            assert [message.data for message in messages] == [b"0", b"1"]
            await expect_nothing_more(subscription)
            await messages[1].ack_sync(timeout=WAIT_S_MAX)
            # While its client is connected: what a client that leaves has is handed on.
            await asyncio.to_thread(server.stop)

        run(server, begin)
    with jetlake.Server(jetstream=True, store_directory=tmp_path) as server:

        async def go_on(_connection: Any, js: Any) -> None:
            subscription = await js.pull_subscribe_bind("C", "S")
            messages = await subscription.fetch(1, timeout=WAIT_S_MAX)
            # The first of the even ones is still under way.
            assert [message.data for message in messages] == [b"3"]
            await expect_nothing_more(subscription)
            await messages[0].ack_sync(timeout=WAIT_S_MAX)
            assert [message.data for message in await subscription.fetch(1, timeout=WAIT_S_MAX)] == [b"5"]

        run(server, go_on)
