"""Message tracing through a link: each server tells what it does, and a dry run stays one behind the link."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.compatibility.leaf_pairs import KINDS, Site, leaf_port, listen, settle, wait_for, wait_until_linked

KEPT = {"type", "kind", "name", "hop", "acc", "sub", "queue", "subj", "to", "stream", "subject", "error"}

TRACED = {"Nats-Trace-Dest": "traces"}
DRY_RUN = {**TRACED, "Nats-Trace-Only": "true"}

pytestmark = pytest.mark.parametrize("kinds", KINDS)


@pytest.fixture
async def site(tmp_path, kinds):
    site = Site(tmp_path, kinds)
    yield site
    await site.close()


def told(messages: list[Any]) -> dict[str, dict[str, Any]]:
    """Return what each server told, as far as it does not depend on time."""
    events = [json.loads(message.data) for message in messages]
    return {
        event["server"]["name"]: {
            "hops": event.get("hops", 0),
            "hop": event["request"]["header"].get("Nats-Trace-Hop", [""])[0],
            "steps": [{key: step[key] for key in KEPT & set(step)} for step in event["events"]],
        }
        for event in events
    }


@pytest.mark.parametrize("headers", [TRACED, DRY_RUN], ids=["sent", "dry run"])
@pytest.mark.parametrize("is_from_leaf", [False, True], ids=["hub", "edge"])
async def test_trace_goes_on_at_the_other_server(site: Site, headers: dict[str, str], is_from_leaf: bool) -> None:
    hub, leaf = await site.pair()
    here, there = (leaf, hub) if is_from_leaf else (hub, leaf)
    near, far = ("edge", "hub") if is_from_leaf else ("hub", "edge")
    traces = await listen(here, "traces")
    heard = await listen(there, "orders.*")
    worked = await listen(there, "orders.new", queue="workers")
    await wait_until_linked(hub, leaf)

    await here.publish("orders.new", b"x", headers=headers)
    await wait_for(lambda: len(traces) == 2, "two traces")
    await settle(here, there)

    events = told(traces)
    assert events[near] == {
        "hops": 1,
        "hop": "",
        "steps": [
            {"type": "in", "kind": 0, "acc": "$G", "subj": "orders.new"},
            {"type": "eg", "kind": 4, "name": far, "hop": "1"},
        ],
    }
    assert (events[far]["hops"], events[far]["hop"]) == (0, "1")
    arrival, *deliveries = events[far]["steps"]
    assert arrival == {"type": "in", "kind": 4, "name": near, "acc": "$G", "subj": "orders.new"}
    assert sorted(deliveries, key=lambda step: step["sub"]) == [
        {"type": "eg", "kind": 0, "sub": "orders.*"},
        {"type": "eg", "kind": 0, "sub": "orders.new", "queue": "workers"},
    ]
    delivered = 0 if headers is DRY_RUN else 1
    assert (len(heard), len(worked)) == (delivered, delivered)


async def test_second_link_on_the_way_is_another_hop(site: Site) -> None:
    _, leaf = await site.pair()
    other_server = site.start_leaf(leaf_port(site.servers[0]), name="other")
    other = await site.connect(other_server)
    await wait_until_linked(leaf, other)
    traces = await listen(leaf, "traces")
    heard = await listen(other, "orders.new")
    await wait_until_linked(leaf, other)

    await leaf.publish("orders.new", b"x", headers=TRACED)
    await wait_for(lambda: len(traces) == 3 and len(heard) == 1, "three traces")

    events = told(traces)
    assert {name: (event["hop"], event["hops"]) for name, event in events.items()} == {
        "edge": ("", 1),
        "hub": ("1", 1),
        "other": ("1.1", 0),
    }
    assert heard[0].headers["Nats-Trace-Hop"] == "1.1"


async def test_dry_run_is_not_stored_behind_a_link(site: Site) -> None:
    hub_server = site.start_hub(further='jetstream { store_dir: "STORE", domain: hub }')
    leaf_server = site.start_leaf(leaf_port(hub_server))
    hub, leaf = await site.connect(hub_server), await site.connect(leaf_server)
    jetstream = hub.jetstream()
    await jetstream.add_stream(name="ORDERS", subjects=["orders.>"])
    traces = await listen(leaf, "traces")
    await wait_until_linked(hub, leaf)

    await leaf.publish("orders.new", b"x", headers=DRY_RUN)
    await leaf.publish("orders.new", b"x", headers=TRACED)
    await wait_for(lambda: len(traces) == 4, "four traces")
    await settle(hub, leaf)

    at_hub = [event for message in traces if (event := json.loads(message.data))["server"]["name"] == "hub"]
    stored = [[step.get("stream") for step in event["events"] if step["type"] == "js"] for event in at_hub]
    assert stored == [["ORDERS"], ["ORDERS"]]
    assert (await jetstream.stream_info("ORDERS")).state.messages == 1


async def test_other_server_has_no_trace_sent_where_its_user_may_not_publish(site: Site) -> None:
    user = '{user: edge, password: p, permissions: {publish: ["orders.>", "linked.>"], subscribe: ">"}}'
    hub_server = site.start_hub("", f"accounts {{ A {{ users: [ {user}, {{user: u, password: p}} ] }} }}")
    port = leaf_port(hub_server)
    leaf_server = site.start_leaf(port, url=f"nats-leaf://edge:p@127.0.0.1:{port}")
    hub, leaf = await site.connect(hub_server, user="u", password="p"), await site.connect(leaf_server)
    await wait_until_linked(hub, leaf)
    traces = await listen(hub, "traces")
    heard = await listen(hub, "orders.new")
    await wait_until_linked(hub, leaf)

    await leaf.publish("orders.new", b"x", headers=DRY_RUN)
    await settle(hub, leaf)

    assert (traces, heard) == ([], [])
