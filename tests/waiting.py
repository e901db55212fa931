"""`until`: waits for something that a server or another task does in its own time."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

WAIT_S_MAX = 60.0
"""On a machine that is busy with other tests everything takes its time."""

POLL_S = 0.02


async def until(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + WAIT_S_MAX
    while True:
        found = condition()
        if await found if inspect.isawaitable(found) else found:
            return
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(POLL_S)
