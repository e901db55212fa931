"""What the parts of the system account need of the engine and its events; `jetlake._engine` has all of it.

Only type checkers load this: making such classes takes longer than registering every subject.
"""

from typing import Protocol

from jetlake.monitoring.readings import EngineReadings


class Request(Protocol):
    """A message to the server; `jetlake._engine.Request` is one."""

    @property
    def connection_id(self) -> int: ...
    @property
    def account(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def reply(self) -> str: ...
    @property
    def header(self) -> bytes: ...
    @property
    def payload(self) -> bytes: ...


class ConnectionEvent(Protocol):
    """A client came, left or was refused; `jetlake._engine.ConnectionEvent` is one."""

    @property
    def kind(self) -> str: ...
    @property
    def connection(self) -> bytes: ...


class Listeners(Protocol):
    """What of the engine is needed; `jetlake._engine.Engine` has it."""

    @property
    def server_id(self) -> str: ...
    def has_interest(self, account: str, subject: str) -> bool: ...


class Subscriptions(Protocol):
    """What of the engine is needed; `jetlake._engine.Engine` has it."""

    @property
    def server_id(self) -> str: ...
    def subscribe(self, account: str, subject: str, queue: str | None = None) -> int: ...
    def unsubscribe(self, service: int) -> bool: ...


class SystemEngine(EngineReadings, Protocol):
    """What of the engine is needed; `jetlake._engine.Engine` has it."""

    def has_interest(self, account: str, subject: str) -> bool: ...
    def publish(
        self, account: str, subject: str, payload: bytes, reply: str | None = None, header: bytes | None = None
    ) -> int: ...
    def kick(self, connection_id: int) -> bool: ...
