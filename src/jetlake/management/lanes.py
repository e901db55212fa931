"""`Lanes`: one queue per account, and the threads that work them off.

```python
lanes = Lanes(work, chores, chore_wait_s, warn, may_overtake, answer_beside)
lanes.add_request(request)       # by the thread that receives from the engine
lanes.add_event(account, event)
lanes.close()
lanes.join()
```

A lane is worked by one thread at a time, so the requests of an account are decided in order. Lanes take turns, item by
item. One thread does it all as long as every item is short; an item that takes longer than a turn is overtaken: another
thread continues with the other lanes, and answers requests of the same lane that only read. So a request that takes
seconds delays only requests that change something in the same account.

A queue that overflows is dropped as a whole, as on nats-server: a client that sent that much no longer waits for the
first reply.

Invariant: a lane is in the queue of ready lanes exactly when something waits in it and no thread works it. Requests of
one connection are started in the order in which they came. The waiting requests of each account are bounded in number
and in bytes. No thread is started before something waits; each ends only with `close`.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Condition, RLock, Thread, current_thread

from jetlake.management.engine.protocols import ArchiveEvent, ConsumerEvent, Request
from jetlake.management.requests.answer import Answer
from jetlake.management.requests.calls import Steps

REQUESTS_OF_ACCOUNT_MAX = 10_000
"""Requests of one account that wait: nats-server's own bound."""

BYTES_OF_ACCOUNT_MAX = 64 * 1024 * 1024
"""Their bodies: a request may be as large as a message, and ten thousand of those would not fit."""

TURN_S_MAX = 0.05
"""How long an item may keep the other lanes waiting; most take less than a tenth of it."""

THREADS_MAX = 16
"""Accounts whose requests take long at the same moment; more than these wait for each other."""

OVERTAKING_MAX = 100
"""How far back in a lane a request may stand that overtakes: looking must not take long while a lane is flooded."""

CLOSE_S_MAX = 10.0
"""How long `join` waits for what is being answered."""

Event = ArchiveEvent | ConsumerEvent


class Lane:
    """What waits of one account, and the answers that are held back there."""

    def __init__(self) -> None:
        # Held while deciding something for the account.
        self.lock = RLock()
        self.requests: deque[Request] = deque()
        self.byte_count = 0
        # Bounded by the engine: at most two for each snapshot and each restore, and one for each consumer.
        self.events: deque[Event] = deque()
        # One for each restore that is being finished, each snapshot that begins and each large stream that was deleted.
        self.tasks: deque[Steps] = deque()
        # Answers that wait for a sync, by what asked for them.
        self.held: dict[tuple[str, ...] | None, tuple[Request, Answer, tuple[str, str, str]]] = {}
        # It is in the queue of ready lanes, or a thread works it.
        self.is_taken = False
        # When the current thread began, and the connection of its request; None = no thread works it, or no request.
        self.begun_at: float | None = None
        self.connection_id: int | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.requests or self.events or self.tasks or self.held)

    def take_request(self, position: int = 0) -> Request:
        """Remove a request from the queue, and return it."""
        request = self.requests[position]
        del self.requests[position]
        self.byte_count -= len(request.payload)
        return request


def _nothing_overtakes(_request: Request) -> bool:
    return False


def _answer_nothing(_request: Request) -> None:
    """Is never called: nothing overtakes."""


