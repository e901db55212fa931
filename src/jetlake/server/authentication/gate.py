"""Carries decisions to the engine: quick ones at once, slow ones from threads of their own.

A bcrypt comparison takes a tenth of a second; a thread that also writes the log must not wait for it. So a server with
bcrypt passwords makes such decisions in a few threads, behind a queue with limits (`login_queue`). A client beyond them
is refused: its library tries again, and it would not get an answer before its timeout. Connected clients that are only
checked again are never refused for that. A client that needs no hash computation does not wait behind those that guess,
and nothing is computed for clients that have gone.

A client that a service decides about waits for `callout`, which hands its verdict back here.

A verdict that cannot be told to the engine refuses its client, and no other: a bug of ours in it is one line of the
log, and not the end of the server for everybody.

Invariant: a decision of an `Authenticator` reaches the engine only while it is still the one in force. So a caller that
replaces it, and then has the engine ask about every client again, misses no client.
"""

from collections.abc import Callable
from threading import Lock, Thread
from typing import TYPE_CHECKING, Protocol

import msgspec

from jetlake._engine import EngineError
from jetlake.server.authentication.authenticator import Authenticator
from jetlake.server.authentication.presented import Login
from jetlake.server.authentication.verdict import Refusal, Verdict

if TYPE_CHECKING:
    from jetlake.server.authentication.login_queue import LoginQueue
    from jetlake.server.callout.callout import Callout, PendingLogin
    from jetlake.server.callout.delegation import Delegation

    Decide = Callable[[Authenticator, Login], Verdict | Delegation | Refusal | None]

SLOW_LOGIN_THREADS = 4
"""bcrypt leaves the GIL alone, so this is how many cores logins may take from the traffic."""

CLOSE_S_MAX = 10.0
"""How long `join` waits for a comparison: the most expensive hashes take seconds."""


class AuthenticationRequest(Protocol):
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
    @property
    def connection_type(self) -> str: ...
    @property
    def remote_address(self) -> str: ...


class Answers(Protocol):
    """What of the engine is needed. The first two return False when the client has gone, the others None."""

    def admit(self, connection_id: int, verdict: bytes) -> bool: ...
    def refuse(self, connection_id: int, cause: str = "") -> bool: ...
    def address_of(self, connection_id: int) -> str | None: ...
    def connection(self, connection_id: int) -> bytes | None: ...


class KeptDetails(msgspec.Struct, frozen=True):
    """What the engine has kept of a client that is in."""

    details: str = ""


