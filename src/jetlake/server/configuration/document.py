"""What a configuration file says, before anybody asks what it means: values, each with the place it stands at.

A `ConfigurationNode` is one value. The place of a value in a map is that of its key, because that is where a reader
looks; the place of a value in a list is its own. Lines and columns count from 1.
"""

from typing import Any, TypeAlias

import msgspec

Data: TypeAlias = "str | int | float | bool | DateLiteral | list[ConfigurationNode] | dict[str, ConfigurationNode]"


class FilePosition(msgspec.Struct, frozen=True):
    """A place in a file; the text of a program has no file, and is called by what made it."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class DateLiteral(msgspec.Struct, frozen=True):
    """A date and time, as written: `2026-11-15T18:15:55Z`. No key takes one; a variable may hold one."""

    text: str


class ConfigurationNode(msgspec.Struct, eq=False):
    """One value. `used` is set once a variable refers to it: then nobody minds that its key has no other meaning."""

    data: Data
    position: FilePosition
    used: bool = False
    # Maps and lists inside each other, and all values in them: variables repeat a value without making a new one.
    depth: int = 0
    value_count: int = 1

    def at(self, position: FilePosition) -> "ConfigurationNode":
        """Return the same value for another place."""
        return ConfigurationNode(self.data, position, depth=self.depth, value_count=self.value_count)


def kind_of(data: Data) -> str:
    """Return what a value is, for messages that must not show the value itself: it may be a password."""
    match data:
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a decimal number"
        case str():
            return "text"
        case DateLiteral():
            return "a date"
        case list():
            return "a list"
        case _:
            return "a map"


def plain(node: ConfigurationNode) -> Any:
    """Return a value without its places: maps, lists, texts and numbers."""
    match node.data:
        case dict():
            return {key: plain(entry) for key, entry in node.data.items()}
        case list():
            return [plain(entry) for entry in node.data]
        case DateLiteral():
            return node.data.text
        case _:
            return node.data
