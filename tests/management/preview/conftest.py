"""A server with a clock of its own, and somebody who asks it in an old dialect."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

import jetlake
from jetlake.client.preview import PreviewClient, PreviewReply


class Asker:
    """One connection that asks."""

    def __init__(self, client: PreviewClient) -> None:
        self.client = client

    async def request(self, subject: str, body: Any = b"") -> PreviewReply:
        """Ask; what is not bytes or text is sent as JSON."""
        if isinstance(body, str):
            body = body.encode()
        return await self.client.request(subject, body if isinstance(body, bytes) else json.dumps(body).encode())

    async def text(self, subject: str, body: Any = b"") -> str:
        return (await self.request(subject, body)).data.decode()

    async def json(self, subject: str, body: Any = b"") -> Any:
        return json.loads(await self.text(subject, body))


Work = Callable[[Asker], Coroutine[Any, Any, None]]


@pytest.fixture
def server() -> Iterator[jetlake.Server]:
    with jetlake.Server(jetstream=True, clock="manual") as running:
        yield running


def run_on(url: str, work: Work) -> None:
    """Do some work with one connection."""

    async def connected() -> None:
        async with PreviewClient(url) as client:
            await work(Asker(client))

    asyncio.run(connected())


@pytest.fixture
def run(server: jetlake.Server) -> Callable[[Work], None]:
    """A function that does some work with one connection to the server."""
    return lambda work: run_on(server.url, work)