class Gate:
    """Decides about clients with one `Authenticator` at a time. `on_broken` is called for a bug of ours in a thread.

    `make_callout` returns the callout to services; it is called once, for the first client that needs one. `warn` gets
    a line for the log.
    """

    def __init__(
        self,
        engine: Answers,
        authenticator: Authenticator,
        on_broken: Callable[[str], None],
        make_callout: "Callable[[Gate], Callout] | None" = None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._engine = engine
        self._warn = warn
        self._authenticator = authenticator
        self._on_broken = on_broken
        # Held while an answer is given and while the authenticator changes: see the invariant above.
        self._lock = Lock()
        self._threads: list[Thread] = []
        self._closed = False
        self._make_callout = make_callout
        self._callout: Callout | None = None
        # Made with the threads: most servers need neither.
        self._waiting: LoginQueue[AuthenticationRequest] | None = None

    @property
    def authenticator(self) -> Authenticator:
        return self._authenticator

    def replace_authenticator(self, authenticator: Authenticator) -> None:
        """Decide by another configuration, also about those whose answer is not given yet."""
        with self._lock:
            self._authenticator = authenticator

    def receive(self, request: AuthenticationRequest) -> None:
        """Answer this client, now or soon."""
        if not self._authenticator.slow:
            self._answer(request, Authenticator.decide)
            return
        if self._answer(request, Authenticator.decide_quickly, must_admit=True):
            return
        address = self._engine.address_of(request.connection_id)
        if address is None:
            return
        with self._lock:
            waiting = self._waiting or self._start_threads()
        if not waiting.put(address, request, is_urgent=request.again):
            self._engine.refuse(request.connection_id)

    def hears(self, service: int) -> bool:
        """Tell whether a message to the server is the answer of a service that decides about clients."""
        return self._callout is not None and self._callout.hears(service)

    def hear(self, subject: str, payload: bytes) -> None:
        """Note an answer."""
        assert self._callout is not None, "the caller has asked"
        self._callout.hear(subject, payload)

    def conclude(self, pending: "PendingLogin", verdict: Verdict | Refusal | None) -> None:
        """Answer a client that a service has decided about; decide again if the rules have changed meanwhile."""
        with self._lock:
            is_in_force = pending.authenticator is self._authenticator
            if is_in_force:
                self._tell(pending.request, verdict)
        if not is_in_force:
            self.receive(pending.request)

    def close(self) -> None:
        """End the threads after what they are at; nobody waits for what they were about to say."""
        self._closed = True
        if self._waiting is not None:
            self._waiting.close()
        if self._callout is not None:
            self._callout.close()

    def join(self) -> None:
        """Wait until the threads have ended: a process must not end while one of them is in native code."""
        for thread in self._threads:
            thread.join(CLOSE_S_MAX)
        if self._callout is not None:
            self._callout.join()

    def _start_threads(self) -> "LoginQueue[AuthenticationRequest]":
        # Only servers with hashes pay for this import.
        from jetlake.server.authentication.login_queue import LoginQueue

        self._waiting = LoginQueue()
        self._threads = [
            Thread(target=self._work, args=(self._waiting,), name=f"jetlake-login-{number}", daemon=True)
            for number in range(SLOW_LOGIN_THREADS)
        ]
        for thread in self._threads:
            thread.start()
        return self._waiting

    def _work(self, waiting: "LoginQueue[AuthenticationRequest]") -> None:
        while (request := waiting.get()) is not None and not self._closed:
            try:
                address = self._engine.address_of(request.connection_id)
                if address is not None and not self._answer(request, Authenticator.decide):
                    waiting.note_failure(address)
            except Exception:  # noqa: BLE001 - whatever it was, it is our bug and ends this server
                import traceback

                self._on_broken(traceback.format_exc())
                return

    def _answer(self, request: AuthenticationRequest, decide: "Decide", *, must_admit: bool = False) -> bool:
        """Decide about a client, and return whether it is not refused. With `must_admit` nobody is refused here."""
        while True:
            authenticator = self._authenticator
            login = self._login(request, authenticator)
            verdict = decide(authenticator, login)
            with self._lock:
                if authenticator is not self._authenticator:
                    continue
                if verdict is None or isinstance(verdict, (Verdict, Refusal)):
                    if must_admit and not isinstance(verdict, Verdict):
                        return False
                    return self._tell(request, verdict)
                callout = self._callout or self._open_callout()
            # Without the lock: a service that cannot be asked is a refusal.
            callout.ask(request, login, verdict, authenticator)
            return True

    def _tell(self, request: AuthenticationRequest, verdict: Verdict | Refusal | None) -> bool:
        """Tell the engine, and return whether the client is not refused."""
        cause = ""
        if isinstance(verdict, Verdict):
            try:
                self._engine.admit(request.connection_id, verdict.to_json())
            except (EngineError, ValueError, OverflowError) as error:
                self._warn(
                    f"{request.remote_address} - the client is refused, because the engine cannot read the verdict on "
                    f"it: {error.args[-1]}; this is a bug, please report it"
                )
            else:
                return True
        elif verdict is not None and request.again:
            # One who is not in yet learns nothing from a refusal.
            cause = verdict.cause
        self._engine.refuse(request.connection_id, cause)
        return False

    def _open_callout(self) -> "Callout":
        assert self._make_callout is not None, "only what can ask a service delegates to one"
        self._callout = self._make_callout(self)
        return self._callout

    def _login(self, request: AuthenticationRequest, authenticator: Authenticator) -> Login:
        kept = None
        if request.again and authenticator.reviews_admitted:
            kept = self._engine.connection(request.connection_id)
        return Login(
            connect=request.connect,
            nonce=request.nonce,
            tls=request.tls,
            connection_type=request.connection_type,
            remote_address=request.remote_address,
            connection_id=request.connection_id,
            admitted="" if kept is None else msgspec.json.decode(kept, type=KeptDetails).details,
        )
