"""JSON as nodes with lines.

The standard library decides what is JSON, but keeps no lines; what it accepts is walked through once more for them.

Invariant: a mapping never holds a key twice; a file that says one twice is refused.
"""

import json
import re
from bisect import bisect_right
from typing import Any

from jetlake.located.nodes import Node, SourceLocation, refusal

_SPACE = re.compile(r"[ \t\r\n]*")
_LINE_END = re.compile("\n")
_DECODER = json.JSONDecoder()


def read_json(text: str, file: str) -> list[Node]:
    """Return the one document of a file."""
    try:
        json.loads(text)
        return [_Walk(text, file).value()]
    except json.JSONDecodeError as error:
        reason = f"this is not JSON: {error.msg}, in column {error.colno}"
        raise refusal(SourceLocation(file, error.lineno), reason) from error
    except RecursionError as error:
        raise refusal(SourceLocation(file), "this is nested too deeply") from error
    except ValueError as error:
        # A number of thousands of digits.
        raise refusal(SourceLocation(file), f"this is not JSON: {error}") from error


class _Walk:
    """Reads what is known to be JSON."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._position = 0
        self._line_ends = [found.start() for found in _LINE_END.finditer(text)]

    def value(self) -> Node:
        letter, location = self._peek(), self._location
        if letter == "{":
            return Node(self._mapping(), location)
        if letter == "[":
            return Node(self._list(), location)
        start, value = self._position, self._scalar()
        return Node(value, location, written=self._text[start : self._position])

    def _mapping(self) -> dict[str, Node]:
        children: dict[str, Node] = {}
        self._position += 1
        while self._peek() != "}":
            location = self._location
            name = self._scalar()
            if name in children:
                raise refusal(location, f"{name!r} stands twice in one mapping: remove one of them")
            self._skip(":")
            # A value that begins on a later line is found by its name.
            children[name] = self.value().at(location)
            self._skip(",")
        self._position += 1
        return children

    def _list(self) -> list[Node]:
        children: list[Node] = []
        self._position += 1
        while self._peek() != "]":
            children.append(self.value())
            self._skip(",")
        self._position += 1
        return children

    def _scalar(self) -> Any:
        value, self._position = _DECODER.raw_decode(self._text, self._position)
        return value

    def _skip(self, letter: str) -> None:
        if self._peek() == letter:
            self._position += 1

    def _peek(self) -> str:
        space = _SPACE.match(self._text, self._position)
        assert space is not None, "nothing is a space too"
        self._position = space.end()
        return self._text[self._position]

    @property
    def _location(self) -> SourceLocation:
        return SourceLocation(self._file, bisect_right(self._line_ends, self._position) + 1)
