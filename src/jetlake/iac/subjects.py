"""Which of many streams take subjects that overlap."""

from collections.abc import Mapping

from jetlake.shared.subjects import ANY_TAIL, ANY_TOKEN, overlap

START_TOKENS = 2
"""Tokens by which subjects are found: the first alone is often the same for all."""


class Takers:
    """Which streams take subjects that overlap with a given one.

    Streams are found by the first tokens of their subjects, so that thousands of them can be compared with each other.
    """

    def __init__(self, subjects_of: Mapping[str, list[str]]) -> None:
        self._all = [(stream, subject) for stream, subjects in subjects_of.items() for subject in subjects]
        self._wild: list[tuple[str, str]] = []
        self._by_start: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        for stream, subject in self._all:
            start = _start(subject)
            (self._wild if start is None else self._by_start.setdefault(start, [])).append((stream, subject))

    def overlapping(self, subject: str) -> list[str]:
        """Return the streams with a subject that overlaps with this one, each once."""
        start = _start(subject)
        candidates = self._all if start is None else [*self._by_start.get(start, []), *self._wild]
        return list(dict.fromkeys(stream for stream, other in candidates if overlap(subject, other)))


def _start(subject: str) -> tuple[str, ...] | None:
    """Return the first tokens of a subject, or None if there is a wildcard among them."""
    start = tuple(subject.split(".", START_TOKENS)[:START_TOKENS])
    return None if ANY_TOKEN in start or ANY_TAIL in start else start


def ends_in_one_token(subject: str) -> bool:
    """Return whether a subject takes exactly one more token, where everything below may have been meant."""
    return subject.endswith(f".{ANY_TOKEN}")
