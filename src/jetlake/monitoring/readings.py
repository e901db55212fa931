"""`MonitoredServer`: one server as every page sees it.

Pages never touch the engine: they get a `MonitoredServer`, and tests give them one that replays recorded JSON.

Invariant: reading changes nothing in the engine and waits for no client, so a page may be asked for at any time.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import msgspec

from jetlake.monitoring.facts import ServerFacts
from jetlake.monitoring.usage import ProcessUsage
from jetlake.shared.engine_reports import (
    AccountStatistics,
    Connection,
    LeafLink,
    LeafRemoteState,
    Statistics,
    StreamFigures,
    SubscriptionList,
    SubscriptionQuery,
)

if TYPE_CHECKING:
    from jetlake.monitoring.jsz import AccountUsage

_STREAM_FIGURES = msgspec.json.Decoder(StreamFigures)


class EngineReadings(Protocol):
    """What of the engine is read; `jetlake._engine.Engine` has it."""

    def statistics(self) -> bytes: ...
    def connections(self) -> bytes: ...
    def connection(self, connection_id: int) -> bytes | None: ...
    def closed_connections(self) -> bytes: ...
    def subscriptions(self, query: bytes) -> bytes: ...
    def stream_figures(self) -> bytes: ...
    def leaf_links(self) -> bytes: ...
    def leaf_interest(self, connection_id: int) -> list[str]: ...
    def leaf_remotes(self) -> bytes: ...


class MonitoredServer:
    """One server: its facts, its engine's figures, and what monitoring itself counts."""

    def __init__(
        self,
        engine: EngineReadings,
        facts: Callable[[], ServerFacts],
        *,
        clock: Callable[[], int] = time.time_ns,
        usage: ProcessUsage | None = None,
        usages: "Callable[[], list[AccountUsage]] | None" = None,
    ) -> None:
        self._engine = engine
        # What each account with JetStream stores, by name; None = nothing.
        self.usages = usages
        self._facts = facts
        self._clock = clock
        self.usage = usage or ProcessUsage()
        # Requests per page. Only the thread of the pages writes it.
        self.page_requests: dict[str, int] = {}

    @property
    def facts(self) -> ServerFacts:
        return self._facts()

    def now_unix_ns(self) -> int:
        return self._clock()

    def stream_figures(self) -> StreamFigures:
        """Return the figures of all streams and consumers; only with JetStream."""
        return _STREAM_FIGURES.decode(self._engine.stream_figures())

    def statistics(self) -> Statistics:
        """Return the figures, with zeros for accounts that nobody has used yet."""
        statistics = _STATISTICS.decode(self._engine.statistics())
        used = {account.name for account in statistics.accounts}
        unused = [AccountStatistics(name=name) for name in self.facts.accounts if name not in used]
        return msgspec.structs.replace(statistics, accounts=statistics.accounts + unused)

    def connections(self) -> list[Connection]:
        return _CONNECTIONS.decode(self._engine.connections())

    def connection(self, connection_id: int) -> Connection | None:
        """Return one connection; None = it has gone."""
        report = self._engine.connection(connection_id)
        return None if report is None else _CONNECTION.decode(report)

    def closed_connections(self) -> list[Connection]:
        return _CONNECTIONS.decode(self._engine.closed_connections())

    def leaf_links(self) -> list[LeafLink]:
        """Return the open connections to hubs and of leaf nodes."""
        return [] if self.facts.leaf is None else _LEAF_LINKS.decode(self._engine.leaf_links())

    def leaf_interest(self, link: LeafLink) -> list[str]:
        """Return the subjects that the other side of a link wants."""
        return self._engine.leaf_interest(link.id)

    def leaf_remotes(self) -> list[LeafRemoteState]:
        """Return how the configured hubs stand."""
        return [] if self.facts.leaf is None else _LEAF_REMOTES.decode(self._engine.leaf_remotes())

    def subscriptions(self, query: SubscriptionQuery) -> SubscriptionList:
        return _SUBSCRIPTIONS.decode(self._engine.subscriptions(msgspec.json.encode(query)))


_STATISTICS = msgspec.json.Decoder(Statistics)
_CONNECTION = msgspec.json.Decoder(Connection)
_CONNECTIONS = msgspec.json.Decoder(list[Connection])
_LEAF_LINKS = msgspec.json.Decoder(list[LeafLink])
_LEAF_REMOTES = msgspec.json.Decoder(list[LeafRemoteState])
_SUBSCRIPTIONS = msgspec.json.Decoder(SubscriptionList)
