"""Names of streams and consumers, subjects, and the short hash that derived names are made of.

Wildcards are whole tokens. White space is what a protocol line cannot carry: other control characters are
legal in names and subjects.

Invariant: no function here fails, whatever the text.
"""

import hashlib
import re

__all__ = [
    "ALL_THE_REST",
    "ANY_ONE",
    "NAME_BYTES_MAX",
    "collide",
    "hash8",
    "is_literal_subject",
    "is_name",
    "is_subject",
    "is_subset",
]

NAME_BYTES_MAX = 255
"""What file systems allow for one name; streams are folders."""

ANY_ONE = "*"
ALL_THE_REST = ">"

_WILDCARDS = {ANY_ONE, ALL_THE_REST}
_NOT_IN_A_NAME = re.compile(r"[ \t\r\n\f.*>\\/]")
_NOT_IN_A_SUBJECT = re.compile(r"[ \t\r\n\f]")
_HASH_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def is_name(name: str) -> bool:
    """Return whether a stream or a consumer may have this name, apart from its length."""
    return bool(name) and _NOT_IN_A_NAME.search(name) is None


def is_subject(subject: str) -> bool:
    """Return whether one may subscribe to it: no empty token, `>` only at the end."""
    if _NOT_IN_A_SUBJECT.search(subject):
        return False
    tokens = subject.split(".")
    return all(tokens) and ALL_THE_REST not in tokens[:-1]


def is_literal_subject(subject: str) -> bool:
    """Return whether one may publish to it: a subject without wildcards."""
    return is_subject(subject) and not _has_wildcard(subject.split("."))


def collide(first: str, second: str) -> bool:
    """Return whether some subject matches both.

    As on nats-server, a token that only begins with a wildcard counts as one next to a real one: an overlap may be
    reported where there is none, but none is missed. Also called with texts that are not subjects.
    """
    if first == second:
        return True
    tokens, other_tokens = first.split("."), second.split(".")
    if not _has_wildcard(tokens):
        return _has_wildcard(other_tokens) and is_subset(first, second)
    if not _has_wildcard(other_tokens):
        return is_subset(second, first)
    shorter, longer = sorted((tokens, other_tokens), key=len)
    if len(shorter) < len(longer) and ALL_THE_REST not in shorter:
        return False
    return all(map(_may_meet, shorter, longer))


def is_subset(subject: str, pattern: str) -> bool:
    """Return whether everything that `subject` matches is matched by `pattern` too."""
    tokens, pattern_tokens = subject.split("."), pattern.split(".")
    for token, pattern_token in zip(tokens, pattern_tokens, strict=False):
        if pattern_token == ALL_THE_REST:
            return True
        if token in ("", ALL_THE_REST) or not pattern_token:
            return False
        if token == ANY_ONE:
            if pattern_token != ANY_ONE:
                return False
        elif token != pattern_token and not pattern_token.startswith(ANY_ONE):
            return False
    return len(tokens) == len(pattern_tokens)


def hash8(text: str) -> str:
    """Return eight letters and digits that stand for a text in the names of consumers and headers."""
    digest = hashlib.sha256(text.encode()).digest()
    return "".join(_HASH_LETTERS[byte % len(_HASH_LETTERS)] for byte in digest[:8])


def _may_meet(token: str, other: str) -> bool:
    if not token or not other:
        return False
    return token == other or not _WILDCARDS.isdisjoint((token[0], other[0]))


def _has_wildcard(tokens: list[str]) -> bool:
    return not _WILDCARDS.isdisjoint(tokens)
