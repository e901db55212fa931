"""Commands that run until they are stopped: in a terminal, under a supervisor, or as a child of a server.

```python
with Stop() as stop:
    stop.wait()
```

A child of a server reads what it is to do from the first line of its standard input, and stops when that ends.
"""

import json
import os
import signal
import sys
import time
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

from jetlake.errors import ConfigurationError
from jetlake.shared.signal_pipe import WAKE, SignalPipe

LABELS = {"info": "INF", "warning": "WRN", "error": "ERR", "debug": "DBG"}
"""A server that hosts a command knows the level of a line by them."""

READ_BYTES = 4096


class Stop:
    """Becomes true on SIGTERM and SIGINT, and for a hosted command at the end of its standard input."""

    def __init__(self, *, hosted: bool = False) -> None:
        self._event = Event()
        self._hosted = hosted
        self._signals = SignalPipe((signal.SIGTERM, signal.SIGINT))
        # Not the main thread: that does the work of the command, or waits.
        self._listener = Thread(target=self._watch_signals, name="jetlake-signals", daemon=True)

    def __enter__(self) -> Self:
        self._signals.__enter__()
        self._listener.start()
        if self._hosted:
            Thread(target=self._watch_input, name="jetlake-host-watch", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._signals.wake()
        self._listener.join()
        self._signals.__exit__(kind, error, traceback)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is time to stop, at most this long; return whether it is."""
        return self._event.wait(timeout_s)

    def is_set(self) -> bool:
        """Return whether it is time to stop."""
        return self._event.is_set()

    def set(self) -> None:
        self._event.set()

    def _watch_signals(self) -> None:
        while self._signals.next() != WAKE:
            self._event.set()

    def _watch_input(self) -> None:
        # Not through the buffered reader: its lock would be held when the interpreter ends.
        while os.read(sys.stdin.fileno(), READ_BYTES):
            pass
        self._event.set()


def read_settings_of_host() -> dict[str, Any]:
    """Return what the hosting server says. Raises `ConfigurationError`."""
    try:
        settings = json.loads(sys.stdin.buffer.readline())
    except ValueError as error:
        raise ConfigurationError("--hosted is for servers: they write a line of JSON to standard input") from error
    if not isinstance(settings, dict):
        raise ConfigurationError("--hosted is for servers: they write a JSON object to standard input")
    return settings


def report_line(level: str, text: str, *, hosted: bool) -> None:
    """Write one line to standard error: with the time, or for a server's log without."""
    label = LABELS.get(level, "INF")
    moment = "" if hosted else f"{time.strftime('%Y-%m-%d %H:%M:%S')} "
    for line in text.splitlines() or [""]:
        sys.stderr.write(f"{moment}[{label}] {line}\n")
    sys.stderr.flush()
