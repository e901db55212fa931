"""How the queries are doing, as Spark tells a listener: rows, rows per second, time of a batch, lag.

Lag is what the source knows to be stored minus what the batch has read: a source in Python has no numbers of its own.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from jetlake.spark.progress import lag_of as lag_of_source


class BatchProgress(msgspec.Struct, frozen=True):
    """One batch of one query."""

    query: str
    batch: int
    rows: int
    rows_per_second: float
    batch_ms: int
    lag: int | None
    time: str


class BatchListener(StreamingQueryListener):
    """Tells two functions about batches and about queries that have nothing to do."""

    def __init__(self, on_batch: Callable[[BatchProgress], None], on_idle: Callable[[str], None]) -> None:
        super().__init__()
        self._on_batch = on_batch
        self._on_idle = on_idle

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = event.progress
        self._on_batch(
            BatchProgress(
                query=progress.name or "",
                batch=progress.batchId,
                rows=progress.numInputRows,
                rows_per_second=finite(progress.processedRowsPerSecond),
                batch_ms=int((progress.durationMs or {}).get("triggerExecution", 0)),
                lag=lag_of([(source.endOffset, source.latestOffset) for source in progress.sources]),
                time=progress.timestamp,
            )
        )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        self._on_idle(str(event.id))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        pass


def finite(value: float | None) -> float:
    """Return a rate; Spark says NaN or infinity for a batch that took no time."""
    return float(value) if value is not None and value == value and abs(value) != float("inf") else 0.0


def lag_of(offsets: list[tuple[Any, Any]]) -> int | None:
    """Return how many messages wait, from where the sources of a batch end and where they could; None if unknown."""
    lags = [lag for end, latest in offsets if (lag := lag_of_source(end, latest)) is not None]
    return sum(lags) if lags else None
