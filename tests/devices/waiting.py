"""Waiting for a condition, for at most as long as a busy machine may need."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

WAIT_S_MAX = 60.0
PAUSE_S = 0.01


async def until(condition: Callable[[], object]) -> None:
    """Return when the condition holds."""
    deadline_s = time.monotonic() + WAIT_S_MAX
    while not condition():
        assert time.monotonic() < deadline_s, "the condition did not come true in time"
        await asyncio.sleep(PAUSE_S)
