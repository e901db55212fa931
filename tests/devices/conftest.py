"""Fixtures of the device event bus: a server of each kind with JetStream, and a stream of events on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("grpc", reason="needs the extra `devices`")
pytest.importorskip("aiohttp", reason="needs the extra `devices`")

from jetlake.client.access import Access
from jetlake.client.api import Api, open_api
from jetlake.devices.stream import ensure_streams
from tests.compatibility import fixtures
from tests.compatibility.server_process import ServerProcess

own_environment, server_kind = fixtures.own_environment, fixtures.server_kind
start_server = fixtures.start_server


def pytest_configure(config: pytest.Config) -> None:
    fixtures.register_markers(config)


@pytest.fixture(scope="module")
def server(server_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server with JetStream of each kind, shared by the tests of a file; `api` empties it."""
    folder = tmp_path_factory.mktemp("server")
    process = fixtures.start_server_process(server_kind, folder, ["-js", "-sd", str(folder / "store")])
    yield process
    process.stop()


@pytest.fixture
async def api(server: ServerProcess) -> AsyncIterator[Api]:
    """The API of a server without streams."""
    async with open_api(Access(url=server.url)) as opened:
        for name in await opened.stream_names():
            await opened.request(f"STREAM.DELETE.{name}")
        yield opened


@pytest.fixture
async def stream(api: Api) -> str:
    """The stream of events."""
    return await ensure_streams(api)


@pytest.fixture
def count(api: Api) -> Callable[[str], Awaitable[int]]:
    """How many messages a stream has."""

    async def counted(stream: str) -> int:
        return int((await api.request(f"STREAM.INFO.{stream}"))["state"]["messages"])

    return counted
