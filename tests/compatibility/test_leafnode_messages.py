"""What passes a link between a hub and its leaf node: messages, requests, queue groups; and what the rules deny."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from nats.aio.msg import Msg
from nats.errors import NoRespondersError

from tests.compatibility.leaf_pairs import (
    KINDS,
    TIMEOUT,
    Site,
    hear,
    leaf_port,
    listen,
    settle,
    wait_for,
    wait_until_linked,
)

MESSAGES = 200

pytestmark = TIMEOUT


@pytest.fixture(params=KINDS)
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(tmp_path, request.param)
    yield made
    await made.close()


def payloads(messages: list[Msg]) -> list[bytes]:
    return [message.data for message in messages]


async def test_messages_pass_in_both_directions_with_their_headers(site: Site) -> None:
    hub, leaf = await site.pair()
    at_hub, at_leaf = await listen(hub, "up.>"), await listen(leaf, "down.*")
    await hear(hub, leaf, "ready.hub")
    await hear(leaf, hub, "ready.leaf")

    await leaf.publish("up.a.b", b"1", headers={"Colour": "red"})
    await leaf.publish("up.c", b"", reply="answers")
    await hub.publish("down.x", b"2" * 100_000)

    await wait_for(lambda: len(at_hub) == 2 and len(at_leaf) == 1, "three messages")
    assert [(one.subject, one.reply) for one in at_hub] == [("up.a.b", ""), ("up.c", "answers")]
    assert at_hub[0].headers == {"Colour": "red"}
    assert payloads(at_leaf) == [b"2" * 100_000]


async def test_one_message_for_many_subscriptions_passes_once_and_reaches_all(site: Site) -> None:
    hub, leaf = await site.pair()
    heard = [await listen(hub, subject) for subject in ("m.*", "m.1", ">", "*.1")]
    await hear(hub, leaf, "ready")

    for number in range(MESSAGES):
        await leaf.publish("m.1", b"%d" % number)

    wanted = [b"%d" % number for number in range(MESSAGES)]
    await wait_for(lambda: all(len([1 for one in each if one.subject == "m.1"]) == MESSAGES for each in heard), "all")
    for each in heard:
        assert [one.data for one in each if one.subject == "m.1"] == wanted


async def test_publisher_does_not_hear_itself_again(site: Site) -> None:
    hub, leaf = await site.pair()
    at_hub, at_leaf = await listen(hub, "both"), await listen(leaf, "both")
    await hear(hub, leaf, "ready.hub")
    await hear(leaf, hub, "ready.leaf")

    await leaf.publish("both", b"x")
    await wait_for(lambda: len(at_hub) == 1 and len(at_leaf) == 1, "one on each side")
    await settle(hub, leaf)

    assert (len(at_hub), len(at_leaf)) == (1, 1)


async def test_requests_are_answered_from_the_other_side(site: Site) -> None:
    hub, leaf = await site.pair()

    async def answer(message: Msg) -> None:
        await message.respond(b"from hub: " + message.data)

    async def answer_at_leaf(message: Msg) -> None:
        await message.respond(b"from leaf: " + message.data)

    await hub.subscribe("service.hub", cb=answer)
    await leaf.subscribe("service.leaf", queue="workers", cb=answer_at_leaf)
    await hear(hub, leaf, "ready.hub")
    await hear(leaf, hub, "ready.leaf")

    assert (await leaf.request("service.hub", b"1", timeout=10)).data == b"from hub: 1"
    assert (await hub.request("service.leaf", b"2", timeout=10)).data == b"from leaf: 2"


async def test_request_that_nobody_listens_to_is_told_so_at_once(site: Site) -> None:
    hub, leaf = await site.pair()

    with pytest.raises(NoRespondersError):
        await leaf.request("nobody", b"", timeout=10)
    with pytest.raises(NoRespondersError):
        await hub.request("nobody", b"", timeout=10)


async def test_member_of_the_own_server_comes_first_in_a_queue_group(site: Site) -> None:
    hub, leaf = await site.pair()
    at_hub, at_leaf = await listen(hub, "work", "q"), await listen(leaf, "work", "q")
    await hear(hub, leaf, "ready.hub")
    await hear(leaf, hub, "ready.leaf")

    for _ in range(MESSAGES):
        await leaf.publish("work", b"leaf")
        await hub.publish("work", b"hub")

    await wait_for(lambda: len(at_hub) + len(at_leaf) == 2 * MESSAGES, "all work")
    assert set(payloads(at_hub)) == {b"hub"}
    assert set(payloads(at_leaf)) == {b"leaf"}


async def test_each_message_reaches_one_member_of_each_group_behind_the_link(site: Site) -> None:
    hub, leaf = await site.pair()
    first = [await listen(hub, "work.*", "one") for _ in range(3)]
    second = [await listen(hub, "work.1", "two") for _ in range(2)]
    plain = await listen(hub, "work.>")
    await hear(hub, leaf, "ready")

    for number in range(MESSAGES):
        await leaf.publish("work.1", b"%d" % number, reply="to")

    groups = (first, second, [plain])
    await wait_for(lambda: all(sum(map(len, group)) == MESSAGES for group in groups), "each group has all")
    await settle(hub, leaf)
    wanted = sorted(b"%d" % number for number in range(MESSAGES))
    for group in groups:
        assert sorted(data for member in group for data in payloads(member)) == wanted
    assert all(member for member in (*first, *second))


async def test_interest_that_ends_is_told(site: Site) -> None:
    hub, leaf = await site.pair()
    subscription = await hub.subscribe("service")
    await hear(hub, leaf, "ready")
    await subscription.unsubscribe()
    await hub.flush()

    async def is_gone() -> bool:
        try:
            await leaf.request("service", b"", timeout=0.2)
        except NoRespondersError:
            return True
        except TimeoutError:
            return False
        return False

    await wait_for(is_gone, "nobody listens any more")


async def test_what_the_remote_denies_does_not_pass(site: Site) -> None:
    hub, leaf = await site.pair(remote='deny_exports: ["secret.>"], deny_imports: ["private.*"]')
    at_hub, at_leaf = await listen(hub, ">"), await listen(leaf, ">")
    await hear(hub, leaf, "ready.hub")
    await hear(leaf, hub, "ready.leaf")

    for client in (hub, leaf):
        for subject in ("secret.a", "private.b", "open.c"):
            await client.publish(subject, b"hub" if client is hub else b"leaf")
    await wait_for(lambda: any(one.subject == "open.c" and one.data == b"leaf" for one in at_hub), "at the hub")
    await wait_for(lambda: any(one.subject == "open.c" and one.data == b"hub" for one in at_leaf), "at the leaf")
    await settle(hub, leaf)

    assert "secret.a" not in {one.subject for one in at_hub if one.data == b"leaf"}
    assert {one.subject for one in at_leaf if one.data == b"hub"} == {"secret.a", "open.c"}


async def test_leaf_nodes_of_one_hub_hear_each_other_through_it(site: Site) -> None:
    hub = site.start_hub()
    leaves = [site.start_leaf(leaf_port(hub), name=name) for name in ("one", "two")]
    one, two = [await site.connect(leaf) for leaf in leaves]
    await wait_until_linked(one, two)
    heard = await listen(two, "m")
    at_one = await listen(one, "m")
    await hear(two, one, "ready")

    await one.publish("m", b"x")

    await wait_for(lambda: len(heard) == 1, "at the other leaf node")
    await settle(one, two)
    assert (len(heard), len(at_one)) == (1, 1)


@pytest.mark.parametrize("where", ["hub", "remote"])
async def test_isolated_leaf_nodes_do_not_hear_each_other(site: Site, where: str) -> None:
    hub = site.start_hub("isolate_leafnode_interest: true" if where == "hub" else "")
    remote = "request_isolation: true" if where == "remote" else ""
    leaves = [site.start_leaf(leaf_port(hub), remote, name=name) for name in ("one", "two")]
    one, two, middle = [await site.connect(server) for server in (*leaves, hub)]
    await wait_until_linked(one, middle)
    await wait_until_linked(two, middle)
    heard = await listen(two, "m")
    await hear(two, middle, "ready")

    with pytest.raises(NoRespondersError):
        await one.request("m", b"x", timeout=10)
    await middle.publish("m", b"from hub")

    await wait_for(lambda: payloads(heard) == [b"from hub"], "the hub's own")


async def test_side_that_connects_may_be_the_hub(site: Site) -> None:
    hub, leaf = await site.pair(remote="hub: true")
    heard = await listen(hub, "m")
    await hear(hub, leaf, "ready")

    await leaf.publish("m", b"x")

    await wait_for(lambda: payloads(heard) == [b"x"], "passes as ever")


async def test_loop_of_servers_is_found_and_ended(site: Site) -> None:
    first = site.start_hub()
    kind = site.kinds[1]
    port = leaf_port(first)
    second = site.start(
        kind,
        f"""server_name: middle
        leafnodes {{ listen: "127.0.0.1:-1", remotes: [ {{ url: "nats-leaf://127.0.0.1:{port}" }} ] }}""",
    )
    third = site.start(
        kind,
        f"""server_name: last
        leafnodes {{ remotes: [
          {{ url: "nats-leaf://127.0.0.1:{leaf_port(second)}" }}, {{ url: "nats-leaf://127.0.0.1:{port}" }}
        ] }}""",
    )

    def is_found() -> bool:
        return any("Loop detected for leafnode account" in server.log() for server in (first, second, third))

    await wait_for(is_found, "a loop is reported")
    client = await site.connect(third)
    await asyncio.wait_for(client.flush(), 10)


async def test_link_comes_back_when_the_hub_does(site: Site) -> None:
    hub = site.start_hub()
    port = leaf_port(hub)
    leaf = await site.connect(site.start_leaf(port))
    await wait_until_linked(await site.connect(hub), leaf)
    heard = await listen(leaf, "m")

    hub.stop()
    again = await site.connect(site.start_hub(port=port))
    await wait_until_linked(again, leaf)

    await again.publish("m", b"x")
    await wait_for(lambda: payloads(heard) == [b"x"], "subscriptions of before hold")


async def test_address_that_is_not_for_leaf_nodes_is_reported(site: Site) -> None:
    hub = site.start_hub()
    leaf = site.start_leaf(hub.port)

    await wait_for(lambda: "port" in leaf.log() and "ERR" in leaf.log(), "an error names the port")
    client = await site.connect(leaf)
    await client.flush()
