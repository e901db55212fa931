"""`jetlake demo`: the whole system at work in a minute or two, as tables, as JSON, and as a page.

On a terminal a line says what is going on, and each scene appears as a table; in a pipe everything is plain lines.
"""

import shlex
import signal
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetlake.cli.output import JsonOption, console, is_terminal, print_json, print_note, print_table
from jetlake.cli.own_name import own_name
from jetlake.cli.run import fail, refusals
from jetlake.presentation.cells import Cell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from rich.status import Status

    from jetlake.demo.run import Report
    from jetlake.demo.scene import Scene
    from jetlake.demo.stage import Stage

SECONDS = 30.0
FOLDER = Path("build/demo")

TERMINATED = 128 + signal.SIGTERM
"""The exit code after SIGTERM, as shells have it."""

LINE_S = 5.0
"""Between two lines about a scene that goes on, where there is no terminal."""


def demo(
    seconds: Annotated[
        float, typer.Option(min=1, max=3600, help="Length of the live part, about; sizes grow with it.")
    ] = SECONDS,
    folder: Annotated[
        Path, typer.Option(help="Folder for the store, the tables and the page; cleared first.", metavar="FOLDER")
    ] = FOLDER,
    spark: Annotated[bool, typer.Option(help="Run the pipelines on Spark, if it is installed.")] = True,
    wait: Annotated[bool, typer.Option("--wait", help="Keep the server running at the end, until Ctrl-C.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the whole system at work: streams, buckets, workers, a fleet, devices, crashes, pipelines, SQL.

    Starts a server on port 4222, or on a free one if it is taken. Each scene compares what it finds with what it knows
    to be true. Ends with 0 if everything holds, and with 1 and the name of the scene if something does not.
    """
    with refusals():
        from jetlake.demo.run import play, write_page
        from jetlake.demo.scenes import SCENES
        from jetlake.demo.stage import Scale, Stage

        display = Lines(quiet=True) if as_json else Screen() if is_terminal() else Lines()
        scripts = [script for script in SCENES if spark or script.name != "pipelines"]
        with _ended_by_sigterm(), ExitStack() as stack:
            stack.callback(display.close)
            stage = stack.enter_context(Stage(folder, Scale(seconds), display.tell))
            display.greet(stage)
            report = play(stage, display, scripts)
            display.close()
            commands = next_steps(stage, report, waits=wait)
            write_page(report, commands)
            if as_json:
                print_json(report)
            else:
                _finish(report, commands)
            if report.failed:
                fail(f"the scene {report.failed!r} failed: {report.failure}")
            if wait:
                print_note("Ctrl-C stops the server.", style="dim")
                threading.Event().wait()


def next_steps(stage: "Stage", report: "Report", *, waits: bool) -> list[str]:
    """Return what to try: with the server that waits, or with one that is started on the same store."""
    from jetlake.demo.query import NODES_QUERY, SUBJECTS_QUERY
    from jetlake.demo.stage import PORT

    name, port = own_name(), stage.server.port
    store, lake = (shlex.quote(str(stage.folder / each)) for each in ("store", "lake"))
    # The default port need not be reported.
    server, listen = ("", "") if port == PORT else (f" -s {stage.url}", f" --port {port}")
    lines = (
        []
        if waits
        else ["# start a server on the store of the demo, with its dashboard", f"{name} dev --store {store}{listen}"]
    )
    lines.append("# in another terminal")
    steps = (
        ("streams", f"stream ls{server}"),
        ("kv", f"kv history settings web.timeout{server}"),
        ("workers", f"dead list DEAD{server}"),
        ("governor", f"governor view MAINTENANCE{server}"),
        ("objects", f"object ls files{server}"),
        ("sql", f'sql "{SUBJECTS_QUERY}"{server}'),
    )
    lines += [f"{name} {words}" for scene, words in steps if report.has_shown(scene)]
    if report.has_shown("pipelines"):
        lines += ["# without any server", f"{name} pipeline show fleet --lake {lake}"]
        if report.has_shown("sql"):
            lines.append(f'{name} sql "{NODES_QUERY}" --lake {lake}')
    return lines


class Lines:
    """Shows scenes as plain lines; quiet, only that they begin, on standard error."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._told_s = 0.0

    def greet(self, stage: "Stage") -> None:
        self._print(f"A server is running at {stage.url}, its store is {stage.folder / 'store'}")

    def begin(self, scene: "Scene") -> None:
        self._told_s = time.monotonic()
        self._print(scene.title if self._quiet else f"\n{scene.title}\n{scene.explanation}")

    def tell(self, text: str) -> None:
        if time.monotonic() - self._told_s >= LINE_S:
            self._told_s = time.monotonic()
            self._print(f"  {text}")

    def end(self, scene: "Scene") -> None:
        if not self._quiet:
            _print_tables(scene)
            print(_verdict(scene), flush=True)

    def close(self) -> None:
        """Nothing is left on a screen."""

    def _print(self, text: str) -> None:
        print(text, file=sys.stderr if self._quiet else sys.stdout, flush=True)


class Screen:
    """Shows scenes on a terminal: a line that moves while one is played, then its tables."""

    def __init__(self) -> None:
        self._console = console()
        self._status: Status | None = None

    def greet(self, stage: "Stage") -> None:
        self._console.print(f"A server is running at [bold]{stage.url}[/], its store is {stage.folder / 'store'}")

    def begin(self, scene: "Scene") -> None:
        from rich.markup import escape

        self._console.print(f"\n[bold]{escape(scene.title)}[/]\n[dim]{escape(scene.explanation)}[/]")
        self._status = self._console.status("working")
        self._status.start()

    def tell(self, text: str) -> None:
        if self._status is not None:
            from rich.markup import escape

            self._status.update(escape(text))

    def end(self, scene: "Scene") -> None:
        self.close()
        _print_tables(scene)
        style = "bold red" if scene.failure else "yellow" if scene.missing else "green"
        print_note(_verdict(scene), style=style)

    def close(self) -> None:
        """Take away the line that moves."""
        if self._status is not None:
            self._status.stop()
            self._status = None


def _print_tables(scene: "Scene") -> None:
    if scene.rows:
        print_table(scene.columns, scene.rows)
    for part in scene.parts:
        typer.echo(part.title)
        print_table(part.columns, part.rows)


def _verdict(scene: "Scene") -> str:
    if scene.failure:
        return f"failed: {scene.failure}"
    if scene.missing:
        return f"not shown: {scene.missing}"
    count = len(scene.checks)
    return f"{count} check{' holds' if count == 1 else 's hold'}, {scene.seconds:.1f} s"


def _finish(report: "Report", commands: list[str]) -> None:
    """Print what there is to look at, and what to try."""
    checks = sum(len(scene.checks) for scene in report.scenes)
    missing = sum(bool(scene.missing) for scene in report.scenes)
    rows: list[tuple[Cell, ...]] = [
        (scene.title, _result(scene), len(scene.checks), scene.seconds) for scene in report.scenes
    ]
    typer.echo("")
    print_table(("scene", "result", "checks", "seconds"), rows)
    if report.failed:
        return
    left = f", {missing} not shown" if missing else ""
    summary = f"{checks} checks hold in {len(rows) - missing} scenes{left}, {report.seconds:.0f} s"
    print_note(summary, style="bold green")
    print_note(f"The page: {Path(report.page).absolute().as_uri()}")
    print_note("Try next:")
    for line in commands:
        print_note(f"  {line}", style="dim" if line.startswith("#") else "cyan")


def _result(scene: "Scene") -> str:
    if scene.failure:
        return "failed"
    return "not shown" if scene.missing else "ok"


@contextmanager
def _ended_by_sigterm() -> "Iterator[None]":
    """Have SIGTERM end the block as Ctrl-C does, which event loops end cleanly for, with an exit code of its own."""
    has_come = False

    def on_sigterm(_number: int, frame: "FrameType | None") -> None:
        nonlocal has_come
        has_come = True
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(signal.SIGINT, frame)
        else:
            # A shell that starts it in the background has it ignore Ctrl-C.
            raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, on_sigterm)
    try:
        yield
    except KeyboardInterrupt as error:
        if has_come:
            raise typer.Exit(TERMINATED) from error
        raise
