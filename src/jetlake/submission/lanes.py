"""`SpoolLanes`: which message of a spool to send next.

Each priority is a lane; in a lane the reliable messages of one subject are a queue, and only the first of a queue is
ever sent. It stays the first until it is acknowledged, expired or given up, however often it is tried: so order is
kept. Other subjects do not wait for it, and unreliable messages wait for nobody.

Of each message only what is needed to choose it is in memory, not its payload.

Invariant: of one subject and priority at most one reliable message is under way.
"""

from collections.abc import Iterable, Iterator

import msgspec

from jetlake.client.timestamps import SECOND_NS
from jetlake.submission.message import SpoolMessage

NEXT_TRY_S_MAX = 10.0
"""No back-off is longer: a message due later than this was written by a clock that was wrong."""


class WaitingMessage(msgspec.Struct, kw_only=True):
    """One message that waits."""

    priority: int
    name: str
    subject: str
    reliable: bool
    created_ns: int
    expires_ns: int
    tries: int
    next_try_ns: int
    # A stream may have it although nobody acknowledged it to this sender.
    may_be_stored: bool = False
    is_under_way: bool = False

    @classmethod
    def of(cls, priority: int, name: str, message: SpoolMessage, *, may_be_stored: bool) -> "WaitingMessage":
        return cls(
            priority=priority,
            name=name,
            subject=message.subject,
            reliable=message.reliable,
            created_ns=message.created_ns,
            expires_ns=message.expires_ns,
            tries=message.tries,
            next_try_ns=message.next_try_ns,
            may_be_stored=may_be_stored,
        )

    def is_due(self, now_ns: int) -> bool:
        wait_ns = self.next_try_ns - now_ns
        return wait_ns <= 0 or wait_ns > NEXT_TRY_S_MAX * SECOND_NS


class SpoolLanes:
    """All messages of a spool that wait, in the order of their names."""

    def __init__(self, priorities: int) -> None:
        self._lanes: list[dict[str, WaitingMessage]] = [{} for _ in range(priorities)]

    def __len__(self) -> int:
        return sum(map(len, self._lanes))

    def counts(self) -> list[int]:
        return [len(lane) for lane in self._lanes]

    def oldest_ns(self) -> int | None:
        """Return when the message was made that waits longest; None if none does."""
        return min((waiting.created_ns for lane in self._lanes for waiting in lane.values()), default=None)

    def unknown(self, priority: int, names: list[str]) -> list[str]:
        """Return the names that are new here, and forget those that are gone."""
        lane, present = self._lanes[priority], set(names)
        for name in [name for name, waiting in lane.items() if name not in present and not waiting.is_under_way]:
            del lane[name]
        return [name for name in names if name not in lane]

    def add(self, waitings: Iterable[WaitingMessage]) -> None:
        """Add messages; a lane stays in the order of its names."""
        changed = set()
        for waiting in waitings:
            self._lanes[waiting.priority][waiting.name] = waiting
            changed.add(waiting.priority)
        for priority in changed:
            self._lanes[priority] = dict(sorted(self._lanes[priority].items()))

    def remove(self, waiting: WaitingMessage) -> None:
        self._lanes[waiting.priority].pop(waiting.name, None)

    def expired(self, now_ns: int) -> list[WaitingMessage]:
        """Return those whose time to live is over and that are not under way."""
        return [
            waiting
            for lane in self._lanes
            for waiting in lane.values()
            if waiting.expires_ns < now_ns and not waiting.is_under_way
        ]

    def due(self, now_ns: int) -> Iterator[WaitingMessage]:
        """Yield what may be sent now, most urgent first: of each queue the first message, if its time has come."""
        for lane in self._lanes:
            seen: set[str] = set()
            # A copy: the sender may remove messages at once.
            for waiting in list(lane.values()):
                if waiting.reliable:
                    if waiting.subject in seen:
                        continue
                    seen.add(waiting.subject)
                if not waiting.is_under_way and waiting.is_due(now_ns):
                    yield waiting
