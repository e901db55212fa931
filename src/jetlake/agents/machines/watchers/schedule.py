"""`ScheduleWatcher`: on for some time from each moment that one of its schedules names, and off otherwise.

Windows that overlap are one. A window that was open when the agent started is not entered. Entering a matching state
while it is on fires at once, unless `skip_trigger_on_reenter` says that once in a window is enough.
"""

import random
import time
from typing import TYPE_CHECKING, Any

import msgspec

from jetlake.agents.machines.cron import CronSchedule
from jetlake.agents.machines.watcher_options import ScheduleOptions
from jetlake.agents.machines.watchers.watcher import Watcher

if TYPE_CHECKING:
    from jetlake.agents.machines.machine import Machine
    from jetlake.agents.machines.manifest import WatcherManifest

__all__ = ["ScheduleWatcher"]

LOOK_S_MAX = 30.0
"""The clock is looked at this often, because it can be set while we wait."""

WINDOWS_MAX = 10_000
"""Windows that are open at once; a schedule of every minute that stays on for a week has as many."""


class Window(msgspec.Struct, frozen=True):
    """A time in which the watcher is on: the moment of the schedule, that moment with its splay, and the end."""

    begin_s: float
    opens_s: float
    ends_s: float


class ScheduleWatcher(Watcher):
    """One or more schedules."""

    def __init__(self, manifest: "WatcherManifest", machine: "Machine") -> None:
        super().__init__(manifest, machine)
        assert isinstance(manifest.options, ScheduleOptions)
        self._options = manifest.options
        self._state = "unknown"
        self._previous_state = "unknown"
        self._is_triggered = False
        # None = it never comes again.
        self._next: dict[CronSchedule, Window | None] = {}
        # When each open window ends.
        self._ends_unix_s: list[float] = []

    def state_fields(self) -> dict[str, Any]:
        return {"state": self._state}

    async def run(self) -> None:
        now_s = time.time()
        self._next = {schedule: self._window_after(schedule, now_s) for schedule in self._options.schedules}
        while True:
            await self._look()
            await self.wait(self._wait_s(time.time()))
            self._advance(time.time())

    def _window_after(self, schedule: CronSchedule, unix_s: float) -> Window | None:
        begin_s = schedule.next_after(unix_s)
        if begin_s is None:
            return None
        # The splay is taken out of the duration.
        opens_s = begin_s + random.uniform(0, self._options.start_splay_s)
        return Window(begin_s, opens_s, begin_s + self._options.duration_s)

    def _wait_s(self, now_s: float) -> float:
        boundaries = [window.opens_s for window in self._next.values() if window is not None] + self._ends_unix_s
        return min([max(boundary - now_s, 0.0) for boundary in boundaries] + [LOOK_S_MAX])

    def _advance(self, now_s: float) -> None:
        """Open and close windows."""
        for schedule, window in self._next.items():
            if window is None or window.opens_s > now_s:
                continue
            # A window that passed while the machine slept is not made up for.
            if window.ends_s > now_s and len(self._ends_unix_s) < WINDOWS_MAX:
                self._ends_unix_s.append(window.ends_s)
            self._next[schedule] = self._window_after(
                schedule, max(window.begin_s, now_s - self._options.start_splay_s)
            )
        self._ends_unix_s = [end_s for end_s in self._ends_unix_s if end_s > now_s]
        if self._ends_unix_s:
            self._state = "on"
        elif self._state == "on":
            self._state = "off"

    async def _look(self) -> None:
        if not self.is_active:
            self._previous_state = "skipped"
            return
        if self._previous_state == self._state:
            return
        self._previous_state = self._state
        if self._state == "on":
            if self._options.skip_trigger_on_reenter and self._is_triggered:
                return
            self._is_triggered = True
            self.announce()
            await self.succeed()
        elif self._state == "off":
            self._is_triggered = False
            self.announce()
            await self.fail()
