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
from tests.conftest import REQUEST_S_MAX

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


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have everybody wait for answers that a busy machine is slow to give."""
    for limit in ("ballot.ANSWER_S_MAX", "renewal.ASK_S_MAX", "vacancies.ANSWER_S_MAX"):
        monkeypatch.setattr(f"jetlake.governor.{limit}", REQUEST_S_MAX)


@pytest.fixture
def fast_renewal(patient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have holders renew as if their leases lasted 1.5 s, where they last the minute of `make_governor`.

    A lease that expires before a busy machine renews it is lost, and rightly so.
    """
    monkeypatch.setattr("jetlake.governor.lease.SECOND_NS", 40 * SECOND_NS)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three servers of nats-server, shared by the tests of a file."""
    with start_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started
