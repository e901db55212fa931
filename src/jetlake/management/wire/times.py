"""Moments as they stand in requests: RFC 3339, to the nanosecond, with the zone the sender chose.

The reader accepts and complains as nats-server does: an hour may have one digit, a fraction may follow a comma and
have any number of digits, of which nine count.

Invariant: reading the `text` of a `Timestamp` gives an equal `Timestamp`, unless it is not `is_writable`.
"""

import re

import msgspec

_LAYOUT = "2006-01-02T15:04:05Z07:00"
_TWO_DIGITS = re.compile(r"[0-9]{2}")
_ONE_OR_TWO_DIGITS = re.compile(r"[0-9]{1,2}")
_FRACTION = re.compile(r"[.,]([0-9]+)")
_ZONE = re.compile(r"([+-])([0-9]{2}):([0-9]{2})")

_DAYS_BEFORE_1970 = 719_468
_DAYS_IN_MONTH = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_NANOSECONDS_PER_SECOND = 1_000_000_000
_ZONE_HOURS_MAX = 24
_ZONE_MINUTES_MAX = 60
_YEAR_MAX = 9_999


class TimestampError(Exception):
    """Is raised when a text is not a timestamp; the message says where it stops being one."""


class Timestamp(msgspec.Struct, frozen=True):
    """A point in time, as it is written and as a number.

    `Timestamp.read("2020-01-01T00:00:00.120+05:30").text` is `2020-01-01T00:00:00.12+05:30`.
    """

    text: str
    unix_ns: int

    @property
    def is_writable(self) -> bool:
        """Whether its zone is less than a day away; nats-server reads larger ones and then cannot store them."""
        zone = _ZONE.search(self.text, len(_LAYOUT) - len("Z07:00"))
        return zone is None or int(zone[2]) < _ZONE_HOURS_MAX

    @property
    def is_zero(self) -> bool:
        """Whether it is the moment that stands for none: the beginning of the year 1."""
        return self.unix_ns == _ZERO_UNIX_NS

    @property
    def in_utc(self) -> "Timestamp":
        """The same moment, written as in UTC if the year has four digits there."""
        seconds, nanoseconds = divmod(self.unix_ns, _NANOSECONDS_PER_SECOND)
        days, second_of_day = divmod(seconds, 86_400)
        year, month, day = _civil_from_days(days)
        if self.text.endswith("Z") or not 0 <= year <= _YEAR_MAX:
            return self
        hour, minute, second = second_of_day // 3_600, second_of_day // 60 % 60, second_of_day % 60
        fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
        text = f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{fraction}Z"
        return Timestamp(text=text, unix_ns=self.unix_ns)

    @classmethod
    def read(cls, text: str) -> "Timestamp":
        """Read a moment."""
        reader = _Reader(text)
        year = reader.year()
        reader.literal("-")
        month = reader.number("01", _TWO_DIGITS, 12, "month", least=1)
        reader.literal("-")
        day = reader.number("02", _TWO_DIGITS, 99, "day")
        reader.literal("T")
        hour = reader.number("15", _ONE_OR_TWO_DIGITS, 23, "hour")
        reader.literal(":")
        minute = reader.number("04", _TWO_DIGITS, 59, "minute")
        reader.literal(":")
        second = reader.number("05", _TWO_DIGITS, 59, "second")
        fraction = reader.fraction()
        zone_minutes = reader.zone()
        reader.end()
        if not 1 <= day <= _days_in(year, month):
            raise reader.problem("day out of range")
        date_and_time = f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}"
        seconds = _days_from_civil(year, month, day) * 86_400 + hour * 3_600 + (minute - zone_minutes) * 60 + second
        nanoseconds = int(fraction.ljust(9, "0"))
        written = fraction.rstrip("0")
        return cls(
            text=f"{date_and_time}{'.' + written if written else ''}{_zone_text(zone_minutes)}",
            unix_ns=seconds * _NANOSECONDS_PER_SECOND + nanoseconds,
        )


