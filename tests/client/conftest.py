"""Fixtures of the client side's tests: a server of each kind with JetStream."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from jetlake.client.access import Access
from jetlake.client.api import Api, open_api
from tests.compatibility.fixtures import register_markers, server_kind  # noqa: F401
from tests.compatibility.server_process import start_server_process


def pytest_configure(config: pytest.Config) -> None:
    register_markers(config)


@pytest.fixture(scope="module")
def url(server_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:  # noqa: F811
    """A server of each kind with JetStream, shared by the tests of a file; so they use names of their own."""
    folder = tmp_path_factory.mktemp("server")
    process = start_server_process(server_kind, folder, ["-js", "-sd", str(folder / "store")])
    yield process.url
    process.stop()


@pytest.fixture
async def api(url: str) -> AsyncIterator[Api]:
    async with open_api(Access(url=url)) as opened:
        yield opened


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the one who runs the tests: no contexts, no variables."""
    for name in [name for name in os.environ if name.startswith("NATS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
