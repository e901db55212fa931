"""How the queries of a session are doing: rows per second, time per batch, and how far each is behind.

Spark tells a listener about every batch; from the newest offset that our reader reports and the end of the batch it
follows how many messages wait. It is kept per query, and shown as a bar in a terminal or as text for Prometheus.

```python
progress = jetlake.spark.Progress()
progress.listen(spark)
with progress.bar():
    query.awaitTermination()
print(progress.to_prometheus())
```

Invariant: one entry per query that is running or was; the newest `QUERIES_MAX` are kept.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Progress", "QueryProgress"]

QUERIES_MAX = 1_000
"""Queries that are remembered; a session that runs for months starts many."""

REFRESHES_PER_SECOND = 4

_METRICS = (
    ("rows_total", "counter", "Rows read.", "rows_total"),
    ("batches_total", "counter", "Batches done.", "batches_total"),
    ("rows_per_second", "gauge", "Rows per second in the last batch.", "rows_per_second"),
    ("batch_seconds", "gauge", "Duration of the last batch.", "batch_s"),
    ("lag_messages", "gauge", "Messages stored and not read yet.", "lag"),
    ("running", "gauge", "1 while the query runs.", "running"),
)


class QueryProgress(msgspec.Struct, kw_only=True):
    """How one query is doing."""

    query: str
    name: str
    running: bool = True
    rows_total: int = 0
    batches_total: int = 0
    rows_per_second: float = 0.0
    batch_s: float = 0.0
    # Messages that are stored and not read yet; -1 = the source does not say.
    lag: int = -1
    failure: str = ""


class Progress:
    """Listens to a session and keeps the progress of its queries."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queries: dict[str, QueryProgress] = {}
        self._listener: Any = None

    def listen(self, spark: "SparkSession") -> None:
        """Start listening; `stop` ends it."""
        from pyspark.sql.streaming.listener import StreamingQueryListener

        progress = self

        class ProgressListener(StreamingQueryListener):
            def onQueryStarted(self, event: Any) -> None:  # noqa: N802
                progress.started(str(event.id), event.name or "")

            def onQueryProgress(self, event: Any) -> None:  # noqa: N802
                progress.progressed(event.progress)

            def onQueryIdle(self, event: Any) -> None:  # noqa: N802
                progress.idle(str(event.id))

            def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
                progress.ended(str(event.id), event.exception or "")

        self._listener = ProgressListener()
        spark.streams.addListener(self._listener)

    def stop(self, spark: "SparkSession") -> None:
        """Stop listening."""
        if self._listener is not None:
            spark.streams.removeListener(self._listener)
            self._listener = None

    def queries(self) -> list[QueryProgress]:
        """Return how each query is doing, the oldest first."""
        with self._lock:
            return [msgspec.structs.replace(query) for query in self._queries.values()]

    def to_prometheus(self) -> str:
        """Return everything as text that Prometheus reads."""
        lines = []
        for metric, kind, help_text, field in _METRICS:
            lines += [f"# HELP jetlake_spark_{metric} {help_text}", f"# TYPE jetlake_spark_{metric} {kind}"]
            for query in self.queries():
                value = getattr(query, field)
                if field != "lag" or value >= 0:
                    label = _label(query.name or query.query)
                    lines.append(f'jetlake_spark_{metric}{{query="{label}"}} {_number(value)}')
        return "\n".join(lines) + "\n"

    @contextmanager
    def bar(self) -> Iterator[None]:
        """Show a line per query in the terminal while the block runs."""
        from rich.live import Live

        with Live(get_renderable=self._table, refresh_per_second=REFRESHES_PER_SECOND, transient=True):
            yield

    def _table(self) -> Any:
        from rich.table import Table

        table = Table("query", "state", "batches", "rows", "rows/s", "batch ms", "behind", box=None)
        for query in self.queries():
            state = query.failure.splitlines()[0][:60] if query.failure else "running" if query.running else "ended"
            table.add_row(
                query.name or query.query[:8],
                state,
                f"{query.batches_total:,}",
                f"{query.rows_total:,}",
                f"{query.rows_per_second:,.0f}",
                f"{query.batch_s * 1000:,.0f}",
                "" if query.lag < 0 else f"{query.lag:,}",
            )
        return table

    # What Spark tells; the events come on a thread of its own.

    def started(self, query: str, name: str) -> None:
        with self._lock:
            while len(self._queries) >= QUERIES_MAX:
                self._queries.pop(next(iter(self._queries)))
            self._queries[query] = QueryProgress(query=query, name=name)

    def progressed(self, progress: Any) -> None:
        with self._lock:
            query = self._queries.get(str(progress.id))
            if query is None:
                query = self._queries[str(progress.id)] = QueryProgress(
                    query=str(progress.id), name=progress.name or ""
                )
            query.rows_total += progress.numInputRows
            query.batches_total += 1
            query.rows_per_second = progress.processedRowsPerSecond
            query.batch_s = progress.batchDuration / 1000
            lags = [lag_of(source.endOffset, source.latestOffset) for source in progress.sources]
            known = [lag for lag in lags if lag is not None]
            query.lag = sum(known) if known else -1

    def idle(self, query: str) -> None:
        with self._lock:
            if query in self._queries:
                self._queries[query].rows_per_second = 0.0
                self._queries[query].lag = min(self._queries[query].lag, 0)

    def ended(self, query: str, failure: str) -> None:
        with self._lock:
            if query in self._queries:
                self._queries[query].running = False
                self._queries[query].failure = failure


def lag_of(end: str | None, latest: str | None) -> int | None:
    """Return how many messages lie between two offsets of ours; None for those of other sources."""
    try:
        behind = json.loads(end or "null")["streams"]
        newest = json.loads(latest or "null")["streams"]
        ahead = [
            int(position["next"]) - int(behind.get(name, {"next": 1})["next"]) for name, position in newest.items()
        ]
        return sum(max(count, 0) for count in ahead)
    except (TypeError, KeyError, ValueError, AttributeError):
        return None


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float | bool) -> str:
    return f"{float(value):.6g}" if isinstance(value, float) else str(int(value))
