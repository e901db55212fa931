"""`PauseEnds`: when consumers that pause go on, the next one first.

Invariant: every end in `_ends_ns` has its place in `_order`; what else is there is out of date and passed over. Any
thread may ask and change.
"""

import heapq
from threading import Lock

ConsumerKey = tuple[str, str, str]
"""Account, stream and name of a consumer."""

OUTDATED_MAX = 1_000
"""Entries that may be out of date before the order is created again, beyond as many as are not."""


class PauseEnds:
    """The ends of all pauses, in unix nanoseconds."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ends_ns: dict[ConsumerKey, int] = {}
        self._order: list[tuple[int, ConsumerKey]] = []

    def put(self, consumer: ConsumerKey, end_ns: int) -> None:
        """Note when the pause of a consumer ends."""
        with self._lock:
            if self._ends_ns.get(consumer) == end_ns:
                return
            self._ends_ns[consumer] = end_ns
            heapq.heappush(self._order, (end_ns, consumer))
            if len(self._order) > 2 * len(self._ends_ns) + OUTDATED_MAX:
                self._order = [(end_ns, consumer) for consumer, end_ns in self._ends_ns.items()]
                heapq.heapify(self._order)

    def forget(self, consumer: ConsumerKey) -> None:
        """Note that a consumer does not pause."""
        with self._lock:
            self._ends_ns.pop(consumer, None)

    def forget_stream(self, account: str, stream: str) -> None:
        """Note that no consumer of a stream pauses."""
        with self._lock:
            for consumer in [consumer for consumer in self._ends_ns if consumer[:2] == (account, stream)]:
                del self._ends_ns[consumer]

    def next_ns(self) -> int | None:
        """Return when the next pause ends; None = no consumer pauses."""
        with self._lock:
            return self._next_ns()

    def take_ended(self, now_ns: int) -> list[ConsumerKey]:
        """Return those whose pause has ended since this was asked last."""
        ended = []
        with self._lock:
            while (end_ns := self._next_ns()) is not None and end_ns <= now_ns:
                _, consumer = heapq.heappop(self._order)
                del self._ends_ns[consumer]
                ended.append(consumer)
        return ended

    def _next_ns(self) -> int | None:
        while self._order:
            end_ns, consumer = self._order[0]
            if self._ends_ns.get(consumer) == end_ns:
                return end_ns
            heapq.heappop(self._order)
        return None
