"""`EventQueue`: what the machines of a node tell, published by one task.

Telling never waits: a machine goes on while the server is away. Events are then kept, up to a limit, and the oldest
are dropped.

Invariant: events are published in the order in which they were reported.
"""

import asyncio
from collections import deque
from typing import Any

from jetlake.agents.node import LocalNode
from jetlake.choria.events import encode, subject_of
from jetlake.errors import ClientError

__all__ = ["EventQueue"]

EVENTS_MAX = 10_000
"""Events that wait for a connection: some minutes of a busy node, some megabytes."""

BATCH_MAX = 500
"""Events published before the server is asked whether it has them."""

RETRY_S = 1.0
"""After a connection broke while events were published."""


class EventQueue:
    """The events of one node."""

    def __init__(self, *, raw: bool = False) -> None:
        self._raw = raw
        self._waiting: deque[dict[str, Any]] = deque()
        self._has_some = asyncio.Event()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def tell(self, body: dict[str, Any]) -> None:
        """Append an event to those that wait."""
        if len(self._waiting) >= EVENTS_MAX:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(body)
        self._has_some.set()

    async def run(self, node: LocalNode) -> None:
        """Publish until cancelled."""
        while True:
            await self._has_some.wait()
            await node.wait_connected()
            if self.dropped:
                node.report("warning", f"{self.dropped:,} events of machines were dropped while the server was away")
                self.dropped = 0
            try:
                await self.publish_some(node)
            except ClientError as error:
                node.report("warning", f"events of machines wait: {error}")
                await asyncio.sleep(RETRY_S)

    async def publish_some(self, node: LocalNode) -> None:
        """Publish up to `BATCH_MAX` events. Raises `ClientError`; what was not published then stays."""
        batch = [self._waiting[index] for index in range(min(BATCH_MAX, len(self._waiting)))]
        if batch:
            await node.publish_all([(subject_of(body), encode(body, raw=self._raw)) for body in batch])
        for body in batch:
            # A full queue may have dropped it meanwhile.
            if self._waiting and self._waiting[0] is body:
                self._waiting.popleft()
        if not self._waiting:
            self._has_some.clear()
