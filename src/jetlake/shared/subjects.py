"""Subjects with wildcards: which subjects a pattern matches, and which patterns share one or have all of another's.

Wildcards count only as whole tokens. Routing itself is the engine's. What a stream may take is decided by
`jetlake.management.subjects`, which also repeats what nats-server makes of texts that are not valid subjects.
"""

from jetlake.errors import ClientError

ANY_TOKEN = "*"  # noqa: S105 - a wildcard, no password
ANY_TAIL = ">"


def is_literal(subject: str) -> bool:
    """Return whether one may publish to it: no empty token, no wildcard, no white space."""
    tokens = subject.split(".")
    return all(tokens) and not {ANY_TOKEN, ANY_TAIL} & set(tokens) and not any(letter.isspace() for letter in subject)


def publishable(subject: str) -> str:
    """Return a subject that can be published to. Raises `ClientError` for one that cannot."""
    if not is_literal(subject):
        raise ClientError(f"{subject!r} cannot be published to: no empty tokens, no blanks, no wildcards * and >")
    return subject


def matches(pattern: str, subject: str) -> bool:
    """Return whether a subject is one of those that a pattern means."""
    wanted, given = pattern.split("."), subject.split(".")
    for position, token in enumerate(wanted):
        if token == ANY_TAIL:
            return len(given) > position
        if position >= len(given) or token not in (ANY_TOKEN, given[position]):
            return False
    return len(wanted) == len(given)


def covers(pattern: str, other: str) -> bool:
    """Return whether a pattern matches every subject that another one matches."""
    return matches(pattern, other) and (not other.endswith(ANY_TAIL) or pattern.endswith(ANY_TAIL))


def overlap(first: str, second: str) -> bool:
    """Return whether some subject matches both; either may have wildcards."""
    left, right = first.split("."), second.split(".")
    for one, other in zip(left, right, strict=False):
        if ANY_TAIL in (one, other):
            return True
        if one != other and ANY_TOKEN not in (one, other):
            return False
    return len(left) == len(right)
