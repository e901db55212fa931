"""Carries decisions to the engine: quick ones at once, slow ones from threads of their own.

A bcrypt comparison takes a tenth of a second; a thread that also writes the log must not wait for it. So a server with
bcrypt passwords makes its decisions in a few threads, behind a queue with a limit. Who comes beyond the limit is
refused: a client library tries again, and would not be heard before its time is up. Clients that are in already and are
only asked about again are never refused for that.

Invariant: what an `Authenticator` decided reaches the engine only while it is still the one in force. So whoever
changes it, and then has the engine ask about every client again, has missed nobody.
"""

from collections.abc import Callable
from threading import Lock, Thread
from typing import TYPE_CHECKING, Protocol

from jetlake.server.authentication.authenticator import Authenticator
from jetlake.server.authentication.presented import Login

if TYPE_CHECKING:
    from queue import SimpleQueue

SLOW_LOGIN_THREADS = 4
"""bcrypt leaves the GIL alone, so this is how many cores logins may take from the traffic."""

SLOW_LOGINS_WAITING_MAX = 1024
"""About half a minute of work: several times what can be decided before clients run out of time."""

CLOSE_S_MAX = 10.0
"""How long `join` waits for a comparison: the most expensive hashes take seconds."""


class Request(Protocol):
    """A client that asks to come in; `jetlake._engine.AuthenticationRequest` is one."""

    @property
    def connection_id(self) -> int: ...
    @property
    def connect(self) -> bytes: ...
    @property
    def nonce(self) -> str: ...
    @property
    def tls(self) -> bytes: ...
    @property
    def again(self) -> bool: ...


class Answers(Protocol):
    """What of the engine is needed; both answer False when the client has gone, which is its good right."""

    def admit(self, connection_id: int, verdict: bytes) -> bool: ...
    def refuse(self, connection_id: int) -> bool: ...


class Gate:
    """Decides over clients with one `Authenticator` at a time. `on_broken` hears of a bug of ours in a thread."""

    def __init__(self, engine: Answers, authenticator: Authenticator, on_broken: Callable[[str], None]) -> None:
        self._engine = engine
        self._authenticator = authenticator
        self._on_broken = on_broken
        # Held while an answer is given and while the authenticator changes: see the invariant above.
        self._lock = Lock()
        self._threads: list[Thread] = []
        self._closed = False
        # Made with the threads: most servers need neither.
        self._waiting: SimpleQueue[Request | None] | None = None

    @property
    def authenticator(self) -> Authenticator:
        return self._authenticator

    def replace_authenticator(self, authenticator: Authenticator) -> None:
        """Decide by another configuration, also about those whose answer is not given yet."""
        with self._lock:
            self._authenticator = authenticator

    def receive(self, request: Request) -> None:
        """Answer this client, now or soon."""
        if not self._authenticator.slow:
            self._answer(request)
            return
        waiting = self._waiting or self._start_threads()
        if waiting.qsize() >= SLOW_LOGINS_WAITING_MAX and not request.again:
            self._engine.refuse(request.connection_id)
        else:
            waiting.put(request)

    def close(self) -> None:
        """End the threads after what they are at; nobody waits for what they were about to say."""
        self._closed = True
        if self._waiting is not None:
            for _ in self._threads:
                self._waiting.put(None)

    def join(self) -> None:
        """Wait until the threads have ended: a process must not end while one of them is in native code."""
        for thread in self._threads:
            thread.join(CLOSE_S_MAX)

    def _start_threads(self) -> "SimpleQueue[Request | None]":
        from queue import SimpleQueue

        self._waiting = SimpleQueue()
        self._threads = [
            Thread(target=self._work, args=(self._waiting,), name=f"jetlake-login-{number}", daemon=True)
            for number in range(SLOW_LOGIN_THREADS)
        ]
        for thread in self._threads:
            thread.start()
        return self._waiting

    def _work(self, waiting: "SimpleQueue[Request | None]") -> None:
        while (request := waiting.get()) is not None and not self._closed:
            try:
                self._answer(request)
            except Exception:  # noqa: BLE001 - whatever it was, it is our bug and ends this server
                import traceback

                self._on_broken(traceback.format_exc())
                return

    def _answer(self, request: Request) -> None:
        login = Login(connect=request.connect, nonce=request.nonce, tls=request.tls)
        while True:
            authenticator = self._authenticator
            verdict = authenticator.decide(login)
            with self._lock:
                if authenticator is not self._authenticator:
                    continue
                if verdict is None:
                    self._engine.refuse(request.connection_id)
                else:
                    self._engine.admit(request.connection_id, verdict.to_json())
                return
