"""Lame duck mode: how a server leaves without all its clients reconnecting elsewhere in the same instant.

No new clients are accepted; the connected ones are notified; after a grace period they are closed one by one, at random
gaps, within the configured duration. Without clients there is nothing to wait for.

The timing is here, once per decision; the engine only carries out single steps.
"""

import random
from collections.abc import Callable
from typing import Protocol

from jetlake.server.log import Log
from jetlake.server.options import LameDuckOptions

GAP_S_MAX = 1.0
"""A few clients need not be stretched over the whole duration."""


class Steps(Protocol):
    """What of the engine is needed; `jetlake._engine.Engine` has it."""

    def stop_accepting(self) -> None: ...
    def announce_lame_duck(self) -> int: ...
    def close_one_connection(self) -> bool: ...


class LameDuck:
    """One departure. `wait` sleeps for the seconds given and returns True when the departure was cut short."""

    def __init__(self, engine: Steps, options: LameDuckOptions, log: Log, wait: Callable[[float], bool]) -> None:
        self._engine = engine
        self._options = options
        self._log = log
        self._wait = wait

    def run(self) -> None:
        """Return when no client is left, or as soon as `wait` says to hurry."""
        self._log.info("Entering lame duck mode, stop accepting new clients")
        self._engine.stop_accepting()
        client_count = self._engine.announce_lame_duck()
        if client_count == 0 or self._wait(self._options.grace_period_s):
            return
        self._log.info("Closing existing clients")
        gap_s = self.gap_s(client_count)
        for others_left in reversed(range(client_count)):
            # False = the others have left by themselves.
            if not self._engine.close_one_connection() or others_left == 0:
                return
            if self._wait(random.uniform(gap_s / 2, gap_s)):
                return

    def gap_s(self, client_count: int) -> float:
        """Return the longest gap between two closings that still ends within the duration."""
        assert client_count > 0
        return min(GAP_S_MAX, (self._options.duration_s - self._options.grace_period_s) / client_count)
