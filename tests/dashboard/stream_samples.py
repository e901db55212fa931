"""Streams for the tests of stream and consumer pages."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from jetlake.client.access import Access
from jetlake.client.api import open_api
from tests.dashboard.conftest import ask_server


def store(access: Access | str, *messages: tuple[str, bytes] | tuple[str, bytes, dict[str, str]]) -> None:
    """Publish messages one after the other; each is stored when the next is sent."""

    async def work() -> None:
        async with open_api(access) as api:
            for subject, payload, *headers in messages:
                answer = await api.ask(subject, payload, headers=headers[0] if headers else None)
                assert "error" not in answer, answer

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work()).result()


def take(access: Access | str, stream: str, consumer: str, count: int) -> None:
    """Have a consumer deliver messages to a client that does not acknowledge them."""

    async def work() -> None:
        async with open_api(access) as api:
            subscription = await api.connection.subscribe("_INBOX.taken")
            subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
            await api.connection.publish(subject, b'{"batch": %d, "no_wait": true}' % count, reply="_INBOX.taken")
            for _ in range(count):
                await subscription.next_msg(timeout=60)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work()).result()


def stream_info(access: Access | str, stream: str) -> dict[str, Any]:
    return ask_server(access, (f"STREAM.INFO.{stream}", None))[0]


def create_consumer(access: Access | str, stream: str, name: str, **config: Any) -> None:
    wanted = {"name": name, "durable_name": name, "ack_policy": "explicit", **config}
    ask_server(access, (f"CONSUMER.CREATE.{stream}.{name}", {"stream_name": stream, "config": wanted}))
