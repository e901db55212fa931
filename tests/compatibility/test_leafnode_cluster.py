"""Two Jetlakes as leaf nodes of a nats-server cluster: links that flap, slow links, and a server that is killed."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client
from nats.js.api import StreamConfig

from tests.cluster import Cluster, start_cluster
from tests.compatibility.leaf_pairs import TIMEOUT, Site, wait_until_linked
from tests.compatibility.link_proxy import LinkProxy
from tests.compatibility.test_leafnode_jetstream import external, jetstream_in, wait_for_domain
from tests.compatibility.test_leafnode_outages import expect_copy, store

pytestmark = [TIMEOUT, pytest.mark.jetlake]

EDGES = ("north", "south")

MESSAGES = 600

OUTAGES = 5


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with start_cluster(tmp_path_factory.mktemp("cluster"), domain="hub") as started:
        yield started


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(tmp_path, ("nats-server", "jetlake"))
    yield made
    await made.close()


async def hub_client(site: Site, cluster: Cluster) -> Client:
    client = await nats.connect(cluster.urls)
    site.clients.append(client)
    return client


async def start_edges(site: Site, proxies: list[LinkProxy], hub: Client) -> dict[str, Client]:
    """Start the leaf nodes, each with all servers of the cluster as its hub, and return a client of each."""
    urls = ", ".join(f'"nats-leaf://127.0.0.1:{proxy.port}"' for proxy in proxies)
    edges = {}
    for name in EDGES:
        config = f"""server_name: {name}
        leafnodes {{ reconnect: "100ms", remotes: [ {{ urls: [{urls}], ignore_discovered_servers: true }} ] }}
        {jetstream_in(name)}
        """
        edges[name] = await site.connect(site.start("jetlake", config))
        await wait_until_linked(hub, edges[name])
        await wait_for_domain(hub, name)
        await wait_for_domain(edges[name], "hub")
    return edges


async def disturb(proxies: list[LinkProxy], seed: int) -> None:
    """Cut and slow down the links, for some seconds."""
    randomness = random.Random(seed)
    for _ in range(OUTAGES):
        await asyncio.sleep(randomness.uniform(0.1, 0.5))
        for proxy in proxies:
            proxy.bytes_per_second = randomness.choice([None, 50_000])
            proxy.accepts = randomness.random() < 0.7
            proxy.cut()
    for proxy in proxies:
        proxy.accepts, proxy.bytes_per_second = True, None


async def test_copies_in_both_directions_survive_links_that_flap(site: Site, cluster: Cluster) -> None:
    hub = await hub_client(site, cluster)
    async with AsyncExitStack() as stack:
        proxies = [await stack.enter_async_context(LinkProxy(port)) for port in cluster.leaf_ports]
        edges = await start_edges(site, proxies, hub)
        await hub.jetstream().add_stream(name="CENTRAL", subjects=["central"], num_replicas=3)
        for name, edge in edges.items():
            local = name.upper()
            await edge.jetstream().add_stream(name=local, subjects=[name])
            copy = StreamConfig(name=f"{local}_COPY", mirror=external(local, name), num_replicas=3)
            await hub.jetstream().add_stream(copy)
            await edge.jetstream().add_stream(StreamConfig(name="CENTRAL", mirror=external("CENTRAL", "hub")))

        filling = [store(edge, name, 0, MESSAGES) for name, edge in edges.items()]
        await asyncio.gather(*filling, store(hub, "central", 0, MESSAGES), disturb(proxies, 11))

        for name, edge in edges.items():
            await expect_copy(hub, f"{name.upper()}_COPY", MESSAGES)
            await expect_copy(edge, "CENTRAL", MESSAGES)


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("JETLAKE_LONG") != "1", reason="waits for elections: make test-long")
async def test_leaf_node_goes_to_another_server_of_the_cluster_when_its_own_is_killed(
    site: Site, cluster: Cluster
) -> None:
    hub = await hub_client(site, cluster)
    async with AsyncExitStack() as stack:
        proxies = [await stack.enter_async_context(LinkProxy(port)) for port in cluster.leaf_ports]
        edges = await start_edges(site, proxies, hub)
        edge = edges["north"]
        await edge.jetstream().add_stream(name="EVENTS", subjects=["events"])
        await hub.jetstream().add_stream(
            StreamConfig(name="EVENTS_COPY", mirror=external("EVENTS", "north"), num_replicas=3)
        )
        await store(edge, "events", 0, 200)

        for number in range(3):
            cluster.kill(number)
            await store(edge, "events", 200 + 100 * number, 100)
            cluster.restart(number)

        await expect_copy(await hub_client(site, cluster), "EVENTS_COPY", 500)
