"""What this process costs: its memory and its share of the processors.

A share needs two looks at the clock. Pages may be asked for at any pace and by several pollers, so the share is taken
over the time since the last look that is at least a second old, and stays the same until then.
"""

import os
import sys
import time
from collections.abc import Callable
from threading import Lock

WINDOW_S_MIN = 1.0
"""Over less time a share says more about the poller than about the server."""


class ProcessUsage:
    """Memory and processor time of this process, the engine's threads included."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, worked: Callable[[], float] = time.process_time
    ) -> None:
        self._clock = clock
        self._worked = worked
        self._lock = Lock()
        self._looked_at = clock()
        self._worked_before = worked()
        self._share_percent = 0.0

    def processor_percent(self) -> float:
        """Return the share of one processor, so that 200 means two of them."""
        with self._lock:
            now, worked = self._clock(), self._worked()
            elapsed = now - self._looked_at
            if elapsed >= WINDOW_S_MIN:
                self._share_percent = round(100 * (worked - self._worked_before) / elapsed, 1)
                self._looked_at, self._worked_before = now, worked
            return self._share_percent

    def processor_seconds(self) -> float:
        return self._worked()


def resident_bytes() -> int:
    """Return the memory this process holds; on systems other than Linux, the most it ever held."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def processor_count() -> int:
    return os.cpu_count() or 1
