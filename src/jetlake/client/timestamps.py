"""Points in time as NATS and Go write them: RFC 3339 with up to nine digits after the second.

Invariant: `read_time(write_time(unix_ns)) == unix_ns`.
"""

import calendar
import re
import time
from datetime import UTC, datetime, timedelta

__all__ = ["SECOND_NS", "ZERO_TIME", "datetime_of", "read_time", "write_time"]

SECOND_NS = 1_000_000_000

ZERO_TIME = "0001-01-01T00:00:00Z"
"""What Go writes for a time that is not set."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:([Zz])|([+-])(\d\d):?(\d\d))", re.ASCII
)


def read_time(text: str) -> int:
    """Return a time as nanoseconds since 1970; 0 for Go's zero time. Raises `ValueError`."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text[:40]!r} is not a time: write 2026-01-31T12:00:00Z")
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    if not (1 <= month <= 12 and 1 <= day <= calendar.monthrange(max(year, 1), month)[1]):
        raise ValueError(f"{text[:40]!r} is not a day of the calendar")
    if hour > 23 or minute > 59 or second > 60:
        raise ValueError(f"{text[:40]!r} is not a time of day")
    if year <= 1:
        return 0
    seconds = calendar.timegm((year, month, day, hour, minute, second))
    if found[9]:
        offset = (int(found[10]) * 60 + int(found[11])) * 60
        seconds -= offset if found[9] == "+" else -offset
    return seconds * SECOND_NS + int((found[7] or "").ljust(9, "0"))


def write_time(unix_ns: int) -> str:
    """Return a time in UTC; 0 is Go's zero time."""
    if unix_ns == 0:
        return ZERO_TIME
    seconds, rest_ns = divmod(unix_ns, SECOND_NS)
    fraction = f".{rest_ns:09d}".rstrip("0") if rest_ns else ""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}{fraction}Z"


def datetime_of(unix_ns: int) -> datetime:
    """Return a time in UTC, to the microsecond."""
    return _EPOCH + timedelta(microseconds=unix_ns // 1000)
