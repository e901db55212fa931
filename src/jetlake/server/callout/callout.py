"""`Callout`: the requests to services that are under way, each with the client that waits for its answer.

```python
callout = Callout(engine, server=…, timeout_s=…, conclude=gate.conclude, on_refused=…, log=log, on_broken=…)
callout.ask(request, login, delegation, authenticator)    # returns at once
callout.hear(subject, payload)                            # an answer; by the thread that receives from the engine
```

Threads of its own sign requests, publish them, and check answers; no other thread waits. The first answer to a request
counts, whatever it is. A request without a subscriber is a refusal at once, one without an answer after `timeout_s`.

Invariant: every client that is asked about is concluded once, or has gone; how many wait is bounded, in all and by
address. Clients that are in already are asked about some at a time, and are never refused for being many.
"""

import heapq
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, NamedTuple, Protocol

from jetlake._engine import EngineError
from jetlake.server.authentication.authenticator import Authenticator
from jetlake.server.authentication.presented import Login
from jetlake.server.authentication.verdict import Refusal, Verdict
from jetlake.server.callout.authorization_answer import RefusedAnswerError, open_answer
from jetlake.server.callout.authorization_request import ServerDescription, make_request
from jetlake.server.callout.delegation import CALLOUT_SUBJECT, Delegation
from jetlake.server.callout.identity import Identity, UnreadableAnswerError

if TYPE_CHECKING:
    from jetlake.server.authentication.gate import AuthenticationRequest
    from jetlake.server.log import Level, Log

WAITING_MAX = 4096
"""Clients that wait for a service: a burst of reconnecting clients, and about 32 MB with their requests."""

WAITING_OF_ADDRESS_MAX = 1024
"""The same from one address: a client that tries many passwords must not keep out legitimate users."""

REVIEWS_AT_ONCE_MAX = 64
"""Clients that are in and asked about again at the same time: enough to keep a service busy, without flooding it."""

CLOSE_S_MAX = 10.0
"""How long `join` waits for what is being decided."""

TOKEN_BYTES = 16
"""Enough that no one guesses where an answer is awaited."""


class PendingLogin(NamedTuple):
    """A client that a service is asked about, and the rules by which it was."""

    request: "AuthenticationRequest"
    login: Login
    delegation: Delegation
    authenticator: Authenticator
    asked_at_s: float


class ExpectedResponse(NamedTuple):
    """A request that was published: what its answer must be about."""

    pending: PendingLogin
    user_key: str


class Messages(Protocol):
    """What of the engine is needed; `jetlake._engine.Engine` has it."""

    @property
    def server_seed(self) -> bytes: ...
    def subscribe(self, account: str, subject: str, queue: str | None = None) -> int: ...
    def publish(
        self, account: str, subject: str, payload: bytes, reply: str | None = None, header: bytes | None = None
    ) -> int: ...
    def address_of(self, connection_id: int) -> str | None: ...


