"""Which version of a table is meant: a number as it is, or a time, at which some version was the newest.

```text
--as-of 12                      version 12
--as-of 2026-01-31              what was there at the beginning of that day, UTC
--as-of 2026-01-31T12:00:00Z    what was there at that moment
--as-of "10 minutes ago"        what was there then
```
"""

import re
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from jetlake.errors import ConfigurationError

AsOf: TypeAlias = int | datetime
"""A version, or a time with its zone."""

AGO = re.compile(r"(\d+) *(s|seconds?|m|min|minutes?|h|hours?|d|days?) +ago")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_as_of(text: str) -> AsOf:
    """Return the version or the time that a text names. Raises `ConfigurationError`."""
    text = text.strip()
    if text.isdecimal():
        return int(text)
    ago = AGO.fullmatch(text.lower())
    if ago is not None:
        return datetime.now(UTC) - timedelta(seconds=int(ago[1]) * SECONDS[ago[2][0]])
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigurationError(
            f"{text!r} names no version: give its number, a time such as 2026-01-31T12:00:00Z, or `10 minutes ago`"
        ) from error
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
