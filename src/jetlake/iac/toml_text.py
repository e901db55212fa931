"""TOML as nodes with lines.

The values come from the standard library, which keeps no lines; these are found by a second look at the text, which
understands headings and names at the beginning of a line. A name it does not find has the line of its table.
"""

import re
import tomllib
from typing import Any, Self, TypeAlias

from jetlake.located.nodes import Node, SourceLocation, refusal

_HEADING = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?")
_NAME = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")
_LINE = re.compile(r"at line (\d+)")

_Path: TypeAlias = tuple[str | int, ...]


class _Decimal(float):
    """A number with a point or an exponent, which knows how it was written."""

    text: str

    def __new__(cls, text: str) -> Self:
        made = super().__new__(cls, text)
        made.text = text
        return made


def read_toml(text: str, file: str) -> list[Node]:
    """Return the one document of a file."""
    try:
        value = tomllib.loads(text, parse_float=_Decimal)
    except tomllib.TOMLDecodeError as error:
        found = _LINE.search(str(error))
        raise refusal(SourceLocation(file, int(found[1]) if found else 0), f"this is not TOML: {error}") from error
    except ValueError as error:
        # A number of thousands of digits.
        raise refusal(SourceLocation(file), f"this is not TOML: {error}") from error
    except RecursionError:
        raise refusal(SourceLocation(file), "this is nested too deeply") from None
    return [_node(value, (), _lines(text), SourceLocation(file, 1))]


def _node(value: Any, path: _Path, lines: dict[_Path, int], above: SourceLocation) -> Node:
    location = SourceLocation(above.file, lines.get(path, above.line))
    if isinstance(value, dict):
        return Node({key: _node(child, (*path, key), lines, location) for key, child in value.items()}, location)
    if isinstance(value, list):
        return Node([_node(child, (*path, number), lines, location) for number, child in enumerate(value)], location)
    if isinstance(value, _Decimal):
        return Node(float(value), location, written=value.text)
    if isinstance(value, bool | int | float | str):
        return Node(value, location)
    # Dates and times.
    return Node(value.isoformat(), location)


def _lines(text: str) -> dict[_Path, int]:
    lines: dict[_Path, int] = {}
    counts: dict[_Path, int] = {}
    table: _Path = ()
    for number, line in enumerate(text.splitlines(), 1):
        heading = _HEADING.fullmatch(line)
        if heading is not None:
            table = _table(_parts(heading[2]), counts, is_item=heading[1] == "[[")
            lines.setdefault(table, number)
            continue
        name = _NAME.match(line)
        if name is not None:
            lines.setdefault((*table, *_parts(name[1])), number)
    return lines


def _table(parts: list[str], counts: dict[_Path, int], *, is_item: bool) -> _Path:
    """Return the path of a heading; a table below a list is one of its last item."""
    path: _Path = ()
    for part in parts[:-1]:
        path = (*path, part)
        if path in counts:
            path = (*path, counts[path] - 1)
    path = (*path, parts[-1])
    if not is_item:
        return path
    counts[path] = counts.get(path, 0) + 1
    return (*path, counts[path] - 1)


def _parts(name: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(name)] or [name]
