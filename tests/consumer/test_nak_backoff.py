"""A refused message waits as one that nobody acknowledged would, where its consumer asks for that."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from nats.js.api import AckPolicy, ConsumerConfig

import jetlake

BACK_OFF_S = [10, 600]

WAIT_S_MAX = 60.0


@pytest.fixture
def server() -> Iterator[jetlake.Server]:
    with jetlake.Server(jetstream=True, clock="manual") as running:
        yield running


@pytest.mark.parametrize("option", ["true", "false"])
def test_message_that_is_refused_waits_for_its_back_off_or_not(server: jetlake.Server, option: str) -> None:
    async def work() -> None:
        connection = await jetlake.connect(server)
        js = connection.jetstream()
        await js.add_stream(name="S", subjects=["s"])
        await js.publish("s", b"")
        config = ConsumerConfig(
            ack_policy=AckPolicy.EXPLICIT,
            backoff=BACK_OFF_S,
            max_deliver=5,
            metadata={"jetlake.nak_backoff": option},
        )
        subscription = await js.pull_subscribe("s", "C", config=config)
        for number, wait_s in enumerate(BACK_OFF_S, start=1):
            (message,) = await subscription.fetch(1, timeout=WAIT_S_MAX)
            assert message.metadata.num_delivered == number
            await message.nak()
            await connection.flush()
            if option == "true":
                server.advance(wait_s - 0.1)
                with pytest.raises(TimeoutError):
                    await subscription.fetch(1, timeout=0.2)
                server.advance(0.1)
        (last,) = await subscription.fetch(1, timeout=WAIT_S_MAX)
        assert last.metadata.num_delivered == len(BACK_OFF_S) + 1
        await connection.close()

    asyncio.run(work())


def test_delay_of_a_refusal_counts_before_the_back_off(server: jetlake.Server) -> None:
    async def work() -> None:
        connection = await jetlake.connect(server)
        js = connection.jetstream()
        await js.add_stream(name="S", subjects=["s"])
        await js.publish("s", b"")
        metadata = {"jetlake.nak_backoff": "true"}
        config: Any = ConsumerConfig(
            ack_policy=AckPolicy.EXPLICIT, backoff=BACK_OFF_S, max_deliver=5, metadata=metadata
        )
        subscription = await js.pull_subscribe("s", "C", config=config)
        (message,) = await subscription.fetch(1, timeout=WAIT_S_MAX)
        await message.nak(delay=2)
        await connection.flush()

        server.advance(2)

        (again,) = await subscription.fetch(1, timeout=WAIT_S_MAX)
        assert again.metadata.num_delivered == 2
        await connection.close()

    asyncio.run(work())
