"""`play`: plays the scenes, one after the other. `write_page`: writes the page about them.

```python
with Stage(Path("build/demo"), Scale(30)) as stage:
    report = play(stage, display)
    write_page(report, ["jetlake stream ls"])
```

Invariant: the first scene that fails is the last one; the page shows everything up to it.
"""

import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from jetlake.client.load import build_profile, engine_version
from jetlake.demo.page import page_of
from jetlake.demo.scene import Scene, Script
from jetlake.demo.scenes import SCENES
from jetlake.demo.stage import Stage
from jetlake.errors import ConfigurationError, JetlakeError, MissingDependencyError, reason_of

__all__ = ["Display", "Report", "play", "write_page"]

PAGE = "index.html"


class Display(Protocol):
    """Shows the scenes while they are played."""

    def begin(self, scene: Scene) -> None:
        """A scene begins."""

    def end(self, scene: Scene) -> None:
        """A scene has ended, well or not."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What the demo has shown."""

    version: str
    build_profile: str
    machine: str
    seconds: float
    folder: str
    page: str
    # The scene that failed and why; both empty if none did.
    failed: str
    failure: str
    scenes: list[Scene]

    def has_shown(self, name: str) -> bool:
        """Tell whether a scene was played, and everything in it holds."""
        return any(scene.name == name and not (scene.missing or scene.failure) for scene in self.scenes)


def play(stage: Stage, display: Display, scripts: Sequence[Script] = SCENES) -> Report:
    """Play scenes until the end or the first failure."""
    begin_s = time.monotonic()
    scenes: list[Scene] = []
    for script in scripts:
        scene = script.scene()
        scenes.append(scene)
        display.begin(scene)
        _play_one(script, stage, scene)
        display.end(scene)
        if scene.failure:
            break
    failed = next((scene for scene in scenes if scene.failure), None)
    return Report(
        version=engine_version,
        build_profile=build_profile,
        machine=f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        seconds=round(time.monotonic() - begin_s, 1),
        folder=str(stage.folder),
        page=str(stage.folder / PAGE),
        failed=failed.title if failed is not None else "",
        failure=failed.failure if failed is not None else "",
        scenes=scenes,
    )


def write_page(report: Report, commands: Sequence[str]) -> None:
    """Write the page, with commands to try next. Raises `ConfigurationError`."""
    headline = f"Version {report.version}, {report.build_profile} build, {report.machine}; {report.seconds:.0f} seconds"
    try:
        Path(report.page).write_text(page_of(headline, report.scenes, commands), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot write {report.page}: {reason_of(error)}") from error


def _play_one(script: Script, stage: Stage, scene: Scene) -> None:
    from nats.errors import Error

    begin_s = time.monotonic()
    try:
        script.play(stage, scene)
    except MissingDependencyError as error:
        scene.missing = str(error)
    except (JetlakeError, Error, OSError, TimeoutError) as error:
        scene.error = f"{type(error).__name__}: {error}"
    scene.seconds = round(time.monotonic() - begin_s, 2)
    assert scene.checks or scene.missing or scene.error, f"the scene {scene.name} checks nothing"
