"""`jetlake kv watch`: the values of a bucket and their changes, as they happen."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from jetlake.cli.kv_text import entry_json, shortened, shown_value
from jetlake.cli.kv_values import BucketArgument, with_bucket
from jetlake.cli.output import JsonOption, console, is_terminal, print_json
from jetlake.presentation.cells import plain, safe

if TYPE_CHECKING:
    from jetlake.kv.bucket import Bucket
    from jetlake.kv.entry import Entry

COLOURS = {"PUT": "green", "DEL": "red", "PURGE": "red"}

WIDTH_MAX = 200
"""Columns of a value on a terminal; in a pipe nothing is left out."""

END_OF_VALUES = "end of values"


def watch(
    bucket: BucketArgument,
    patterns: Annotated[
        list[str] | None, typer.Argument(help="Only these keys; * is one token, > all that follow.", metavar="KEY")
    ] = None,
    history: Annotated[bool, typer.Option("--history", help="Start with all existing revisions.")] = False,
    updates: Annotated[bool, typer.Option("--updates", help="Only what changes from now on.")] = False,
    deletes: Annotated[bool, typer.Option(help="Show deletes too.")] = True,
    meta: Annotated[bool, typer.Option("--meta", help="Print no values.")] = False,
    revision: Annotated[int, typer.Option(min=0, help="Start with this revision.")] = 0,
    once: Annotated[bool, typer.Option("--once", help="Print the first value and stop.")] = False,
    count: Annotated[int, typer.Option(min=0, help="Stop after N entries (0: run until interrupted).")] = 0,
    snapshot: Annotated[bool, typer.Option("--snapshot", help="Stop after the current values.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the values of keys, and every change of them. Stop with Ctrl-C."""

    async def work(opened: "Bucket[bytes]") -> None:
        watcher = opened.watch(
            *(patterns or []),
            include_history=history,
            ignore_deletes=not deletes or once,
            meta_only=meta,
            updates_only=updates,
            from_revision=revision,
        )
        shown = 0
        async with watcher:
            async for entry in watcher:
                if entry is None:
                    if snapshot:
                        return
                    if is_terminal() and not as_json and not once:
                        console().print(END_OF_VALUES, style="dim")
                    continue
                _show(entry, once=once, as_json=as_json)
                shown += 1
                if once or shown == count:
                    return

    try:
        with_bucket(bucket, work, reconnect=True)
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise typer.Exit(0) from None


def _show(entry: "Entry[bytes]", *, once: bool, as_json: bool) -> None:
    operation = str(entry.operation)
    if as_json:
        print_json(entry_json(entry))
    elif once:
        sys.stdout.buffer.write(entry.value or b"")
        sys.stdout.buffer.flush()
    elif is_terminal():
        from rich.markup import escape

        created = entry.created.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        value = f": {shortened(shown_value(entry.value), WIDTH_MAX)}" if entry.value is not None else ""
        colour = COLOURS[operation]
        console().print(escape(f"[{created}] ") + f"[{colour}]{operation}[/] " + escape(f"{safe(entry.key)}{value}"))
    else:
        fields = (entry.created.isoformat(), operation, entry.key, entry.revision, shown_value(entry.value))
        typer.echo("\t".join(plain(field) for field in fields))
        sys.stdout.flush()
