"""Sizes, counts and times as people write and read them: 10GiB, 1,000, 1d12h.

Invariant: what `shown` functions print, the `read` functions of the same kind understand.
"""

import re

SIZE_UNITS = {
    "": 1,
    "b": 1,
    "k": 1 << 10,
    "kb": 1 << 10,
    "kib": 1 << 10,
    "m": 1 << 20,
    "mb": 1 << 20,
    "mib": 1 << 20,
    "g": 1 << 30,
    "gb": 1 << 30,
    "gib": 1 << 30,
    "t": 1 << 40,
    "tb": 1 << 40,
    "tib": 1 << 40,
}
"""All of them are powers of 1024, as in nats-server's configuration."""

SECOND = 1_000_000_000
"""In nanoseconds, the unit of times in JetStream's API."""

TIME_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
    "d": 86_400 * SECOND,
    "w": 7 * 86_400 * SECOND,
    "M": 30 * 86_400 * SECOND,
    "y": 365 * 86_400 * SECOND,
}
"""In nanoseconds. A month is 30 days and a year 365."""

TIME_NS_MAX = (1 << 63) - 1
"""What servers can count."""

_SIZE = re.compile(r"(-?[\d_,]*\.?\d+)\s*([a-zA-Z]*)")
_TIME_PART = re.compile(r"(\d*\.?\d+)(ns|us|µs|ms|s|m|h|d|w|M|y|Y|D|W)")
_SHOWN_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_SHOWN_TIMES = (("y", TIME_UNITS["y"]), ("d", TIME_UNITS["d"]), ("h", TIME_UNITS["h"]), ("m", TIME_UNITS["m"]))


def read_size(text: str | int) -> int:
    """Return the bytes of a text such as 512, 10MB or 1.5GiB; -1 for no limit. Raises `ValueError`.

    A number is the default of an option, which typer hands through.
    """
    if isinstance(text, int):
        return text
    found = _SIZE.fullmatch(text.strip())
    factor = None if found is None else SIZE_UNITS.get(found[2].lower())
    if found is None or factor is None:
        raise ValueError(f"{text!r} is no size: write 512, 10MiB or 1.5GiB, or -1 for no limit")
    return round(float(found[1].replace(",", "").replace("_", "")) * factor)


def read_duration(text: str | int) -> int:
    """Return the nanoseconds of a text such as 30s, 1h30m, 1d, 1w or 1y; 0 for none. Raises `ValueError`.

    A number is the default of an option, which typer hands through.
    """
    if isinstance(text, int):
        return text
    stripped = text.strip()
    if stripped in ("0", "-1"):
        return int(stripped)
    parts = _TIME_PART.findall(stripped)
    if not parts or "".join(number + unit for number, unit in parts) != stripped:
        raise ValueError(f"{text!r} is no time: write 30s, 1h30m, 1d, 1w or 1y")
    total = round(sum(float(number) * TIME_UNITS[unit.lower() if unit in "YDW" else unit] for number, unit in parts))
    if total > TIME_NS_MAX:
        raise ValueError(f"{text!r} is too long: at most 292 years")
    return total


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
        for unit in ("ms", "µs"):
            if time_ns >= TIME_UNITS[unit]:
                return f"{time_ns / TIME_UNITS[unit]:.3g}{unit}"
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
