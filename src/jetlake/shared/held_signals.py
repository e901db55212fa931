"""`held_signals`: a block that Ctrl-C and SIGTERM do not cut in two.

Python raises `KeyboardInterrupt` between any two steps of the main thread. One that comes after a process has started,
and before anything keeps hold of it, leaves that process running for good.

```python
with held_signals():
    self._process = subprocess.Popen(command)
```

Invariant: a signal that came during the block takes effect at its end.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["held_signals"]

HELD = (signal.SIGTERM, signal.SIGINT)
"""In the order in which they are put back: an interrupt, which may come any time, cuts nothing off as the last."""


@contextmanager
def held_signals() -> Iterator[None]:
    """Hold back what the handlers of SIGINT and SIGTERM do until the block has ended.

    Other threads get no signals and need no hold; a process that is started inside gets its signals as usual.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    is_held = True
    # What has no handler in Python ends the process or is ignored, and nothing of ours runs in between.
    before = {number: handler for number in HELD if callable(handler := signal.getsignal(number))}

    def put_back() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        if is_held:
            came.append(number)
        else:
            # It came while the handlers are put back, and what it raises would cut that off.
            put_back()
            before[signal.Signals(number)](number, frame)

    try:
        for number in before:
            signal.signal(number, handle)
        yield
    finally:
        is_held = False
        put_back()
        for each in came:
            signal.raise_signal(each)
