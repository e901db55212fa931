"""`History`: what a session has sampled, one series per key, for charts that begin before their page was opened.

A key is a name such as `messages.in`, or `stream:ORDERS:rate` for one of a stream. `unit_of` says how it is shown.

Invariant: at most `SERIES_MAX` series of `SAMPLES_MAX` samples each; the series that was sampled longest ago makes
room.
"""

from array import array
from collections import OrderedDict
from enum import Enum

from jetlake.units import SECOND, shown_duration, shown_rate, shown_size

__all__ = ["History", "Unit", "shown", "unit_of"]

SAMPLES_MAX = 900
"""Half an hour at one sample every two seconds."""

ROW_SAMPLES_MAX = 60
"""Of a key that belongs to a row of a list, which shows a small line: two minutes."""

SERIES_MAX = 600
"""The overview's and those of some hundred rows: full, they take less than 1 MB of a session."""


UNKNOWN = "\N{EN DASH}"
"""In the place of a number that is not known."""


class Unit(Enum):
    """What a number is."""

    COUNT = "count"
    RATE = "rate"
    BYTES = "bytes"
    BYTE_RATE = "byte-rate"
    SECONDS = "seconds"


UNITS = {
    "messages.in": Unit.RATE,
    "messages.out": Unit.RATE,
    "bytes.in": Unit.BYTE_RATE,
    "bytes.out": Unit.BYTE_RATE,
    "storage": Unit.BYTES,
    "memory": Unit.BYTES,
    "fsync": Unit.SECONDS,
    "fsync.worst": Unit.SECONDS,
    "api.requests": Unit.RATE,
    "rate": Unit.RATE,
    "bytes": Unit.BYTES,
    "age": Unit.SECONDS,
}
"""By the key, or by its last part for a key of a stream or consumer; everything else is counted."""


def unit_of(key: str) -> Unit:
    """Return what the numbers of a key are."""
    return UNITS.get(key) or UNITS.get(key.rpartition(":")[2], Unit.COUNT)


def shown(value: float | None, unit: Unit) -> str:
    """Return a number as pages show it; a dash for one that is not known."""
    if value is None:
        return UNKNOWN
    match unit:
        case Unit.RATE:
            return shown_rate(value)
        case Unit.BYTES:
            return shown_size(value)
        case Unit.BYTE_RATE:
            return f"{shown_size(value)}/s"
        case Unit.SECONDS:
            return shown_duration(value * SECOND)
        case Unit.COUNT:
            return f"{value:,.0f}"


class History:
    """The series of one session."""

    def __init__(self) -> None:
        # Times and values in turn, as plain numbers: a hundred sessions keep a history each.
        self._series: OrderedDict[str, array[float]] = OrderedDict()

    def add(self, key: str, time_s: float, value: float) -> None:
        """Append one sample."""
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = array("d")
            if len(self._series) > SERIES_MAX:
                self._series.popitem(last=False)
        self._series.move_to_end(key)
        series.extend((time_s, value))
        if len(series) > 2 * (ROW_SAMPLES_MAX if ":" in key else SAMPLES_MAX):
            del series[:2]

    def last(self, key: str) -> float | None:
        """Return the newest value of a key, or None."""
        series = self._series.get(key)
        return series[-1] if series else None

    def samples(self, key: str) -> list[tuple[float, float]]:
        """Return all samples of a key, oldest first."""
        series = self._series.get(key, array("d"))
        return list(zip(series[::2], series[1::2], strict=True))
