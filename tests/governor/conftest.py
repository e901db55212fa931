"""Fixtures of the governor's tests: a server of each kind, a cluster, and governors on them."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from jetlake.client.access import Access
from jetlake.client.api import Api, open_api
from jetlake.governor import GovernorSettings, catalog
from tests.cluster import Cluster, start_cluster
from tests.compatibility import fixtures

own_environment, server_kind, url = fixtures.own_environment, fixtures.server_kind, fixtures.url

SECOND_NS = 1_000_000_000

MakeGovernor = Callable[..., Awaitable[GovernorSettings]]

_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    fixtures.register_markers(config)


@pytest.fixture
async def api(url: str) -> AsyncIterator[Api]:
    async with open_api(Access(url=url), reconnect=True) as opened:
        yield opened


@pytest.fixture
def make_governor(api: Api) -> MakeGovernor:
    """Create a governor that no other test uses."""

    async def make(capacity: int = 1, expires_s: float = 60.0) -> GovernorSettings:
        settings = GovernorSettings(
            name=f"G{next(_numbers)}", capacity=capacity, expires_ns=round(expires_s * SECOND_NS)
        )
        return await catalog.add(api, settings)

    return make


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three servers of nats-server, shared by the tests of a file."""
    with start_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started
