"""The sequences and the subject that a filter leaves, from DuckDB's tree of conditions.

Only conditions that the server fulfils exactly are taken: comparisons of `sequence` with a number, and `subject` equal
to a text, joined by AND. Everything else stays with DuckDB.

Invariant: the rows within the bounds of a condition are exactly those for which it is true.
"""

import re

import msgspec
from duckdb._sources.nodes import Binary, Col, Lit, Node

__all__ = ["Bounds", "bounds_of"]

NO_SUBJECT = re.compile(r"[\s*>]|^\.|\.\.|\.$|^$")
"""A text with one of these would be a pattern to the server, or a subject that it refuses: one with an empty token."""


class Bounds(msgspec.Struct, frozen=True):
    """Sequences from `start` up to `end`, which is not included, and on one subject if there is one."""

    start: int = 0
    end: int | None = None
    subject: str | None = None
    # Two subjects at once: no message has both.
    impossible: bool = False

    def meet(self, other: "Bounds") -> "Bounds":
        """Return what is within both."""
        ends = [end for end in (self.end, other.end) if end is not None]
        subjects = {subject for subject in (self.subject, other.subject) if subject is not None}
        return Bounds(
            max(self.start, other.start),
            min(ends) if ends else None,
            min(subjects) if subjects else None,
            self.impossible or other.impossible or len(subjects) > 1,
        )


def bounds_of(condition: Node) -> Bounds | None:
    """Return the bounds of a condition; None if they would not be exact."""
    match condition:
        case Binary(op="AND", left=left, right=right):
            first, second = bounds_of(left), bounds_of(right)
            return first.meet(second) if first is not None and second is not None else None
        case Binary(op=op, left=Col(parts=("sequence",)), right=Lit(value=int(number))):
            return _of_sequence(op, number)
        case Binary(op="=", left=Col(parts=("subject",)), right=Lit(value=str(subject))):
            return None if NO_SUBJECT.search(subject) else Bounds(subject=subject)
        case _:
            return None


def _of_sequence(comparison: str, number: int) -> Bounds | None:
    match comparison:
        case "=":
            return Bounds(number, number + 1)
        case ">=":
            return Bounds(number)
        case ">":
            return Bounds(number + 1)
        case "<":
            return Bounds(end=number)
        case "<=":
            return Bounds(end=number + 1)
        case _:
            return None
