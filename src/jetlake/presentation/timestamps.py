"""Points in time as people write them and as the API has them."""

import time
from datetime import UTC, datetime, timedelta

from jetlake.presentation.cells import Cell, Nanoseconds
from jetlake.presentation.quantities import SECOND, read_duration

NEVER = "0001-"
"""How the time of nothing begins: the API says the year 1."""


def before_now(duration_ns: int) -> str:
    """Return the time this long ago, in the API's form."""
    return (datetime.now(UTC) - timedelta(seconds=duration_ns / SECOND)).isoformat()


def read_timestamp(text: str) -> str:
    """Return a time to come, written as 10m, 1d, or as a date and a time. Raises `ValueError`."""
    try:
        return (datetime.now(UTC) + timedelta(seconds=read_duration(text) / SECOND)).isoformat()
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a time: write 10m, 1d, or 2030-01-31 12:00:00") from error
    return (moment if moment.tzinfo else moment.astimezone()).isoformat()


def age_of(text: str | None) -> Cell:
    """Return how long ago a time of the API is."""
    if not text or text.startswith(NEVER):
        return "never"
    return Nanoseconds(max(0, time.time_ns() - round(datetime.fromisoformat(text).timestamp() * SECOND)))


def shown_timestamp(text: str | None) -> Cell:
    """Return a time of the API; None for that of nothing."""
    return None if not text or text.startswith(NEVER) else text
