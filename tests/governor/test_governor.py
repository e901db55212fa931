"""Slots: obtained, refused, given back, expired, renewed; on Jetlake and on nats-server."""

import asyncio
import time

import pytest

from jetlake.client.backoff import steady
from jetlake.errors import ClientError, ConfigurationError
from jetlake.governor import Governor, NoSlotError, catalog
from jetlake.governor.events import SUBJECT_PREFIX, event_of
from tests.governor.waiting import until

FAST = steady(0.1)

EXPIRES_S = 5.0
"""Of leases that are to expire: long enough to be seen before that on a busy machine."""


async def holders(api, name):
    return [lease.holder for lease in await catalog.leases(api, name)]


async def test_a_slot_is_a_message_of_choria_s_layout_and_gone_after_the_block(api, make_governor):
    settings = await make_governor(capacity=2)

    async with Governor(api, settings.name) as governor, governor.slot(holder="web1") as lease:
        info = await api.request(f"STREAM.INFO.GOVERNOR_{settings.name}")
        message = await api.request(f"STREAM.MSG.GET.GOVERNOR_{settings.name}", {"seq": lease.sequence})
        inside = await holders(api, settings.name)

    config = info["config"]
    assert config["subjects"] == [f"mcollective.governor.{settings.name}"]
    assert (config["max_msgs"], config["discard"], config["max_age"]) == (2, "new", 60_000_000_000)
    assert config["description"] == f"Concurrency Governor {settings.name}"
    assert message["message"]["data"] == "d2ViMQ=="
    assert inside == ["web1"]
    assert await holders(api, settings.name) == []


async def test_as_many_leases_are_read_as_are_wanted(api, make_governor):
    settings = await make_governor(capacity=3)
    async with Governor(api, settings.name) as governor:
        for holder in ("a", "b", "c"):
            await governor.enter(holder=holder)

        found = await catalog.leases(api, settings.name, leases_max=2)

    assert [lease.holder for lease in found] == ["a", "b"]


async def test_a_full_governor_refuses_until_max_wait_and_sends_an_event(api, make_governor, patient):
    settings = await make_governor()
    heard = await api.connection.subscribe(f"{SUBJECT_PREFIX}.>")
    await api.connection.flush()

    async with Governor(api, settings.name) as governor, governor.slot(holder="a") as lease:
        with pytest.raises(NoSlotError, match=r"could not get a execution slot .*all slots are taken"):
            async with governor.slot(holder="b", max_wait_s=0.3, back_off=FAST):
                raise AssertionError("two are inside")

    events = [event_of((await heard.next_msg(60)).data) for _ in range(3)]
    assert [(event.event_type, event.identity, event.sequence) for event in events] == [
        ("enter", "a", lease.sequence),
        ("timeouts", "b", 0),
        ("exit", "a", lease.sequence),
    ]
    assert str(events[0]) == f"[governor] a: obtained slot {lease.sequence} on {settings.name}"
    assert await holders(api, settings.name) == []


async def test_a_lease_of_choria_counts_and_ours_counts_for_choria(api, make_governor):
    """Choria publishes its name and nothing else, and deletes the message by its sequence."""
    settings = await make_governor()
    theirs = await api.ask(settings.subject, b"node1.example.net")

    async with Governor(api, settings.name) as governor:
        with pytest.raises(NoSlotError):
            await governor.enter(max_wait_s=0)
        await api.request(f"STREAM.MSG.DELETE.GOVERNOR_{settings.name}", {"seq": theirs["seq"], "no_erase": True})
        async with governor.slot(max_wait_s=5, back_off=FAST):
            refused = await api.ask(settings.subject, b"node1.example.net")

    assert refused["error"]["err_code"] == 10077


async def test_an_exception_and_a_cancellation_give_the_slot_back(api, make_governor):
    settings = await make_governor()

    async with Governor(api, settings.name) as governor:
        with pytest.raises(ZeroDivisionError):
            async with governor.slot():
                _ = 1 / 0
        assert await holders(api, settings.name) == []

        async def work():
            async with governor.slot(max_wait_s=5):
                await asyncio.sleep(3600)

        task = asyncio.create_task(work())
        await until(lambda: has_leases(api, settings.name, 1), "nobody is inside")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert await holders(api, settings.name) == []


async def has_leases(api, name, count):
    return len(await catalog.leases(api, name)) == count


async def test_a_campaign_that_is_cancelled_leaves_no_lease(api, make_governor):
    settings = await make_governor(capacity=3)

    async with Governor(api, settings.name) as governor:
        # At every point of a campaign, not only while it waits.
        for pause_ms in range(12):
            task = asyncio.create_task(governor.enter(holder="ghost"))
            await asyncio.sleep(pause_ms / 1000)
            task.cancel()
            try:
                lease = await task
            except asyncio.CancelledError:
                continue
            await lease.release()

    assert await holders(api, settings.name) == []


