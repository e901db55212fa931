"""`ClaimsLookup`: asks others in the system account for claims that a cache does not have.

```python
lookup.connect(engine, "ASYS…")
text = lookup.ask("A…")                       # empty = nobody has them; blocks for `timeout_s` at most
lookup.hear("$SYS._INBOX.….1", b"eyJ0eXAi…")  # by the thread of the system account
```

Invariant: an answer counts only for its own request, and only while that waits.
"""

import secrets
from threading import Condition
from typing import Protocol

from jetlake._engine import EngineError

TOKEN_BYTES = 16
"""Long enough that no client can guess the subject on which an answer is awaited."""


class Publishing(Protocol):
    """The part of the engine that is needed."""

    def publish(self, account: str, subject: str, payload: bytes, reply: str | None = None) -> int: ...


class ClaimsLookup:
    """The requests of one server. Any thread may ask, except the one that calls `hear`."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._inbox = f"$SYS._INBOX.{secrets.token_hex(TOKEN_BYTES)}"
        self._engine: Publishing | None = None
        self._system_account = ""
        self._answered = Condition()
        # What was answered, by the end of the reply subject; None = nothing yet.
        self._awaited: dict[str, str | None] = {}
        self._asked = 0

    @property
    def subject(self) -> str:
        """Where answers arrive."""
        return f"{self._inbox}.*"

    def connect(self, engine: Publishing, system_account: str) -> None:
        """Ask in this system account from now on; before that nobody is asked."""
        self._engine, self._system_account = engine, system_account

    def ask(self, account: str) -> str:
        """Return an account's claims from another server; empty = none answers in time."""
        if self._engine is None:
            return ""
        with self._answered:
            self._asked += 1
            end = str(self._asked)
            self._awaited[end] = None
        try:
            subject = f"$SYS.REQ.ACCOUNT.{account}.CLAIMS.LOOKUP"
            if self._engine.publish(self._system_account, subject, b"", f"{self._inbox}.{end}"):
                with self._answered:
                    self._answered.wait_for(lambda: self._awaited[end], self._timeout_s)
        except EngineError:
            # The engine is ending, and nobody comes in any more.
            return ""
        finally:
            with self._answered:
                found = self._awaited.pop(end)
        return found or ""

    def hears(self, subject: str) -> bool:
        """Tell whether a message is an answer."""
        return subject.startswith(f"{self._inbox}.")

    def hear(self, subject: str, payload: bytes) -> None:
        """Take an answer. An empty one says that its sender has no such claims: others may have them."""
        end = subject.rpartition(".")[2]
        with self._answered:
            if end in self._awaited and payload and payload.isascii():
                self._awaited[end] = payload.decode("ascii")
                self._answered.notify_all()
