"""A plan: the steps from what a server has to what is declared, in the order in which they are carried out.

Invariant: a step that destroys something says what, in `destroys`; one that says nothing there destroys nothing.
"""

from typing import Any, Literal

import msgspec

from jetlake.iac.declaration import Key, title_of

Action = Literal["create", "update", "replace", "delete"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One field that differs; `note` says what is special about it."""

    field: str
    before: Any = None
    after: Any = None
    note: str = ""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do."""

    action: Action
    key: Key
    label: str
    changes: tuple[Change, ...] = ()
    # What is lost by it, each in one sentence.
    destroys: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    # What the server is sent; a delete sends nothing.
    config: dict[str, Any] | None = None

    @property
    def title(self) -> str:
        return title_of(self.key, self.label)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done, and what it was made from."""

    project: str = ""
    steps: tuple[Step, ...] = ()
    unchanged: tuple[str, ...] = ()
    # Resources that the project created, that are no longer declared, and that are left in place.
    orphans: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    # The things the plan depends on, and a digest of how they were.
    keys: tuple[Key, ...] = ()
    fingerprint: str = ""

    @property
    def is_empty(self) -> bool:
        return not self.steps

    @property
    def has_differences(self) -> bool:
        """Whether the server has something else than what is declared, orphans included."""
        return bool(self.steps or self.orphans)

    @property
    def destructive(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.destroys)

    def count(self, action: Action) -> int:
        return sum(step.action == action for step in self.steps)
