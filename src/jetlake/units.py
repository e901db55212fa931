"""Durations and sizes as people write them: `1d`, `1h30m`, `10GiB`, `1.5M`.

A duration is nanoseconds, a size is bytes; `shared.durations` reads the durations. Invariant: reading what was written
gives the same number again; `shown_` functions round, for people.
"""

import re
from decimal import Decimal

from jetlake.shared.durations import UNITS_NS

SECOND = 1_000_000_000
"""In nanoseconds, the unit of times in JetStream's API."""

_SIZES_BYTES = {
    "": 1,
    "b": 1,
    **{f"{letter}{tail}": 1024**power for power, letter in enumerate("kmgt", 1) for tail in ("", "b", "ib")},
}
"""What a unit of size is: all of them are powers of 1024, as in the command line of NATS."""

_SIZE = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([kmgt]?i?b?)", re.IGNORECASE)

_WRITTEN_UNITS = ("y", "d", "h", "m", "s", "ms", "us", "ns")
_WRITTEN_SIZES = ("TiB", "GiB", "MiB", "KiB")

_SHOWN_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_SHOWN_TIMES = (("y", 365 * 86_400 * SECOND), ("d", 86_400 * SECOND), ("h", 3600 * SECOND), ("m", 60 * SECOND))
_SHOWN_FRACTIONS = (("ms", 1_000_000), ("µs", 1_000))


def size_bytes(text: str) -> int | None:
    """Return the bytes a text means, or None if it means none."""
    found = _SIZE.fullmatch(text.strip().replace("_", ""))
    if found is None or found[2].lower() not in _SIZES_BYTES:
        return None
    total = Decimal(found[1]) * _SIZES_BYTES[found[2].lower()]
    return int(total) if total == int(total) else None


def write_duration(nanoseconds: int) -> str:
    """Return a duration as it is written: `1h30m`; `0s` for none."""
    if nanoseconds < 0:
        return f"-{write_duration(-nanoseconds)}"
    text, left = "", nanoseconds
    for unit in _WRITTEN_UNITS:
        count, left = divmod(left, UNITS_NS[unit])
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def write_size(size: int) -> int | str:
    """Return a size as it is written: `10GiB`, or the number where no unit is exact."""
    for unit in _WRITTEN_SIZES:
        factor = _SIZES_BYTES[unit.lower()]
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return size


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
