"""Times, durations and quotes written as Go writes them, because tools parse what nats-server prints.

| value                  | text                             |
|------------------------|----------------------------------|
| a time                 | `2026-11-15T23:36:18.549568655Z` |
| a duration             | `673µs`, `1.5s`, `1h2m3s`        |
| how long something ran | `3s`, `1d2h3m4s`                 |
| a text in an error     | `"with \\"quotes\\""`            |

Invariant: no function here fails, whatever the clock or a client says.
"""

import time

NANOSECONDS_PER_SECOND = 1_000_000_000

_NAMED_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def time_text(unix_ns: int) -> str:
    """Return a time in UTC, to the nanosecond, without trailing zeros."""
    seconds, rest_ns = divmod(unix_ns, NANOSECONDS_PER_SECOND)
    fraction = f".{rest_ns:09d}".rstrip("0") if rest_ns else ""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}{fraction}Z"


def duration_text(duration_ns: int) -> str:
    """Return a duration in the largest units that fit."""
    duration_ns = max(duration_ns, 0)
    if duration_ns == 0:
        return "0s"
    for unit, unit_ns in (("ns", 1), ("µs", 1_000), ("ms", 1_000_000)):
        if duration_ns < unit_ns * 1_000:
            return f"{_decimal(duration_ns, unit_ns)}{unit}"
    minutes, rest_ns = divmod(duration_ns, 60 * NANOSECONDS_PER_SECOND)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest_ns, NANOSECONDS_PER_SECOND)}s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


def uptime_text(duration_ns: int) -> str:
    """Return how long something has been running, in whole seconds, with days and years."""
    seconds = max(duration_ns, 0) // NANOSECONDS_PER_SECOND
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    years, days = divmod(days, 365)
    parts = [(years, "y"), (days, "d"), (hours, "h"), (minutes, "m"), (seconds, "s")]
    first = next((position for position, (number, _) in enumerate(parts) if number), len(parts) - 1)
    return "".join(f"{number}{unit}" for number, unit in parts[first:])


def quoted(text: str) -> str:
    """Return a text in double quotes, with what cannot be printed escaped."""
    return f'"{"".join(map(_escaped, text))}"'


def _decimal(number: int, unit: int) -> str:
    whole, rest = divmod(number, unit)
    if not rest:
        return str(whole)
    return f"{whole}.{rest:0{len(str(unit)) - 1}d}".rstrip("0")


def _escaped(character: str) -> str:
    named = _NAMED_ESCAPES.get(character)
    if named is not None:
        return named
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