class _Reader:
    """Reads a text from the left, and knows how to complain about what is left of it."""

    def __init__(self, text: str) -> None:
        self.whole = text
        self.rest = text

    def year(self) -> int:
        year = self.rest[:4]
        if len(year) < 4 or not (year.isascii() and year.isdigit()):
            raise self.mismatch("2006")
        self.rest = self.rest[4:]
        return int(year)

    def literal(self, literal: str) -> None:
        if not self.rest.startswith(literal):
            raise self.mismatch(literal)
        self.rest = self.rest[len(literal) :]

    def number(self, layout: str, digits: re.Pattern[str], most: int, name: str, least: int = 0) -> int:
        found = digits.match(self.rest)
        if found is None:
            raise self.mismatch(layout)
        if not least <= int(found[0]) <= most:
            raise self.problem(f"{name} out of range")
        self.rest = self.rest[found.end() :]
        return int(found[0])

    def fraction(self) -> str:
        """Return the digits of the fraction that count."""
        found = _FRACTION.match(self.rest)
        if found is None:
            return ""
        self.rest = self.rest[found.end() :]
        return found[1][:9]

    def zone(self) -> int:
        """Return how many minutes the zone is ahead of UTC."""
        if self.rest.startswith("Z"):
            self.rest = self.rest[1:]
            return 0
        found = _ZONE.match(self.rest)
        if found is None:
            raise self.mismatch("Z07:00")
        hours, minutes = int(found[2]), int(found[3])
        if hours > _ZONE_HOURS_MAX:
            raise self.problem("time zone offset hour out of range")
        if minutes > _ZONE_MINUTES_MAX:
            raise self.problem("time zone offset minute out of range")
        self.rest = self.rest[found.end() :]
        return (hours * 60 + minutes) * (-1 if found[1] == "-" else 1)

    def end(self) -> None:
        if self.rest:
            raise self.problem(f"extra text: {_quoted(self.rest)}")

    def mismatch(self, layout: str) -> TimestampError:
        where = f'cannot parse {_quoted(self.rest)} as "{layout}"'
        return TimestampError(f'parsing time {_quoted(self.whole)} as "{_LAYOUT}": {where}')

    def problem(self, text: str) -> TimestampError:
        return TimestampError(f"parsing time {_quoted(self.whole)}: {text}")


def _quoted(text: str) -> str:
    """Quote as the reader of times does: everything outside printable ASCII byte by byte."""
    shown = (
        f"\\{chr(byte)}" if byte in b'"\\' else f"\\x{byte:02x}" if byte < 0x20 or byte >= 0x80 else chr(byte)
        for byte in text.encode()
    )
    return f'"{"".join(shown)}"'


def _zone_text(zone_minutes: int) -> str:
    if zone_minutes == 0:
        return "Z"
    hours, minutes = divmod(abs(zone_minutes), 60)
    return f"{'-' if zone_minutes < 0 else '+'}{hours:02d}:{minutes:02d}"


def _days_in(year: int, month: int) -> int:
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and is_leap else _DAYS_IN_MONTH[month - 1]


def _days_from_civil(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01. Python's own dates begin with the year 1, these with the year 0."""
    # Years begin in March here, so that the leap day is the last of its year.
    year, month = (year - 1, month + 9) if month <= 2 else (year, month - 3)
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * month + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - _DAYS_BEFORE_1970


def _civil_from_days(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a number of days since 1970-01-01."""
    era, day_of_era = divmod(days + _DAYS_BEFORE_1970, 146_097)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    year, month = era * 400 + year_of_era, month_from_march
    return (year + 1, month - 9, day) if month >= 10 else (year, month + 3, day)


_ZERO_UNIX_NS = _days_from_civil(1, 1, 1) * 86_400 * _NANOSECONDS_PER_SECOND
