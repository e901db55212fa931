"""`Requester`: where the sender of a request may publish, and have the server send to, as of its arrival.

The engine passes it with the request, so it is valid even if the connection has ended or the configuration was
reloaded meanwhile. `jetlake._engine.Request` is one.

Invariant: no client is mistaken for the server. A call without a requester has the rights of `NOBODY`.
"""

from typing import Protocol


class Requester(Protocol):
    """The sender of a request. A pattern is allowed when all of its subjects are, and none of them is denied."""

    def may_publish(self, pattern: str) -> bool: ...
    def may_send_to(self, target: str, pattern: str) -> bool: ...


class _Fixed:
    """May do everything, or nothing."""

    def __init__(self, *, is_allowed: bool) -> None:
        self._is_allowed = is_allowed

    def may_publish(self, _pattern: str) -> bool:
        return self._is_allowed

    def may_send_to(self, _target: str, _pattern: str) -> bool:
        return self._is_allowed


SERVER: Requester = _Fixed(is_allowed=True)
"""The server itself, which does what it was configured to do."""

NOBODY: Requester = _Fixed(is_allowed=False)
"""An unknown requester: may do nothing."""
