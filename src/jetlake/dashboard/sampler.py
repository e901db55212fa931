"""`Sampler`: the one task of a session that asks the server for live figures, for all of its pages.

```text
page ── keys ──> live.py ── watch(keys) ──> Sampler ── every INTERVAL_S ──> NATS
     <─ frame ──         <── next tick ────
```

Invariant: however many pages and charts are open, a session asks once per interval, and not at all when no page is
open.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from jetlake.client.api import token
from jetlake.dashboard.lag_survey import LagSurvey
from jetlake.dashboard.metrics import MetricsReader
from jetlake.dashboard.profile import Feature, ServerProfile
from jetlake.dashboard.series import History, shown, unit_of
from jetlake.dashboard.session_api import SessionApi
from jetlake.errors import ClientError
from jetlake.shared.cancellation import end

__all__ = ["INTERVAL_S", "Sampler"]

INTERVAL_S = 2.0
"""Fast enough to see a change, slow enough for a hundred sessions."""

GRACE_S = 30.0
"""How long a session without an open page goes on, so that a change of pages leaves no gap in the charts."""

STREAMS_MAX = 200
"""Streams sampled per interval: the rows of a few open lists."""

REQUESTS_AT_ONCE = 16
"""Requests under way for one session, so that it does not take the server's API for itself."""

STREAM_PREFIX = "stream:"

ACCOUNT_FIGURES = "$SYS.REQ.ACCOUNT.PING.STATZ"
SERVER_FIGURES = "$SYS.REQ.SERVER.PING.STATSZ"

LOG = logging.getLogger("jetlake.dashboard")


