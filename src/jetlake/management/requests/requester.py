"""`Requester`: what whoever sent a request may publish to, and have the server send to, as it was when it arrived.

The engine hands it over with the request, so that it holds although the connection has ended or the configuration was
read again meanwhile. `jetlake._engine.Request` is one.

Invariant: nobody is taken for the server. A call that does not say who asks has the rights of `NOBODY`.
"""

from typing import Protocol


class Requester(Protocol):
    """Whoever asks. A pattern is allowed when all of its subjects are, and none of them is denied."""

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
"""Somebody unknown: refused."""
