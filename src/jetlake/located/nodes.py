"""Values that know where they were written, so that every refusal can name file and line.

All formats are read into this one form. A `Node` holds a scalar (None, bool, int, float, str), a list of nodes or a
mapping from text to nodes.

Invariant: the children of a node are nodes of the same file, and every text in them can be written as UTF-8.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from jetlake.errors import ConfigurationError

FILE_BYTES_MAX = 16 * 1024 * 1024
"""A file of declarations; a larger one is probably the wrong file."""

NODES_MAX = 100_000
"""Values of one file: an alias in YAML can name another many times over, and a small file must not fill the memory."""

DIGITS_MAX = 100
"""Digits of a number; Python itself refuses to read or write some thousands."""


@dataclass(frozen=True)
class SourceLocation:
    """A file and a line in it; 0 = the line is not known."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True)
class Node:
    """One value and its location."""

    value: Any
    location: SourceLocation
    # How a number stands in the file: 007 is the number 7, and another text.
    written: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.value, str):
            _check_texts((self.value,), self.location)
        elif isinstance(self.value, dict):
            _check_texts(self.value, self.location)

    def at(self, location: SourceLocation) -> "Node":
        """Return the same value at another location."""
        return replace(self, location=location)

    @property
    def mapping(self) -> "dict[str, Node]":
        """Its values by name. Raises `ConfigurationError` if it is not a mapping."""
        if not isinstance(self.value, dict):
            raise refusal(
                self.location, f"{describe(self.value)} stands where names with values belong: write `name: value`"
            )
        return self.value

    @property
    def items(self) -> "list[Node]":
        """Its items. Raises `ConfigurationError` if it is not a list."""
        if not isinstance(self.value, list):
            raise refusal(self.location, f"{describe(self.value)} stands where a list belongs: write [a, b]")
        return self.value

    @property
    def text(self) -> str:
        """The text it is. Raises `ConfigurationError` if it is something else."""
        if not isinstance(self.value, str):
            raise refusal(
                self.location, f"{describe(self.value)} stands where text belongs: put it between quotation marks"
            )
        return self.value

    @property
    def as_text(self) -> str:
        """The text, or the number as it was written, or `true` or `false`. Raises `ConfigurationError` for the rest."""
        if isinstance(self.value, bool):
            return str(self.value).lower()
        return self.written or str(self.value) if isinstance(self.value, int | float) else self.text

    def plain(self) -> Any:
        """Return the value without locations."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value


Mapping: TypeAlias = dict[str, Node]


def refusal(location: SourceLocation, reason: str) -> ConfigurationError:
    """Return the error that says file, line and reason."""
    return ConfigurationError(f"{location}: {reason}")


def describe(value: Any) -> str:
    """Return what a value is, in words: `the number 5`."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int | float):
        return f"the number {value}" if abs(value) < 2**64 else "a number out of range"
    if isinstance(value, str):
        return f"the text {value!r}"
    return "a list" if isinstance(value, list) else "a mapping"


def locate(value: Any, location: SourceLocation) -> Node:
    """Return plain data as nodes that are all at one location."""
    if isinstance(value, dict):
        return Node({str(key): locate(child, location) for key, child in value.items()}, location)
    if isinstance(value, list | tuple):
        return Node([locate(child, location) for child in value], location)
    if value is None or isinstance(value, bool | int | float | str):
        return Node(value, location)
    return Node(str(value), location)


def _check_texts(texts: Iterable[str], location: SourceLocation) -> None:
    """Refuse half of a surrogate pair, which escape sequences can write and variables of the environment can hold."""
    for text in texts:
        if text.isascii():
            continue
        try:
            text.encode()
        except UnicodeEncodeError as error:
            wrong = text[error.start]
            raise refusal(location, f"{text!r} is not text that can be written: it contains {wrong!r}") from None
