"""`${NAME}` in the texts of a declaration.

A value comes from the command line, else from the environment, else from the `variables` of the files, else from
the text itself: `${NAME:-value}`. One that comes from nowhere is refused with its location. `$${` is a `${` that stays;
a `$` before anything else, as in `$KV.users.>`, means nothing.
"""

import re
from collections.abc import Mapping

from jetlake.located.nodes import Node, refusal

_REFERENCE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{")


class Variables:
    """The values that names have."""

    def __init__(self, given: Mapping[str, str], environment: Mapping[str, str], declared: Mapping[str, str]) -> None:
        self._places = (given, environment, declared)

    def fill(self, node: Node) -> Node:
        """Return the node with all its references replaced."""
        if isinstance(node.value, dict):
            return Node({key: self.fill(child) for key, child in node.value.items()}, node.location)
        if isinstance(node.value, list):
            return Node([self.fill(child) for child in node.value], node.location)
        if not isinstance(node.value, str) or "${" not in node.value:
            return node

        def replaced(found: re.Match[str]) -> str:
            if found[0] == "$${":
                return "${"
            if found[1] is None:
                raise refusal(
                    node.location,
                    f"{node.value!r} has a ${{ without a name: write ${{NAME}}, or $${{ for the text itself",
                )
            return self._value(found[1], found[2], node)

        return Node(_REFERENCE.sub(replaced, node.value), node.location)

    def _value(self, name: str, otherwise: str | None, node: Node) -> str:
        for values in self._places:
            if name in values:
                return values[name]
        if otherwise is None:
            raise refusal(
                node.location,
                f"${{{name}}} has no value: set it in the environment, by --var {name}=…, under `variables`, "
                f"or write ${{{name}:-value}}",
            )
        return otherwise
