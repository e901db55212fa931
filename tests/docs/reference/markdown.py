"""Text that is safe in the cells of a table and in headings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """Return a text for a cell: one line, with bars and what looks like a tag escaped."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def code(text: str) -> str:
    """Return a text as code, for a cell."""
    return "`" + " ".join(text.split()).replace("|", "\\|") + "`" if text.strip() else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; without rows nothing."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join((f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines)) + "\n\n"
