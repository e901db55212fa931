"""JetStream across a link: each side has a domain of its own, and streams copy each other in both directions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.errors import NoRespondersError
from nats.js.api import AckPolicy, ConsumerConfig, ExternalStream, StreamConfig, StreamSource
from nats.js.client import JetStreamContext
from nats.js.errors import NoStreamResponseError

from tests.compatibility.leaf_pairs import (
    KINDS,
    SECONDS_MAX,
    TIMEOUT,
    Site,
    hear,
    leaf_port,
    listen,
    wait_for,
    wait_until_linked,
)
from tests.compatibility.server_process import ServerProcess

MESSAGES = 500

pytestmark = TIMEOUT


@pytest.fixture(params=KINDS)
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(tmp_path, request.param)
    yield made
    await made.close()


def jetstream_in(domain: str) -> str:
    return f'jetstream {{ store_dir: "STORE", domain: {domain} }}'


async def linked_pair(site: Site) -> tuple[Client, Client]:
    hub = site.start_hub("", jetstream_in("hub"))
    leaf = site.start_leaf(leaf_port(hub), further=jetstream_in("edge"))
    clients = await site.connect(hub), await site.connect(leaf)
    await wait_until_linked(*clients)
    await wait_for_domain(clients[0], "edge")
    await wait_for_domain(clients[1], "hub")
    return clients


async def wait_for_domain(client: Client, domain: str) -> None:
    async def is_there() -> bool:
        try:
            await client.request(f"$JS.{domain}.API.INFO", timeout=5)
        except NoRespondersError:
            return False
        return True

    await wait_for(is_there, f"the API of {domain} answers")


async def fill(client: Client, subject: str, count: int = MESSAGES) -> None:
    for number in range(count):
        await client.publish(f"{subject}.{number % 5}", b"%d" % number)
    await client.flush()


def external(stream: str, domain: str) -> StreamSource:
    return StreamSource(name=stream, external=ExternalStream(api=f"$JS.{domain}.API", deliver=""))


async def wait_for_messages(jetstream: JetStreamContext, stream: str, count: int) -> None:
    async def has_all() -> bool:
        return (await jetstream.stream_info(stream)).state.messages >= count

    await wait_for(has_all, f"{stream} has {count} messages")


async def payloads(jetstream: JetStreamContext, stream: str) -> list[bytes]:
    """Return what is in a stream, in its order."""
    state = (await jetstream.stream_info(stream)).state
    messages = [await jetstream.get_msg(stream, number) for number in range(state.first_seq, state.last_seq + 1)]
    return [message.data or b"" for message in messages]


@pytest.mark.parametrize("at", ["hub", "edge"])
async def test_streams_of_the_other_domain_are_managed_filled_and_read(site: Site, at: str) -> None:
    hub, leaf = await linked_pair(site)
    other = leaf if at == "hub" else hub
    jetstream = other.jetstream(domain=at)
    assert (await jetstream.account_info()).domain == at

    await jetstream.add_stream(name="ORDERS", subjects=["orders.>"])
    acknowledged = [await jetstream.publish(f"orders.{number}", b"%d" % number) for number in range(10)]
    pull = await jetstream.pull_subscribe("orders.>", "durable")
    pulled = await pull.fetch(10, timeout=SECONDS_MAX)
    for message in pulled:
        await message.ack_sync(timeout=SECONDS_MAX)
    pushed = await jetstream.subscribe("orders.>", ordered_consumer=True)

    assert [(one.seq, one.domain) for one in acknowledged] == [(number, at) for number in range(1, 11)]
    assert [(one.subject, one.data) for one in pulled] == [(f"orders.{n}", b"%d" % n) for n in range(10)]
    assert [(await pushed.next_msg(timeout=SECONDS_MAX)).subject for _ in range(10)] == [
        f"orders.{n}" for n in range(10)
    ]
    assert (await pull.consumer_info()).num_ack_pending == 0


@pytest.mark.parametrize(("stream", "durable"), [("ORDERS", "receiver"), ("ORDERS@1", "receiver@home")])
async def test_what_a_consumer_sends_over_a_link_has_the_subject_it_was_stored_under(
    site: Site, stream: str, durable: str
) -> None:
    hub, leaf = await linked_pair(site)
    heard = await listen(leaf, "delivered")
    await hear(leaf, hub, "ready")
    await hub.jetstream().add_stream(name=stream, subjects=["orders.>"])
    config = ConsumerConfig(durable_name=durable, deliver_subject="delivered", ack_policy=AckPolicy.EXPLICIT)
    await hub.jetstream().add_consumer(stream, config)

    await hub.jetstream().publish("orders.eu@home", b"1")

    await wait_for(lambda: len(heard) == 1, "the delivery has come")
    assert (heard[0].subject, heard[0].data) == ("orders.eu@home", b"1")
    assert heard[0].metadata.stream == stream
    await heard[0].ack()

    async def is_acknowledged() -> bool:
        return (await hub.jetstream().consumer_info(stream, durable)).num_ack_pending == 0

    await wait_for(is_acknowledged, "the acknowledgement has come")


async def test_api_without_a_domain_is_that_of_the_own_server(site: Site) -> None:
    hub, leaf = await linked_pair(site)

    await hub.jetstream().add_stream(name="SAME", subjects=["hub.same"])
    await leaf.jetstream().add_stream(name="SAME", subjects=["leaf.same"])

    assert (await hub.jetstream().stream_info("SAME")).config.subjects == ["hub.same"]
    assert (await leaf.jetstream().stream_info("SAME")).config.subjects == ["leaf.same"]


async def test_stream_of_the_hub_stores_what_is_published_at_the_leaf_node(site: Site) -> None:
    hub, leaf = await linked_pair(site)
    await hub.jetstream().add_stream(name="ALL", subjects=["all.>"])

    async def is_heard() -> bool:
        try:
            await leaf.jetstream().publish("all.first", b"x", timeout=5)
        except NoStreamResponseError:
            return False
        return True

    await wait_for(is_heard, "the stream's interest is known at the leaf node")
    await fill(leaf, "all", 100)

    await wait_for_messages(hub.jetstream(), "ALL", 101)


async def test_mirrors_copy_streams_in_both_directions(site: Site) -> None:
    hub, leaf = await linked_pair(site)
    at_hub, at_leaf = hub.jetstream(), leaf.jetstream()
    await at_hub.add_stream(name="CENTRAL", subjects=["central.>"])
    await at_leaf.add_stream(name="LOCAL", subjects=["local.>"])
    await fill(hub, "central")
    await fill(leaf, "local")

    await at_leaf.add_stream(StreamConfig(name="CENTRAL_COPY", mirror=external("CENTRAL", "hub")))
    await at_hub.add_stream(StreamConfig(name="LOCAL_COPY", mirror=external("LOCAL", "edge")))
    await wait_for_messages(at_leaf, "CENTRAL_COPY", MESSAGES)
    await wait_for_messages(at_hub, "LOCAL_COPY", MESSAGES)
    await fill(leaf, "local")
    await wait_for_messages(at_hub, "LOCAL_COPY", 2 * MESSAGES)

    wanted = [b"%d" % number for number in range(MESSAGES)]
    assert await payloads(at_leaf, "CENTRAL_COPY") == wanted
    assert await payloads(at_hub, "LOCAL_COPY") == wanted * 2
    assert (await at_hub.get_msg("LOCAL_COPY", 2)).subject == "local.1"


async def test_sources_gather_streams_of_the_other_side(site: Site) -> None:
    hub, leaf = await linked_pair(site)
    for name in ("ONE", "TWO"):
        await leaf.jetstream().add_stream(name=name, subjects=[f"{name.lower()}.>"])
        await fill(leaf, name.lower())

    sources = [external("ONE", "edge"), external("TWO", "edge")]
    await hub.jetstream().add_stream(StreamConfig(name="GATHERED", subjects=["own.>"], sources=sources))

    await wait_for_messages(hub.jetstream(), "GATHERED", 2 * MESSAGES)
    assert (await hub.jetstream().stream_info("GATHERED")).state.messages == 2 * MESSAGES


async def test_work_queue_of_the_leaf_node_is_emptied_by_the_hub(site: Site) -> None:
    hub, leaf = await linked_pair(site)
    await leaf.jetstream().add_stream(name="OUTBOX", subjects=["outbox.>"], retention="workqueue")
    await fill(leaf, "outbox")

    config = StreamConfig(name="INBOX", sources=[external("OUTBOX", "edge")])
    await hub.jetstream().add_stream(config)

    await wait_for_messages(hub.jetstream(), "INBOX", MESSAGES)

    async def is_empty() -> bool:
        return (await leaf.jetstream().stream_info("OUTBOX")).state.messages == 0

    await wait_for(is_empty, "what was copied is gone")


async def test_bucket_is_read_at_the_edge_and_written_through_the_link(site: Site) -> None:
    hub, leaf = await linked_pair(site)
    bucket = await hub.jetstream().create_key_value(bucket="settings")
    await bucket.put("colour", b"red")
    await leaf.jetstream().add_stream(
        StreamConfig(
            name="KV_settings", mirror=external("KV_settings", "hub"), max_msgs_per_subject=1, mirror_direct=True
        )
    )
    await wait_for_messages(leaf.jetstream(), "KV_settings", 1)

    copy = await leaf.jetstream().key_value("settings")
    assert (await copy.get("colour")).value == b"red"

    # Clients write to a copy by the subject of the original behind the API of its domain.
    written = await leaf.jetstream().publish("$JS.hub.API.$KV.settings.size", b"large")
    assert (written.stream, written.domain) == ("KV_settings", "hub")
    assert (await bucket.get("size")).value == b"large"
    await wait_for_messages(leaf.jetstream(), "KV_settings", 2)
    assert (await copy.get("size")).value == b"large"


async def test_objects_of_the_hub_are_read_at_the_edge(site: Site) -> None:
    hub, leaf = await linked_pair(site)
    store = await hub.jetstream().create_object_store("files")
    body = bytes(range(256)) * 2_000
    await store.put("map", body)

    through_link = await leaf.jetstream(domain="hub").object_store("files")
    assert (await through_link.get("map")).data == body

    messages = (await hub.jetstream().stream_info("OBJ_files")).state.messages
    config = StreamConfig(name="OBJ_files", mirror=external("OBJ_files", "hub"), allow_direct=True, mirror_direct=True)
    await leaf.jetstream().add_stream(config)
    await wait_for_messages(leaf.jetstream(), "OBJ_files", messages)
    # nats-py looks for the subjects of a store, which a copy has none of: what it would read is compared.
    assert await payloads(leaf.jetstream(), "OBJ_files") == await payloads(hub.jetstream(), "OBJ_files")


async def test_copy_goes_on_where_it_was_when_the_link_is_back(site: Site) -> None:
    store = jetstream_in("hub").replace("STORE", str(site.folder / "hub-store"))
    hub = site.start_hub("", store)
    port = leaf_port(hub)
    leaf_server = site.start_leaf(port, further=jetstream_in("edge"))
    hub_client, leaf = await site.connect(hub), await site.connect(leaf_server)
    await wait_until_linked(hub_client, leaf)
    await wait_for_domain(hub_client, "edge")
    await leaf.jetstream().add_stream(name="LOCAL", subjects=["local.>"])
    await fill(leaf, "local")
    await hub_client.jetstream().add_stream(StreamConfig(name="COPY", mirror=external("LOCAL", "edge")))
    await wait_for_messages(hub_client.jetstream(), "COPY", MESSAGES)

    hub.stop()
    await fill(leaf, "local")
    again: ServerProcess = site.start_hub("", store, port=port)
    hub_client = await site.connect(again)

    await wait_for_messages(hub_client.jetstream(), "COPY", 2 * MESSAGES)
    wanted = [b"%d" % number for number in range(MESSAGES)]
    assert await payloads(hub_client.jetstream(), "COPY") == wanted * 2
