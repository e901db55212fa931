"""A server whose clock is set by hand: what takes half a minute elsewhere takes no time here."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from nats.js.api import AckPolicy, ConsumerConfig

import jetlake
from jetlake.errors import ConfigurationError

WAIT_S_MAX = 60.0


@pytest.fixture
def server() -> Iterator[jetlake.Server]:
    with jetlake.Server(jetstream=True, clock="manual") as running:
        yield running


def run(server: jetlake.Server, work: Callable[[Any], Awaitable[None]]) -> None:
    async def connected() -> None:
        connection = await jetlake.connect(server)
        try:
            await work(connection.jetstream())
        finally:
            await connection.close()

    asyncio.run(connected())


async def wait_for(state: Callable[[], Awaitable[bool]]) -> None:
    deadline = asyncio.get_running_loop().time() + WAIT_S_MAX
    while not await state():
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.01)


def test_unacknowledged_message_comes_again_when_the_clock_says_so(server: jetlake.Server) -> None:
    async def work(js: Any) -> None:
        await js.add_stream(name="S", subjects=["s"])
        await js.publish("s", b"")
        config = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, ack_wait=30, backoff=[30, 600], max_deliver=3)
        subscription = await js.pull_subscribe("s", "C", config=config)
        await subscription.fetch(1, timeout=WAIT_S_MAX)

        server.advance(29.9)
        with pytest.raises(TimeoutError):
            await subscription.fetch(1, timeout=0.2)
        server.advance(0.1)
        (second,) = await subscription.fetch(1, timeout=WAIT_S_MAX)
        server.advance(600)
        (third,) = await subscription.fetch(1, timeout=WAIT_S_MAX)

        assert [second.metadata.num_delivered, third.metadata.num_delivered] == [2, 3]

    run(server, work)


def test_messages_expire_when_the_clock_says_so(server: jetlake.Server) -> None:
    async def work(js: Any) -> None:
        await js.add_stream(name="S", subjects=["s"], max_age=3600)
        await js.publish("s", b"")
        server.advance(3599)
        assert (await js.stream_info("S")).state.messages == 1

        server.advance(2)

        async def is_empty() -> bool:
            return bool((await js.stream_info("S")).state.messages == 0)

        await wait_for(is_empty)

    run(server, work)


def test_clock_that_goes_by_itself_cannot_be_set() -> None:
    with jetlake.Server() as server, pytest.raises(ConfigurationError, match='clock="manual"'):
        server.advance(1)


def test_clock_does_not_go_backwards() -> None:
    with jetlake.Server(clock="manual") as server, pytest.raises(ConfigurationError, match="0 or more"):
        server.advance(-1)


def test_unknown_clock_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="manual"):
        jetlake.Server(clock="sundial")  # type: ignore[arg-type]
