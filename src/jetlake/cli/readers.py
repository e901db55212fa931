"""Who reads what a command prints: `head`, for example, reads ten lines and goes.

A command that changes something goes on to its end: what it prints from then on is dropped, and its exit code is that
of its work. A command that only reads ends with its reader.

Invariant: after `outlive_readers` nothing that is printed raises `BrokenPipeError`.
"""

import io
import os
import select
import stat
import sys
from collections.abc import Callable
from typing import Any, TextIO

__all__ = ["PipeClosedError", "check_reader", "drop_output", "outlive_readers", "watch_reader"]


class PipeClosedError(Exception):
    """Is raised when the reader of standard output has gone."""


def watch_reader() -> Callable[[], bool] | None:
    """Return a function that tells whether the reader of standard output has gone; None if it is not a pipe."""
    if not _is_pipe(sys.stdout) or not hasattr(select, "poll"):
        return None
    poll = select.poll()
    # Errors are always reported; no other event is of interest.
    poll.register(sys.stdout.fileno(), 0)
    return lambda: bool(poll.poll(0))


def outlive_readers() -> None:
    """Drop what this process prints from now on into a pipe that has lost its reader."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and _is_pipe(stream) and _lasting(stream) is None:
            setattr(sys, name, _outliving(stream))


def check_reader() -> None:
    """Raise `PipeClosedError` if something that was printed has been dropped."""
    sys.stdout.flush()
    pipe = _lasting(sys.stdout)
    if pipe is not None and pipe.is_lost:
        raise PipeClosedError


def drop_output(number: int) -> None:
    """Drop what is written to a file descriptor from now on, also what waits until the process ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


class _LastingPipe(io.FileIO):
    """The end of a pipe that takes everything, whether it is read or not."""

    is_lost = False

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            self.is_lost = True
            drop_output(self.fileno())
            return super().write(data)


def _outliving(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    pipe = _LastingPipe(stream.fileno(), "w", closefd=False)
    try:
        stream.flush()
    except BrokenPipeError:
        pipe.is_lost = True
        drop_output(stream.fileno())
        stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(pipe),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _lasting(stream: TextIO) -> _LastingPipe | None:
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return raw if isinstance(raw, _LastingPipe) else None


def _is_pipe(stream: TextIO) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        # Something else than a file is in its place, as in tests.
        return False
