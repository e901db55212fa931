"""`Clock`: the time of a server with `clock="manual"`, moved by a test.

Invariant: when `advance` returns, everything that was due by then has been started by the server.
"""

from typing import TYPE_CHECKING

from jetlake.errors import ConfigurationError
from jetlake.shared.durations import duration_ns

if TYPE_CHECKING:
    from jetlake.server.server import Server

__all__ = ["Clock"]

SECOND = 1_000_000_000


class Clock:
    """The clock of one server; it stands still between two calls of `advance`."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self.advanced_s = 0.0

    def advance(self, time: float | str) -> None:
        """Let time go on at once, by seconds or by a text such as `"2h"`: what is due by then happens now."""
        if isinstance(time, str):
            nanoseconds = duration_ns(time)
            if nanoseconds is None:
                raise ConfigurationError(f"{time!r} is not a duration: write 30s, 90m or 2h")
            seconds = nanoseconds / SECOND
        else:
            seconds = time
        self._server.advance(seconds)
        self.advanced_s += seconds
