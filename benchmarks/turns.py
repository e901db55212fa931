"""Servers take turns on one workload, so that whatever else the machine does hits all of them."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from benchmarks.figures import Result
from benchmarks.servers import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def take_turns(
    workload: Any,
    servers: list[str],
    repeats: int,
    measure: Callable[[str], Any],
    within: AbstractContextManager[Any] | None = None,
) -> Result | None:
    """Measure every server in each repeat; nothing, and a line on stderr, when one of them cannot do it."""
    print(f"{workload.title} ...", file=sys.stderr, flush=True)
    result = Result(workload)
    try:
        with within or nullcontext():
            for _ in range(repeats):
                for name in servers:
                    result.add(name, measure(name))
    except BenchmarkError as error:
        print(f"benchmarks: {workload.name}: {error}", file=sys.stderr)
        return None
    return result
