"""Sizes, counts and times as people write and read them: 10GiB, 1,000, 1d12h.

Invariant: what `shown` functions print, the `read` functions of the same kind understand.
"""

from jetlake.units import duration_ns, size_bytes

SECOND = 1_000_000_000
"""In nanoseconds, the unit of times in JetStream's API."""

TIME_NS_MAX = (1 << 63) - 1
"""What servers can count."""

_SHOWN_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_SHOWN_TIMES = (("y", 365 * 86_400 * SECOND), ("d", 86_400 * SECOND), ("h", 3600 * SECOND), ("m", 60 * SECOND))
_SHOWN_FRACTIONS = (("ms", 1_000_000), ("µs", 1_000))


def read_size(text: str | int) -> int:
    """Return the bytes of a text such as 512, 10MB or 1.5GiB; -1 for no limit. Raises `ValueError`.

    A number is the default of an option, which typer hands through.
    """
    if isinstance(text, int):
        return text
    size = size_bytes(text.replace(",", ""))
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


def shown_size(count_bytes: float) -> str:
    """Return 1536 as 1.5 KiB."""
    amount = float(count_bytes)
    for unit in _SHOWN_UNITS:
        if abs(amount) < 1024 or unit == _SHOWN_UNITS[-1]:
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"


def shown_duration(time_ns: float) -> str:
    """Return nanoseconds as 1d12h, 90 seconds as 1m30s, 5 ms as 5ms: at most the two largest units."""
    if time_ns == 0:
        return "0s"
    if time_ns < 0:
        return f"-{shown_duration(-time_ns)}"
    if time_ns < SECOND:
        for unit, factor in _SHOWN_FRACTIONS:
            if time_ns >= factor:
                return f"{time_ns / factor:.3g}{unit}"
        return f"{time_ns:.0f}ns"
    left, parts = int(time_ns), []
    for unit, factor in _SHOWN_TIMES:
        if left >= factor:
            parts.append(f"{left // factor}{unit}")
            left %= factor
    if left and len(parts) < 2:
        parts.append(f"{left / SECOND:.3g}s" if not parts else f"{left // SECOND}s")
    return "".join(part for part in parts[:2] if not part.startswith("0"))


def shown_rate(count: float) -> str:
    """Return a number per second with as many digits as tell something."""
    return f"{count:,.0f}/s" if count >= 100 else f"{count:.3g}/s"
