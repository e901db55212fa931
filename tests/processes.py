"""What tests of Ctrl-C need: its own handler, and the processes that may have been left behind."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def interrupts_raise() -> Iterator[None]:
    """Ctrl-C as Python has it, whatever handler other tests of this process have left: Spark has one of its own."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def processes_of(folder: Path) -> list[int]:
    """Return the ids of the processes whose command line names a folder; none where there is no /proc."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if bytes(folder) in words:
            found.append(int(path.parent.name))
    return found
