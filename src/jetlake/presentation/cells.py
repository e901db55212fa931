"""Cells of a table or of a list of facts: values that know their unit, and how a person and a program read them.

Invariant: what is returned here is one line without control characters. Names, descriptions and reasons come from
strangers, and must neither command a terminal nor pass for a line of their own.
"""

import unicodedata
from typing import Any

from jetlake.presentation.quantities import shown_duration, shown_size


class Bytes(int):
    """A number of bytes: readable on a terminal, bare in a pipe."""


class Nanoseconds(int):
    """A length of time: readable in both."""


class Percent(float):
    """A share of a whole, 0 to 100."""


Cell = str | int | float | None


def safe(text: str) -> str:
    r"""Return a text with an escape for everything that is not visible: \x1b, \n, or \u202e, which writes backwards.

    A backslash stays as it is, so that paths are readable: the text is for reading, not for reading back.
    """
    if text.isprintable():
        return text
    return "".join(character if _is_visible(character) else _escape(character) for character in text)


def _is_visible(character: str) -> bool:
    # `isprintable` alone would escape every space but one, such as those of Japanese texts.
    return character.isprintable() or unicodedata.category(character) == "Zs"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def shown(cell: Cell) -> str:
    """Return a value for a person."""
    match cell:
        case None:
            return ""
        case bool():
            return "yes" if cell else "no"
        case Bytes():
            return shown_size(cell)
        case Nanoseconds():
            return shown_duration(cell)
        case Percent():
            return f"{cell:.1f} %"
        case int():
            return f"{cell:,}"
        case float():
            return f"{cell:,.2f}"
        case _:
            return safe(str(cell))


def plain(cell: Cell) -> str:
    """Return a value for a program: a field of one line."""
    if isinstance(cell, Nanoseconds | bool) or cell is None:
        return shown(cell)
    return safe(str(cell))


def as_dict(value: Any) -> dict[str, Any]:
    """Return an object of JSON that may be missing."""
    return value if isinstance(value, dict) else {}
