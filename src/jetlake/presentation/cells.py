"""Cells of a table or of a list of facts: values that know their unit, and how a person and a program read them."""

from typing import Any

from jetlake.presentation.quantities import shown_duration, shown_size


class Bytes(int):
    """A number of bytes: readable on a terminal, bare in a pipe."""


class Nanoseconds(int):
    """A length of time: readable in both."""


class Percent(float):
    """A share of a whole, 0 to 100."""


Cell = str | int | float | None


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
            return str(cell)


def plain(cell: Cell) -> str:
    """Return a value for a program: a field of one line."""
    if isinstance(cell, Nanoseconds | bool) or cell is None:
        return shown(cell)
    return str(cell).replace("\t", " ").replace("\n", " ")


def as_dict(value: Any) -> dict[str, Any]:
    """Return an object of JSON that may be missing."""
    return value if isinstance(value, dict) else {}
