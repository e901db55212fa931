"""Fixtures of the client side's tests: a server of each kind with JetStream."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from jetlake.client.access import Access
from jetlake.client.api import Api, open_api
from tests.compatibility import fixtures

own_environment, server_kind, url = fixtures.own_environment, fixtures.server_kind, fixtures.url
start_server = fixtures.start_server


def pytest_configure(config: pytest.Config) -> None:
    fixtures.register_markers(config)


@pytest.fixture
async def api(url: str) -> AsyncIterator[Api]:
    async with open_api(Access(url=url)) as opened:
        yield opened
