"""`Fields`: reads one mapping of a manifest and collects every problem instead of stopping at the first.

```python
problems = Problems()
fields = Fields(node, "watcher 'check'", problems)
command = fields.text("command", required=True)
fields.finish()
```

A problem has a file and a line. An error means that the machine cannot run; a warning that something is ignored.

Invariant: a method that found an error returns a usable value of its type, so that reading goes on.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from jetlake.located.nodes import Node, SourceLocation, describe
from jetlake.shared.durations import duration_ns
from jetlake.suggestions import suggestion

__all__ = ["Fields", "ManifestProblems", "Problem"]

PROBLEMS_MAX = 100
"""Problems kept of one manifest; nobody reads more."""

TEXT_MAX = 64 * 1024
"""Characters of one text: commands and file contents are shorter."""

NAME_MAX = 128
"""Characters of a name: it becomes part of events and log lines."""

ITEMS_MAX = 10_000
"""Items of one list; a real machine has some dozens of states."""

NANOSECONDS_PER_SECOND = 1_000_000_000


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong, and where."""

    location: SourceLocation
    text: str
    is_error: bool = True

    def __str__(self) -> str:
        return f"{self.location}: {'' if self.is_error else 'warning: '}{self.text}"


class ManifestProblems:
    """The problems found so far, at most `PROBLEMS_MAX`."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.found if problem.is_error]

    def error(self, location: SourceLocation, text: str) -> None:
        self._add(Problem(location, text))

    def warn(self, location: SourceLocation, text: str) -> None:
        self._add(Problem(location, text, is_error=False))

    def _add(self, problem: Problem) -> None:
        if len(self.found) < PROBLEMS_MAX:
            self.found.append(problem)


class Fields:
    """One mapping; `owner` names it in messages."""

    def __init__(self, node: Node, owner: str, problems: ManifestProblems) -> None:
        self.location = node.location
        self.owner = owner
        self.problems = problems
        self._known: set[str] = set()
        self._values: dict[str, Node] = {}
        if isinstance(node.value, dict):
            self._values = node.value
        elif node.value is not None:
            problems.error(node.location, f"{owner} is {describe(node.value)}: write names with values, `name: value`")

    def location_of(self, key: str) -> SourceLocation:
        """Return where a key stands; the mapping's location if it is missing."""
        return self._values[key].location if key in self._values else self.location

    def __contains__(self, key: str) -> bool:
        return self.node(key) is not None

    def node(self, key: str) -> Node | None:
        """Return a value; None if it is missing or empty."""
        self._known.add(key)
        node = self._values.get(key)
        return None if node is None or node.value is None else node

    def error(self, key: str, text: str) -> None:
        self.problems.error(self.location_of(key), f"{self.owner}: {text}")

    def text(self, key: str, default: str = "", *, required: bool = False) -> str:
        node = self.node(key)
        if node is None:
            if required:
                self.error(key, f"{key} is required")
            return default
        # Numbers and true without quotation marks are meant as they are written.
        if isinstance(node.value, str | int | float):
            text = str(node.value).lower() if isinstance(node.value, bool) else str(node.value)
            if len(text) <= TEXT_MAX:
                return text
            self.error(key, f"{key} has more than {TEXT_MAX:,} characters")
            return default
        self.error(key, f"{key} is {describe(node.value)}: write a text")
        return default

    def name(self, key: str, *, required: bool = False) -> str:
        """Return a text that names a state, an event, a machine or a watcher."""
        text = self.text(key, required=required)
        if text and (len(text) > NAME_MAX or not text.isprintable() or text.strip() != text):
            self.error(key, f"{key} is {text[:40]!r}: a name has at most {NAME_MAX} printable characters")
            return ""
        return text

    def names(self, key: str, *, required: bool = False) -> tuple[str, ...]:
        """Return a list of texts."""
        node = self.node(key)
        if node is None:
            if required:
                self.error(key, f"{key} is required: write a list, [A, B]")
            return ()
        items = self.items(key)
        texts = [str(item.value) for item in items if isinstance(item.value, str | int) and item.value != ""]
        if len(texts) != len(items):
            self.error(key, f"{key} must be a list of texts: write [A, B]")
        elif required and not texts:
            self.error(key, f"{key} is empty: name at least one")
        return tuple(texts)

    def items(self, key: str) -> list[Node]:
        """Return the items of a list; an empty one if it is missing or something else."""
        node = self.node(key)
        if node is None:
            return []
        if not isinstance(node.value, list):
            self.error(key, f"{key} is {describe(node.value)}: write a list, [A, B]")
            return []
        if len(node.value) > ITEMS_MAX:
            self.error(key, f"{key} has {len(node.value):,} items: at most {ITEMS_MAX:,} are read")
            return []
        return node.value

    def switch(self, key: str, *, default: bool = False) -> bool:
        node = self.node(key)
        if node is None:
            return default
        if isinstance(node.value, bool):
            return node.value
        if isinstance(node.value, str) and node.value.lower() in ("true", "false"):
            return node.value.lower() == "true"
        self.error(key, f"{key} is {describe(node.value)}: write true or false")
        return default

    def number(self, key: str, default: int = 0, *, least: int = 0) -> int:
        node = self.node(key)
        if node is None:
            return default
        value = node.value
        if isinstance(value, str) and value.isdecimal() and value.isascii() and len(value) < 18:
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**53:
            return value
        self.error(key, f"{key} is {describe(node.value)}: write a whole number, {least} or more")
        return default

    def seconds(self, key: str, default: float = 0.0, *, least: float = 0.0, required: bool = False) -> float:
        """Return a duration such as `90s`, `1m30s` or `1d`."""
        text = self.text(key, required=required)
        if not text:
            return default
        nanoseconds = duration_ns(text)
        if nanoseconds is None or nanoseconds < 0 or nanoseconds > 2**63:
            self.error(key, f"{key} is {text[:40]!r}: write a duration such as 10s, 5m or 1h30m")
            return default
        if nanoseconds / NANOSECONDS_PER_SECOND < least:
            self.error(key, f"{key} is {text}: it must be at least {least:g} s")
            return default
        return nanoseconds / NANOSECONDS_PER_SECOND

    def choice(self, key: str, choices: Iterable[str], default: str) -> str:
        text = self.text(key, default)
        allowed = tuple(choices)
        if text in allowed:
            return text
        self.error(key, f"{key} is {text[:40]!r}: it must be {' or '.join(allowed)}{suggestion(text, allowed)}")
        return default

    def texts_by_name(self, key: str) -> dict[str, str]:
        """Return a mapping from texts to texts."""
        node = self.node(key)
        if node is None:
            return {}
        if not isinstance(node.value, dict):
            self.error(key, f"{key} is {describe(node.value)}: write names with values, `name: value`")
            return {}
        inner = Fields(node, f"{self.owner}: {key}", self.problems)
        return {name: inner.text(name) for name in node.value}

    def inner(self, key: str) -> "Fields":
        """Return a mapping inside this one, an empty one if it is missing."""
        node = self.node(key)
        return Fields(node or Node({}, self.location_of(key)), self.owner, self.problems)

    def plain(self) -> dict[str, Any]:
        return {key: node.plain() for key, node in self._values.items()}

    def finish(self) -> None:
        """Warn about keys that nobody asked for."""
        for key, node in self._values.items():
            if key not in self._known:
                hint = suggestion(key, self._known)
                self.problems.warn(node.location, f"{self.owner}: {key[:40]!r} is unknown and ignored{hint}")
