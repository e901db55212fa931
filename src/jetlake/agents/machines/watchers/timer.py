"""`TimerWatcher`: fires some time after a matching state was entered.

The time runs from the moment the state was entered, also while the agent is not running: after a restart only the rest
is waited for.
"""

import random
import time
from typing import TYPE_CHECKING, Any

from jetlake.agents.machines.watcher_options import TimerOptions
from jetlake.agents.machines.watchers.watcher import Watcher

if TYPE_CHECKING:
    from jetlake.agents.machines.machine import Machine
    from jetlake.agents.machines.manifest import WatcherManifest

__all__ = ["TimerWatcher"]

NANOSECONDS_PER_SECOND = 1_000_000_000


class TimerWatcher(Watcher):
    """One timer."""

    def __init__(self, manifest: "WatcherManifest", machine: "Machine") -> None:
        super().__init__(manifest, machine)
        assert isinstance(manifest.options, TimerOptions)
        options = manifest.options
        self._timer_s = random.uniform(0, options.timer_s) if options.splay else options.timer_s
        self._state = "stopped"

    def state_fields(self) -> dict[str, Any]:
        return {"state": self._state, "timer": round(self._timer_s * NANOSECONDS_PER_SECOND)}

    async def run(self) -> None:
        while True:
            if not self.is_active:
                self._set("stopped")
                await self.wait(None)
                continue
            self._set("running")
            left_s = self._timer_s - (time.time() - self.machine.entered_unix_s)
            # A clock that was set back must not make it longer.
            if await self.wait(min(max(left_s, 0.0), self._timer_s)):
                # The machine entered another state: the timer stops, or restarts, which is announced again.
                self._state = "stopped" if self.is_active else self._state
                continue
            self._set("stopped")
            await self.fail()
            await self.wait(None)

    def _set(self, state: str) -> None:
        if state != self._state:
            self._state = state
            self.announce()
