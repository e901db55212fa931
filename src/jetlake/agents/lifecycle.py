"""Lifecycle events of a node: it has started, it is alive, it stops.

Each event has an id and a time of its own; the first sign of life comes after a random part of the interval.
"""

import asyncio
import random
from typing import Any

from jetlake.agents.node import LocalNode
from jetlake.agents.options import NodeOptions
from jetlake.choria.events import encode, lifecycle_body, subject_of

__all__ = ["Lifecycle"]


class Lifecycle:
    """The part that tells."""

    name = "lifecycle"

    def __init__(self, options: NodeOptions, *, version: str) -> None:
        self._options = options
        self._version = version
        self._is_start_sent = False
        self._is_start_confirmed = False

    async def run(self, node: LocalNode) -> None:
        if not self._is_start_confirmed:
            await node.wait_connected()
            # Subscribers may get the startup event before the server confirms it, and must get the shutdown event, too.
            self._is_start_sent = True
            await self._tell(node, "startup", version=self._version)
            self._is_start_confirmed = True
        interval_s = self._options.alive_interval_s
        if not interval_s:
            return
        wait_s = random.uniform(0, interval_s)
        while True:
            await asyncio.sleep(wait_s)
            await self._tell(node, "alive", version=self._version)
            wait_s = interval_s

    async def finish(self, node: LocalNode) -> None:
        if self._is_start_sent:
            await self._tell(node, "shutdown")

    async def _tell(self, node: LocalNode, kind: str, **fields: Any) -> None:
        body = lifecycle_body(kind, identity=self._options.identity, component=self._options.component, **fields)
        await node.publish(subject_of(body), encode(body, raw=self._options.raw_events))
