"""Who has waited longest is told first that a slot is free."""

import asyncio

import pytest

from jetlake.client.backoff import steady
from jetlake.governor import Governor, catalog
from jetlake.governor.layout import side_subject
from jetlake.governor.vacancies import CLASSES_S, VacancyListener, announce, class_of
from tests.governor.waiting import until

NEVER = steady(600)
"""Nobody gets in by polling, so that what is seen is the order in which they are told."""


@pytest.mark.parametrize(
    ("waited_s", "number"), [(0, 0), (0.9, 0), (1, 1), (4.9, 1), (5, 2), (20, 3), (60, 4), (1e6, 4)]
)
def test_a_class_is_how_long_somebody_has_waited(waited_s, number):
    assert class_of(waited_s) == number


async def test_the_oldest_class_is_told_and_only_one_of_it(api, make_governor, patient):
    settings = await make_governor()
    async with (
        VacancyListener(api.connection, settings.subject) as young,
        VacancyListener(api.connection, settings.subject) as old,
        VacancyListener(api.connection, settings.subject) as other_old,
    ):
        waiting = [
            asyncio.create_task(listener.wait(20 if number else 0.5, waited_s))
            for number, (listener, waited_s) in enumerate(((young, 0.0), (old, 10.0), (other_old, 10.0)))
        ]
        await until(lambda: all(each._subscription for each in (young, old, other_old)), "not all of them listen")
        await api.connection.flush()

        told = await announce(api.connection, settings.subject)
        heard_young = await waiting[0]
        await until(lambda: waiting[1].done() or waiting[2].done(), "nobody of the oldest class was told")

        assert told
        assert not heard_young
        assert [task.done() for task in waiting[1:]].count(True) == 1
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_what_is_said_between_two_waits_is_heard_once(api, make_governor, patient):
    settings = await make_governor()
    async with VacancyListener(api.connection, settings.subject) as listener:
        assert not await listener.wait(0.01, 0.0)
        await api.connection.flush()

        assert await announce(api.connection, settings.subject)

        assert await listener.wait(60, 0.0)
        assert not await listener.wait(0.01, 0.0)


async def test_nobody_is_told_where_nobody_waits(api, make_governor):
    settings = await make_governor()

    assert not await announce(api.connection, settings.subject)


async def test_a_waiting_campaigner_gets_in_when_somebody_leaves_without_polling(api, make_governor):
    settings = await make_governor()
    async with Governor(api, settings.name) as governor:
        lease = await governor.enter(holder="first")
        waiting = asyncio.create_task(governor.enter(holder="second", max_wait_s=60, back_off=NEVER))
        await until(lambda: has_listeners(api, settings.subject), "nobody listens")

        await lease.release()
        entered = await asyncio.wait_for(waiting, 60)

        assert [each.holder for each in await catalog.leases(api, settings.name)] == ["second"]
        await entered.release()


async def has_listeners(api, subject, number=0):
    """Ask without disturbing: a request that nobody hears is answered by the server."""
    from nats.errors import NoRespondersError

    try:
        await api.connection.request(side_subject(subject, f"vacated-{number}"), b"", timeout=60)
    except NoRespondersError:
        return False
    return True


async def test_those_who_came_first_get_in_first(api, make_governor, patient):
    """With one slot and nobody who polls in time, the order is that of the classes."""
    settings = await make_governor()
    order, refused = [], []

    def late(tries):
        refused.append(tries)
        return 20.0

    async def compete(governor, name, back_off):
        async with governor.slot(holder=name, max_wait_s=60, back_off=back_off):
            order.append(name)

    async with Governor(api, settings.name) as governor:
        lease = await governor.enter(holder="holder")
        old = [asyncio.create_task(compete(governor, f"old{number}", NEVER)) for number in range(3)]
        # Of the third class: the young may wait for some seconds and are still younger.
        await until(lambda: has_listeners(api, settings.subject, 2), "they do not grow older")
        # All three, not only the first one.
        await asyncio.sleep(CLASSES_S[1])
        young = [asyncio.create_task(compete(governor, f"young{number}", late)) for number in range(3)]
        await until(lambda: len(refused) >= 3, "they do not wait")

        await lease.release()
        await asyncio.wait_for(asyncio.gather(*old, *young), 50)

    assert [name[:3] for name in order] == ["old"] * 3 + ["you"] * 3
