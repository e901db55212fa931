"""Fixtures of the blocking client's tests: a server of each kind, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import jetlake
from jetlake.sync import SyncClient
from tests.compatibility import fixtures

own_environment, server_kind, url = fixtures.own_environment, fixtures.server_kind, fixtures.url


def pytest_configure(config: pytest.Config) -> None:
    fixtures.register_markers(config)


@pytest.fixture
def client(url: str) -> Iterator[SyncClient]:
    with jetlake.connect_sync(url) as connected:
        yield connected
