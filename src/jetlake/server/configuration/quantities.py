"""Numbers with units, as Go and nats-server write them: durations, sizes, `host:port`.

All functions take one text, return a value, or raise `ValueError` with a reason that is part of a sentence.
"""

import re

INTEGER_MAX = 2**63 - 1

SIZE_FACTORS = {"": 1} | {
    f"{letter}{rest}": factor
    for power, letter in enumerate("kmgtpe", 1)
    for rests, factor in ((("",), 1000**power), (("b", "i", "ib"), 1024**power))
    for rest in rests
}
"""The suffixes of a bare number: `1k` is 1000, `1KB`, `1Ki` and `1KiB` are 1024."""

QUOTED_SIZE_FACTORS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
"""The suffixes of a size in quotes, which only JetStream takes."""

NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # micro sign
    "μs": 1_000,  # Greek letter mu
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}

_DURATION_PART = re.compile(r"(?=\.?\d)(\d*)\.?(\d*)([a-zµμ]*)", re.ASCII)

DIGITS_MAX = 18
"""No duration has more, before or after the point: 292 years are the longest there is."""

TOO_LONG = "is longer than 292 years; choose less"

DURATION_EXAMPLES = 'write it like "500ms", "10s", "2m" or "1h30m"'


def duration_ns(text: str) -> int:
    """Return the nanoseconds of a duration such as `1h30m`, `1.5s` or `-1ns`."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    total = 0
    offset = 0
    while offset < len(rest):
        part = _DURATION_PART.match(rest, offset)
        if part is None:
            raise ValueError(f"is not a duration; {DURATION_EXAMPLES}")
        whole, fraction, unit = part.groups()
        if not unit:
            raise ValueError(f"has no unit; {DURATION_EXAMPLES}")
        factor = NANOSECONDS.get(unit)
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


def quoted_size(text: str) -> int:
    """Return the bytes of a size in quotes: `64M`, in powers of 1024. Empty is 0, as in nats-server."""
    if not text:
        return 0
    factor = QUOTED_SIZE_FACTORS.get(text[-1])
    if factor is None or not re.fullmatch(r"[+-]?\d{1,18}", text[:-1], re.ASCII):
        raise ValueError("is not a size; a size in quotes is a whole number and one of K, M, G, T")
    size = int(text[:-1]) * factor
    if abs(size) > INTEGER_MAX:
        raise ValueError("is larger than any disk; choose less")
    return size


def host_and_port(text: str) -> tuple[str, int]:
    """Split `host:port`, `[::1]:port` or `:port`; the port may be -1."""
    bracketed = re.fullmatch(r"\[([^\[\]]*)\]:(.*)", text)
    host, port = (bracketed[1], bracketed[2]) if bracketed else ("", "")
    if not bracketed:
        if text.count(":") != 1 or "[" in text or "]" in text:
            raise ValueError("is not an address; write host:port, and an IPv6 address in brackets")
        host, _, port = text.partition(":")
    if not re.fullmatch(r"[+-]?\d{1,9}", port, re.ASCII):
        raise ValueError("has no number as its port; write host:port")
    return host, int(port)
