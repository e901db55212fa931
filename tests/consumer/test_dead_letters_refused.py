"""A message that is given up stays in its stream until its dead letter is stored."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import jetlake
from jetlake.client.dead_letters import OPTION, DeadLetters
from jetlake.server.python_log import LOGGER_NAME

WAIT_S_MAX = 60.0
"""A condition must hold by then, however busy the machine is."""

REFUSED_S = 0.4
"""For so long nothing that was refused may be confirmed; it would be within a millisecond."""

TRIED_S = 3.5
"""Refused letters are tried again each second; for so long nothing happens to them but that."""

REFUSING_LIMITS: dict[str, dict[str, Any]] = {
    "max_msgs": {"max_msgs": 1},
    "max_bytes": {"max_bytes": 600},
    "max_msg_size": {"max_msg_size": 400},
}

Work = Callable[[Any], Awaitable[None]]


def run(folder: Path, *works: Work) -> None:
    """Run each in turn with a connection to a server of its own, all in one folder."""

    async def connected(server: jetlake.Server, work: Work) -> None:
        connection = await jetlake.connect(server)
        try:
            await work(connection)
        finally:
            await connection.close()

    for work in works:
        with jetlake.Server(jetstream=True, store_directory=folder) as server:
            asyncio.run(connected(server, work))


async def request(connection: Any, subject: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    answer = await connection.request(f"$JS.API.{subject}", json.dumps(body or {}).encode(), timeout=WAIT_S_MAX)
    decoded: dict[str, Any] = json.loads(answer.data)
    assert "error" not in decoded, decoded
    return decoded


async def make_dead(connection: Any, **config: Any) -> None:
    await request(connection, "STREAM.CREATE.DEAD", {"name": "DEAD", "subjects": ["dead.>"], **config})


async def make_jobs(connection: Any, retention: str = "workqueue", **consumer: Any) -> None:
    jobs = {"name": "JOBS", "subjects": ["jobs.>"], "retention": retention, "metadata": {OPTION: "DEAD"}}
    await request(connection, "STREAM.CREATE.JOBS", jobs)
    config = {"durable_name": "worker", "ack_policy": "explicit", "ack_wait": 60_000_000_000, **consumer}
    await request(connection, "CONSUMER.CREATE.JOBS.worker", {"stream_name": "JOBS", "config": config})


async def fetch(connection: Any, count: int) -> list[Any]:
    inbox = connection.new_inbox()
    subscription = await connection.subscribe(inbox)
    body = {"batch": count, "expires": int(WAIT_S_MAX * 1e9)}
    subject = "$JS.API.CONSUMER.MSG.NEXT.JOBS.worker"
    await connection.publish(subject, json.dumps(body).encode(), reply=inbox)
    messages = [await subscription.next_msg(timeout=WAIT_S_MAX) for _ in range(count)]
    await subscription.unsubscribe()
    return messages


async def settle(connection: Any, message: Any, body: bytes) -> Any:
    """Send an acknowledgement and return the subscription that hears its confirmation."""
    inbox = connection.new_inbox()
    confirmation = await connection.subscribe(inbox)
    await connection.publish(message.reply, body, reply=inbox)
    await connection.flush()
    return confirmation


async def messages_in(connection: Any, stream: str) -> int:
    return int((await request(connection, f"STREAM.INFO.{stream}"))["state"]["messages"])


async def wait_for_messages(connection: Any, stream: str, count: int) -> None:
    deadline = asyncio.get_running_loop().time() + WAIT_S_MAX
    while (there := await messages_in(connection, stream)) != count:
        assert asyncio.get_running_loop().time() < deadline, f"{stream} has {there} messages, not {count}"
        await asyncio.sleep(0.02)


async def wait_until_logged(caplog: pytest.LogCaptureFixture, *parts: str) -> None:
    deadline = asyncio.get_running_loop().time() + WAIT_S_MAX
    while not any(all(part in line for part in parts) for line in caplog.messages):
        assert asyncio.get_running_loop().time() < deadline, f"nobody logged {parts}: {caplog.messages}"
        await asyncio.sleep(0.02)


async def letters(connection: Any) -> list[tuple[str, str, int]]:
    async with DeadLetters(connection.connected_url.geturl(), "DEAD") as dead:
        return [(letter.original_subject, letter.reason, letter.deliveries) for letter in await dead.all()]


@pytest.mark.parametrize("limit", REFUSING_LIMITS)
def test_terminated_message_stays_unconfirmed_until_its_letter_fits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, limit: str
) -> None:
    async def work(connection: Any) -> None:
        caplog.set_level(logging.WARNING, LOGGER_NAME)
        limits = REFUSING_LIMITS[limit]
        await make_dead(connection, discard="new", **limits)
        await make_jobs(connection)
        await connection.publish("dead.before", b"x" * 300)
        await connection.publish("jobs.a", b"x" * 300)
        await wait_for_messages(connection, "DEAD", 1)
        (message,) = await fetch(connection, 1)
        confirmation = await settle(connection, message, b"+TERM broken")

        await wait_until_logged(caplog, "DEAD", "JOBS", "worker")
        with pytest.raises(TimeoutError):
            await confirmation.next_msg(timeout=REFUSED_S)
        assert await messages_in(connection, "JOBS") == 1
        assert await messages_in(connection, "DEAD") == 1

        await request(
            connection,
            "STREAM.UPDATE.DEAD",
            {"name": "DEAD", "subjects": ["dead.>"], "discard": "new", **dict.fromkeys(limits, -1)},
        )
        await confirmation.next_msg(timeout=WAIT_S_MAX)
        await wait_for_messages(connection, "JOBS", 0)
        await request(connection, "STREAM.PURGE.DEAD", {"filter": "dead.before"})
        assert await letters(connection) == [("jobs.a", "broken", 1)]

    run(tmp_path, work)


def test_letter_that_cannot_be_stored_holds_up_no_other(tmp_path: Path) -> None:
    async def work(connection: Any) -> None:
        await make_dead(connection, max_msg_size=1000)
        await make_jobs(connection)
        for number in range(40):
            await connection.publish("jobs.large", b"x" * 1000)
            await connection.publish(f"jobs.small.{number}", b"x")
        for message in await fetch(connection, 80):
            await settle(connection, message, b"+TERM")

        await wait_for_messages(connection, "DEAD", 40)
        await wait_for_messages(connection, "JOBS", 40)
        assert {subject for subject, _, _ in await letters(connection)} == {f"jobs.small.{n}" for n in range(40)}

    run(tmp_path, work)


@pytest.mark.parametrize("count", [64, 128])
def test_letters_are_tried_again_however_many_are_refused(tmp_path: Path, count: int) -> None:
    async def work(connection: Any) -> None:
        await make_dead(connection, discard="new", max_msgs=1)
        await connection.publish("dead.before", b"x")
        await wait_for_messages(connection, "DEAD", 1)
        await make_jobs(connection, max_deliver=1, ack_wait=300_000_000)
        for _ in range(count):
            await connection.publish("jobs.a", b"x")
        await wait_for_messages(connection, "JOBS", count)
        await fetch(connection, count)

        # 64 are tried at a time, so that the last one of them all is the last of a run.
        await asyncio.sleep(TRIED_S)
        assert await messages_in(connection, "JOBS") == count
        await request(connection, "STREAM.UPDATE.DEAD", {"name": "DEAD", "subjects": ["dead.>"]})

        await wait_for_messages(connection, "JOBS", 0)
        assert await messages_in(connection, "DEAD") == count + 1

    run(tmp_path, work)


def test_letter_that_a_stream_would_not_keep_counts_as_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(connection: Any) -> None:
        caplog.set_level(logging.WARNING, LOGGER_NAME)
        await make_dead(connection, retention="interest")
        await make_jobs(connection)
        await connection.publish("jobs.a", b"x")
        (message,) = await fetch(connection, 1)
        await settle(connection, message, b"+TERM")

        await wait_until_logged(caplog, "DEAD", "JOBS")
        assert await messages_in(connection, "JOBS") == 1
        config = {"durable_name": "reader", "ack_policy": "explicit"}
        await request(connection, "CONSUMER.CREATE.DEAD.reader", {"stream_name": "DEAD", "config": config})
        await wait_for_messages(connection, "JOBS", 0)
        assert await letters(connection) == [("jobs.a", "terminated", 1)]

    run(tmp_path, work)


def test_streams_created_again_have_letters_of_their_own(tmp_path: Path) -> None:
    async def work(connection: Any) -> None:
        await make_dead(connection)
        for number in range(1, 4):
            await make_jobs(connection)
            await connection.publish("jobs.a", b"%d" % number)
            (message,) = await fetch(connection, 1)
            confirmation = await settle(connection, message, b"+TERM")
            await confirmation.next_msg(timeout=WAIT_S_MAX)
            assert await messages_in(connection, "DEAD") == number
            await request(connection, "STREAM.DELETE.JOBS")

    run(tmp_path, work)


def test_consumers_created_again_have_letters_of_their_own(tmp_path: Path) -> None:
    async def work(connection: Any) -> None:
        await make_dead(connection)
        jobs = {"name": "JOBS", "subjects": ["jobs.>"], "metadata": {OPTION: "DEAD"}}
        await request(connection, "STREAM.CREATE.JOBS", jobs)
        await connection.publish("jobs.a", b"x")
        for number in range(1, 4):
            config = {"durable_name": "worker", "ack_policy": "explicit"}
            await request(connection, "CONSUMER.CREATE.JOBS.worker", {"stream_name": "JOBS", "config": config})
            (message,) = await fetch(connection, 1)
            confirmation = await settle(connection, message, b"+TERM")
            await confirmation.next_msg(timeout=WAIT_S_MAX)
            assert await messages_in(connection, "DEAD") == number
            await request(connection, "CONSUMER.DELETE.JOBS.worker")

    run(tmp_path, work)


def test_terminated_message_outlives_a_restart_without_a_stream_for_its_letter(tmp_path: Path) -> None:
    async def terminate(connection: Any) -> None:
        await make_jobs(connection, ack_wait=1_000_000_000)
        await connection.publish("jobs.a", b"x")
        (message,) = await fetch(connection, 1)
        confirmation = await settle(connection, message, b"+TERM")
        with pytest.raises(TimeoutError):
            await confirmation.next_msg(timeout=REFUSED_S)

    async def terminate_again(connection: Any) -> None:
        assert await messages_in(connection, "JOBS") == 1
        await make_dead(connection)
        (message,) = await fetch(connection, 1)
        confirmation = await settle(connection, message, b"+TERM again")
        await confirmation.next_msg(timeout=WAIT_S_MAX)
        assert await letters(connection) == [("jobs.a", "again", 2)]
        await wait_for_messages(connection, "JOBS", 0)

    run(tmp_path, terminate, terminate_again)


def test_terminated_message_is_not_delivered_again_while_its_letter_waits(tmp_path: Path) -> None:
    async def work(connection: Any) -> None:
        await make_jobs(connection, ack_wait=100_000_000)
        await connection.publish("jobs.a", b"x")
        (message,) = await fetch(connection, 1)
        await settle(connection, message, b"+TERM")
        await connection.publish(message.reply, b"-NAK")
        inbox = connection.new_inbox()
        subscription = await connection.subscribe(inbox)
        subject = "$JS.API.CONSUMER.MSG.NEXT.JOBS.worker"
        await connection.publish(subject, json.dumps({"batch": 1, "expires": int(3e9)}).encode(), reply=inbox)

        with pytest.raises(TimeoutError):
            await subscription.next_msg(timeout=1.0)
        await make_dead(connection)
        await wait_for_messages(connection, "JOBS", 0)
        assert await letters(connection) == [("jobs.a", "terminated", 1)]

    run(tmp_path, work)


def test_message_delivered_too_often_becomes_a_letter_once_there_is_a_stream_for_it(tmp_path: Path) -> None:
    async def give_up(connection: Any) -> None:
        await make_jobs(connection, max_deliver=1, ack_wait=100_000_000)
        await connection.publish("jobs.a", b"x")
        await fetch(connection, 1)
        deadline = asyncio.get_running_loop().time() + WAIT_S_MAX
        while (await request(connection, "CONSUMER.INFO.JOBS.worker"))["num_ack_pending"]:
            assert asyncio.get_running_loop().time() < deadline
            await asyncio.sleep(0.02)

    async def make_room(connection: Any) -> None:
        assert await messages_in(connection, "JOBS") == 1
        await make_dead(connection)
        await wait_for_messages(connection, "JOBS", 0)
        assert await letters(connection) == [("jobs.a", "max_deliver", 1)]

    run(tmp_path, give_up, make_room)


def test_cumulative_acknowledgement_does_not_settle_a_message_whose_letter_waits(tmp_path: Path) -> None:
    async def work(connection: Any) -> None:
        await make_jobs(connection, "interest", ack_policy="all")
        for number in range(1, 5):
            await connection.publish(f"jobs.{number}", b"x")
        _, second, third, _ = await fetch(connection, 4)
        terminated = await settle(connection, second, b"+TERM")
        acknowledged = await settle(connection, third, b"+ACK")
        for confirmation in (terminated, acknowledged):
            with pytest.raises(TimeoutError):
                await confirmation.next_msg(timeout=REFUSED_S)
        stays = await connection.request(
            "$JS.API.STREAM.MSG.GET.JOBS", json.dumps({"last_by_subj": "jobs.2"}).encode(), timeout=WAIT_S_MAX
        )
        assert "error" not in json.loads(stays.data)

        await make_dead(connection)
        for confirmation in (terminated, acknowledged):
            await confirmation.next_msg(timeout=WAIT_S_MAX)
        await wait_for_messages(connection, "JOBS", 1)
        assert await letters(connection) == [("jobs.2", "terminated", 1)]

    run(tmp_path, work)


def test_message_is_settled_when_its_stream_wants_no_dead_letters_any_more(tmp_path: Path) -> None:
    async def work(connection: Any) -> None:
        await make_jobs(connection)
        await connection.publish("jobs.a", b"x")
        (message,) = await fetch(connection, 1)
        confirmation = await settle(connection, message, b"+TERM")
        with pytest.raises(TimeoutError):
            await confirmation.next_msg(timeout=REFUSED_S)
        await request(
            connection, "STREAM.UPDATE.JOBS", {"name": "JOBS", "subjects": ["jobs.>"], "retention": "workqueue"}
        )
        await confirmation.next_msg(timeout=WAIT_S_MAX)
        await wait_for_messages(connection, "JOBS", 0)

    run(tmp_path, work)


def test_confirmed_termination_has_made_room_where_its_letter_is_stored_elsewhere(tmp_path: Path) -> None:
    async def work(connection: Any) -> None:
        await make_dead(connection)
        await make_jobs(connection)
        limits = {"max_msgs": 1, "discard": "new", "retention": "workqueue", "metadata": {OPTION: "DEAD"}}
        await request(connection, "STREAM.UPDATE.JOBS", {"name": "JOBS", "subjects": ["jobs.>"], **limits})
        for _ in range(20):
            stored = await connection.request("jobs.a", b"x", timeout=WAIT_S_MAX)
            assert "error" not in json.loads(stored.data)
            (message,) = await fetch(connection, 1)
            confirmation = await settle(connection, message, b"+TERM")
            await confirmation.next_msg(timeout=WAIT_S_MAX)
        assert await messages_in(connection, "DEAD") == 20

    run(tmp_path, work)
