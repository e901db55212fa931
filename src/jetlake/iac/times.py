"""Timestamps as the API of streams writes them: RFC 3339, in UTC, with at most nine digits of a second.

Invariant: two texts that mean one timestamp are written the same.
"""

import re
from datetime import UTC, datetime, timedelta

_TIMESTAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|z|[+-]\d{2}:\d{2})?)?",
)
_ZERO = "0001-01-01T00:00:00Z"
"""How the API writes that there is none."""


def canonical_timestamp(text: str) -> str | None:
    """Return the timestamp as the API writes it, an empty text for the zero time, None for anything else."""
    found = _TIMESTAMP.fullmatch(text.strip())
    if found is None:
        return None
    day, clock, fraction, zone = found.groups()
    offset = "+00:00" if zone in (None, "Z", "z") else zone
    try:
        whole = datetime.fromisoformat(f"{day}T{clock or '00:00:00'}{offset}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    digits = (fraction or "").rstrip("0")
    written = whole.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0") + (f".{digits}" if digits else "") + "Z"
    return "" if written == _ZERO else written


def parse_timestamp(text: str) -> datetime:
    """Return the timestamp with the precision of a microsecond. The text is one the API has written."""
    day, _, fraction = text.rstrip("Z").partition(".")
    whole = datetime.fromisoformat(f"{day}+00:00")
    return whole + timedelta(microseconds=int((fraction or "0")[:6].ljust(6, "0")))
