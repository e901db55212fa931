"""`LoginQueue`: clients whose password takes long to compare, in turns by address.

A client that tries many passwords must not keep out legitimate users: addresses take turns, each may have only some
clients waiting, and one that has failed too often is refused at once for a while.

Invariant: the queue is bounded, per address and in total; an address whose failures are old enough is forgotten.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from threading import Condition
from typing import Generic, TypeVar

WAITING_MAX = 1024
"""About half a minute of work: several times what can be decided before clients run out of time."""

WAITING_OF_ADDRESS_MAX = 256
"""Clients that share one address, such as the pods of one host after a network failure, may come together."""

FAILURES_MAX = 20
"""Wrong passwords from one address within `FAILURES_S`: a person mistypes twice, a misconfigured client tries again
every two seconds."""

FAILURES_S = 10.0
"""How long a failure counts."""

ADDRESSES_MAX = 4096
"""Addresses whose failures are remembered; the oldest are forgotten first."""

Item = TypeVar("Item")


class LoginQueue(Generic[Item]):
    """Items with the address they come from. Any thread may call."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = Condition()
        # The address whose turn it is stands first.
        self._waiting: OrderedDict[str, deque[Item]] = OrderedDict()
        self._count = 0
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._is_closed = False

    def put(self, address: str, item: Item, *, is_urgent: bool = False) -> bool:
        """Let an item wait. False = there is no room for it, or its address has failed too often; never if urgent."""
        with self._changed:
            own = self._waiting.get(address, ())
            is_full = self._count >= WAITING_MAX or len(own) >= WAITING_OF_ADDRESS_MAX
            if not is_urgent and (is_full or self._has_failed_too_often(address)):
                return False
            self._waiting.setdefault(address, deque()).append(item)
            self._count += 1
            self._changed.notify()
        return True

    def get(self) -> Item | None:
        """Return the next item of the address whose turn it is; None = the queue is closed."""
        with self._changed:
            while not (self._waiting or self._is_closed):
                self._changed.wait()
            if self._is_closed:
                return None
            address, items = self._waiting.popitem(last=False)
            item = items.popleft()
            self._count -= 1
            if items:
                self._waiting[address] = items
            return item

    def note_failure(self, address: str) -> None:
        """Count a wrong password."""
        with self._changed:
            failures = self._failures.pop(address, None) or deque(maxlen=FAILURES_MAX)
            failures.append(self._clock())
            self._failures[address] = failures
            if len(self._failures) > ADDRESSES_MAX:
                self._failures.popitem(last=False)

    def close(self) -> None:
        """Return no more items."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _has_failed_too_often(self, address: str) -> bool:
        failures = self._failures.get(address)
        return failures is not None and len(failures) == FAILURES_MAX and failures[0] > self._clock() - FAILURES_S
