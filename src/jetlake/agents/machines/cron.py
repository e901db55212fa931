"""Schedules as cron writes them: five fields, names, ranges, steps and lists, `@daily` and its kin.

```python
schedule = parse_cron("*/30 * * * *")
schedule.next_after(time.time())
```

Days are as in every cron: if both the day of the month and the day of the week are restricted, one of them suffices.
Times are local unless the text begins with `CRON_TZ=Europe/Berlin`; a time that a change of the clock skips is left
out. Pure functions of their arguments.

Invariant: `next_after(t)` is later than `t`, at second 0 of a minute, or None if the schedule never comes again.
"""

import re
from calendar import monthrange
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from jetlake.errors import ConfigurationError
from jetlake.shared.durations import duration_ns

__all__ = ["CronSchedule", "parse_cron"]

DAYS_MAX = 366 * 41
"""How far ahead a schedule is searched: the 29th of February on a Sunday may take forty years."""

EVERY_S_MIN = 1.0
"""The shortest period of `@every`."""

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAYS = {name: number for number, name in enumerate(_DAY_NAMES)}

_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    # 7 is Sunday too.
    ("day of the week", 0, 7, _DAYS),
)

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_ZONE = re.compile(r"(?:CRON_)?TZ=(\S+)\s+(.*)", re.DOTALL)
_PART = re.compile(r"(\*|\?|\w+)(?:-(\w+))?(?:/(\d{1,4}))?", re.ASCII)


class CronSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule, `text` as it was written."""

    text: str
    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    # 0 is Sunday.
    weekdays: frozenset[int] = frozenset()
    is_any_day: bool = True
    is_any_weekday: bool = True
    # Of `@every`; 0 = the fields count.
    every_s: float = 0.0
    # Empty = the zone of this machine.
    zone: str = ""

    def next_after(self, unix_s: float) -> float | None:
        """Return when it comes next, in Unix time; None = never."""
        if self.every_s:
            return unix_s + self.every_s
        zone = ZoneInfo(self.zone) if self.zone else None
        start = datetime.fromtimestamp(unix_s, zone).replace(second=0, microsecond=0)
        # The hour before may come twice when the clock is set back; candidates are compared in Unix time.
        day = start.date() - timedelta(days=1)
        for _ in range(DAYS_MAX):
            day += timedelta(days=1)
            if day.month not in self.months or not self._is_on_day(day.day, (day.weekday() + 1) % 7):
                continue
            for hour in sorted(self.hours):
                for minute in sorted(self.minutes):
                    moment = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
                    candidate_s = moment.timestamp()
                    if candidate_s > unix_s and _exists(moment, candidate_s, zone):
                        return candidate_s
        return None

    def _is_on_day(self, day: int, weekday: int) -> bool:
        if self.is_any_day or self.is_any_weekday:
            return day in self.days and weekday in self.weekdays
        return day in self.days or weekday in self.weekdays


def _exists(moment: datetime, unix_s: float, zone: ZoneInfo | None) -> bool:
    """Tell whether a local time is one that clocks show."""
    shown = datetime.fromtimestamp(unix_s, zone)
    return (shown.hour, shown.minute) == (moment.hour, moment.minute)


def parse_cron(text: str) -> CronSchedule:
    """Return the schedule that a text means. Raises `ConfigurationError`."""
    zone, rest = "", text.strip()
    if found := _ZONE.fullmatch(rest):
        zone, rest = found[1], found[2].strip()
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise _refusal(text, f"there is no time zone {zone[:40]!r}") from error
    if rest.startswith("@every "):
        every_ns = duration_ns(rest.removeprefix("@every "))
        if every_ns is None or every_ns < EVERY_S_MIN * 1e9 or every_ns > 2**62:
            raise _refusal(text, "write a period of at least a second, `@every 5m`")
        return CronSchedule(text=text, every_s=every_ns / 1e9)
    if rest.startswith("@"):
        if rest not in _DESCRIPTORS:
            raise _refusal(text, f"there are {', '.join(sorted(_DESCRIPTORS))} and `@every 5m`")
        rest = _DESCRIPTORS[rest]
    words = rest.split()
    if len(words) != len(_FIELDS):
        raise _refusal(text, f"it has {len(words)} fields: write minute, hour, day, month and day of the week")
    minutes, hours, days, months, weekdays = (
        _parse_field(word, *field, text) for word, field in zip(words, _FIELDS, strict=True)
    )
    schedule = CronSchedule(
        text=text,
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=frozenset(day % 7 for day in weekdays),
        is_any_day=words[2][0] in "*?",
        is_any_weekday=words[4][0] in "*?",
        zone=zone,
    )
    if schedule.is_any_weekday and not any(
        day <= monthrange(2024, month)[1] for month in schedule.months for day in schedule.days
    ):
        raise _refusal(text, "no month of it has such a day")
    return schedule


def _parse_field(word: str, name: str, least: int, most: int, names: dict[str, int], text: str) -> frozenset[int]:
    values: set[int] = set()
    for part in word.split(","):
        found = _PART.fullmatch(part)
        if found is None:
            raise _refusal(text, f"{part[:20]!r} is not a {name}: write 5, 1-5, */10 or a list of these")
        first, last, step = found[1], found[2], int(found[3]) if found[3] else 1
        if step == 0:
            raise _refusal(text, f"{part!r} has a step of 0")
        if first in "*?":
            if last is not None:
                raise _refusal(text, f"{part[:20]!r} is not a {name}: `*` stands alone")
            begin, end = least, most if most != 7 else 6
        else:
            begin = _number(first, name, least, most, names, text)
            # `5/10` means from 5 on, every 10.
            end = most if found[3] else begin
            end = end if last is None else _number(last, name, least, most, names, text)
        if begin > end:
            raise _refusal(text, f"{part[:20]!r} ends before it begins")
        values.update(range(begin, end + 1, step))
    return frozenset(values)


def _number(word: str, name: str, least: int, most: int, names: dict[str, int], text: str) -> int:
    value = names.get(word.lower()) if not word.isdecimal() else int(word[:6])
    if value is None or not least <= value <= most:
        raise _refusal(text, f"{word[:20]!r} is not a {name}: {least} to {most}")
    return value


def _refusal(text: str, reason: str) -> ConfigurationError:
    return ConfigurationError(f"the schedule {text[:60]!r} cannot be read: {reason}")
