"""What commands print: tables, facts, JSON, questions and progress.

On a terminal there are frames, colours and readable numbers; in a pipe a table is lines of fields with tabs between
them, and numbers are bare. NO_COLOR and `--no-color` take the colours away.

Invariant: no question is asked when standard input is not a terminal; the error names the flag that answers instead.
"""

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
import typer

from jetlake.cli.invocation import current
from jetlake.presentation.cells import Cell, plain, safe, shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

UsageError: Any = typer.BadParameter.__mro__[1]
"""What a wrong line raises; typer does not export it, and where it comes from differs by version."""

JsonOption = Annotated[bool, typer.Option("--json", "-j", help="Print JSON.")]
ForceOption = Annotated[bool, typer.Option("--force", "-f", help="Do not ask.")]

BAR_AFTER_S = 1.0
"""Work that is done sooner needs no progress bar."""

NARROW_WIDTH = 70
"""Below this many columns help texts have no frames, which would cut flags off."""

FRAME_WIDTH = 3
"""What the frame takes of a column: two blanks and a line."""

FOLDED_WIDTH = 16
"""Narrowest a column of texts may become; its cells are folded."""

PLAIN_WIDTH = 10_000
"""Columns where nobody sees them: a line of a pipe is never broken."""


T = TypeVar("T")


def is_terminal() -> bool:
    """Tell whether standard output is a terminal."""
    return sys.stdout.isatty()


def console(*, stderr: bool = False) -> "Console":
    """Return where to print; without a terminal, lines are as wide as they need to be."""
    from rich.console import Console

    made = Console(file=sys.stderr if stderr else sys.stdout, no_color=not current().color or None, highlight=False)
    if not made.is_terminal:
        made.width = PLAIN_WIDTH
    return made


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, title: str = "", totals: Sequence[Cell] | None = None
) -> None:
    """Print a table; `totals` is one more row, below a line, on terminals only."""
    if not is_terminal():
        for row in (columns, *rows):
            typer.echo("\t".join(plain(cell) for cell in row))
        return
    from rich.box import ROUNDED
    from rich.markup import escape
    from rich.table import Table

    columns = [safe(column) for column in columns]
    table = Table(box=ROUNDED, title=escape(safe(title)) or None, title_justify="left", show_footer=totals is not None)
    screen = console()
    kept = columns_that_fit(columns, rows, screen.width)
    for number, column in enumerate(columns[:kept]):
        is_number = bool(rows) and all(isinstance(row[number], int | float) or row[number] is None for row in rows)
        footer = "" if totals is None else escape(shown(totals[number]))
        # Names and numbers are not broken: half a name is another name.
        is_whole = is_number or number == 0
        justify: Any = "right" if is_number else "left"
        table.add_column(escape(column), footer=footer, justify=justify, overflow="fold", no_wrap=is_whole)
    for row in rows:
        table.add_row(*(escape(shown(cell)) for cell in row[:kept]))
    screen.print(table)
    if kept < len(columns):
        screen.print(f"not shown: {', '.join(columns[kept:])}; widen the terminal, or use --json", style="dim")


def columns_that_fit(columns: Sequence[str], rows: Sequence[Sequence[Cell]], width: int) -> int:
    """Return how many columns, from the left, fit without breaking names and numbers; the first one always does."""
    used, kept = 1, 0
    for number, column in enumerate(columns):
        cells = [row[number] for row in rows]
        is_whole = number == 0 or all(isinstance(cell, int | float) or cell is None for cell in cells)
        longest = max((len(shown(cell)) for cell in cells), default=0)
        used += FRAME_WIDTH + max(len(column), longest if is_whole else min(longest, FOLDED_WIDTH))
        if used > width and number:
            break
        kept += 1
    return kept


def is_narrow() -> bool:
    """Tell whether a terminal is too narrow for frames."""
    return is_terminal() and shutil.get_terminal_size().columns < NARROW_WIDTH


