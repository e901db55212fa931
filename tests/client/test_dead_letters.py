"""Messages that a consumer gives up are kept, can be looked at, and can be sent on their way again."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StreamConfig

import jetlake
from jetlake.client.dead_letters import OPTION, DeadLetter, DeadLetters
from jetlake.errors import ClientError

WAIT_S_MAX = 10.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[jetlake.Server]:
    with jetlake.Server(jetstream=True, store_directory=tmp_path) as running:
        yield running


def run(server: jetlake.Server, work: Callable[[Any], Awaitable[None]]) -> None:
    async def connected() -> None:
        connection = await jetlake.connect(server)
        try:
            await work(connection)
        finally:
            await connection.close()

    asyncio.run(connected())


async def make_streams(connection: Any, retention: RetentionPolicy = RetentionPolicy.WORK_QUEUE) -> Any:
    js = connection.jetstream()
    await js.add_stream(StreamConfig(name="DEAD", subjects=["dead.>"]))
    await js.add_stream(StreamConfig(name="JOBS", subjects=["jobs.>"], retention=retention, metadata={OPTION: "DEAD"}))
    return js


async def letters_of(server: jetlake.Server, count: int) -> list[DeadLetter]:
    """Return the letters once there are so many."""
    async with DeadLetters(server, "DEAD") as dead:
        deadline = asyncio.get_running_loop().time() + WAIT_S_MAX
        while True:
            letters = await dead.all()
            if len(letters) >= count or asyncio.get_running_loop().time() > deadline:
                assert len(letters) == count
                return letters
            await asyncio.sleep(0.05)


async def wait_for_messages(js: Any, stream: str, count: int) -> None:
    deadline = asyncio.get_running_loop().time() + WAIT_S_MAX
    while (await js.stream_info(stream)).state.messages != count:
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.05)


def test_terminated_message_is_kept_with_who_gave_it_up_and_why(server: jetlake.Server) -> None:
    async def work(connection: Any) -> None:
        js = await make_streams(connection)
        await js.publish("jobs.a", b"payload", headers={"X": "y", "Nats-Msg-Id": "id"})
        subscription = await js.pull_subscribe("jobs.>", "worker")
        (message,) = await subscription.fetch(1)
        await connection.publish(message.reply, b"+TERM cannot be parsed")

        (letter,) = await letters_of(server, 1)

        assert letter.reason == "cannot be parsed"
        assert (letter.stream, letter.consumer, letter.deliveries) == ("JOBS", "worker", 1)
        assert (letter.original_subject, letter.original_sequence) == ("jobs.a", 1)
        assert letter.payload == b"payload"
        assert ("X", "y") in letter.headers
        await wait_for_messages(js, "JOBS", 0)

    run(server, work)


def test_message_that_was_delivered_too_often_is_kept_and_leaves_its_work_queue(server: jetlake.Server) -> None:
    async def work(connection: Any) -> None:
        js = await make_streams(connection)
        await js.publish("jobs.a", b"1")
        await js.publish("jobs.b", b"2")
        config = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, max_deliver=2, ack_wait=30)
        subscription = await js.pull_subscribe("jobs.>", "worker", config=config)
        for _ in range(2):
            for message in await subscription.fetch(2):
                await message.nak()
        with pytest.raises(TimeoutError):
            await subscription.fetch(1, timeout=0.3)

        letters = await letters_of(server, 2)

        assert [letter.original_subject for letter in letters] == ["jobs.a", "jobs.b"]
        assert {letter.reason for letter in letters} == {"max_deliver"}
        assert {letter.deliveries for letter in letters} == {2}
        await wait_for_messages(js, "JOBS", 0)

    run(server, work)


def test_redriven_message_is_delivered_again_and_its_letter_is_gone(server: jetlake.Server) -> None:
    async def work(connection: Any) -> None:
        js = await make_streams(connection, RetentionPolicy.LIMITS)
        await js.publish("jobs.a", b"payload", headers={"X": "y"})
        subscription = await js.pull_subscribe("jobs.>", "worker")
        (message,) = await subscription.fetch(1)
        await message.term()
        (letter,) = await letters_of(server, 1)

        async with DeadLetters(server, "DEAD") as dead:
            assert await dead.redrive(letter) == 2
            assert await dead.all() == []

        (again,) = await subscription.fetch(1)
        assert (again.subject, again.data, again.headers["X"]) == ("jobs.a", b"payload", "y")
        assert not [name for name in again.headers if name.startswith("Jetlake-Dead")]

    run(server, work)


def test_letter_stays_when_nobody_takes_its_message(server: jetlake.Server) -> None:
    async def work(connection: Any) -> None:
        js = await make_streams(connection)
        await js.publish("jobs.a", b"payload")
        subscription = await js.pull_subscribe("jobs.>", "worker")
        await (await subscription.fetch(1))[0].term()
        (letter,) = await letters_of(server, 1)
        await js.delete_stream("JOBS")

        async with DeadLetters(server, "DEAD") as dead:
            with pytest.raises(ClientError, match="no stream takes"):
                await dead.redrive(letter)
            assert [kept.sequence for kept in await dead.all()] == [letter.sequence]

    run(server, work)


def test_message_stays_where_it_is_when_there_is_no_stream_for_dead_letters(server: jetlake.Server) -> None:
    async def work(connection: Any) -> None:
        js = await make_streams(connection)
        await js.delete_stream("DEAD")
        await js.publish("jobs.a", b"payload")
        subscription = await js.pull_subscribe("jobs.>", "worker")
        await (await subscription.fetch(1))[0].term()
        await js.publish("jobs.b", b"payload")
        (message,) = await subscription.fetch(1)
        await message.ack_sync()

        await wait_for_messages(js, "JOBS", 1)

    run(server, work)


def test_wrong_name_of_a_stream_is_refused_at_once(server: jetlake.Server) -> None:
    async def work(connection: Any) -> None:
        body = {"name": "JOBS", "subjects": ["jobs.>"], "metadata": {OPTION: "JOBS"}}
        answer = await connection.request("$JS.API.STREAM.CREATE.JOBS", json.dumps(body).encode())
        assert OPTION in json.loads(answer.data)["error"]["description"]

    run(server, work)
