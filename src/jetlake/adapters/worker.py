"""`Worker`: a thread with a connection of its own, which outlives the failures of both.

Invariant: whatever goes wrong in one worker, its thread goes on after a pause until it is told to stop; no other worker
notices.
"""

import random
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event, Thread
from typing import TypeAlias

from jetlake.adapters.conversion import Converter
from jetlake.adapters.metrics import Counters
from jetlake.adapters.options import AdapterOptions
from jetlake.adapters.queue import PublicationQueue
from jetlake.client.raw_connection import RawConnection
from jetlake.errors import ClientError, JetlakeError

__all__ = ["Complaints", "Connect", "Report", "Worker", "pause_s"]

Report: TypeAlias = Callable[[str, str], None]
"""Takes a level (info, warning, error) and a line."""

Connect: TypeAlias = Callable[[tuple[str, ...], str], RawConnection]
"""Connects to servers, those of the process if none are named, under a name. Raises `ClientError`."""


@dataclass(frozen=True)
class WorkerContext:
    """What the workers of one adapter share."""

    options: AdapterOptions
    converter: Converter
    queue: PublicationQueue
    connect: Connect
    # Set once a stream worker is connected: before, another process's adapter is the better receiver.
    ready: Event
    report: Report


PAUSES_MS = (500, 750, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500, 5000)
"""The original's own back-off; the last one repeats."""

SMALL_BATCH = 64
LINGER_S = 0.004
BUSY_S = 0.02
"""Two batches within `BUSY_S` mean that more will come at once; a lone message is never held back."""

COMPLAINT_INTERVAL_S = 10.0
"""One line for all complaints of a kind within this time: a flood of bad messages must not become a flood of lines."""


def pause_s(tries: int) -> float:
    """Return how long to wait after this many failures: 50 to 150 % of the table, so that workers spread out."""
    return PAUSES_MS[min(max(tries, 1), len(PAUSES_MS)) - 1] / 1000 * random.uniform(0.5, 1.5)


class Complaints:
    """Lines about something that may happen very often: the first at once, then a summary now and then."""

    def __init__(self, report: Report, level: str = "warning", clock: Callable[[], float] = time.monotonic) -> None:
        self._report = report
        self._level = level
        self._clock = clock
        self._next_s = 0.0
        self._held = 0

    def note(self, text: str, count: int = 1) -> None:
        """Report a line, or count it for the next one."""
        now = self._clock()
        if now < self._next_s:
            self._held += count
            return
        more = f" ({self._held:,} more since the last line)" if self._held else ""
        self._report(self._level, text + more)
        self._held = 0
        self._next_s = now + COMPLAINT_INTERVAL_S


class Worker(ABC):
    """One of the threads of an adapter."""

    def __init__(self, name: str, role: str, report: Report) -> None:
        self.counters = Counters(name=name, role=role)
        self.stopping = Event()
        self._report = report
        self._failures = Complaints(report, "error")
        self._failed_runs = 0
        self._batch_s = 0.0
        self._thread = Thread(target=self._run, name=f"jetlake-adapter-{name}-{role}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, timeout_s: float) -> bool:
        """Wait for the end; False when it does not come in time."""
        self._thread.join(max(timeout_s, 0.0))
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._is_over():
            try:
                self._work()
                self._failed_runs = 0
            except JetlakeError as error:
                self._note_failure(str(error))
            except Exception as error:  # noqa: BLE001 - a bug in one worker must not end the adapter
                where = "".join(traceback.format_tb(error.__traceback__)[-2:]).replace("\n", " ")
                self._note_failure(f"a bug, please report it: {type(error).__name__}: {error} {where}")

    def _note_failure(self, text: str) -> None:
        self.counters.errors += 1
        self._failed_runs += 1
        self._failures.note(f"adapter {self.counters.name} ({self.counters.role}): {text}")
        self._pause(pause_s(self._failed_runs))

    def _pause(self, seconds: float) -> None:
        self.stopping.wait(seconds)

    def _linger(self, messages: int) -> None:
        """Wait a little after a small batch that came right behind another one, so that the next one is larger.

        Many workers that handle few messages at a time spend more on taking turns than on the messages.
        """
        now_s = time.monotonic()
        if messages < SMALL_BATCH and now_s - self._batch_s < BUSY_S:
            time.sleep(LINGER_S)
        self._batch_s = time.monotonic()

    def _note_connected(self) -> None:
        self.counters.connections += 1
        if self._failed_runs:
            self._report("info", f"adapter {self.counters.name} ({self.counters.role}): connected again")
        self._failed_runs = 0

    @abstractmethod
    def _work(self) -> None:
        """Work until it is over or something fails."""

    @abstractmethod
    def _is_over(self) -> bool:
        """Tell whether the thread may end."""


def raise_complaints(complaints: list[str]) -> None:
    """Raise `ClientError` for what a server complained of."""
    if complaints:
        texts = "; ".join(complaints)
        complaints.clear()
        raise ClientError(f"the server says: {texts}; check the permissions of the adapter's user")
