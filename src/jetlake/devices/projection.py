"""State rebuilt from snapshots and events, whatever order and holes the events arrive with.

The rules, for each aggregate on its own:

| the event is                                         | then                                       |
|------------------------------------------------------|--------------------------------------------|
| version 0, or a snapshot, and nothing is known yet   | accept                                     |
| the next version                                     | accept                                     |
| a version that is known, and not newer in time       | ignore: it was delivered again             |
| a version that is known, but newer in time           | the device was deleted and started over    |
| anything else                                        | a gap: fetch what is missing, then accept  |

A gap that cannot be filled is closed by the next snapshot; what was between is recorded as missing.

Invariant: the state of an aggregate is always that of one moment of its history; events are never applied over a hole.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum
from typing import Any, NamedTuple

from jetlake.devices.aggregate.model import Aggregate
from jetlake.devices.codec import Event
from jetlake.devices.store.contract import new_aggregate
from jetlake.devices.subjects import AggregateKey

MISSING_REMEMBERED_MAX = 10_000
"""Ranges of missing versions that are kept for a report; the oldest go first."""

Refetch = Callable[[AggregateKey, int], Awaitable[Iterable[Event]]]
"""Returns the events of an aggregate after a time that the store still has, in order."""


class EventOutcome(Enum):
    """What became of an event."""

    ACCEPTED = "accepted"
    IGNORED = "ignored"
    # A gap was found and closed, and the event accepted.
    RECOVERED = "recovered"
    # A gap was found and nobody could close it; the state stays as it was.
    UNRESOLVED = "unresolved"


class Missing(NamedTuple):
    """Versions that nobody has any more; the state is right in spite of it."""

    key: AggregateKey
    first_version: int
    last_version: int


class Projection:
    """The state of all aggregates that events were seen of."""

    def __init__(self, refetch: Refetch | None = None) -> None:
        self.aggregates: dict[AggregateKey, Any] = {}
        self.missing: deque[Missing] = deque(maxlen=MISSING_REMEMBERED_MAX)
        self.gap_count = 0
        self._refetch = refetch

    async def apply(self, event: Event) -> EventOutcome:
        """Take an event into the state, and fetch what is missing before it."""
        outcome = self._try(event)
        if outcome is not None:
            return outcome
        self.gap_count += 1
        if self._refetch is not None:
            aggregate = self.aggregates.get(event.key)
            is_newer = aggregate is None or event.version <= aggregate.version
            after_ns = 0 if is_newer or aggregate is None else aggregate.timestamp_ns
            for each in await self._refetch(event.key, after_ns):
                self._recover(each)
        found = self.aggregates.get(event.key)
        if found is not None and found.version >= event.version and found.timestamp_ns >= event.timestamp_ns:
            return EventOutcome.RECOVERED
        return EventOutcome.RECOVERED if self._recover(event) else EventOutcome.UNRESOLVED

    def forget(self, device_id: str) -> None:
        """Drop what is known of a device."""
        for key in [key for key in self.aggregates if key.device_id == device_id]:
            del self.aggregates[key]

    def _try(self, event: Event) -> EventOutcome | None:
        """Apply an event that needs nothing else; None if something is missing before it."""
        aggregate = self.aggregates.get(event.key)
        is_base = event.version == 0 or event.is_snapshot
        if aggregate is None:
            if not is_base:
                return None
            self._begin(event)
            return EventOutcome.ACCEPTED
        if event.version == aggregate.version + 1:
            _advance(aggregate, event)
            return EventOutcome.ACCEPTED
        if event.version > aggregate.version:
            return None
        if event.timestamp_ns <= aggregate.timestamp_ns:
            return EventOutcome.IGNORED
        if not is_base:
            return None
        self._begin(event)
        return EventOutcome.ACCEPTED

    def _recover(self, event: Event) -> bool:
        """Apply an event after a gap, if it can be; a snapshot may leave out what came before it."""
        if self._try(event) is not None:
            return True
        if not event.is_snapshot:
            return False
        aggregate = self.aggregates[event.key]
        self.missing.append(Missing(event.key, aggregate.version + 1, event.version - 1))
        self._begin(event)
        return True

    def _begin(self, event: Event) -> None:
        aggregate = self.aggregates[event.key] = new_aggregate(event.key, "")
        _advance(aggregate, event)


def _advance(aggregate: Aggregate, event: Event) -> None:
    if event.message is not None:
        aggregate.apply(event.current())
    else:
        # A type of the future takes a version, too.
        aggregate.version = event.version
    aggregate.sequence = event.sequence or aggregate.sequence
