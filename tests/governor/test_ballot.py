"""Acknowledgements that are lost: what was tried is found again, and no ghost is left."""

import asyncio

import pytest

from jetlake.client.access import Access
from jetlake.client.api import open_api
from jetlake.client.backoff import steady
from jetlake.governor import Governor, catalog
from jetlake.governor.ballot import Ballot, Entered, Full, Unknown
from tests.governor.breaking_proxy import BreakingProxy
from tests.governor.waiting import until

ACKNOWLEDGEMENT = b'"stream":"GOVERNOR_'


async def test_a_lost_acknowledgement_is_one_lease_and_the_campaigner_has_it(api, make_governor, url):
    settings = await make_governor(capacity=3)

    async with (
        BreakingProxy(url, ACKNOWLEDGEMENT, cuts=2) as proxy,
        Governor(Access(url=proxy.url), settings.name) as governor,
    ):
        lease = await governor.enter(holder="unlucky", max_wait_s=30)
        leases = await catalog.leases(api, settings.name)
        await lease.release()

    assert proxy.cuts_left == 0
    assert [(each.id, each.holder) for each in leases] == [(lease.sequence, "unlucky")]
    assert await catalog.leases(api, settings.name) == []


async def test_a_lost_acknowledgement_on_a_governor_that_is_full_by_it(api, make_governor, url):
    """The second try meets a governor that is full of the first one."""
    settings = await make_governor(capacity=1)

    async with (
        BreakingProxy(url, ACKNOWLEDGEMENT) as proxy,
        Governor(Access(url=proxy.url), settings.name) as governor,
        governor.slot(holder="unlucky", max_wait_s=30) as lease,
    ):
        assert [each.id for each in await catalog.leases(api, settings.name)] == [lease.sequence]

    assert await catalog.leases(api, settings.name) == []


async def test_giving_up_after_a_lost_acknowledgement_leaves_no_ghost(api, make_governor, url):
    settings = await make_governor(capacity=2)

    async with (
        BreakingProxy(url, ACKNOWLEDGEMENT) as proxy,
        Governor(Access(url=proxy.url), settings.name) as governor,
    ):
        waiting = asyncio.create_task(governor.enter(holder="ghost", max_wait_s=30, back_off=steady(5)))
        await until(lambda: not proxy.cuts_left, "nothing was cut")
        stored = await catalog.leases(api, settings.name)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    assert [lease.holder for lease in stored] == ["ghost"]
    assert await catalog.leases(api, settings.name) == []


async def test_a_lease_that_is_gone_before_its_acknowledgement_came_is_not_taken_for_one(api, make_governor):
    settings = await make_governor(capacity=1)
    ballot = Ballot(api, settings.name, settings.subject, "slow")
    first = await ballot.cast()
    assert isinstance(first, Entered)
    await catalog.reset(api, settings.name)

    again = await ballot.cast()
    after = await ballot.cast()

    assert isinstance(again, Unknown)
    assert isinstance(after, Entered)
    assert after.sequence > first.sequence


async def test_trying_again_is_one_lease(api, make_governor):
    settings = await make_governor(capacity=2)
    ballot = Ballot(api, settings.name, settings.subject, "eager")

    outcomes = [await ballot.cast() for _ in range(5)]

    assert len(set(map(str, outcomes))) == 1
    assert len(await catalog.leases(api, settings.name)) == 1


async def test_a_refused_ballot_can_be_tried_again(api, make_governor):
    settings = await make_governor(capacity=1)
    other, ballot = (Ballot(api, settings.name, settings.subject, name) for name in ("a", "b"))
    entered = await other.cast()
    assert isinstance(entered, Entered)

    refused = await ballot.cast()
    await api.request(f"STREAM.MSG.DELETE.{settings.stream}", {"seq": entered.sequence})
    outcome = await ballot.cast()

    assert isinstance(refused, Full)
    assert isinstance(outcome, Entered)


async def test_a_server_that_cannot_be_reached_is_tried_for_as_long_as_it_was_said():
    from jetlake.errors import ClientError

    with pytest.raises(ClientError, match="cannot connect"):
        async with Governor("nats://127.0.0.1:1", "G", connect_wait_s=0.6):
            raise AssertionError("nobody is there")


async def test_an_open_api_stays_open(url, make_governor):
    settings = await make_governor()
    async with open_api(Access(url=url)) as own:
        async with Governor(own, settings.name) as governor, governor.slot():
            pass
        assert own.connection.is_connected
