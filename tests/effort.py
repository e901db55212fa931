"""How much work a call is, counted in function calls: the same number on every machine, however busy it is.

A test of complexity compares the effort for an input with the effort for one twice as long. What happens inside one
call of a C function is not counted; a test of that relies on its time-out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def calls_during(work: Callable[[], object]) -> int:
    """Run `work` and return how many Python and C functions it called."""
    count = 0

    def on_event(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    previous = sys.getprofile()
    sys.setprofile(on_event)
    try:
        work()
    finally:
        sys.setprofile(previous)
    return count


def assert_linear(work_of_size: Callable[[int], Callable[[], object]], size: int) -> None:
    """Assert that an input twice as long takes about twice the calls; a quadratic way would take four times as many.

    `work_of_size` prepares an input and returns the work to count.
    """
    single = calls_during(work_of_size(size))
    double = calls_during(work_of_size(2 * size))

    assert double < 3 * single, f"{single} calls for {size}, {double} for {2 * size}"
