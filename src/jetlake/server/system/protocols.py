"""What the parts of the system account need of the engine and its events; `jetlake._engine` has all of it.

Only type checkers load this: making such classes takes longer than registering every subject.
"""

from typing import Protocol

from jetlake.management.engine.protocols import EnginePublisher
from jetlake.monitoring.readings import EngineReadings


class ConnectionEvent(Protocol):
    """A client came, left or was refused; `jetlake._engine.ConnectionEvent` is one."""

    @property
    def kind(self) -> str: ...
    @property
    def connection(self) -> bytes: ...


class EngineListeners(Protocol):
    """What of the engine is needed; `jetlake._engine.Engine` has it."""

    @property
    def server_id(self) -> str: ...
    def has_interest(self, account: str, subject: str) -> bool: ...


class EngineSubscriptions(Protocol):
    """What of the engine is needed; `jetlake._engine.Engine` has it."""

    @property
    def server_id(self) -> str: ...
    def subscribe(self, account: str, subject: str, queue: str | None = None) -> int: ...
    def unsubscribe(self, service: int) -> bool: ...


class SystemEngine(EngineReadings, EnginePublisher, Protocol):
    """What of the engine is needed; `jetlake._engine.Engine` has it."""

    def next_event_sequence(self) -> int: ...
    def kick(self, connection_id: int) -> bool: ...
