"""What processors of Spark's state do with the process that they run in."""

import gc
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager

PREPARING_PROCESS = "pyspark.sql.streaming.transform_with_state_driver_worker"
"""A program of Spark that imports the module of a processor when it reads it."""


@contextmanager
def no_collection() -> Iterator[None]:
    """Have no garbage collected: many objects are made that live until the end, and none of them in a cycle."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def keep_quiet() -> None:
    """Have the process that prepares the state for the first batch say nothing: Spark prints what it does there."""
    main = sys.modules.get("__main__")
    if getattr(getattr(main, "__spec__", None), "name", "") == PREPARING_PROCESS:
        sys.stdout = io.StringIO()
