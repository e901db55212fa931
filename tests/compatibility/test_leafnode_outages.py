"""Links that are cut, slow or flapping under load: copies of streams are complete, in order and without duplicates."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.js.api import StreamConfig

from tests.compatibility.leaf_pairs import KINDS, TIMEOUT, Site, leaf_port, wait_for, wait_until_linked
from tests.compatibility.link_proxy import LinkProxy
from tests.compatibility.test_leafnode_jetstream import external, jetstream_in, wait_for_domain, wait_for_messages

pytestmark = TIMEOUT

MESSAGES = 1_500

OUTAGES = 6


@pytest.fixture(params=KINDS)
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(tmp_path, request.param)
    yield made
    await made.close()


@pytest.fixture
async def proxy(site: Site) -> AsyncIterator[LinkProxy]:
    hub = site.start_hub("", jetstream_in("hub"))
    async with LinkProxy(leaf_port(hub)) as made:
        yield made


async def linked_through(site: Site, proxy: LinkProxy) -> tuple[Client, Client]:
    """Start a leaf node behind the proxy, and return a client of the hub and one of it."""
    leaf = site.start_leaf(proxy.port, "ignore_discovered_servers: true", jetstream_in("edge"))
    clients = await site.connect(site.servers[0]), await site.connect(leaf)
    await wait_until_linked(*clients)
    await wait_for_domain(clients[0], "edge")
    await wait_for_domain(clients[1], "hub")
    return clients


async def store(client: Client, subject: str, first: int, count: int) -> None:
    """Store messages, each acknowledged."""
    jetstream = client.jetstream()
    for number in range(first, first + count):
        await jetstream.publish(subject, b"%d" % number)


async def expect_copy(client: Client, stream: str, count: int) -> None:
    """Expect every message once, in its order."""
    await wait_for_messages(client.jetstream(), stream, count)
    subscription = await client.jetstream().subscribe("", stream=stream, ordered_consumer=True)
    heard = [await subscription.next_msg(timeout=30) for _ in range(count)]
    assert [int(message.data) for message in heard] == list(range(count))
    assert (await client.jetstream().stream_info(stream)).state.messages == count


async def test_copies_are_complete_after_a_flapping_link(site: Site, proxy: LinkProxy) -> None:
    hub, leaf = await linked_through(site, proxy)
    await leaf.jetstream().add_stream(name="LOCAL", subjects=["local"])
    await hub.jetstream().add_stream(name="CENTRAL", subjects=["central"])
    await hub.jetstream().add_stream(StreamConfig(name="LOCAL_COPY", mirror=external("LOCAL", "edge")))
    await leaf.jetstream().add_stream(StreamConfig(name="CENTRAL_COPY", sources=[external("CENTRAL", "hub")]))
    randomness = random.Random(7)

    async def flap() -> None:
        for _ in range(OUTAGES):
            await asyncio.sleep(randomness.uniform(0.05, 0.4))
            proxy.cut()
            proxy.accepts = False
            await asyncio.sleep(randomness.uniform(0, 0.3))
            proxy.accepts = True

    await asyncio.gather(store(leaf, "local", 0, MESSAGES), store(hub, "central", 0, MESSAGES), flap())

    await expect_copy(hub, "LOCAL_COPY", MESSAGES)
    await expect_copy(leaf, "CENTRAL_COPY", MESSAGES)
    assert proxy.connections > 1


async def test_streams_of_the_edge_fill_while_the_hub_is_away(site: Site, proxy: LinkProxy) -> None:
    hub, leaf = await linked_through(site, proxy)
    await leaf.jetstream().add_stream(name="LOCAL", subjects=["local"])
    await hub.jetstream().add_stream(StreamConfig(name="LOCAL_COPY", mirror=external("LOCAL", "edge")))
    await store(leaf, "local", 0, 100)
    await wait_for_messages(hub.jetstream(), "LOCAL_COPY", 100)

    proxy.accepts = False
    proxy.cut()
    await store(leaf, "local", 100, 900)
    assert (await leaf.jetstream().stream_info("LOCAL")).state.messages == 1_000
    proxy.accepts = True

    await expect_copy(hub, "LOCAL_COPY", 1_000)


async def test_slow_link_does_not_slow_local_clients(site: Site, proxy: LinkProxy) -> None:
    hub, leaf = await linked_through(site, proxy)
    await leaf.jetstream().add_stream(name="LOCAL", subjects=["local"])
    await hub.jetstream().add_stream(StreamConfig(name="LOCAL_COPY", mirror=external("LOCAL", "edge")))
    heard = 0

    async def count(_: object) -> None:
        nonlocal heard
        heard += 1

    other = await site.connect(site.servers[1])
    await other.subscribe("plain", cb=count)
    await hub.subscribe("plain", cb=count_nothing)
    await other.flush()
    proxy.bytes_per_second = 20_000

    body = b"x" * 1_000
    for _ in range(2_000):
        await leaf.publish("plain", body)
    await leaf.flush()
    await store(leaf, "local", 0, 300)
    await wait_for(lambda: heard == 2_000, "local clients have everything")
    proxy.bytes_per_second = None

    await expect_copy(hub, "LOCAL_COPY", 300)


async def count_nothing(_: object) -> None:
    pass
