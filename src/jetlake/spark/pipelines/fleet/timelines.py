"""Events of one thing in the order of their time, whenever they come.

A timeline keeps the newest events and drops those that are older than the allowed lateness, oldest first; its owner
counts the dropped ones. So the state of a thing is bounded, and correct whatever the order in which its events arrive
within that lateness.

Invariant: `recent` is sorted; no dropped event is newer than any event in it; an event is in it once.
"""

from bisect import bisect_left, insort

import msgspec

RECENT_MAX = 64
"""Events kept of one thing. More within the allowed lateness are a storm, whose oldest events are dropped early."""

Entry = tuple[int, int, int, str]
"""When it happened in seconds, its sequence, a digest of its id, and what it says."""


class Timeline(msgspec.Struct, array_like=True):
    """See the module."""

    recent: list[Entry] = []
    settled_s: int = -1
    """Time of the newest dropped event; an event as old comes too late."""

    def add(self, at_s: int, sequence: int, event: int, value: str) -> bool:
        """Add an event; False when it is there already, or comes too late."""
        recent = self.recent
        if at_s <= self.settled_s:
            return False
        if not recent or at_s > recent[-1][0]:
            recent.append((at_s, sequence, event, value))
            return True
        if any(each[0] == at_s and each[2] == event for each in recent):
            return False
        insort(recent, (at_s, sequence, event, value))
        return True

    def ripe_entries(self, lateness_s: int) -> list[Entry]:
        """Return the events that can be dropped, oldest first. The newest stays, to be recognised if it comes again."""
        recent = self.recent
        if not recent:
            return []
        limit_s = recent[-1][0] - lateness_s
        # The first that is not older than the limit; any sequence sorts after -1.
        count = max(bisect_left(recent, (limit_s, -1, 0, "")), len(recent) - RECENT_MAX)
        return recent[: min(count, len(recent) - 1)]

    def let_go(self, count: int) -> None:
        """Drop the oldest events."""
        if count:
            self.settled_s = max(self.settled_s, self.recent[count - 1][0])
            del self.recent[:count]

    def ripe(self, lateness_s: int) -> list[Entry]:
        """Drop the events that are old enough, and return them."""
        gone = self.ripe_entries(lateness_s)
        self.let_go(len(gone))
        return gone
