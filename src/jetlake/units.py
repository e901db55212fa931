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
_SHORT_TIMES = (("ns", 1, 1_000), ("µs", 1_000, 1_000), ("ms", 1_000_000, 1_000), ("s", SECOND, 60))
"""Units of which one is enough: what each is, and how many of it make one of the next."""


def size_bytes(text: str, *, rounded: bool = False) -> int | None:
    """Return the bytes a text means, or None if it means none.

    1.3 KiB is 1331.2 bytes: no size where a text must be exact, and 1331 where it is `rounded`, as `shown_size` does.
    """
    found = _SIZE.fullmatch(text.strip().replace("_", ""))
    if found is None or found[2].lower() not in _SIZES_BYTES:
        return None
    factor = _SIZES_BYTES[found[2].lower()]
    total = Decimal(found[1]) * factor
    if total == int(total):
        return int(total)
    return round(total) if rounded and factor > 1 else None


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
        # Rounded before the unit is chosen: 1023.96 KiB are 1.0 MiB, and not 1024.0 KiB.
        text = f"{amount:.0f}" if unit == "B" else f"{amount:.1f}"
        if abs(float(text)) < 1024 or unit == _SHOWN_UNITS[-1]:
            break
        amount /= 1024
    return f"{text} {unit}"


def shown_duration(time_ns: float) -> str:
    """Return nanoseconds as 1d12h, 90 seconds as 1m30s, 5 ms as 5ms: at most the two largest units."""
    left = round(time_ns)
    if left == 0:
        return "0s"
    if left < 0:
        return f"-{shown_duration(-left)}"
    for unit, factor, next_unit in _SHORT_TIMES:
        # Rounded before the unit is chosen: 999,999 ns are 1ms, and 59.999 s are 1m.
        amount = float(f"{left / factor:.3g}")
        if amount < next_unit:
            return f"{amount:g}{unit}"
    left, parts = max(left, 60 * SECOND), []
    for unit, factor in _SHOWN_TIMES:
        if left >= factor:
            parts.append(f"{left // factor}{unit}")
            left %= factor
    if len(parts) < 2 and left >= SECOND:
        parts.append(f"{left // SECOND}s")
    return "".join(parts[:2])


def shown_rate(count: float) -> str:
    """Return a number per second with as many digits as tell something."""
    return f"{count:,.0f}/s" if count >= 100 else f"{count:.3g}/s"
