"""Governors with three replicas on a cluster of three nats-servers, one of which is killed in the middle."""

import asyncio
import itertools

import pytest

from jetlake.client.access import Access
from jetlake.client.api import open_api
from jetlake.client.backoff import steady
from jetlake.governor import Governor, GovernorSettings, catalog
from tests.governor.waiting import until

CAPACITY = 3
COMPETITORS = 18
ROUNDS = 3

_numbers = itertools.count(1)


async def make(api, capacity, expires_s):
    settings = GovernorSettings(
        name=f"C{next(_numbers)}", capacity=capacity, expires_ns=round(expires_s * 10**9), replicas=3
    )
    return await catalog.add(api, settings)


class Room:
    """Counts who is inside, by itself."""

    def __init__(self):
        self.inside, self.most, self.entries = 0, 0, 0

    def enter(self):
        self.inside += 1
        self.entries += 1
        self.most = max(self.most, self.inside)

    def leave(self):
        self.inside -= 1


async def compete(access, settings, room, number):
    async with Governor(access, settings.name, connect_wait_s=20) as governor:
        for turn in range(ROUNDS):
            async with governor.slot(holder=f"{number}-{turn}", max_wait_s=50, back_off=steady(0.5)):
                room.enter()
                await asyncio.sleep(0.05)
                room.leave()


@pytest.mark.timeout(180)
@pytest.mark.nats_server
async def test_the_loss_of_the_leader_lets_nobody_in_too_many_and_leaves_no_ghost(cluster):
    access = Access(url=cluster.url)
    room = Room()
    async with open_api(access, reconnect=True) as api:
        settings = await make(api, CAPACITY, 120)
        competitors = [asyncio.create_task(compete(access, settings, room, number)) for number in range(COMPETITORS)]
        await until(lambda: room.entries >= COMPETITORS, "nobody gets in")
        leader = cluster.leader_of(settings.stream)
        await asyncio.to_thread(cluster.kill, leader)
        try:
            await asyncio.gather(*competitors)
            left = await asks_until_answered(lambda: catalog.leases(api, settings.name))
        finally:
            await asyncio.to_thread(cluster.restart, leader)

    assert room.entries == COMPETITORS * ROUNDS
    assert room.most <= CAPACITY
    assert left == []


@pytest.mark.timeout(180)
@pytest.mark.nats_server
async def test_a_lease_is_renewed_while_its_leader_is_lost(cluster):
    access = Access(url=cluster.url)
    name = (await made_alone(access, 9)).name
    async with Governor(access, name) as governor, governor.slot(holder="long", renew=True) as lease:
        leader = cluster.leader_of(f"GOVERNOR_{name}")
        await asyncio.to_thread(cluster.kill, leader)
        try:
            await until(lambda: lease.renewals >= 2 or lease.lost.is_set(), "the lease is not renewed")
            view = await asks_until_answered(governor.view)
        finally:
            await asyncio.to_thread(cluster.restart, leader)

        assert not lease.lost.is_set()
        assert [each.holder for each in view.leases] == ["long"]


async def made_alone(access, expires_s):
    async with open_api(access) as api:
        return await make(api, 1, expires_s)


async def asks_until_answered(ask):
    """An election takes a few seconds, and requests without an answer are nobody's fault."""
    from jetlake.errors import ClientError

    async with asyncio.timeout(60):
        while True:
            try:
                return await ask()
            except ClientError:
                await asyncio.sleep(0.2)
