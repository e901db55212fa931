"""Fixtures that run a test body against both kinds of server, for the suites that compare them.

A suite imports them into its conftest and calls `register_markers` and `mark_items` there. Select one kind with
`-m nats_server` or `-m jetlake`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from tests.compatibility.monitored import Monitored, monitored_of, read_pong
from tests.compatibility.operator_site import Site
from tests.compatibility.server_process import EXECUTABLES, ServerProcess, start_server_process
from tests.compatibility.wire import RawClient

KIND_MARKERS = {kind: kind.replace("-", "_") for kind in EXECUTABLES}

_subject_numbers = itertools.count(1)


def register_markers(config: pytest.Config) -> None:
    for kind, marker in KIND_MARKERS.items():
        config.addinivalue_line("markers", f"{marker}: runs against {kind}")


def mark_items(items: list[pytest.Item], folder: Path) -> None:
    """Mark the tests below `folder` as compatibility tests."""
    below = f"{folder}{os.sep}"
    for item in items:
        if str(item.path).startswith(below):
            item.add_marker(pytest.mark.compatibility)


@pytest.fixture(
    scope="session", params=[pytest.param(kind, marks=getattr(pytest.mark, KIND_MARKERS[kind])) for kind in EXECUTABLES]
)
def server_kind(request: pytest.FixtureRequest) -> str:
    """The kind of server the test runs against: "nats-server" or "jetlake"."""
    return str(request.param)


@pytest.fixture(scope="module")
def url(server_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of each kind with JetStream, shared by the tests of a file; so they use names of their own."""
    folder = tmp_path_factory.mktemp("server")
    process = start_server_process(server_kind, folder, ["-js", "-sd", str(folder / "store")])
    yield process.url
    process.stop()


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the one who runs the tests, in suites that import this: no contexts, no variables."""
    for name in [name for name in os.environ if name.startswith("NATS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture(scope="session")
def server(server_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server without special flags, shared by all tests; so they use subjects of their own (`subject`)."""
    process = start_server_process(server_kind, tmp_path_factory.mktemp(server_kind))
    yield process
    process.stop()


@pytest.fixture
def start_server(server_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., ServerProcess]]:
    """A function that starts a further server with `flags`, `config` and `port`, stopped when the test ends."""
    processes: list[ServerProcess] = []

    def start(flags: list[str] | None = None, config: str | None = None, port: int = -1) -> ServerProcess:
        folder = tmp_path_factory.mktemp(server_kind)
        processes.append(start_server_process(server_kind, folder, flags, config, port))
        return processes[-1]

    yield start
    for process in processes:
        process.stop()


@pytest.fixture
def start_site(server_kind: str, tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """A function that starts a server in operator mode, which is stopped with its clients when the test ends."""
    sites: list[Site] = []

    def start(**options: Any) -> Site:
        sites.append(Site(server_kind, tmp_path, **options))
        return sites[-1]

    yield start
    for site in sites:
        site.close()


@pytest.fixture
def client(server: ServerProcess) -> Iterator[RawClient]:
    """A raw client of the plain server that has read INFO and not yet said CONNECT."""
    with server.client() as raw_client:
        yield raw_client


@pytest.fixture
def other_client(server: ServerProcess) -> Iterator[RawClient]:
    """A second raw client of the same server."""
    with server.client() as raw_client:
        yield raw_client


@pytest.fixture
async def library_client(server: ServerProcess) -> AsyncIterator[Client]:
    """A connected client of nats-py, at the plain server."""
    connected_client = await nats.connect(server.url, allow_reconnect=False)
    yield connected_client
    await connected_client.close()


@pytest.fixture
def subject() -> bytes:
    """A subject nobody else uses, one token."""
    return b"subject%d" % next(_subject_numbers)


@pytest.fixture
def start_monitored(start_server: Callable[..., ServerProcess]) -> Callable[..., Monitored]:
    """A function that starts a server with its pages."""

    def start(flags: list[str] | None = None, config: str | None = None) -> Monitored:
        return monitored_of(start_server(["-m", "-1", *(flags or [])], config))

    return start


@pytest.fixture(scope="module")
def monitored(server_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitored]:
    """One server with its pages and without clients of its own; tests leave none behind."""
    process = start_server_process(server_kind, tmp_path_factory.mktemp(server_kind), ["-m", "-1"])
    yield monitored_of(process)
    process.stop()


@pytest.fixture
def one_client(monitored: Monitored) -> Iterator[RawClient]:
    """A client that has said who it is, subscribed twice and published once."""
    with monitored.server.client() as client:
        client.connect(name="one", lang="test", version="1.0", headers=True)
        client.send(b"SUB x.* q 1\r\nSUB x.1 2\r\nUNSUB 1 5\r\nPUB x.1 5\r\nhello\r\nPING\r\n")
        read_pong(client)
        yield client
    monitored.wait_for_connections("", 0)
