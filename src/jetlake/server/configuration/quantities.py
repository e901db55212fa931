"""Numbers with units, as Go and nats-server write them: sizes, `host:port`.

All functions take one text, return a value, or raise `ValueError` with a reason that is part of a sentence.
"""

import re

from jetlake.shared.durations import INTEGER_MAX

SIZE_FACTORS = {"": 1} | {
    f"{letter}{rest}": factor
    for power, letter in enumerate("kmgtpe", 1)
    for rests, factor in ((("",), 1000**power), (("b", "i", "ib"), 1024**power))
    for rest in rests
}
"""The suffixes of a bare number: `1k` is 1000, `1KB`, `1Ki` and `1KiB` are 1024."""

QUOTED_SIZE_FACTORS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
"""The suffixes of a size in quotes, which only JetStream takes."""


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


def percent_of(text: str) -> int | None:
    """Return the number that a text writes without its sign, None if it writes none that could be a percentage."""
    return int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else None


def host_and_port(text: str) -> tuple[str, int]:
    """Split `host:port`, `[::1]:port` or `:port`; the port may be -1."""
    bracketed = re.fullmatch(r"\[([^\[\]]*)\]:(.*)", text)
    host, port = (bracketed[1], bracketed[2]) if bracketed else ("", "")
    if not bracketed:
        if text.count(":") != 1 or "[" in text or "]" in text:
            raise ValueError("is not an address; write host:port, and an IPv6 address in brackets")
        host, _, port = text.partition(":")
    if "\0" in host:
        raise ValueError("contains a zero byte: a host cannot have such a name")
    if not re.fullmatch(r"[+-]?\d{1,9}", port, re.ASCII):
        raise ValueError("has no number as its port; write host:port")
    return host, int(port)
