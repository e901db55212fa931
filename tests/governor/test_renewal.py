"""Renewals whose answers are lost: the holder keeps its slot, and no lease of it is left behind."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from jetlake.client.access import Access
from jetlake.errors import ClientError
from jetlake.governor import Governor, catalog
from tests.governor.breaking_proxy import BreakingProxy
from tests.governor.conftest import SECOND_NS
from tests.governor.waiting import until

DELETED = b"stream_msg_delete_response"

DELETE = "jetlake.governor.{}.delete_lease"


@pytest.fixture
def steady_renewal(monkeypatch):
    """Have holders renew as if their leases lasted 7.5 s: one that is tried again is not late on a busy machine."""
    monkeypatch.setattr("jetlake.governor.lease.SECOND_NS", 8 * SECOND_NS)


@asynccontextmanager
async def renewing_slot(url, name):
    """Hold a slot over a connection that breaks once, instead of saying that a lease was deleted."""
    async with (
        BreakingProxy(url, DELETED) as proxy,
        Governor(Access(url=proxy.url), name) as governor,
        governor.slot(holder="unlucky", max_wait_s=30, renew=True) as lease,
    ):
        await until(lambda: not proxy.cuts_left, "nothing was cut")
        yield lease


@pytest.mark.parametrize("capacity", [1, 2])
async def test_a_slot_is_kept_though_nothing_was_heard_of_the_old_lease(
    api, make_governor, url, steady_renewal, capacity
):
    settings = await make_governor(capacity=capacity)

    async with renewing_slot(url, settings.name) as lease:
        await until(lambda: lease.renewals >= 2 or lease.lost.is_set(), "the lease is not renewed")
        is_lost = lease.lost.is_set()

    assert not is_lost
    assert await catalog.leases(api, settings.name) == []


@pytest.mark.parametrize("keep_until_expiry", [False, True])
async def test_an_old_lease_that_could_not_be_deleted_is_deleted_at_the_release(
    api, make_governor, steady_renewal, monkeypatch, keep_until_expiry
):
    settings = await make_governor(capacity=3)
    failures = make_deletions_fail(monkeypatch, count=2)
    async with Governor(api, settings.name) as governor:
        lease = await governor.enter(holder="one", renew=True, keep_until_expiry=keep_until_expiry)
        await until(lambda: bool(failures), "no deletion failed")

        await lease.release()

    kept = [lease.sequence] if keep_until_expiry else []
    assert [each.id for each in await catalog.leases(api, settings.name)] == kept


async def test_a_renewal_without_an_answer_is_withdrawn_once_the_server_answers_again(
    api, make_governor, steady_renewal, monkeypatch
):
    settings = await make_governor(capacity=3)
    request, silent = api.connection.request, []

    async def losing(subject, *arguments, **options):
        answer = await request(subject, *arguments, **options)
        if subject == settings.subject and len(silent) < 3:
            silent.append(answer)
            raise TimeoutError
        return answer

    async with Governor(api, settings.name) as governor:
        lease = await governor.enter(holder="one", renew=True)
        monkeypatch.setattr(api.connection, "request", losing)
        await until(lambda: bool(silent), "the lease is not renewed")

        await lease.release()

    assert await catalog.leases(api, settings.name) == []


def make_deletions_fail(monkeypatch, count):
    """Have the server not hear of the first deletions; return a list that they are noted in."""
    from jetlake.governor.ballot import delete_lease

    failures = []

    async def deaf(api, name, sequence):
        if len(failures) < count:
            failures.append(sequence)
            raise ClientError("the connection broke")
        return await delete_lease(api, name, sequence)

    for module in ("lease", "renewal"):
        monkeypatch.setattr(DELETE.format(module), deaf)
    return failures
