"""An interest stream keeps what a consumer needs that this version cannot serve, and another version will."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from nats.js.api import AckPolicy, ConsumerConfig

import jetlake
from jetlake.management.catalog import consumers
from tests.waiting import until

WAIT_S_MAX = 60.0

Work = Callable[[Any], Awaitable[None]]


def run(folder: Path, work: Work) -> None:
    """Run this with JetStream of a server of its own, in a folder that others have used before."""

    async def connected(server: jetlake.Server) -> None:
        connection = await jetlake.connect(server)
        try:
            await work(connection.jetstream())
        finally:
            await connection.close()

    with jetlake.Server(jetstream=True, store_directory=folder) as server:
        asyncio.run(connected(server))


async def ask(js: Any, subject: str, **body: Any) -> dict[str, Any]:
    answer = await js._nc.request(f"$JS.API.{subject}", json.dumps(body).encode(), timeout=WAIT_S_MAX)
    decoded: dict[str, Any] = json.loads(answer.data)
    assert "error" not in decoded, decoded
    return decoded


async def count(js: Any) -> int:
    return int((await js.stream_info("S")).state.messages)


async def set_up(js: Any) -> None:
    """Create an interest stream with a plain consumer, and with one that needs a later version of the API."""
    await ask(js, "STREAM.CREATE.S", name="S", subjects=["s"], retention="interest")
    await js.add_consumer("S", ConsumerConfig(durable_name="plain", ack_policy=AckPolicy.EXPLICIT))
    later = {"durable_name": "later", "ack_policy": "explicit"}
    await ask(
        js,
        "CONSUMER.CREATE.S.later",
        stream_name="S",
        config=later | {"priority_policy": "prioritized", "priority_groups": ["g"]},
    )
    await js.publish("s", b"before")
    await acknowledge(js, b"before")


async def acknowledge(js: Any, payload: bytes) -> None:
    subscription = await js.pull_subscribe_bind("plain", "S")
    (message,) = await subscription.fetch(1, timeout=WAIT_S_MAX)
    assert message.data == payload
    await message.ack_sync(timeout=WAIT_S_MAX)


def test_what_an_unserved_consumer_needs_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def use_older_version(js: Any) -> None:
        assert list((await ask(js, "CONSUMER.LIST.S"))["offline"]) == ["later"]
        await js.publish("s", b"meanwhile")
        await acknowledge(js, b"meanwhile")
        assert await count(js) == 2
        await js.delete_consumer("S", "plain")
        assert await count(js) == 2
        await js.publish("s", b"for nobody else")
        assert await count(js) == 3

    async def use_later_version(js: Any) -> None:
        info = await ask(js, "CONSUMER.INFO.S.later")
        assert (info["num_pending"], await count(js)) == (3, 3)
        await ask(js, "CONSUMER.DELETE.S.later")

        async def is_empty() -> bool:
            return await count(js) == 0

        await until(is_empty)

    run(tmp_path, set_up)
    with monkeypatch.context() as older:
        older.setattr(consumers, "is_level_too_high", lambda metadata: (metadata or {}).get("_nats.req.level") != "0")
        run(tmp_path, use_older_version)
    run(tmp_path, use_later_version)
