"""Fixtures of the object store tests: a server of each kind, and its stores."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from jetlake import objects
from tests.cluster import Cluster, start_cluster
from tests.compatibility import fixtures

own_environment, server_kind, url = fixtures.own_environment, fixtures.server_kind, fixtures.url

_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    fixtures.register_markers(config)


@pytest.fixture
def name() -> str:
    """The name of an object store that nobody else uses."""
    return f"O{next(_numbers)}"


@pytest.fixture
async def stores(url: str) -> AsyncIterator[objects.Stores]:
    async with objects.connect(url) as connected:
        yield connected


@pytest.fixture
async def store(stores: objects.Stores, name: str) -> objects.ObjectStore:
    return await stores.create(name)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three servers; tests bring back those that they kill."""
    with start_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started
