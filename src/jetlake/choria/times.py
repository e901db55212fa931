"""Times as Choria writes them: RFC 3339 in UTC, `2018-03-03T14:49:17Z`, fractions without trailing zeros; durations.

Pure functions of their arguments; times of one second are asked for many times over, so the last ones are kept.
"""

from datetime import UTC, datetime
from functools import lru_cache

from jetlake.shared.go_text import duration_text

NANOSECONDS_PER_SECOND = 1_000_000_000

SECONDS_KEPT_MAX = 4_096
"""Texts kept: a fleet that registers within an hour has about as many different seconds."""


@lru_cache(maxsize=SECONDS_KEPT_MAX)
def rfc3339_s(seconds: int) -> str:
    """Return a time given in Unix seconds. Raises `ValueError` if no calendar has it."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError) as error:
        raise ValueError(f"the time {seconds} is outside the years 1 to 9999") from error
    return f"{moment:%Y-%m-%dT%H:%M:%S}Z" if moment.year >= 1000 else f"{moment.isoformat().partition('+')[0]}Z"


def rfc3339_ns(nanoseconds: int) -> str:
    """Return a time given in Unix nanoseconds, all of them kept. Raises `ValueError` if no calendar has it."""
    seconds, fraction = divmod(nanoseconds, NANOSECONDS_PER_SECOND)
    text = rfc3339_s(seconds)
    return f"{text[:-1]}.{fraction:09d}".rstrip("0") + "Z" if fraction else text


def go_duration(nanoseconds: int) -> str:
    """Return a duration as Go prints it: `2h0m0s`, `1.5s`, `250ms`, `0s`."""
    return f"-{duration_text(-nanoseconds)}" if nanoseconds < 0 else duration_text(nanoseconds)
