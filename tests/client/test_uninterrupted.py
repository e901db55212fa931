"""Work that is done as a whole."""

import asyncio

import pytest

from jetlake.client.uninterrupted import finish


async def test_what_it_returns_and_raises_is_the_work_s():
    async def value():
        return 7

    async def failure():
        raise ZeroDivisionError

    assert await finish(value()) == 7
    with pytest.raises(ZeroDivisionError):
        await finish(failure())


@pytest.mark.parametrize("fails", [False, True])
async def test_a_cancellation_waits_for_the_work(fails):
    begun, allowed, ended = asyncio.Event(), asyncio.Event(), []

    async def work():
        begun.set()
        await allowed.wait()
        ended.append(True)
        if fails:
            raise ZeroDivisionError

    task = asyncio.create_task(finish(work()))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    allowed.set()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]