class Lanes:
    """The lanes of one server.

    `work` handles an event and a request of a lane, each of which may be missing. `chores` is called when
    `chore_wait_s` says that it is time, by one thread at a time. `may_overtake` says whether a request only reads; then
    `answer_beside` may answer it while another thread works the lane.
    """

    def __init__(
        self,
        work: Callable[[Lane, Event | None, Request | None], None],
        chores: Callable[[], None],
        chore_wait_s: Callable[[], float | None],
        warn: Callable[[str], None],
        may_overtake: Callable[[Request], bool] = _nothing_overtakes,
        answer_beside: Callable[[Request], None] = _answer_nothing,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._work = work
        self._may_overtake = may_overtake
        self._answer_beside = answer_beside
        self._chores = chores
        self._chore_wait_s = chore_wait_s
        self._warn = warn
        self._clock = clock
        self._changed = Condition()
        self._lanes: dict[str, Lane] = {}
        # Those that wait for a thread, in turn.
        self._ready: deque[Lane] = deque()
        self._threads: list[Thread] = []
        # Waiting threads, and how many of them wait until the busy ones have had their turn.
        self._idle_count = 0
        self._watch_count = 0
        # When the busy threads began their current work, and the lanes that they work.
        self._begun_at: dict[Thread, float] = {}
        self._worked: list[Lane] = []
        self._is_at_chores = False
        self._closed = False
        self._dropped = 0

    def add_request(self, request: Request) -> None:
        """Queue a request."""
        with self._changed:
            if self._closed:
                return
            lane = self._lane(request.account)
            lane.requests.append(request)
            lane.byte_count += len(request.payload)
            if len(lane.requests) > REQUESTS_OF_ACCOUNT_MAX or lane.byte_count > BYTES_OF_ACCOUNT_MAX:
                self._dropped += len(lane.requests)
                lane.requests.clear()
                lane.byte_count = 0
                self._changed.notify()
            self._make_ready(lane)
            if lane.begun_at is not None:
                self._call_watch()

    def add_event(self, account: str, event: Event) -> None:
        """Queue what the engine says about something of an account."""
        with self._changed:
            if self._closed:
                return
            lane = self._lane(account)
            lane.events.append(event)
            self._make_ready(lane)

    def lane_of(self, account: str) -> Lane:
        """Return the lane of an account."""
        with self._changed:
            return self._lane(account)

    @contextmanager
    def held(self, account: str) -> Iterator[Lane]:
        """Keep other threads from deciding something for an account."""
        lane = self.lane_of(account)
        with lane.lock:
            yield lane

    def start(self) -> None:
        """Ensure that there is a thread, for the chores."""
        with self._changed:
            if not self._threads and not self._closed:
                self._add_thread()

    def take_dropped(self) -> int:
        """Return how many requests were dropped since this was asked last."""
        with self._changed:
            dropped, self._dropped = self._dropped, 0
            return dropped

    @property
    def has_dropped(self) -> bool:
        """Whether requests were dropped and not reported yet."""
        return self._dropped > 0

    def close(self) -> None:
        """Take nothing more, and forget what waits. What is being answered still is."""
        with self._changed:
            self._closed = True
            self._ready.clear()
            for lane in self._lanes.values():
                lane.requests.clear()
                lane.events.clear()
            self._changed.notify_all()

    def join(self) -> None:
        """Wait until the threads have ended, if there are any."""
        deadline = time.monotonic() + CLOSE_S_MAX
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0))
        for lane in self._lanes.values():
            while lane.tasks:
                lane.tasks.popleft().close()

    def _lane(self, account: str) -> Lane:
        return self._lanes.setdefault(account, Lane())

    def _make_ready(self, lane: Lane) -> None:
        if lane.is_taken or not lane.is_waiting:
            return
        lane.is_taken = True
        self._ready.append(lane)
        self._call_watch()

    def _call_watch(self) -> None:
        """Ensure that a thread watches the ready lanes: if the busy threads take too long, it takes over."""
        if self._watch_count:
            return
        if self._idle_count:
            self._changed.notify()
        elif len(self._threads) < THREADS_MAX:
            self._add_thread()

    def _add_thread(self) -> None:
        # A daemon, because Python waits for other threads before it calls what would stop this one.
        thread = Thread(target=self._run, name="jetlake-management", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                lane, beside, has_chores = self._next()
                if lane is None and beside is None and not has_chores:
                    return
                event = lane.events.popleft() if lane is not None and lane.events else None
                request = self._begin(lane)
            try:
                if has_chores:
                    # Tried alone: what was taken from the lane beside them is in no queue any more.
                    self._try(self._chores)
                self._try(partial(self._do, lane, beside, event, request))
            finally:
                self._give_back(lane, has_chores=has_chores)

    def _do(self, lane: Lane | None, beside: Request | None, event: Event | None, request: Request | None) -> None:
        if beside is not None:
            self._answer_beside(beside)
        if lane is not None:
            with lane.lock:
                self._work(lane, event, request)
                if lane.tasks:
                    self._let_overtake(lane)
                    self._step(lane)

    def _try(self, work: Callable[[], None]) -> None:
        """Do something, and report a failure of it: whatever it was, the next may fare better."""
        try:
            work()
        except BaseException:  # noqa: BLE001 - an engine's panic included
            import traceback

            self._warn(f"JetStream API: a bug, please report it: {traceback.format_exc()}")

    def _next(self) -> tuple[Lane | None, Request | None, bool]:
        """Wait for something to do: a lane, or a request that overtakes, or chores, or nothing at the end."""
        while not self._closed:
            wait_s = None if self._is_at_chores else self._chore_wait_s()
            has_chores = wait_s is not None and wait_s <= 0
            if has_chores:
                self._is_at_chores = True
            is_watching = bool(self._ready) or any(lane.requests for lane in self._worked)
            if is_watching:
                turn_s = self._turn_left_s()
                if turn_s <= 0:
                    if self._ready:
                        return self._ready.popleft(), None, has_chores
                    beside = self._take_overtaking()
                    if beside is not None:
                        return None, beside, has_chores
                    # Nobody can overtake, until another request comes.
                    is_watching = False
                else:
                    wait_s = turn_s if wait_s is None else min(wait_s, turn_s)
            if has_chores:
                return None, None, True
            self._idle_count += 1
            self._watch_count += is_watching
            self._changed.wait(wait_s)
            self._watch_count -= is_watching
            self._idle_count -= 1
        return None, None, False

    def _begin(self, lane: Lane | None) -> Request | None:
        """Note who begins with what, and return the request that is first in the lane."""
        now = self._clock()
        self._begun_at[current_thread()] = now
        request = None
        if lane is not None:
            request = lane.take_request() if lane.requests else None
            lane.begun_at = now
            lane.connection_id = None if request is None else request.connection_id
            self._worked.append(lane)
        if self._ready or (lane is not None and lane.requests):
            self._call_watch()
        return request

    def _turn_left_s(self) -> float:
        """Return how long the busy threads may keep the others waiting; 0 = none is busy, or its turn is over."""
        youngest = max(self._begun_at.values(), default=None)
        return 0.0 if youngest is None else youngest + TURN_S_MAX - self._clock()

    def _take_overtaking(self) -> Request | None:
        """Return a request that only reads, and whose sender waits for no earlier one, of a lane whose turn is over."""
        for lane in self._worked:
            if lane.held:
                # What is made there is not durable yet.
                continue
            waiting_for = {lane.connection_id}
            for position in range(min(len(lane.requests), OVERTAKING_MAX)):
                request = lane.requests[position]
                if request.connection_id not in waiting_for and self._may_overtake(request):
                    return lane.take_request(position)
                waiting_for.add(request.connection_id)
        return None

    def _let_overtake(self, lane: Lane) -> None:
        """Note that the client of this turn's request has its answer, so its next request need not wait."""
        with self._changed:
            lane.connection_id = None
            if lane.requests:
                self._call_watch()

    def _step(self, lane: Lane) -> None:
        """Go on with what is too long for one turn, one of several after the other."""
        task = lane.tasks.popleft()
        try:
            next(task)
        except StopIteration:
            return
        lane.tasks.append(task)

    def _give_back(self, lane: Lane | None, *, has_chores: bool) -> None:
        with self._changed:
            self._begun_at.pop(current_thread(), None)
            if has_chores:
                self._is_at_chores = False
            if lane is not None:
                self._worked.remove(lane)
                lane.begun_at = lane.connection_id = None
                # This thread looks for the next item now, so no other need be woken.
                lane.is_taken = not self._closed and lane.is_waiting
                if lane.is_taken:
                    self._ready.append(lane)