async def test_a_lease_expires_when_its_holder_is_gone(api, make_governor):
    settings = await make_governor(expires_s=EXPIRES_S)
    async with Governor(api, settings.name) as governor:
        await governor.enter(holder="crashed")

        async with governor.slot(holder="next", max_wait_s=60, back_off=FAST):
            inside = await holders(api, settings.name)

    assert inside == ["next"]


async def test_a_lease_is_renewed_while_the_work_runs_and_nobody_gets_in_between(api, make_governor, fast_renewal):
    settings = await make_governor()
    async with Governor(api, settings.name) as governor:
        async with governor.slot(holder="long", renew=True) as lease:
            first = lease.sequence
            rival = asyncio.create_task(governor.enter(holder="rival", max_wait_s=60, back_off=FAST))

            await until(lambda: lease.renewals >= 3, "the lease is not renewed")

            assert not rival.done()
            assert not lease.lost.is_set()
            assert lease.sequence > first
        entered = await rival
        assert await holders(api, settings.name) == ["rival"]
        await entered.release()


async def test_a_lease_is_renewed_without_a_gap_where_a_slot_is_free(api, make_governor, fast_renewal):
    settings = await make_governor(capacity=2)
    async with Governor(api, settings.name) as governor, governor.slot(holder="long", renew=True) as lease:
        await until(lambda: lease.renewals >= 2, "the lease is not renewed")
        assert not lease.lost.is_set()

    assert await holders(api, settings.name) == []


async def test_a_holder_that_renews_is_told_that_it_was_evicted(api, make_governor, fast_renewal):
    settings = await make_governor()
    async with Governor(api, settings.name) as governor, governor.slot(holder="evil", renew=True) as lease:
        assert await catalog.evict(api, settings.name, lease.sequence) == "evil"

        await until(lease.lost.is_set, "the holder does not know")

        # Somebody else may have the slot, so it is not taken again.
        assert await holders(api, settings.name) == []


async def test_a_slot_that_is_kept_until_expiry_limits_how_often(api, make_governor):
    settings = await make_governor(expires_s=EXPIRES_S)
    async with Governor(api, settings.name) as governor:
        begin = time.monotonic()
        async with governor.slot(holder="first", keep_until_expiry=True):
            pass
        assert await holders(api, settings.name) == ["first"]
        async with governor.slot(holder="second", max_wait_s=60, back_off=FAST, keep_until_expiry=True):
            waited = time.monotonic() - begin

    assert waited > EXPIRES_S - 0.5


async def test_an_unknown_governor_ends_a_campaign_at_once(api):
    async with Governor(api, "NOSUCH") as governor:
        with pytest.raises(ClientError, match="unknown governor 'NOSUCH': create it with"):
            await governor.enter(max_wait_s=60)


async def test_a_governor_that_is_deleted_ends_a_campaign(api, make_governor):
    settings = await make_governor()
    async with Governor(api, settings.name) as governor:
        await governor.enter()
        waiting = asyncio.create_task(governor.enter(max_wait_s=60, back_off=FAST))
        await asyncio.sleep(0.2)
        await catalog.remove(api, settings.name)

        with pytest.raises(ClientError, match="unknown governor"):
            await waiting


async def test_another_collective_is_named_in_the_error(api, make_governor):
    settings = await make_governor()
    async with Governor(api, settings.name, collective="eu") as governor:
        with pytest.raises(ClientError, match=r"belongs to the collective 'mcollective'.*--collective mcollective"):
            await governor.enter()


async def test_a_lower_capacity_evicts_nobody_and_a_higher_one_is_there_at_once(api, make_governor):
    settings = await make_governor(capacity=2)
    async with Governor(api, settings.name) as governor, governor.slot(holder="a"), governor.slot(holder="b"):
        await catalog.add(api, catalog.msgspec.structs.replace(settings, capacity=1))
        lowered = await holders(api, settings.name)
        with pytest.raises(NoSlotError):
            await governor.enter(max_wait_s=0)
        await catalog.add(api, catalog.msgspec.structs.replace(settings, capacity=3))
        async with governor.slot(holder="c", max_wait_s=5):
            raised = await holders(api, settings.name)

    assert lowered == ["a", "b"]
    assert raised == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["", "a.b", "a b", "a/b", "x" * 129, "*"])
def test_a_name_that_cannot_be_is_refused_before_anything_is_sent(name):
    with pytest.raises(ConfigurationError, match="cannot name a governor"):
        Governor("nats://127.0.0.1:1", name)


async def test_a_holder_that_is_no_name_is_refused(api, make_governor):
    settings = await make_governor()
    async with Governor(api, settings.name) as governor:
        with pytest.raises(ConfigurationError, match="cannot name the holder"):
            await governor.enter(holder="a\nb")


async def test_what_nobody_released_is_released_at_the_end_of_the_block(api, make_governor):
    settings = await make_governor(capacity=2)

    async with Governor(api, settings.name) as governor:
        await governor.enter(holder="forgotten")
        lease = await governor.enter(holder="released")
        await lease.release()
        await lease.release()
        inside = await holders(api, settings.name)

    assert inside == ["forgotten"]
    assert await holders(api, settings.name) == []
