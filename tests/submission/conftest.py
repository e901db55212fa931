"""Fixtures of the submission's tests: a server of each kind, a spool, and a stream that takes what is submitted."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from jetlake.client.access import Access
from jetlake.client.api import Api, open_api
from jetlake.submission import SenderOptions, Spool, run_sender
from jetlake.submission.statistics import SenderStatistics
from tests.compatibility import fixtures

own_environment, server_kind, url = fixtures.own_environment, fixtures.server_kind, fixtures.url

_numbers = itertools.count(1)

StartSender = Callable[..., "RunningSender"]


def pytest_configure(config: pytest.Config) -> None:
    fixtures.register_markers(config)


@pytest.fixture
async def api(url: str) -> AsyncIterator[Api]:
    async with open_api(Access(url=url), reconnect=True) as opened:
        yield opened


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool")


@pytest.fixture
def collective() -> str:
    """One that no other test uses: the server is shared."""
    return f"c{next(_numbers)}"


@pytest.fixture
def make_stream(api: Api, collective: str) -> Callable[..., Awaitable[str]]:
    async def make(**config: Any) -> str:
        name = f"S{next(_numbers)}"
        given = {"name": name, "subjects": [f"{collective}.submission.in.>"], **config}
        await api.request(f"STREAM.CREATE.{name}", given)
        return name

    return make


class RunningSender:
    """A sender in this process."""

    def __init__(self, options: SenderOptions) -> None:
        self._stop = asyncio.Event()
        self.task: asyncio.Task[SenderStatistics] = asyncio.create_task(run_sender(options, stop=self._stop))

    async def stop(self) -> SenderStatistics:
        self._stop.set()
        return await asyncio.wait_for(self.task, 60)


@pytest.fixture
async def start_sender(url: str, spool: Spool, collective: str) -> AsyncIterator[StartSender]:
    started: list[RunningSender] = []

    def start(**options: Any) -> RunningSender:
        given = {"spool": spool.folder, "access": Access(url=url), "collective": collective, **options}
        started.append(RunningSender(SenderOptions(**given)))
        return started[-1]

    yield start
    for sender in started:
        if not sender.task.done():
            await sender.stop()
