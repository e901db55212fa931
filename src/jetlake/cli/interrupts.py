"""Ctrl-C in commands whose work is in other threads and processes: it ends them without a word.

DuckDB and Spark turn the interrupt into errors of their own, on threads of their own, and print some of them. So the
handler removes what the work would leave behind and ends the process itself, with exit code 130.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jetlake.cli.run import INTERRUPTED

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["ended_by_interrupt"]

Tidies = list[Callable[[], object]]
"""What is done before the process ends; each one alone, and quickly."""


@contextmanager
def ended_by_interrupt() -> "Iterator[Tidies]":
    """Have Ctrl-C end this process with 130 while the block runs, after the functions that are put into the list."""
    tidies: Tidies = []

    def on_interrupt(_number: int, _frame: "FrameType | None") -> None:
        for tidy in reversed(tidies):
            with contextlib.suppress(Exception):
                tidy()
        # Threads of an engine may wait for a server, and output for a reader; neither is worth waiting for.
        os._exit(INTERRUPTED)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield tidies
    finally:
        signal.signal(signal.SIGINT, before)
