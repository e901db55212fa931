"""Object stores with three replicas on a cluster of nats-server, one server killed in the middle."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncIterator

import pytest

from jetlake import objects
from jetlake.client.access import Access
from jetlake.objects import StoreConfig
from tests.cluster import Cluster

pytestmark = [pytest.mark.timeout(180), pytest.mark.compatibility]

OPERATION_S_MAX = 120.0


@pytest.fixture
async def store(cluster: Cluster, name: str) -> AsyncIterator[objects.ObjectStore]:
    async with objects.connect(Access(url=cluster.url)) as stores:
        yield await stores.create(StoreConfig(store=name, replicas=3))


async def test_an_upload_survives_the_death_of_the_leader(cluster, store):
    data = os.urandom(8_000_000)
    leader, told = -1, 0

    def tell(count: int) -> None:
        nonlocal leader, told
        told += count
        if leader < 0 and told >= 4_000_000:
            leader = cluster.leader_of(f"OBJ_{store.name}")
            cluster.kill(leader)

    async with asyncio.timeout(OPERATION_S_MAX):
        info = await store.put("file", io.BytesIO(data), chunk_bytes=100_000, tell=tell)
        received = await store.get("file")
        state = (await store.status()).stream["state"]
    await asyncio.to_thread(cluster.restart, leader)

    assert received == data
    assert info.chunks == 80
    assert state["messages"] == 81


async def test_a_download_survives_the_death_of_the_leader(cluster, store):
    data = os.urandom(20_000_000)
    await store.put("file", data, chunk_bytes=100_000)
    received, leader = bytearray(), -1

    async with asyncio.timeout(OPERATION_S_MAX):
        async for chunk in store.read("file"):
            received += chunk
            if leader < 0 and len(received) >= 2_000_000:
                leader = cluster.leader_of(f"OBJ_{store.name}")
                cluster.kill(leader)
    await asyncio.to_thread(cluster.restart, leader)

    assert bytes(received) == data
