"""`SignalPipe`: signals as numbers that a thread reads, in order.

```python
with SignalPipe((signal.SIGINT, signal.SIGTERM)) as signals:
    number = signals.next()
```

The C-level handler writes the number of a signal into a pipe, whichever thread the signal was delivered to. A handler
in Python runs on the main thread only: that may hold the very lock the handler wants, and is not woken if another
thread took the signal, as after a suspension.

Invariant: between `with` and its end every one of the signals arrives at `next`, and nowhere else.
"""

import os
import signal
from collections.abc import Iterable
from types import FrameType
from typing import Self

WAKE = 0
"""No signal has this number: another thread wants the attention of the reader."""


class SignalPipe:
    """Between `with` and its end, these signals arrive at `next` instead of ending the process.

    Only the main thread may enter it; that is a rule of Python's `signal`. Any one thread may read.
    """

    def __init__(self, numbers: Iterable[signal.Signals]) -> None:
        self._numbers = tuple(numbers)

    def __enter__(self) -> Self:
        self._read_end, self._write_end = os.pipe()
        # A handler must never block, even if nobody reads.
        os.set_blocking(self._write_end, False)
        self._wakeup_before = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        self._handlers_before = {number: signal.signal(number, _do_nothing) for number in self._numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._read_end)
        os.close(self._write_end)

    def next(self) -> int:
        """Wait for the next signal and return its number, or `WAKE`."""
        while True:
            number = os.read(self._read_end, 1)[0]
            # Python writes every signal that has a handler, those of others included.
            if number == WAKE or number in self._numbers:
                return number

    def wake(self) -> None:
        """Make `next` return `WAKE`; any thread may call it."""
        os.write(self._write_end, bytes([WAKE]))


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Python insists on a handler; the number is already in the pipe."""
