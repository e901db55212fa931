"""Fixtures of the key-value tests: a server of each kind, and its buckets."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from jetlake import kv
from tests.cluster import Cluster, start_cluster
from tests.compatibility import fixtures

own_environment, server_kind, url = fixtures.own_environment, fixtures.server_kind, fixtures.url

_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    fixtures.register_markers(config)


@pytest.fixture
def name() -> str:
    """The name of a bucket that nobody else uses."""
    return f"B{next(_numbers)}"


@pytest.fixture
async def buckets(url: str) -> AsyncIterator[kv.Buckets]:
    async with kv.connect(url) as connected:
        yield connected


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three servers; tests bring back those that they kill."""
    with start_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started
