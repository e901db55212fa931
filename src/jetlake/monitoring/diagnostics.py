"""`/stacksz` and `/debug/vars`: what a developer looks at when a server behaves oddly.

Invariant: stacks name functions and lines, never values; the command line is not shown, because it may hold a password.
"""

import sys
import threading
from types import FrameType

import msgspec

from jetlake.monitoring.readings import MonitoredServer
from jetlake.monitoring.usage import resident_bytes

FRAMES_MAX = 100
"""Frames shown of one thread; deeper stacks are an endless recursion, whose end tells nothing new."""


class MemoryFigures(msgspec.Struct, kw_only=True, rename="pascal"):
    """Memory of the process. Of what Go counts, only the sum has a meaning here."""

    sys: int


class DebugVariables(msgspec.Struct, kw_only=True):
    """The page `/debug/vars`."""

    cmdline: list[str]
    memstats: MemoryFigures


class VariablesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing can be asked for."""


def build_variables(_source: MonitoredServer, _options: VariablesOptions) -> DebugVariables:
    """Return `/debug/vars`."""
    return DebugVariables(cmdline=[], memstats=MemoryFigures(sys=resident_bytes()))


def stacks() -> str:
    """Return what every Python thread is doing. The engine's threads run no Python and are not listed."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for identifier, frame in sys._current_frames().items():  # noqa: SLF001 - the documented way to see other threads
        parts.append(f"thread {identifier} [{names.get(identifier, 'unknown')}]:")
        parts += _lines(frame)
        parts.append("")
    return "\n".join(parts)


def _lines(frame: FrameType | None) -> list[str]:
    lines: list[str] = []
    while frame is not None and len(lines) < FRAMES_MAX:
        module = frame.f_globals.get("__name__", "?")
        lines.append(f"    {module}.{frame.f_code.co_qualname}:{frame.f_lineno}")
        frame = frame.f_back
    return lines
