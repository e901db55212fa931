"""Commands that run until they are told to stop: in a terminal, under a supervisor, or as a child of a server.

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
from types import FrameType, TracebackType
from typing import Any, Self

from jetlake.errors import ConfigurationError

LABELS = {"info": "INF", "warning": "WRN", "error": "ERR", "debug": "DBG"}
"""A server that hosts a command knows the level of a line by them."""

READ_BYTES = 4096

SIGNALS = (signal.SIGTERM, signal.SIGINT)


END = 0
"""No signal has this number: the thread that reads them ends."""


class Stop:
    """Becomes true on SIGTERM and SIGINT, and for a hosted command at the end of its standard input.

    A thread hears of the signals, through a pipe. A handler in Python would run on the main thread: that may hold the
    lock of the event in this moment, and it is not woken if the signal came while the process was suspended.
    """

    def __init__(self, *, hosted: bool = False) -> None:
        self._event = Event()
        self._hosted = hosted
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._read_end, self._write_end = os.pipe()
        # A handler must never block, even if nobody reads.
        os.set_blocking(self._write_end, False)
        self._wakeup_before = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        for number in SIGNALS:
            self._before[number] = signal.signal(number, _do_nothing)
        self._listener = Thread(target=self._watch_signals, name="jetlake-signals", daemon=True)
        self._listener.start()
        if self._hosted:
            Thread(target=self._watch_input, name="jetlake-host-watch", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        os.write(self._write_end, bytes([END]))
        self._listener.join()
        os.close(self._read_end)
        os.close(self._write_end)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is time to stop, or so long; return whether it is."""
        return self._event.wait(timeout_s)

    def is_set(self) -> bool:
        """Return whether it is time to stop."""
        return self._event.is_set()

    def set(self) -> None:
        self._event.set()

    def _watch_signals(self) -> None:
        while (number := os.read(self._read_end, 1)[0]) != END:
            if number in SIGNALS:
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


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Be a handler: Python writes only signals with one to the pipe."""
