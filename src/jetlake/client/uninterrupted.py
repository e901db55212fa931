"""`finish`: work that is finished even if its caller is cancelled meanwhile.

With `asyncio.shield` alone the caller moves on while the work continues, and closes the connection that the work needs.
Here the caller waits for the work, and is cancelled then.

Invariant: the work has ended when `finish` returns or raises.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Return what the work returns; a cancellation that comes meanwhile is raised once it has ended."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            # Waiting for a task raises nothing of the task's own.
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        # The work's own failure matters less than that its caller is to stop; looking at it marks it as seen.
        if not task.cancelled():
            task.exception()
        raise cancelled
    return task.result()
