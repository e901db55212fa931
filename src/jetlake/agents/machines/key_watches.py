"""`KeyWatches`: the keys that kv watchers of a node's machines wait for, each watched once.

Hundreds of machines may wait for the same key; the server has one consumer for all of them.

Invariant: a key is watched exactly as long as a watcher has joined its watch.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from jetlake.client.backoff import table
from jetlake.errors import ClientError
from jetlake.kv import Buckets, Entry
from jetlake.shared.cancellation import end

if TYPE_CHECKING:
    from jetlake.client.api import Api

__all__ = ["KeyWatch", "KeyWatches"]

Listener: TypeAlias = Callable[[], None]


class KeyWatch:
    """One key. `latest` is the server's last report, as long as `is_live`; None = the key has no entry."""

    def __init__(self, bucket: str, key: str) -> None:
        self.bucket = bucket
        self.key = key
        self.is_live = False
        self.latest: Entry[bytes] | None = None
        self.listeners: set[Listener] = set()
        self.task: asyncio.Task[None] | None = None


class KeyWatches:
    """The watches of one node."""

    def __init__(self, api: "Callable[[], Api]", report: Callable[[str, str], None]) -> None:
        self._api = api
        self._report = report
        self._watches: dict[tuple[str, str], KeyWatch] = {}

    def __len__(self) -> int:
        return len(self._watches)

    def join(self, bucket: str, key: str, listener: Listener) -> KeyWatch:
        """Return the watch of a key, which the first to join starts; `listener` is called with each change."""
        watch = self._watches.get((bucket, key))
        if watch is None:
            watch = self._watches[bucket, key] = KeyWatch(bucket, key)
            watch.task = asyncio.create_task(self._follow(watch))
        watch.listeners.add(listener)
        return watch

    async def leave(self, watch: KeyWatch, listener: Listener) -> None:
        """Stop listening; the last one ends the watch."""
        watch.listeners.discard(listener)
        if watch.listeners or self._watches.get((watch.bucket, watch.key)) is not watch:
            return
        del self._watches[watch.bucket, watch.key]
        assert watch.task is not None
        await end(watch.task)

    async def _follow(self, watch: KeyWatch) -> None:
        """Record what the server reports about a key, until cancelled; start over when the watch fails."""
        back_off, tries = table(), 0
        while True:
            try:
                bucket = await Buckets(self._api()).open(watch.bucket)
                async with bucket.watch(watch.key) as watcher:
                    while True:
                        entries = await watcher.batch()
                        if entries is None:
                            watch.is_live, tries = True, 0
                        elif entries:
                            watch.latest = entries[-1]
                        if watch.is_live:
                            for listener in list(watch.listeners):
                                listener()
            except ClientError as error:
                tries += 1
                if tries == 1:
                    self._report("warning", f"key {watch.key} of bucket {watch.bucket} is polled: {error}")
            finally:
                watch.is_live, watch.latest = False, None
            await asyncio.sleep(back_off(tries))
