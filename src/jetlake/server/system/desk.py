"""Accepts requests and events from the thread that receives from the engine, and passes them to a thread of its own.

A list of a hundred thousand connections takes a while to build; logins and log lines must not wait for it. So the
thread that receives from the engine only queues. Accounts take turns, each with a queue of its own: an account that
floods the server with requests delays only itself. Requests beyond a limit are dropped and counted in the log; their
sender finds out by its timeout.

The same thread also checks, now and then, whether there are subscribers to figures that are sent unasked.

Invariant: nothing is loaded and no thread is started before there is a request or a subscriber. A handler that breaks
is logged and the thread continues; it ends only with `close`.
"""

import time
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jetlake.management.engine.protocols import Request
    from jetlake.server.system.handler import Handler
    from jetlake.server.system.protocols import ConnectionEvent, EngineListeners

REQUESTS_OF_ACCOUNT_MAX = 64
"""Requests of one account that wait: more than an operator's tools send at once, and a second or so of work."""

EVENTS_MAX = 16_384
"""Arrivals and departures that wait: a burst of reconnecting clients, about 8 MB."""

EVENTS_AT_ONCE_MAX = 256
"""Few enough that a request between two bursts is not kept waiting."""

CLOSE_S_MAX = 10.0
"""How long `join` waits for what is being answered."""

STATISTICS_FIRST_S = 0.25
STATISTICS_SECOND_S = 1.0
STATISTICS_INTERVAL_S = 10.0
"""Statistics are sent soon after the start, then at intervals that double up to this one."""

LISTENERS_INTERVAL_S = 1.0
"""How often we check for subscribers to connection counts: a new one gets the first count within this time."""

HEARTBEAT_S = 30.0
"""Connection counts are repeated, changed or not, for listeners that lost one."""

REPORT_INTERVAL_S = 1.0
"""One line for everything dropped within this time: a flood of requests must not become a flood of lines."""


class Desk:
    """Where requests and events come in. `make_handler` is called once, by the thread that needs it."""

    def __init__(
        self,
        engine: "EngineListeners",
        system_account: str,
        accounts: Callable[[], list[str]],
        make_handler: "Callable[[], Handler]",
        warn: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._system_account = system_account
        self._accounts = accounts
        self._make_handler = make_handler
        self._warn = warn
        self._clock = clock
        self._thread: Thread | None = None
        self._changed = Condition()
        # The account whose turn it is stands first.
        self._requests: dict[str, deque[Request]] = {}
        self._events: deque[ConnectionEvent] = deque()
        self._duties: set[str] = set()
        self._closed = False
        self._dropped = 0
        self._reported_at = clock()
        now = clock()
        self._statistics_due = now + STATISTICS_FIRST_S
        self._statistics_gap = STATISTICS_SECOND_S
        self._listeners_due = now + LISTENERS_INTERVAL_S
        self._heartbeat_due = now + HEARTBEAT_S
        self._counts_wanted = False

    def receive(self, request: "Request") -> None:
        """Queue a request. The server's own messages do not count: a reply must not become a command."""
        if request.connection_id == 0:
            return
        with self._changed:
            waiting = self._requests.setdefault(request.account, deque())
            if len(waiting) >= REQUESTS_OF_ACCOUNT_MAX:
                self._dropped += 1
                return
            waiting.append(request)
        self._wake()

    def note(self, event: "ConnectionEvent") -> None:
        """Queue the arrival or departure of a client."""
        with self._changed:
            if len(self._events) >= EVENTS_MAX:
                self._dropped += 1
                return
            self._events.append(event)
        self._wake()

    def tick(self) -> int:
        """Do what the clock asks for, and return after how many milliseconds to call again, at the latest."""
        now = self._clock()
        if self._system_account:
            self._look_at_statistics(now)
            self._look_at_counts(now)
        if self._dropped and now >= self._reported_at + REPORT_INTERVAL_S:
            self._report_dropped(now)
        due = min(self._statistics_due, self._listeners_due) if self._system_account else now + LISTENERS_INTERVAL_S
        return max(1, int((due - now) * 1000))

    def close(self) -> None:
        """Take nothing more. What is being answered still is."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def join(self) -> None:
        """Wait until the thread has ended, if there is one."""
        if self._thread is not None:
            self._thread.join(CLOSE_S_MAX)

    def _look_at_statistics(self, now: float) -> None:
        if now < self._statistics_due:
            return
        self._statistics_due = now + self._statistics_gap
        self._statistics_gap = min(2 * self._statistics_gap, STATISTICS_INTERVAL_S)
        if self._engine.has_interest(self._system_account, f"$SYS.SERVER.{self._engine.server_id}.STATSZ"):
            self._charge("statistics")

    def _look_at_counts(self, now: float) -> None:
        if now < self._listeners_due:
            return
        self._listeners_due = now + LISTENERS_INTERVAL_S
        wanted_before, self._counts_wanted = self._counts_wanted, self._are_counts_wanted()
        if self._counts_wanted or wanted_before:
            self._charge("counts")
        if now >= self._heartbeat_due:
            self._heartbeat_due = now + HEARTBEAT_S
            if self._counts_wanted:
                self._charge("heartbeat")

    def _are_counts_wanted(self) -> bool:
        return any(
            self._engine.has_interest(self._system_account, subject)
            for account in self._accounts()
            for subject in (f"$SYS.ACCOUNT.{account}.SERVER.CONNS", f"$SYS.SERVER.ACCOUNT.{account}.CONNS")
        )

    def _charge(self, duty: str) -> None:
        with self._changed:
            self._duties.add(duty)
        self._wake()

    def _report_dropped(self, now: float) -> None:
        with self._changed:
            dropped, self._dropped = self._dropped, 0
        self._reported_at = now
        self._warn(f"system account: {dropped} requests or events were dropped: they came faster than they are handled")

    def _wake(self) -> None:
        """Wake the thread, or start it. Only the thread that receives from the engine calls this."""
        if self._thread is None:
            # A daemon, because Python waits for other threads before it calls what would stop this one.
            self._thread = Thread(target=self._run, name="jetlake-system", daemon=True)
            self._thread.start()
        with self._changed:
            self._changed.notify()

    def _run(self) -> None:
        handler: Handler | None = None
        while self._wait():
            try:
                handler = handler or self._make_handler()
                self._work(handler)
            except Exception:  # noqa: BLE001 - whatever it was, it is our bug; the next request may fare better
                import traceback

                self._warn(f"system account: a bug, please report it: {traceback.format_exc()}")

    def _wait(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._events or self._duties or self._requests)
            return not self._closed

    def _work(self, handler: "Handler") -> None:
        """Do one thing of each kind. Everything is taken from its queue before it can break."""
        with self._changed:
            duties, self._duties = self._duties, set()
            events = [self._events.popleft() for _ in range(min(len(self._events), EVENTS_AT_ONCE_MAX))]
            request = self._take_request()
        if events:
            handler.tell(events)
        if "statistics" in duties:
            handler.send_statistics()
        if duties & {"counts", "heartbeat"}:
            handler.send_counts(anew="heartbeat" in duties)
        if request is not None:
            handler.answer(request)

    def _take_request(self) -> "Request | None":
        """Return the next request of the account whose turn it is, and move that account to the end of the queue."""
        if not self._requests:
            return None
        account = next(iter(self._requests))
        waiting = self._requests.pop(account)
        request = waiting.popleft()
        if waiting:
            self._requests[account] = waiting
        return request
