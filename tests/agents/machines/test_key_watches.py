"""Watches of keys end with the last who has joined them."""

import asyncio
from contextlib import suppress

from jetlake.agents.machines import key_watches
from jetlake.agents.machines.key_watches import KeyWatches
from jetlake.shared import cancellation

LEAVE_S_MAX = 30.0
"""For what takes no time; a test that waits longer hangs."""


async def test_the_last_who_leaves_ends_a_watch_though_a_cancellation_is_lost(monkeypatch):
    has_begun = asyncio.Event()

    class SlowBuckets:
        def __init__(self, _api):
            pass

        async def open(self, _name):
            has_begun.set()
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            await asyncio.Event().wait()

    monkeypatch.setattr(key_watches, "Buckets", SlowBuckets)
    monkeypatch.setattr(cancellation, "CANCEL_INTERVAL_S", 0.01)
    watches = KeyWatches(lambda: None, lambda _level, _text: None)
    first = watches.join("CONFIG", "key", str)
    second = watches.join("CONFIG", "key", int)
    await has_begun.wait()

    await watches.leave(first, str)
    assert len(watches) == 1

    async with asyncio.timeout(LEAVE_S_MAX):
        await watches.leave(second, int)
    assert second.task.cancelled()
    assert len(watches) == 0
