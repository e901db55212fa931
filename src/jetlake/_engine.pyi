"""The native engine (crates/engine-py): everything that happens once per message.

The whole surface is on this page. Options, verdicts and statistics cross the boundary as one JSON object each;
`jetlake.config.EngineOptions` is the Python side of the options. No call holds the GIL while it waits.
"""

from typing import final

__all__ = [
    "AuthenticationRequest",
    "Engine",
    "EngineError",
    "LogLine",
    "Stopped",
    "__version__",
    "build_profile",
    "run_load",
]

__version__: str
build_profile: str

class EngineError(Exception):
    """The engine refused or failed. `args` is (kind, message); the kinds are listed in crates/engine/src/error.rs."""

@final
class LogLine:
    """One line for the log. Levels: info, warning, error, debug, trace."""

    @property
    def level(self) -> str: ...
    @property
    def text(self) -> str: ...

@final
class AuthenticationRequest:
    """A client said CONNECT (or, where allowed, something else first) and waits for `Engine.admit` or `Engine.refuse`."""

    @property
    def connection_id(self) -> int: ...
    @property
    def connect(self) -> bytes: ...
    @property
    def nonce(self) -> str: ...
    @property
    def remote_address(self) -> str: ...

@final
class Stopped:
    """The engine has stopped. `failure` is empty after a wanted stop, else it says what broke."""

    @property
    def failure(self) -> str: ...

@final
class Engine:
    """One server: a listener, its worker threads and the subjects they route."""

    def __new__(cls, options: bytes) -> Engine: ...
    @property
    def server_id(self) -> str: ...
    @property
    def address(self) -> tuple[str, int]: ...
    def start(self) -> None: ...
    def next_events(self, count_max: int, timeout_ms: int) -> list[LogLine | AuthenticationRequest | Stopped]: ...
    def admit(self, connection_id: int, verdict: bytes) -> bool: ...
    def refuse(self, connection_id: int) -> bool: ...
    def statistics(self) -> bytes: ...
    def connections(self) -> bytes: ...
    def set_log_levels(self, debug: bool, trace: bool) -> None: ...
    def stop_accepting(self) -> None: ...
    def announce_lame_duck(self) -> int: ...
    def close_one_connection(self) -> bool: ...
    def shutdown(self) -> None: ...

def run_load(plan: bytes) -> bytes:
    """Run one load of `jetlake bench` and return its figures; both sides are JSON objects."""
