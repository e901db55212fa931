"""`Scene`: one part of the demo, with what it showed and what it checked. `Script`: how a scene is made.

```python
def play(stage: Stage, scene: Scene) -> None:
    scene.rows.append(("orders", stored))
    scene.check("every order is stored", expected=sent, found=stored)
```

Invariant: a scene whose checks all hold has at least one of them, or says what is missing on this machine.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from jetlake.demo.stage import Stage

__all__ = ["Cell", "ClaimCheck", "PageLink", "Scene", "ScenePart", "Script", "in_event_loop"]

Cell = str | int | float


class ClaimCheck(msgspec.Struct, frozen=True):
    """A claim that was compared with the truth."""

    claim: str
    expected: Cell
    found: Cell

    @property
    def holds(self) -> bool:
        return self.expected == self.found


class PageLink(msgspec.Struct, frozen=True):
    """A page beside the one about the demo."""

    text: str
    file: str


class ScenePart(msgspec.Struct, frozen=True):
    """One more table of a scene, below its own."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]


class Scene(msgspec.Struct, kw_only=True):
    """What one part of the demo showed."""

    name: str
    title: str
    explanation: str
    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]] = []
    # The last column is drawn as bars on the page.
    bars: bool = False
    parts: list[ScenePart] = []
    links: list[PageLink] = []
    checks: list[ClaimCheck] = []
    # What this machine lacks; the scene was not played then.
    missing: str = ""
    # Why it ended early; empty if it did not.
    error: str = ""
    seconds: float = 0.0

    def check(self, claim: str, *, expected: Cell, found: Cell) -> None:
        """Compare what was found with the truth; `failure` tells if they differ."""
        self.checks.append(ClaimCheck(claim, expected, found))

    @property
    def failure(self) -> str:
        """Why the scene failed; empty if everything it claims holds."""
        if self.error:
            return self.error
        wrong = [check for check in self.checks if not check.holds]
        return "; ".join(f"{check.claim}: expected {check.expected!r}, found {check.found!r}" for check in wrong)


class Script(NamedTuple):
    """How a scene is made: what it is called, what it is about, and the function that plays it.

    The function raises `MissingDependencyError` if this machine lacks what the scene needs.
    """

    name: str
    title: str
    explanation: str
    columns: tuple[str, ...]
    play: "Callable[[Stage, Scene], None]"
    bars: bool = False

    def scene(self) -> Scene:
        """Return the scene before it is played."""
        return Scene(
            name=self.name, title=self.title, explanation=self.explanation, columns=self.columns, bars=self.bars
        )


def in_event_loop(
    play: "Callable[[Stage, Scene], Coroutine[Any, Any, None]]",
) -> "Callable[[Stage, Scene], None]":
    """Return a function that plays an asynchronous scene from beginning to end, or until Ctrl-C."""

    async def whole(stage: "Stage", scene: Scene) -> None:
        await play(stage, scene)
        task = asyncio.current_task()
        # `asyncio.wait_for` of Python 3.11 loses a Ctrl-C that comes in the moment in which something arrives.
        if task is not None and task.cancelling():
            raise asyncio.CancelledError

    return lambda stage, scene: asyncio.run(whole(stage, scene))
