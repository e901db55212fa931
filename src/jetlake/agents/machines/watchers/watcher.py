"""`Watcher`: what all types share: when it is active, how it is woken, what it fires and tells.

Invariant: one task runs a watcher, so that what it does never overlaps with itself.
"""

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jetlake.agents.machines.machine import Machine
    from jetlake.agents.machines.manifest import WatcherManifest

__all__ = ["Watcher"]


class Watcher(ABC):
    """One watcher of one machine."""

    def __init__(self, manifest: "WatcherManifest", machine: "Machine") -> None:
        self.manifest = manifest
        self.machine = machine
        # Several changes that come together are one.
        self._woken = asyncio.Event()

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def is_active(self) -> bool:
        """Whether the machine, and others on the node, are in a state in which this watcher looks."""
        if self.manifest.state_match and self.machine.state not in self.manifest.state_match:
            return False
        state_of = self.machine.services.state_of
        return all(state_of(each.machine) == each.state for each in self.manifest.foreign_states)

    def note_state_change(self) -> None:
        """Look again: the machine has entered a state."""
        self._woken.set()

    @abstractmethod
    async def run(self) -> None:
        """Watch until cancelled."""

    @abstractmethod
    def state_fields(self) -> dict[str, Any]:
        """Return what the event of this watcher's state says besides who it is."""

    async def announce_regularly(self) -> None:
        """Tell the state in every announce interval."""
        while True:
            await asyncio.sleep(self.manifest.announce_interval_s)
            self.announce()

    def announce(self) -> None:
        self.machine.announce(self)

    async def succeed(self) -> None:
        await self.machine.fire(self.manifest.success_transition)

    async def fail(self) -> None:
        await self.machine.fire(self.manifest.fail_transition)

    async def wait(self, timeout_s: float | None) -> bool:
        """Wait for a change of the state, at most this long; return whether there was one."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True

    def report(self, level: str, text: str) -> None:
        self.machine.report(level, f"{self.name}: {text}")
