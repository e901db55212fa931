"""`StateMachine`: the state a machine is in, and what an event makes of it. Pure; no clocks, no files.

```python
machine = StateMachine(manifest)
machine.fire("run")         # Change(event="run", from_state="IDLE", to_state="RUNNING"), or None
```

An event is possible if the current state is among its sources. One that leads to the current state is possible and
changes nothing: no state is entered, no event is published.

Invariant: `state` is one of the manifest's states.
"""

import msgspec

from jetlake.agents.machines.manifest import Manifest

__all__ = ["StateChange", "StateMachine"]


class StateChange(msgspec.Struct, frozen=True):
    """A state that was entered."""

    event: str
    from_state: str
    to_state: str


class StateMachine:
    """One machine's states."""

    def __init__(self, manifest: Manifest, state: str = "") -> None:
        self._destinations = {
            (transition.name, source): transition.destination
            for transition in manifest.transitions
            for source in transition.sources
        }
        self._events = tuple(dict.fromkeys(transition.name for transition in manifest.transitions))
        self._states = frozenset(manifest.states)
        self.state = state if state in self._states else manifest.initial_state

    def can(self, event: str) -> bool:
        """Tell whether an event is possible now."""
        return (event, self.state) in self._destinations

    def events(self) -> list[str]:
        """Return the events that are possible now, in the order of the manifest."""
        return [event for event in self._events if self.can(event)]

    def knows(self, event: str) -> bool:
        return event in self._events

    def fire(self, event: str) -> StateChange | None:
        """Enter the state that an event leads to; None if it is not possible or changes nothing."""
        destination = self._destinations.get((event, self.state))
        if destination is None or destination == self.state:
            return None
        change = StateChange(event, self.state, destination)
        self.state = destination
        assert self.state in self._states
        return change
