"""`jetlake check`: what is damaged in a store, what opening it would heal, and what can be done."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.box import ROUNDED
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jetlake.cli import store_check
from jetlake.cli.output import JsonOption
from jetlake.errors import JetlakeError

PLAIN_WIDTH = 1000
"""Columns where nobody sees them: a line of a pipe is never broken."""

LONG_BYTES = 256 * 1024 * 1024
"""Stores from this size on take long enough to show how far they are."""

STYLES = {"loss": "bold red", "healed": "yellow", "harmless": "dim"}
MEANINGS = {"loss": "loss", "healed": "healed by opening", "harmless": "harmless"}

Tell = Callable[[Path, int, int], None]


def check(
    store: Annotated[Path, typer.Argument(help="Folder of a stream, or a server's store folder.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Examine a store without a server: every record, index, definition and state; nothing is changed.

    Ends with 0 if all is good, 1 if there is nothing that opening does not heal or that does harm, 3 if something is
    lost, 2 if it cannot be examined.
    """
    try:
        with progress_bar() as tell:
            results = store_check.check(store, tell)
    except JetlakeError as error:
        typer.echo(f"jetlake check: {error}", err=True)
        raise typer.Exit(store_check.UNREADABLE) from error
    code = store_check.exit_code(results)
    if as_json:
        typer.echo(msgspec.json.encode({"exit_code": code, "stores": results}).decode())
    else:
        show(results)
    raise typer.Exit(code)


@contextmanager
def progress_bar() -> Iterator[Tell | None]:
    """Show the progress of a long check on stderr, if that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        tasks = {}

        def tell(store: Path, done: int, total: int) -> None:
            if total < LONG_BYTES:
                return
            if store not in tasks:
                tasks[store] = progress.add_task(escape(store.name), total=total)
            progress.update(tasks[store], completed=done, visible=done < total)

        yield tell


def show(results: list[store_check.Checked]) -> None:
    """Print one block per store: framed and coloured on a terminal, plain lines when piped."""
    console = Console(file=sys.stdout)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    for number, checked in enumerate(results):
        if number:
            console.print()
        if checked.report is None:
            console.print(f"{escape(checked.folder)}: [bold red]cannot be examined[/]: {escape(checked.error or '')}")
        else:
            show_report(console, checked.report)


def show_report(console: Console, report: store_check.StoreReport) -> None:
    """Print what a store holds and what was found in it."""
    counts = report.counts
    console.print(f"{escape(report.folder)}: {verdict(report)}", highlight=False)
    table = Table(box=ROUNDED if console.is_terminal else None, show_header=False)
    table.add_column("what")
    table.add_column("how much", justify="right")
    at_most = "at most " if report.encrypted else ""
    table.add_row("segments", f"{counts.segments:,}")
    table.add_row("bytes on disk", f"{counts.file_bytes:,}")
    table.add_row("records", f"{counts.records:,}")
    table.add_row("messages", f"{at_most}{counts.messages:,}")
    table.add_row("bytes of messages", f"{at_most}{counts.bytes:,}")
    table.add_row("subjects", "encrypted" if counts.subjects is None else f"{counts.subjects:,}")
    table.add_row("small files", f"{counts.small_files:,}")
    console.print(table, highlight=False)
    if report.findings:
        show_findings(console, report)
    if report.unfinished:
        console.print(f"interrupted changes, removed by opening: {escape(', '.join(report.unfinished))}")
    if report.aside:
        console.print(
            f"put aside by an earlier opening, look at them or delete them: {escape(', '.join(report.aside))}"
        )


def show_findings(console: Console, report: store_check.StoreReport) -> None:
    """Print the findings, the worst first."""
    table = Table(box=ROUNDED if console.is_terminal else None, show_header=console.is_terminal)
    table.add_column("severity", no_wrap=True)
    table.add_column("found")
    table.add_column("what to do")
    for finding in report.findings:
        meaning = f"[{STYLES[finding.severity]}]{MEANINGS[finding.severity]}[/]"
        table.add_row(meaning, escape(finding.what), escape(finding.advice))
    console.print(table, highlight=False)
    severities = report.severities
    left_out = severities.loss + severities.healed + severities.harmless - len(report.findings)
    if left_out:
        console.print(f"and {left_out:,} more")


def verdict(report: store_check.StoreReport) -> str:
    """Return in a few words how a store is."""
    if report.severities.loss:
        return f"[{STYLES['loss']}]something is lost[/]"
    if report.severities.healed:
        return f"[{STYLES['healed']}]opening it heals what was found[/]"
    if report.findings:
        return "whole, with harmless findings"
    return "[green]all good[/]"
