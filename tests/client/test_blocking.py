"""An event loop in a thread of its own."""

import asyncio
import threading

import pytest

from jetlake.client.blocking import Background
from jetlake.errors import ClientError


@pytest.fixture
def loop():
    made = Background("test loop")
    yield made
    made.close()


def test_work_is_done_in_the_thread(loop):
    async def where():
        return threading.current_thread().name

    assert loop.run(where()) == "test loop"


def test_a_failure_is_the_caller_s(loop):
    async def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop.run(fail())


def test_what_is_left_running_goes_on_between_two_calls(loop):
    ticks = []

    async def start():
        async def tick():
            while True:
                ticks.append(1)
                await asyncio.sleep(0.001)

        loop.task = asyncio.create_task(tick())

    async def end():
        loop.task.cancel()

    loop.run(start())
    deadline = threading.Event()
    for _ in range(1000):
        if len(ticks) > 3:
            break
        deadline.wait(0.01)
    loop.run(end())

    assert len(ticks) > 3


def test_it_cannot_be_used_after_its_end():
    loop = Background("test loop")

    async def nothing():
        """Done at once."""

    loop.run(nothing())
    loop.close()
    loop.close()
    with pytest.raises(ClientError, match="test loop is closed"):
        loop.run(nothing())
