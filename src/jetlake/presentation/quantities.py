"""Sizes, counts and times as people write and read them: 10GiB, 1,000, 1d12h.

Invariant: what `shown` functions print, the `read` functions of the same kind understand.
"""

from jetlake.shared.durations import duration_ns
from jetlake.units import SECOND, shown_duration, shown_rate, shown_size, size_bytes

__all__ = ["SECOND", "read_duration", "read_size", "shown_duration", "shown_rate", "shown_size"]

TIME_NS_MAX = (1 << 63) - 1
"""What servers can count."""


def read_size(text: str | int) -> int:
    """Return the bytes of a text such as 512, 10MB or 1.5GiB; -1 for no limit. Raises `ValueError`.

    A number is the default of an option, which typer hands through.
    """
    if isinstance(text, int):
        return text
    size = size_bytes(text.replace(",", ""), rounded=True)
    if size is None:
        raise ValueError(f"{text!r} is not a size: write 512, 10MiB or 1.5GiB, or -1 for no limit")
    return size


def read_duration(text: str | int) -> int:
    """Return the nanoseconds of a text such as 30s, 1h30m, 1d, 1w or 1y; 0 for none. Raises `ValueError`.

    A number is the default of an option, which typer hands through.
    """
    if isinstance(text, int):
        return text
    time_ns = -1 if text.strip() == "-1" else duration_ns(text)
    if time_ns is None or time_ns < -1:
        raise ValueError(f"{text!r} is not a time: write 30s, 1h30m, 1d, 1w or 1y")
    if time_ns > TIME_NS_MAX:
        raise ValueError(f"{text!r} is too long: at most 292 years")
    return time_ns
