"""Tasks end, also where a cancellation is lost."""

import asyncio
from contextlib import suppress

import pytest

from jetlake.shared import cancellation
from jetlake.shared.cancellation import cancel, end

WAIT_S_MAX = 30.0
"""For what takes no time; a test that waits longer hangs."""


@pytest.fixture(autouse=True)
def short_interval(monkeypatch):
    monkeypatch.setattr(cancellation, "CANCEL_INTERVAL_S", 0.01)


async def test_a_task_that_waits_ends():
    task = asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0)

    await end(task)

    assert task.cancelled()


async def test_a_task_that_has_not_begun_ends():
    task = asyncio.create_task(asyncio.Event().wait())

    await end(task)

    assert task.cancelled()


async def test_a_task_that_loses_cancellations_ends():
    lost = 0

    async def work():
        nonlocal lost
        while lost < 3:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            lost += 1
        await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)

    async with asyncio.timeout(WAIT_S_MAX):
        await end(task)

    assert task.cancelled()
    assert lost == 3


async def test_tasks_are_cancelled_together():
    async def work(own, other):
        try:
            await asyncio.Event().wait()
        finally:
            # Each ends only after the other has been cancelled too.
            own.set()
            await other.wait()

    first, second = asyncio.Event(), asyncio.Event()
    tasks = [asyncio.create_task(work(first, second)), asyncio.create_task(work(second, first))]
    await asyncio.sleep(0)

    async with asyncio.timeout(WAIT_S_MAX):
        await cancel(*tasks)

    assert first.is_set()
    assert second.is_set()


async def test_a_failure_stays_in_the_task_or_is_raised():
    async def work():
        raise ValueError("no")

    task = asyncio.create_task(work())
    await asyncio.wait({task})

    await cancel(task)
    with pytest.raises(ValueError, match="no"):
        await end(task)


@pytest.fixture
async def stubborn():
    """A task that no cancellation ends before the test is over."""
    may_end = asyncio.Event()

    async def work():
        while not may_end.is_set():
            with suppress(asyncio.CancelledError):
                await may_end.wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    yield task
    may_end.set()
    await end(task)


async def test_what_does_not_end_is_given_up_after_the_time_limit(stubborn):
    async with asyncio.timeout(WAIT_S_MAX):
        await cancel(stubborn, timeout_s=0.05)

    assert not stubborn.done()


async def test_who_waits_can_be_cancelled(stubborn):
    waiting = asyncio.create_task(cancel(stubborn))
    await asyncio.sleep(0)
    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert not stubborn.done()


async def test_no_tasks_are_no_work():
    await cancel()
