"""Durations as texts, read in one place: as people write them, as Go does, and as one number with one unit.

| who writes      | function             | examples                      |
|-----------------|----------------------|-------------------------------|
| people          | `duration_ns`        | `1d`, `1h30m`, `0`, `-5s`     |
| Go, nats-server | `go_duration_ns`     | `500ms`, `1.5h`, `-1ns`       |
| any list        | `DurationUnits`      | what the units given allow    |

Invariant: every number is exact until the caller rounds it.
"""

import re
from collections.abc import Mapping
from decimal import Decimal

INTEGER_MAX = 2**63 - 1

GO_UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # micro sign
    "μs": 1_000,  # Greek letter mu
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}

DAY_NS = 86_400_000_000_000

UNITS_NS = GO_UNITS_NS | {"d": DAY_NS, "w": 7 * DAY_NS, "M": 30 * DAY_NS, "y": 365 * DAY_NS}
"""What a unit of time is; a month has 30 days and a year 365, as in the command line of NATS."""


class DurationUnits:
    """The units that a text may have, with the nanoseconds of each."""

    def __init__(self, nanoseconds: Mapping[str, int]) -> None:
        self._nanoseconds = dict(nanoseconds)
        words = "|".join(map(re.escape, sorted(self._nanoseconds, key=len, reverse=True)))
        self._part = re.compile(rf"(\d+(?:\.\d+)?)({words})")
        self._all = re.compile(rf"(?:\d+(?:\.\d+)?(?:{words}))+")
        self._single = re.compile(rf"(\d+(?:\.\d+)?)\s*({words})")

    def total_ns(self, text: str) -> Decimal | None:
        """Return the nanoseconds of numbers with a unit each, such as `1h30m`; None for any other text."""
        if self._all.fullmatch(text) is None:
            return None
        return sum((Decimal(number) * self._nanoseconds[unit] for number, unit in self._part.findall(text)), Decimal(0))

    def single_ns(self, text: str) -> Decimal | None:
        """Return the nanoseconds of one number and its unit, blanks between them allowed; None for any other text."""
        found = self._single.fullmatch(text)
        return None if found is None else Decimal(found[1]) * self._nanoseconds[found[2]]


_OF_PEOPLE = DurationUnits(UNITS_NS | {unit: UNITS_NS[unit.lower()] for unit in "DWY"})


def duration_ns(text: str) -> int | None:
    """Return the nanoseconds a text means, or None if it means none."""
    word = text.strip().replace("_", "")
    if word in ("0", "+0", "-0"):
        return 0
    total = _OF_PEOPLE.total_ns(word[1:] if word[:1] in ("+", "-") else word)
    if total is None or total != int(total):
        return None
    return -int(total) if word.startswith("-") else int(total)


_GO_PART = re.compile(r"(?=\.?\d)(\d*)\.?(\d*)([a-zµμ]*)", re.ASCII)

DIGITS_MAX = 18
"""No duration has more, before or after the point: 292 years are the longest there is."""

TOO_LONG = "is longer than 292 years; choose less"

DURATION_EXAMPLES = 'write it like "500ms", "10s", "2m" or "1h30m"'


def go_duration_ns(text: str) -> int:
    """Return the nanoseconds of a duration such as `1h30m`, `1.5s` or `-1ns`."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    total = 0
    offset = 0
    while offset < len(rest):
        part = _GO_PART.match(rest, offset)
        if part is None:
            raise ValueError(f"is not a duration; {DURATION_EXAMPLES}")
        whole, fraction, unit = part.groups()
        if not unit:
            raise ValueError(f"has no unit; {DURATION_EXAMPLES}")
        factor = GO_UNITS_NS.get(unit)
        if factor is None:
            raise ValueError(f"has a unit that does not exist; {DURATION_EXAMPLES}")
        if len(whole) > DIGITS_MAX:
            raise ValueError(TOO_LONG)
        # What is finer than a nanosecond is cut off, as in Go.
        fraction = fraction[:DIGITS_MAX]
        total += int(whole or 0) * factor + int(fraction or 0) * factor // 10 ** len(fraction)
        offset = part.end()
        if total > INTEGER_MAX:
            raise ValueError(TOO_LONG)
    if not rest:
        raise ValueError(f"is empty; {DURATION_EXAMPLES}")
    return sign * total