class Sampler:
    """Figures of one session, and the tasks that wait for the next ones."""

    def __init__(self, api: SessionApi, profile: ServerProfile, metrics: MetricsReader | None) -> None:
        self._api = api
        self._profile = profile
        self._metrics = metrics
        self.history = History()
        self.lag = LagSurvey(api)
        # Why the last look failed; empty when it did not.
        self.problem = ""
        self._watched: dict[int, frozenset[str]] = {}
        self._watcher_number = 0
        self._last_watched_s = time.monotonic()
        self._counters: dict[str, tuple[float, float]] = {}
        self._tick = asyncio.Condition()
        self._wake = asyncio.Event()
        self._frames: dict[frozenset[str], bytes] = {}
        self._time_s = 0.0
        self._task = asyncio.create_task(self._run(), name="jetlake-dashboard-sampler")

    @property
    def is_watched(self) -> bool:
        """Whether a page is open."""
        return bool(self._watched)

    @contextmanager
    def watch(self, keys: Iterable[str]) -> Iterator[None]:
        """Sample these keys while the block runs."""
        self._watcher_number += 1
        number = self._watcher_number
        self._watched[number] = frozenset(keys)
        self._wake.set()
        try:
            yield
        finally:
            del self._watched[number]
            self._last_watched_s = time.monotonic()

    async def next_tick(self) -> None:
        """Wait for the next samples."""
        async with self._tick:
            await self._tick.wait()

    def frame(self, keys: frozenset[str]) -> bytes:
        """Return the newest values of keys as JSON; pages with the same keys share the bytes."""
        found = self._frames.get(keys)
        if found is None:
            values = {}
            for key in keys:
                value = self.history.last(key)
                values[key] = [value, shown(value, unit_of(key))]
            frame = {"time": self._time_s, "values": values, "problem": self.problem}
            found = self._frames[keys] = msgspec.json.encode(frame)
        return found

    def past(self, keys: frozenset[str]) -> bytes:
        """Return what is known of keys so far, as JSON."""
        return msgspec.json.encode({"history": {key: self.history.samples(key) for key in keys}})

    async def close(self) -> None:
        """End the task."""
        await end(self._task)
        async with self._tick:
            self._tick.notify_all()

    async def _run(self) -> None:
        while True:
            if not self._watched and time.monotonic() - self._last_watched_s > GRACE_S:
                self._wake.clear()
                # Messages of the pause do not belong to the rate of the next interval.
                self._counters.clear()
                await self._wake.wait()
            begin_s = time.monotonic()
            self._time_s = time.time()
            try:
                await self._sample()
                self.problem = ""
            except ClientError as error:
                self.problem = str(error)
            except Exception:
                # A bug in one figure must not end all of them, and must not go unseen.
                LOG.exception("a sample failed")
                self.problem = "The dashboard could not read the figures; its log says why."
            self._frames.clear()
            async with self._tick:
                self._tick.notify_all()
            await asyncio.sleep(max(0.0, INTERVAL_S - (time.monotonic() - begin_s)))

    async def _sample(self) -> None:
        if not self._api.connection.is_connected:
            raise ClientError(f"The connection to {self._api.access.shown} is lost. The dashboard is reconnecting.")
        await self._sample_traffic()
        if self._profile.offers(Feature.JETSTREAM):
            await self._sample_jetstream()
            await self.lag.advance()
            if self.lag.total is not None:
                self._set("lag", self.lag.total)
            await self._sample_streams()
        if self._metrics is not None:
            for key, value in (await self._metrics.sync_seconds()).items():
                self._set(key, value)

    async def _sample_traffic(self) -> None:
        if self._profile.offers(Feature.SYSTEM):
            figures = [answer.get("statsz") or {} for answer in await self._api.gather(SERVER_FIGURES)]
            self._sample_system(figures)
        else:
            answers = await self._api.gather(ACCOUNT_FIGURES)
            figures = [row for answer in answers for row in (answer.get("data") or {}).get("account_statz") or []]
            names = {"connections": "conns", "subscriptions": "num_subscriptions"}
            for key, name in names.items():
                if figures:
                    self._set(key, sum(int(each.get(name, 0)) for each in figures))
        if not figures:
            return
        for side, key in (("received", "in"), ("sent", "out")):
            for what, field in (("messages", "msgs"), ("bytes", "bytes")):
                self._set_rate(f"{what}.{key}", sum(int((each.get(side) or {}).get(field, 0)) for each in figures))
        self._set("slow_consumers", sum(int(each.get("slow_consumers", 0)) for each in figures))

    def _sample_system(self, figures: list[dict[str, Any]]) -> None:
        if not figures:
            return
        self._set("servers", len(figures))
        for key in ("connections", "subscriptions"):
            self._set(key, sum(int(each.get(key, 0)) for each in figures))
        stores = [stats for each in figures if (stats := (each.get("jetstream") or {}).get("stats"))]
        for key, field in (("storage", "storage"), ("memory", "memory")):
            if stores:
                self._set(key, sum(int(each.get(field, 0)) for each in stores))
        self._set_api([each.get("api") or {} for each in stores])

    async def _sample_jetstream(self) -> None:
        try:
            found = await self._api.request("INFO")
        except ClientError:
            # Streams can be seen without the right to ask for the account's figures.
            return
        for key in ("storage", "memory", "streams", "consumers"):
            self._set(key, int(found.get(key, 0)))
        self._set_api([found.get("api") or {}])

    def _set_api(self, figures: list[dict[str, Any]]) -> None:
        if figures:
            self._set("api.errors", sum(int(each.get("errors", 0)) for each in figures))
            self._set_rate("api.requests", sum(int(each.get("total", 0)) for each in figures))

    async def _sample_streams(self) -> None:
        wanted = {key for keys in self._watched.values() for key in keys if key.startswith(STREAM_PREFIX)}
        names = sorted({key.split(":")[1] for key in wanted})[:STREAMS_MAX]
        gate = asyncio.Semaphore(REQUESTS_AT_ONCE)

        async def sample(name: str) -> None:
            async with gate:
                try:
                    state = (await self._api.request(f"STREAM.INFO.{token(name)}"))["state"]
                except ClientError:
                    # It was deleted, or is not for this user; its row says so when the list is read again.
                    return
            self._set(f"{STREAM_PREFIX}{name}:messages", int(state["messages"]))
            self._set(f"{STREAM_PREFIX}{name}:bytes", int(state["bytes"]))
            self._set_rate(f"{STREAM_PREFIX}{name}:rate", int(state["last_seq"]))

        await asyncio.gather(*map(sample, names))

    def _set(self, key: str, value: float) -> None:
        self.history.add(key, self._time_s, value)

    def _set_rate(self, key: str, counter: int) -> None:
        before = self._counters.get(key)
        now_s = time.monotonic()
        self._counters[key] = (now_s, counter)
        if before is None or now_s <= before[0]:
            return
        # A counter that falls belongs to a server that was started again.
        self._set(key, max(0.0, (counter - before[1]) / (now_s - before[0])))
