"""Numbers, sizes and durations as the tools of 2019 and 2020 wrote and read them.

| value            | text                                                |
|------------------|-----------------------------------------------------|
| a count          | `1,000,002`                                         |
| a size           | `12 kB` by thousands, `10 GiB` by powers of 1024    |
| a duration       | `1d0h0m0s`; read as `1w`, `1d`, `90m`, `1h30m`      |
"""

import math

from jetlake.shared import go_text
from jetlake.shared.durations import UNITS_NS, DurationUnits

NANOSECONDS_PER_SECOND = 1_000_000_000

UNITS = DurationUnits({unit: UNITS_NS[unit] for unit in UNITS_NS if unit != "μs"} | {"Y": UNITS_NS["y"]})
"""As the tools had them."""

DURATION_NS_MAX = 2**63 - 1
"""The longest duration that a request can hold."""

_THOUSANDS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_POWERS_OF_1024 = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def size_text(count: int, *, by_1024: bool = False) -> str:
    """Return a size with one decimal below ten and none above."""
    base, units = (1024, _POWERS_OF_1024) if by_1024 else (1000, _THOUSANDS)
    if count < 10:
        return f"{count} B"
    exponent = min(int(math.log(count) / math.log(base)), len(units) - 1)
    value = math.floor(count / base**exponent * 10 + 0.5) / 10
    return f"{value:.0f} {units[exponent]}" if value >= 10 else f"{value:.1f} {units[exponent]}"


def limit_text(count: int) -> str:
    """Return a limit, or that there is none."""
    return f"{count:,}" if count > 0 else "unlimited"


def duration_text(duration_ns: int) -> str:
    """Return a duration in days, hours, minutes and seconds, or that there is none."""
    if duration_ns <= 0:
        return "unlimited"
    seconds, rest_ns = divmod(duration_ns, NANOSECONDS_PER_SECOND)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d{hour}h{minute}m{second}s"
    if hours:
        return f"{hour}h{minute}m{second}s"
    if minutes:
        return f"{minute}m{second}s"
    return f"{second + rest_ns / NANOSECONDS_PER_SECOND:.2f}s"


def go_duration_text(duration_ns: int) -> str:
    """Return a duration as Go prints one of whole seconds: `24h0m0s`."""
    return go_text.duration_text(duration_ns - duration_ns % NANOSECONDS_PER_SECOND)


def read_duration_ns(text: str) -> int:
    """Return the nanoseconds a text says; -1, 0 and nothing mean no limit. Raises `ValueError`."""
    if text in ("", "0", "-1"):
        return 0
    total = UNITS.total_ns(text)
    if total is None:
        raise ValueError(f"{text!r} is not a duration: write a number with s, m, h, d, w or y, such as 1w or 1h30m")
    return min(round(total), DURATION_NS_MAX)


def split_list(text: str) -> list[str]:
    """Split a typed list on commas, else on tabs, else on blanks."""
    for separator in (",", "\t"):
        if separator in text:
            return [part.strip() for part in text.split(separator) if part.strip()]
    return text.split()
