"""`${NAME}` in the texts of a declaration, names that are written as keys included.

A value comes from the command line, else from the environment, else from the `variables` of the files, else from
the text itself: `${NAME:-value}`. One that comes from nowhere is refused with its location. `$${` is a `${` that stays;
a `$` before anything else, as in `$KV.users.>`, means nothing.
"""

import re
from collections.abc import Mapping

from jetlake.located.nodes import Node, SourceLocation, refusal

_REFERENCE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{")


class Variables:
    """The values that names have."""

    def __init__(self, given: Mapping[str, str], environment: Mapping[str, str], declared: Mapping[str, str]) -> None:
        self._places = (given, environment, declared)

    def fill(self, node: Node) -> Node:
        """Return the node with all its references replaced."""
        if isinstance(node.value, dict):
            return Node(self._mapping(node.value), node.location)
        if isinstance(node.value, list):
            return Node([self.fill(child) for child in node.value], node.location)
        return Node(self._text(node.value, node.location), node.location) if isinstance(node.value, str) else node

    def _mapping(self, given: Mapping[str, Node]) -> dict[str, Node]:
        made: dict[str, Node] = {}
        written: dict[str, str] = {}
        for key, child in given.items():
            name = self._text(key, child.location)
            if written.setdefault(name, key) != key:
                reason = f"{name!r} stands twice in one mapping, as {written[name]!r} and as {key!r}"
                raise refusal(child.location, f"{reason}: remove one of them")
            made[name] = self.fill(child)
        return made

    def _text(self, text: str, location: SourceLocation) -> str:
        def replaced(found: re.Match[str]) -> str:
            if found[0] == "$${":
                return "${"
            if found[1] is None:
                raise refusal(
                    location, f"{text!r} has a ${{ without a name: write ${{NAME}}, or $${{ for the text itself"
                )
            return self._value(found[1], found[2], location)

        return _REFERENCE.sub(replaced, text) if "${" in text else text

    def _value(self, name: str, otherwise: str | None, location: SourceLocation) -> str:
        for values in self._places:
            if name in values:
                return values[name]
        if otherwise is None:
            raise refusal(
                location,
                f"${{{name}}} has no value: set it in the environment, by --var {name}=…, under `variables`, "
                f"or write ${{{name}:-value}}",
            )
        return otherwise
