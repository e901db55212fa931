"""The pytest plug-in: a fresh server for each test, and what was published to it.

pytest finds it by its entry point; nothing is imported until a test asks for a fixture.

| fixture | gives |
|---|---|
| `jetlake_server` | a running `jetlake.Server` of this test alone |
| `jetlake_clock` | a `Clock`: makes the server's clock stand still, and moves it |
| `jetlake_client` | a connected `jetlake.SyncClient` |
| `jetlake_published` | a `Recorder` of what is published |
| `assert_published` | `jetlake_published.assert_published` |

`@pytest.mark.jetlake_server(token="secret")` gives the server options of `jetlake.Server`.

Invariant: no two tests share a server, a port or a stored message.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from jetlake.server.server import Server
    from jetlake.sync.client import SyncClient
    from jetlake.testing.clock import Clock
    from jetlake.testing.recorder import Published, Recorder

MARKER = "jetlake_server"


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, for suites with --strict-markers."""
    config.addinivalue_line("markers", f"{MARKER}(**options): options of jetlake.Server for the fixture of this name")


@pytest.fixture
def jetlake_server(request: pytest.FixtureRequest) -> "Iterator[Server]":
    """A server of this test alone: a random port, JetStream in a temporary folder."""
    # pytest loads this module in every project that has Jetlake installed.
    from jetlake.server.server import Server

    options: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers(MARKER))):
        options |= marker.kwargs
    if "jetlake_clock" in request.fixturenames:
        options["clock"] = "manual"
    with Server(**options) as server:
        yield server


@pytest.fixture
def jetlake_clock(jetlake_server: "Server") -> "Clock":
    """The clock of `jetlake_server`, which stands still until `advance` moves it."""
    from jetlake.testing.clock import Clock

    return Clock(jetlake_server)


@pytest.fixture
def jetlake_client(jetlake_server: "Server") -> "Iterator[SyncClient]":
    """A client of `jetlake_server` without asyncio."""
    from jetlake.sync.client import connect_sync

    with connect_sync(jetlake_server) as client:
        yield client


@pytest.fixture
def jetlake_published(jetlake_server: "Server") -> "Iterator[Recorder]":
    """Everything that is published to `jetlake_server` during the test."""
    from jetlake.testing.recorder import Recorder

    with Recorder(jetlake_server) as recorder:
        yield recorder


@pytest.fixture
def assert_published(jetlake_published: "Recorder") -> "Callable[..., list[Published]]":
    """Assert that messages were published: `assert_published("orders.*", count=3)`."""
    return jetlake_published.assert_published
