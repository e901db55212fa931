"""Typed access to one map of a file: ask for each key by its names, then `finish`; what nobody asked for is unknown.

```python
section = Section(node, problems)
port = section.integer("port")
section.finish()
```

A wrong value is noted in `Problems` with file, line and column, and counts as not given; so one run finds all mistakes.
Names match in any case. Of several names for the same thing, the last one in the file wins.

No message repeats a value of the file unless the key is known to hold no secret.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from jetlake.errors import ConfigurationError
from jetlake.server.configuration.document import ConfigurationNode, Data, FilePosition, kind_of
from jetlake.server.configuration.quantities import host_and_port, quoted_size
from jetlake.server.times import SECONDS_MAX
from jetlake.shared.durations import INTEGER_MAX, TOO_LONG, go_duration_ns

Type = TypeVar("Type")
Number = TypeVar("Number", int, float)

NANOSECONDS_PER_SECOND = 1_000_000_000


class Problems:
    """All errors of one configuration, and its warnings, which are not errors."""

    def __init__(self) -> None:
        self._errors: list[tuple[FilePosition, str]] = []
        self.warnings: list[str] = []

    def error(self, position: FilePosition, reason: str) -> None:
        self._errors.append((position, reason))

    def warning(self, position: FilePosition, reason: str) -> None:
        self.warnings.append(f"{position}: {reason}")

    def check(self) -> None:
        """Raise `ConfigurationError` with one line per mistake, if there is any."""
        if self._errors:
            ordered = sorted(self._errors, key=lambda error: (error[0].file, error[0].line, error[0].column))
            raise ConfigurationError("\n".join(f"{position}: {reason}" for position, reason in ordered))


class Section:
    """One map, and which of its keys have been asked for."""

    def __init__(self, node: ConfigurationNode, problems: Problems) -> None:
        assert isinstance(node.data, dict), "the caller has checked that it is a map"
        self.position = node.position
        self.problems = problems
        self._entries = [(key, entry) for key, entry in node.data.items()]
        self._asked: set[str] = set()

    # Kinds of values

    def text(self, *names: str) -> str | None:
        return self._get(names, "text", lambda data: data if isinstance(data, str) else None)

    def path(self, *names: str) -> str | None:
        """The name of a file or folder."""
        return self._without_zero_byte(names, "a file")

    def host(self, *names: str) -> str | None:
        """The name or address of a machine."""
        return self._without_zero_byte(names, "a host")

    def integer(self, *names: str, lowest: int | None = None, highest: int | None = None) -> int | None:
        node = self.node(*names)
        value = self._get(names, "an integer", _integer_of)
        if node is None or value is None:
            return None
        if (lowest is not None and value < lowest) or (highest is not None and value > highest):
            bounds = " and ".join(
                part
                for part in (
                    f"at least {lowest}" if lowest is not None else "",
                    f"at most {highest}" if highest is not None else "",
                )
                if part
            )
            self.problems.error(node.position, f'"{names[0]}" is {value}: it must be {bounds}')
            return None
        return value

    def switch(self, *names: str) -> bool | None:
        return self._get(names, "true or false", lambda data: data if isinstance(data, bool) else None)

    def size(self, *names: str) -> int | None:
        """A number of bytes; also in quotes (`"64M"`), which only JetStream's keys allow."""
        node = self.node(*names)
        if node is not None and isinstance(node.data, str):
            return self._convert(node, names[0], quoted_size, node.data)
        return self._get(names, 'a size such as 64MB or "64M"', _integer_of)

    def duration_s(self, *names: str) -> float | None:
        """A duration in quotes; a bare integer counts as seconds, with a warning, as in nats-server."""
        node = self.node(*names)
        if node is None:
            return None
        if isinstance(node.data, str):
            return self._duration(node, names[0])
        seconds = self.bounded(node, names[0], self._get(names, 'a duration such as "2m"', _integer_of))
        if seconds is not None:
            self.problems.warning(
                node.position,
                f'invalid use of field "{names[0]}": {names[0]} should be converted to a duration: {seconds} is taken '
                f'as seconds, write "{seconds}s"',
            )
        return seconds

    def strict_duration_s(self, *names: str) -> float | None:
        """A duration in quotes and nothing else."""
        node = self.node(*names)
        if node is None or self._get(names, 'a duration in quotes, such as "2m"', _text_of) is None:
            return None
        return self._duration(node, names[0])

    def seconds(self, *names: str) -> float | None:
        """A number of seconds, whole or not, or a duration in quotes."""
        node = self.node(*names)
        if node is not None and isinstance(node.data, str):
            return self._duration(node, names[0])
        return self.bounded(node, names[0], self._get(names, "a number of seconds or a duration", _number_of))

    def bounded(self, node: ConfigurationNode | None, name: str, seconds: Number | None) -> Number | None:
        """Return a number of seconds, or note that no duration is that long: as a text it would be refused, too."""
        if seconds is None:
            return None
        if abs(seconds) > INTEGER_MAX / NANOSECONDS_PER_SECOND:
            self.error(node, f'"{name}" {TOO_LONG}')
            return None
        return _within_range(seconds)

    def address(self, *names: str) -> tuple[str, int] | None:
        """`host:port`, or a port alone, which leaves the host empty."""
        node = self.node(*names)
        if node is not None and isinstance(node.data, str):
            return self._convert(node, names[0], host_and_port, node.data)
        port = self._get(names, "a port or host:port", _integer_of)
        return None if port is None else ("", port)

    def texts(self, *names: str) -> tuple[str, ...] | None:
        """A list of texts, or one text alone."""
        node = self.node(*names)
        if node is None:
            return None
        if isinstance(node.data, str):
            return (node.data,)
        values = self._get(names, "text or a list of texts", lambda data: data if isinstance(data, list) else None)
        if values is None:
            return None
        for value in values:
            if not isinstance(value.data, str):
                self.problems.error(value.position, f'"{names[0]}" must contain texts only, not {kind_of(value.data)}')
                return None
        return tuple(str(value.data) for value in values)

    def map_of_texts(self, *names: str) -> dict[str, str] | None:
        node = self.node(*names)
        entries = self._get(names, "a map", lambda data: data if isinstance(data, dict) else None)
        if node is None or entries is None:
            return None
        for key, value in entries.items():
            if not isinstance(value.data, str):
                self.problems.error(value.position, f'"{key}" must be text, not {kind_of(value.data)}')
                return None
        return {key: str(value.data) for key, value in entries.items()}

    def section(self, *names: str) -> "Section | None":
        node = self.node(*names)
        if self._get(names, "a map", lambda data: data if isinstance(data, dict) else None) is None:
            return None
        assert node is not None
        return Section(node, self.problems)

    def sections(self, *names: str) -> "list[Section] | None":
        """A list of maps."""
        values = self._get(names, "a list of maps", lambda data: data if isinstance(data, list) else None)
        if values is None:
            return None
        found = []
        for value in values:
            if isinstance(value.data, dict):
                found.append(Section(value, self.problems))
            else:
                self.problems.error(
                    value.position, f'"{names[0]}" must contain maps in braces, not {kind_of(value.data)}'
                )
        return found

    # The map itself

    def node(self, *names: str) -> ConfigurationNode | None:
        """Return the value as it stands; None = it is not there. The names count as asked for."""
        self._asked.update(names)
        found = None
        for key, entry in self._entries:
            if key.lower() in names:
                found = entry
        return found

    def entries(self) -> Iterator[tuple[str, ConfigurationNode]]:
        """Yield every entry that nobody asked for and no variable refers to, under its name as written."""
        for key, entry in self._entries:
            if key.lower() not in self._asked and not entry.used:
                yield key, entry

    def refuse(self, reasons: dict[str, str]) -> None:
        """Report the keys among these that are present: they exist in nats-server and not here."""
        for key, entry in self._entries:
            if key.lower() in reasons:
                self._asked.add(key.lower())
                self.problems.error(entry.position, f'"{key}" is not supported {reasons[key.lower()]}')

    def accept(self, *names: str) -> None:
        """Let these keys pass: they tune something that this server does not have."""
        self._asked.update(names)

    def finish(self) -> None:
        """Report what is left."""
        for key, entry in self.entries():
            self.problems.error(entry.position, f'unknown field "{key}"')

    def error(self, node: ConfigurationNode | None, reason: str) -> None:
        self.problems.error(node.position if node else self.position, reason)

    def _get(self, names: tuple[str, ...], expected: str, pick: Callable[[Data], Type | None]) -> Type | None:
        node = self.node(*names)
        if node is None:
            return None
        value = pick(node.data)
        if value is None:
            self.problems.error(node.position, f'"{names[0]}" must be {expected}, not {kind_of(node.data)}')
        return value

    def _duration(self, node: ConfigurationNode, name: str) -> float | None:
        assert isinstance(node.data, str)
        nanoseconds = self._convert(node, name, go_duration_ns, node.data)
        return None if nanoseconds is None else _within_range(nanoseconds / NANOSECONDS_PER_SECOND)

    def _without_zero_byte(self, names: tuple[str, ...], what: str) -> str | None:
        text = self.text(*names)
        if text is None or "\0" not in text:
            return text
        self.error(self.node(*names), f'"{names[0]}" contains a zero byte: {what} cannot have such a name')
        return None

    def _convert(self, node: ConfigurationNode, name: str, convert: Callable[[str], Type], text: str) -> Type | None:
        try:
            return convert(text)
        except ValueError as error:
            self.problems.error(node.position, f'"{name}": {text!r} {error}')
            return None


def _integer_of(data: Data) -> int | None:
    return data if isinstance(data, int) and not isinstance(data, bool) else None


def _within_range(seconds: Number) -> Number:
    return min(max(seconds, -SECONDS_MAX), SECONDS_MAX)


def _number_of(data: Data) -> float | None:
    return data if isinstance(data, int | float) and not isinstance(data, bool) else None


def _text_of(data: Data) -> str | None:
    return data if isinstance(data, str) else None
