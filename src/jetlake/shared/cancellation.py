"""`cancel` and `end`: stop tasks, including those that have lost a cancellation.

`asyncio.wait_for` of Python 3.11 drops a cancellation that comes in the moment of its result, and nats-py waits for
every answer with it. Such a task never stops, and awaiting it hangs.

Invariant: when they return without a time limit, the tasks have ended.
"""

import asyncio
from typing import Any

__all__ = ["cancel", "end"]

CANCEL_INTERVAL_S = 5.0
"""How soon a task that goes on is cancelled again. Cleaning up takes less than this, and so is not cut off."""


async def cancel(*tasks: "asyncio.Future[Any]", timeout_s: float | None = None) -> None:
    """Cancel tasks and return when they have ended, or after some time. What they fail with stays in them."""
    loop = asyncio.get_running_loop()
    deadline = None if timeout_s is None else loop.time() + timeout_s
    running = {task for task in tasks if not task.done()}
    while running:
        for task in running:
            task.cancel()
        left_s = CANCEL_INTERVAL_S if deadline is None else min(CANCEL_INTERVAL_S, deadline - loop.time())
        if left_s <= 0:
            return
        _, running = await asyncio.wait(running, timeout=left_s)


async def end(task: "asyncio.Future[Any]") -> None:
    """Cancel a task and return when it has ended. Raises what it has failed with."""
    await cancel(task)
    if not task.cancelled():
        task.result()
