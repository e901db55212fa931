"""`PublicationQueue`: what waits between ingest workers and stream workers, bounded in messages and in bytes.

Work is passed on in batches: the lock is taken once for each batch, not for each message, and a batch wakes as many
takers as it needs, not all of them.

Invariant: `messages ≤ messages_max`, and `memory_bytes ≤ bytes_max` unless a single publication is larger than that and
waits alone.
"""

import time
from collections import deque
from threading import Condition, Lock

from jetlake.adapters.conversion import Publication

__all__ = ["PublicationQueue"]


class PublicationQueue:
    """A queue for several threads at both ends."""

    def __init__(self, messages_max: int, bytes_max: int) -> None:
        self.messages_max = messages_max
        self.bytes_max = bytes_max
        self._waiting: deque[Publication] = deque()
        self._memory_bytes = 0
        lock = Lock()
        self._filled = Condition(lock)
        self._emptied = Condition(lock)
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def memory_bytes(self) -> int:
        return self._memory_bytes

    def put(self, publications: list[Publication], wait_s: float) -> int:
        """Append publications, waiting for room up to `wait_s` in total; return how many went in."""
        deadline = time.monotonic() + wait_s
        accepted = 0
        with self._emptied:
            while True:
                accepted = self._append(publications, accepted)
                left_s = deadline - time.monotonic()
                if accepted == len(publications) or self._closed or left_s <= 0:
                    return accepted
                self._emptied.wait(left_s)

    def remove_batch(self, messages_max: int, bytes_max: int, wait_s: float) -> list[Publication]:
        """Remove and return publications, at least one; none if nothing came in time or the queue is closed."""
        waiting = self._waiting
        with self._filled:
            if not waiting and not self._closed:
                self._filled.wait(wait_s)
            taken: list[Publication] = []
            taken_bytes = 0
            while waiting and len(taken) < messages_max:
                size = waiting[0].memory_bytes
                if taken and taken_bytes + size > bytes_max:
                    break
                taken.append(waiting.popleft())
                taken_bytes += size
            if taken:
                self._memory_bytes -= taken_bytes
                self._emptied.notify_all()
            if waiting:
                # More than one taker can carry.
                self._filled.notify()
            return taken

    def close(self) -> None:
        """Take nothing more; what waits can still be taken."""
        with self._filled:
            self._closed = True
            self._filled.notify_all()
            self._emptied.notify_all()

    @property
    def is_drained(self) -> bool:
        """Whether nothing waits and nothing more will."""
        return self._closed and not self._waiting

    def _append(self, publications: list[Publication], first: int) -> int:
        """Append as many as there is room for, from a position on, and return the next position."""
        if self._closed:
            return first
        waiting, memory_bytes = self._waiting, self._memory_bytes
        room = self.messages_max - len(waiting)
        position = first
        for publication in publications[first : first + room]:
            size = publication.memory_bytes
            if waiting and memory_bytes + size > self.bytes_max:
                break
            waiting.append(publication)
            memory_bytes += size
            position += 1
        if position > first:
            self._memory_bytes = memory_bytes
            self._filled.notify()
        return position
