"""`MetricsReader`: how long the disk takes, from the server's monitoring pages.

NATS carries no figure of it. `/metrics` of Jetlake has a histogram that only grows; the difference of two looks is what
happened between them.

Invariant: however many sessions ask, the page is read at most once in `FRESH_S`.
"""

import asyncio
import re
import time
from http.client import HTTPException
from urllib.error import URLError
from urllib.request import urlopen

__all__ = ["MetricsReader"]

FRESH_S = 1.0
ANSWER_S_MAX = 2.0
PAGE_BYTES_MAX = 16 * 1024 * 1024
"""A page with a thousand streams and consumers has about one megabyte."""

WORST_SHARE = 0.99
"""Of the commits of an interval: the slowest one in a hundred is what users notice."""

_LINE = re.compile(r'^jetlake_sync_seconds_(?:bucket\{le="([^"]+)"\}|(sum)|(count)) (\S+)$', re.MULTILINE)


class MetricsReader:
    """The latency of commits on one server."""

    def __init__(self, url: str) -> None:
        self._url = f"{url.rstrip('/')}/metrics"
        self._lock = asyncio.Lock()
        self._read_s = 0.0
        self._before: dict[str, float] = {}
        self._latest: dict[str, float] = {}

    async def sync_seconds(self) -> dict[str, float]:
        """Return `fsync`, the mean of the last interval, and `fsync.worst`; empty if nothing was committed."""
        async with self._lock:
            if time.monotonic() - self._read_s >= FRESH_S:
                counters = await asyncio.to_thread(self._read)
                self._latest = _between(self._before, counters) if self._before else {}
                self._before = counters
                self._read_s = time.monotonic()
            return self._latest

    def _read(self) -> dict[str, float]:
        try:
            with urlopen(self._url, timeout=ANSWER_S_MAX) as answer:  # noqa: S310 - http or https, by the options
                text = answer.read(PAGE_BYTES_MAX).decode(errors="replace")
        except (URLError, HTTPException, OSError):
            return {}
        return {bound or total or count: float(value) for bound, total, count, value in _LINE.findall(text)}


def _between(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    grown = {key: value - before.get(key, 0.0) for key, value in after.items()}
    commits = grown.get("count", 0.0)
    if commits <= 0:
        return {}
    bounds = sorted((float(key), value) for key, value in grown.items() if key not in ("sum", "count"))
    finite = [bound for bound, _ in bounds if bound != float("inf")]
    worst = next((bound for bound, below in bounds if below >= WORST_SHARE * commits), float("inf"))
    return {"fsync": grown["sum"] / commits, "fsync.worst": min(worst, max(finite, default=0.0))}