def print_facts(title: str, sections: Mapping[str, Mapping[str, Cell]]) -> None:
    """Print names and values in sections: aligned on a terminal, `name: value` in a pipe. None is left out."""
    facts = {
        safe(name): {safe(key): value for key, value in section.items() if value is not None}
        for name, section in sections.items()
    }
    if not is_terminal():
        for name, section in facts.items():
            if name and section:
                typer.echo(f"\n{name}:")
            for key, value in section.items():
                typer.echo(f"{key}: {shown(value)}")
        return
    from rich.markup import escape
    from rich.padding import Padding
    from rich.table import Table

    screen = console()
    if title:
        screen.print(f"[bold]{escape(safe(title))}[/]")
    width = max((len(key) for section in facts.values() for key in section), default=0)
    for name, section in facts.items():
        if not section:
            continue
        if name:
            screen.print(f"\n[bold cyan]{escape(name)}[/]")
        table = Table(box=None, show_header=False, padding=(0, 1))
        table.add_column(justify="right", style="dim", min_width=width, no_wrap=True)
        table.add_column(overflow="fold")
        for key, value in section.items():
            table.add_row(escape(key), escape(shown(value)))
        screen.print(Padding(table, (0, 0, 0, 1)))


def print_list(
    found: Sequence[T], name_of: Callable[[T], str], as_value: Callable[[T], object], *, names: bool, as_json: bool
) -> bool:
    """Print a list as JSON, or its names alone, and return whether one of the two was asked for."""
    if as_json:
        print_json([name_of(each) if names else as_value(each) for each in found])
    elif names:
        print_names(map(name_of, found))
    return as_json or names


def print_names(names: Iterable[str]) -> None:
    """Print one name on each line; a line break in a name is shown, so that none passes for two."""
    for name in names:
        typer.echo(safe(name))


def print_status(
    value: object, sections: Mapping[str, Mapping[str, Cell]], *, note: str = "", title: str = "", as_json: bool
) -> None:
    """Print what was made, below a note, or what was found, below a title; as JSON if asked."""
    if as_json:
        print_json(value)
        return
    if note:
        print_note(note, style="green")
    print_facts("" if note else title, sections)


def print_json(value: object) -> None:
    """Print a value as JSON: indented on a terminal, one line in a pipe."""
    text = msgspec.json.encode(value)
    typer.echo((msgspec.json.format(text, indent=2) if is_terminal() else text).decode())


def print_note(text: str, *, style: str = "") -> None:
    """Print one line for a person, coloured if there are colours; a line break at its end leaves a line free."""
    if current().json_notes:
        print_json({"message": text})
        return
    line = text.rstrip("\n")
    visible = safe(line) + text[len(line) :]
    if is_terminal():
        console().print(visible, style=style, markup=False, soft_wrap=True)
    else:
        typer.echo(visible)


def confirm(question: str, *, force: bool, flag: str = "--force") -> None:
    """Ask before something is lost; no ends the command with 1. `force` answers yes."""
    if force:
        return
    if not sys.stdin.isatty():
        action = question.partition("?")[0].removeprefix("Really ")
        raise UsageError(f"Not a terminal: add {flag} to {action}.")
    if not typer.confirm(question, default=False):
        raise typer.Exit(1)


def ask(question: str, *, flag: str, default: str | None = None, hide: bool = False, advice: str = "") -> str:
    """Ask for what the line did not say; where nobody can answer, the default or an error that names the flag."""
    if sys.stdin.isatty():
        answer: str = typer.prompt(question, default=default, hide_input=hide)
        return answer
    if default is not None:
        return default
    raise UsageError(advice or f"Not a terminal: give {flag}.")


Advance = Callable[[int], None]


@contextmanager
def progress_bar(label: str, total: int | None, *, is_bytes: bool = False) -> Iterator[Advance]:
    """Show the progress of long work on standard error, if that is a terminal; call the yielded function per step.

    Work that is done in a moment shows no bar.
    """
    if not sys.stderr.isatty():
        yield lambda _amount: None
        return
    begin_s, done, bar = time.monotonic(), 0, _bar(is_bytes=is_bytes)
    task = bar.add_task(label, total=total)

    def advance(amount: int) -> None:
        nonlocal done
        done += amount
        if not bar.live.is_started and time.monotonic() - begin_s > BAR_AFTER_S:
            bar.start()
        bar.update(task, completed=done)

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()


def _bar(*, is_bytes: bool) -> "Progress":
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    amount: ProgressColumn = DownloadColumn(binary_units=True) if is_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeRemainingColumn())
    return Progress(*columns, console=console(stderr=True), transient=True)