class Callout:
    """The requests of one server. Any thread may call; `conclude` and `on_refused` are called by its own threads."""

    def __init__(
        self,
        engine: Messages,
        *,
        server: Callable[[], ServerDescription],
        timeout_s: Callable[[], float],
        conclude: Callable[[PendingLogin, Verdict | Refusal | None], None],
        on_refused: Callable[[PendingLogin, str], None],
        log: "Log",
        on_broken: Callable[[str], None],
        thread_count: int = 1,
    ) -> None:
        self._engine = engine
        self._server = server
        self._timeout_s = timeout_s
        self._conclude = conclude
        self._on_refused = on_refused
        self._log = log
        self._on_broken = on_broken
        self._identity = Identity(engine.server_seed)
        self._lock = Lock()
        self._expected: dict[str, ExpectedResponse] = {}
        # When each request is overdue, and the end of its reply subject.
        self._due: list[tuple[float, str]] = []
        # Clients that are not in yet, by address.
        self._waiting: Counter[str] = Counter()
        self._waiting_count = 0
        self._reviews: deque[PendingLogin] = deque()
        self._reviews_count = 0
        # Where answers are awaited, by account, and the engine's numbers for these.
        self._inboxes: dict[str, str] = {}
        self._services: frozenset[int] = frozenset()
        self._jobs: SimpleQueue[PendingLogin | tuple[ExpectedResponse, bytes] | None] = SimpleQueue()
        # Daemons, because Python waits for other threads before it calls what would stop these.
        self._threads = [
            Thread(target=self._run, name=f"jetlake-callout-{number}", daemon=True) for number in range(thread_count)
        ]
        for thread in self._threads:
            thread.start()

    def ask(
        self, request: "AuthenticationRequest", login: Login, delegation: Delegation, authenticator: Authenticator
    ) -> None:
        """Have a service decide about a client."""
        pending = PendingLogin(request, login, delegation, authenticator, time.monotonic())
        with self._lock:
            if request.again and self._reviews_count >= REVIEWS_AT_ONCE_MAX:
                self._reviews.append(pending)
                return
            if request.again:
                self._reviews_count += 1
                has_room = True
            else:
                own = self._waiting.get(login.host, 0)
                has_room = self._waiting_count < WAITING_MAX and own < WAITING_OF_ADDRESS_MAX
                if has_room:
                    self._waiting_count += 1
                    self._waiting[login.host] += 1
        if has_room:
            self._jobs.put(pending)
        else:
            # A client library tries again.
            self._conclude(pending, None)

    def hears(self, service: int) -> bool:
        """Tell whether a message to this number of the engine is an answer."""
        return service in self._services

    def hear(self, subject: str, payload: bytes) -> None:
        """Note an answer. Those that nobody waits for, such as a second one, have no effect."""
        with self._lock:
            expected = self._expected.pop(subject.rpartition(".")[2], None)
        if expected is not None:
            self._jobs.put((expected, payload))

    def close(self) -> None:
        """End the threads after what they are at; nobody waits for what they were about to say."""
        for _ in self._threads:
            self._jobs.put(None)

    def join(self) -> None:
        """Wait until the threads have ended: a process must not end while one of them is in native code."""
        for thread in self._threads:
            thread.join(CLOSE_S_MAX)

    def _run(self) -> None:
        try:
            while self._work():
                self._refuse_overdue()
        except Exception:  # noqa: BLE001 - whatever it was, it is our bug and ends this server
            import traceback

            self._on_broken(traceback.format_exc())

    def _work(self) -> bool:
        """Do the next piece of work, or nothing if a request is overdue before that. False = the end."""
        try:
            job = self._jobs.get(timeout=self._next_due_s())
        except Empty:
            return True
        if isinstance(job, PendingLogin):
            self._publish(job)
        elif job is not None:
            self._decide(*job)
        return job is not None

    def _next_due_s(self) -> float | None:
        """Return how long nothing is overdue; None = nothing is under way."""
        with self._lock:
            return max(self._due[0][0] - time.monotonic(), 0) if self._due else None

    def _publish(self, pending: PendingLogin) -> None:
        request, delegation = pending.request, pending.delegation
        if self._engine.address_of(request.connection_id) is None:
            self._release(pending)
            return
        timeout_s = self._timeout_s()
        started_at_s = time.monotonic() if request.again else pending.asked_at_s
        end = secrets.token_urlsafe(TOKEN_BYTES)
        try:
            made = make_request(
                pending.login,
                delegation,
                self._server(),
                self._identity,
                now_unix_s=time.time(),
                timeout_s=timeout_s,
            )
            inbox = self._inbox(delegation.account)
            with self._lock:
                self._expected[end] = ExpectedResponse(pending, made.user_key)
                heapq.heappush(self._due, (started_at_s + timeout_s, end))
            count = self._engine.publish(
                delegation.account, CALLOUT_SUBJECT, made.payload, f"{inbox}.{end}", made.header
            )
        except (UnreadableAnswerError, EngineError) as error:
            self._refuse_unasked(end, pending, f"Error sending authorization request: {error.args[-1]}")
            return
        if count == 0:
            self._refuse_unasked(
                end,
                pending,
                f'Nobody listens to {CALLOUT_SUBJECT} in account "{delegation.account}": start the service',
            )

    def _refuse_unasked(self, end: str, pending: PendingLogin, reason: str) -> None:
        with self._lock:
            self._expected.pop(end, None)
        self._refuse(pending, reason)

    def _inbox(self, account: str) -> str:
        with self._lock:
            inbox = self._inboxes.get(account)
            if inbox is None:
                inbox = f"$SYS._INBOX.{secrets.token_urlsafe(TOKEN_BYTES)}"
                self._services |= {self._engine.subscribe(account, f"{inbox}.*")}
                self._inboxes[account] = inbox
            return inbox

    def _decide(self, expected: ExpectedResponse, payload: bytes) -> None:
        pending = expected.pending
        try:
            answer = open_answer(
                payload,
                identity=self._identity,
                xkey=pending.delegation.xkey,
                user_key=expected.user_key,
                now_unix_s=time.time(),
            )
            verdict = pending.authenticator.conclude(pending.login, pending.delegation, answer)
        except RefusedAnswerError as error:
            self._refuse(pending, str(error))
            return
        self._release(pending)
        self._conclude(pending, verdict)

    def _refuse_overdue(self) -> None:
        late = []
        with self._lock:
            while self._due and self._due[0][0] <= time.monotonic():
                expected = self._expected.pop(heapq.heappop(self._due)[1], None)
                if expected is not None:
                    late.append(expected.pending)
        for pending in late:
            account = pending.delegation.account
            reason = f'Authorization callout response not received in time on account "{account}"'
            self._refuse(pending, reason, level="debug")

    def _refuse(self, pending: PendingLogin, reason: str, level: "Level" = "warning") -> None:
        self._log.write(level, f"{pending.login.remote_address} - {reason}")
        # First, because nothing is known of a client that has gone.
        self._on_refused(pending, reason)
        self._release(pending)
        self._conclude(pending, None)

    def _release(self, pending: PendingLogin) -> None:
        """Make room for the next client."""
        following = None
        with self._lock:
            if not pending.request.again:
                self._waiting_count -= 1
                self._waiting[pending.login.host] -= 1
                if not self._waiting[pending.login.host]:
                    del self._waiting[pending.login.host]
            elif self._reviews:
                following = self._reviews.popleft()
            else:
                self._reviews_count -= 1
        if following is not None:
            self._jobs.put(following)
