"""Waiting for something to become true, with a deadline that no machine is too slow for."""

import asyncio
from collections.abc import Awaitable, Callable

WAIT_S_MAX = 60.0
POLL_S = 0.02


async def until(is_true: Callable[[], Awaitable[bool] | bool], what: str) -> None:
    """Wait until it is true."""
    async with asyncio.timeout(WAIT_S_MAX):
        while True:
            answer = is_true()
            if answer if isinstance(answer, bool) else await answer:
                return
            await asyncio.sleep(POLL_S)
    raise AssertionError(what)
