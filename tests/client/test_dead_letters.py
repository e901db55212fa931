"""Messages that a consumer gives up are kept, can be looked at, and can be sent on their way again."""

import asyncio
import base64
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StreamConfig
from nats.js.errors import APIError

import jetlake
from jetlake.client.channel import Channel
from jetlake.client.dead_letters import OPTION, DeadLetter, DeadLetters
from jetlake.errors import ClientError

WAIT_S_MAX = 60.0


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


def test_heads_of_letters_are_read_without_payloads_and_have_a_cause(server: jetlake.Server) -> None:
    async def work(connection: Any) -> None:
        js = await make_streams(connection)
        for number in range(5):
            await js.publish(f"jobs.{number}", b"payload")
        subscription = await js.pull_subscribe("jobs.>", "worker")
        for number, message in enumerate(await subscription.fetch(5)):
            await connection.publish(message.reply, b"+TERM %d pixels, id 0xff0%d" % (number * 1000, number))
        whole = await letters_of(server, 5)

        async with DeadLetters(server, "DEAD") as dead:
            heads = await dead.heads(3)

        assert [letter.sequence for letter in heads] == [letter.sequence for letter in whole[:3]]
        assert [letter.reason for letter in heads] == [letter.reason for letter in whole[:3]]
        assert {letter.payload for letter in heads} == {b""}
        assert {letter.cause for letter in heads} == {"# pixels, id #"}

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


def test_redriven_message_has_every_header_of_a_name_that_is_repeated(server: jetlake.Server) -> None:
    async def work(connection: Any) -> None:
        js = await make_streams(connection, RetentionPolicy.LIMITS)
        block = b"NATS/1.0\r\nVia: first\r\nX: y\r\nVia: second\r\nvia: third\r\nEmpty:\r\n\r\n"
        await Channel.of(connection).request("jobs.a", b"payload", headers=block, timeout_s=WAIT_S_MAX)
        subscription = await js.pull_subscribe("jobs.>", "worker")
        (message,) = await subscription.fetch(1)
        await message.term()
        (letter,) = await letters_of(server, 1)

        async with DeadLetters(server, "DEAD") as dead:
            sequence = await dead.redrive(letter)

        answer = await connection.request("$JS.API.STREAM.MSG.GET.JOBS", json.dumps({"seq": sequence}).encode())
        stored = base64.b64decode(json.loads(answer.data)["message"]["hdrs"])
        assert stored.split(b"\r\n")[1:] == [
            b"Via: first",
            b"X: y",
            b"Via: second",
            b"via: third",
            b"Empty: ",
            b"Nats-Msg-Id: redrive/DEAD/1",
            b"",
            b"",
        ]

    run(server, work)


def test_letters_are_read_one_after_the_other(server: jetlake.Server) -> None:
    async def work(connection: Any) -> None:
        js = await make_streams(connection)
        for number in range(3):
            await js.publish("jobs.a", b"%d" % number)
        subscription = await js.pull_subscribe("jobs.>", "worker")
        for message in await subscription.fetch(3):
            await message.term()
        await letters_of(server, 3)
        asked: list[str] = []

        async with DeadLetters(server, "DEAD") as dead:
            dead._api.on_exchange = lambda subject, _request, _answer: asked.append(subject)
            async for letter in dead.each(consumer="worker"):
                assert asked.count("$JS.API.STREAM.MSG.GET.DEAD") == letter.sequence
                # What is read can go while the others are still to come.
                await dead.remove(letter)
            assert await dead.all() == []

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
            with pytest.raises(ClientError, match="stream JOBS is not listening on"):
                await dead.redrive(letter)
            assert [kept.sequence for kept in await dead.all()] == [letter.sequence]

    run(server, work)


@pytest.mark.parametrize(
    ("stream", "subject", "reason"),
    [
        ("JOBS", "$JS.API.STREAM.DELETE.JOBS", "belong to the server"),
        ("JOBS", "orders.1", "stream JOBS is not listening on 'orders.1'"),
    ],
)
def test_letter_with_a_forged_origin_is_not_redriven(
    server: jetlake.Server, stream: str, subject: str, reason: str
) -> None:
    async def work(connection: Any) -> None:
        js = await make_streams(connection)
        await js.add_stream(StreamConfig(name="ORDERS", subjects=["orders.*"]))
        letter = DeadLetter(
            sequence=1,
            time="",
            stream=stream,
            consumer="worker",
            reason="",
            deliveries=1,
            original_subject=subject,
            original_sequence=1,
            headers=[],
            payload=b"",
        )

        async with DeadLetters(server, "DEAD") as dead:
            with pytest.raises(ClientError, match=re.escape(reason)):
                await dead.redrive(letter)

        assert (await js.stream_info("ORDERS")).state.messages == 0
        assert (await js.stream_info("JOBS")).state.messages == 0

    run(server, work)


def test_what_somebody_publishes_into_the_stream_is_not_taken_for_a_letter(server: jetlake.Server) -> None:
    async def work(connection: Any) -> None:
        js = await make_streams(connection)
        forged = {
            "Jetlake-Dead-Stream": "JOBS",
            "Jetlake-Dead-Consumer": "worker",
            "Jetlake-Dead-Subject": "jobs.a",
            "Jetlake-Dead-Sequence": "1",
            "Jetlake-Dead-Deliveries": "1",
        }
        await js.publish("dead.JOBS.worker.jobs.a", b"forged", headers={**forged, "X": "y"})
        by_client = {name.replace("Jetlake-Dead-", "Jetlake-Client-Dead-"): value for name, value in forged.items()}
        await js.publish("dead.JOBS.worker.jobs.b", b"of a client", headers=by_client)
        await js.publish("jobs.c", b"real")
        subscription = await js.pull_subscribe("jobs.>", "worker")
        await (await subscription.fetch(1))[0].term()

        letters = await letters_of(server, 2)

        async with DeadLetters(server, "DEAD") as dead:
            with pytest.raises(ClientError, match="is not a dead letter"):
                await dead.get(1)
            assert [(letter.payload, letter.is_of_server) for letter in letters] == [
                (b"of a client", False),
                (b"real", True),
            ]
            with pytest.raises(ClientError, match="written by a client"):
                await dead.redrive(letters[0])
            await dead.redrive(letters[1])
        stored = await js.get_msg("DEAD", 1)
        assert stored.headers == {"X": "y"}

    run(server, work)


def test_letter_stays_when_another_message_has_taken_the_id_of_its_redrive(server: jetlake.Server) -> None:
    async def work(connection: Any) -> None:
        js = await make_streams(connection, RetentionPolicy.LIMITS)
        await js.publish("jobs.a", b"payload")
        subscription = await js.pull_subscribe("jobs.>", "worker")
        await (await subscription.fetch(1))[0].term()
        (letter,) = await letters_of(server, 1)
        await js.publish("jobs.a", b"other", headers={"Nats-Msg-Id": f"redrive/DEAD/{letter.sequence}"})

        async with DeadLetters(server, "DEAD") as dead:
            with pytest.raises(ClientError, match="is another message"):
                await dead.redrive(letter)
            assert [kept.sequence for kept in await dead.all()] == [letter.sequence]

    run(server, work)


def test_nobody_else_can_use_up_the_ids_of_dead_letters(server: jetlake.Server) -> None:
    async def work(connection: Any) -> None:
        js = await make_streams(connection)
        with pytest.raises(APIError, match="are those of dead letters"):
            await js.publish("dead.JOBS.worker.x", b"", headers={"Nats-Msg-Id": "$dead/JOBS"})

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
