"""`jetlake dead`: messages that consumers have given up on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from jetlake.cli.invocation import current
from jetlake.cli.output import JsonOption, print_json, print_table
from jetlake.cli.readers import outlive_readers
from jetlake.cli.run import refusals
from jetlake.client.dead_letters import DeadLetter, DeadLetters
from jetlake.errors import ClientError
from jetlake.presentation.cells import safe

application = typer.Typer(help="List, inspect and redrive dead letters.", no_args_is_help=True)

StreamArgument = Annotated[str, typer.Argument(help="The stream that keeps the dead letters.", metavar="STREAM")]

PAYLOAD_SHOWN_MAX = 2_000
"""Bytes of a payload that `show` prints on a terminal."""


@application.callback()
def dead() -> None:
    """List, inspect and redrive dead letters.

    A stream names where they are kept in its metadata: jetlake.dead_letters=DEAD.
    """


@application.command("list")
def list_all(
    stream: StreamArgument,
    origin: Annotated[str, typer.Option("--stream", help="Only those of this stream.")] = "",
    consumer: Annotated[str, typer.Option(help="Only those of this consumer.")] = "",
    as_json: JsonOption = False,
) -> None:
    """List dead letters, oldest first. Ends with 1 when the server refuses or cannot be reached."""

    async def work(dead: DeadLetters) -> list[dict[str, Any]]:
        return [_facts(letter) async for letter in dead.each(stream=origin, consumer=consumer)]

    found = _run(stream, work)
    if as_json:
        print_json(found)
        return
    columns = ("letter", "time", "from", "consumer", "subject", "deliveries", "reason")
    rows = [
        (
            facts["letter"],
            facts["time"],
            f"{facts['stream']}@{facts['sequence']}",
            facts["consumer"],
            facts["subject"],
            facts["deliveries"],
            facts["reason"],
        )
        for facts in found
    ]
    print_table(columns, rows)


@application.command()
def show(
    stream: StreamArgument,
    letter: Annotated[int, typer.Argument(help="Its number, as `list` shows it.")],
    as_json: JsonOption = False,
) -> None:
    """Show one dead letter with its headers and payload."""
    found: DeadLetter = _run(stream, lambda dead: dead.get(letter))
    facts = _facts(found)
    if as_json:
        print_json({**facts, "headers": found.headers, "payload": found.payload})
        return
    for key, value in facts.items():
        typer.echo(f"{key}: {safe(str(value))}")
    for name, value in found.headers:
        typer.echo(f"header {safe(name)}: {safe(value)}")
    shown = found.payload[:PAYLOAD_SHOWN_MAX].decode(errors="replace")
    left = len(found.payload) - PAYLOAD_SHOWN_MAX
    typer.echo(f"\n{shown}" + (f"\n({left:,} bytes more)" if left > 0 else ""))


@application.command()
def redrive(
    stream: StreamArgument,
    letters: Annotated[list[int] | None, typer.Argument(help="Numbers, as `list` shows them.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    table: Annotated[
        Path | None,
        typer.Option(
            "--from-table",
            help="Those in this table of `pipeline run dead`, such as lake/dead_letters.",
            metavar="TABLE",
        ),
    ] = None,
    origin: Annotated[str, typer.Option("--stream", help="Only those of this stream.")] = "",
    consumer: Annotated[str, typer.Option(help="Only those of this consumer.")] = "",
    cause: Annotated[
        str, typer.Option(help="With --from-table: only those of this cause, as `pipeline show dead` prints it.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Publish messages again where they came from, and remove their letters.

    A letter that could not be redriven stays; the command then ends with 1. A letter of a table that was redriven or
    removed before is passed over.
    """
    if (bool(letters), everything, table is not None).count(True) != 1:
        raise typer.BadParameter("name the letters to redrive, or give --all or --from-table")
    if cause and table is None:
        raise typer.BadParameter("--cause needs --from-table: causes are in the tables of `jetlake pipeline run dead`")
    if letters and (origin or consumer):
        raise typer.BadParameter("--stream and --consumer choose among letters that are not named")

    async def work(dead: DeadLetters) -> list[dict[str, Any]]:
        if everything:
            chosen = dead.each(stream=origin, consumer=consumer)
        elif table is not None:
            there = {letter.sequence async for letter in dead.each(stream=origin, consumer=consumer)}
            numbers = _letters_in(table, stream, origin, consumer, cause)
            chosen = _each_of(dead, [number for number in numbers if number in there])
        else:
            chosen = _named(dead, list(dict.fromkeys(letters or [])))
        results: list[dict[str, Any]] = []
        async for letter in chosen:
            try:
                sequence = await dead.redrive(letter)
            except ClientError as error:
                results.append({"letter": letter.sequence, "subject": letter.original_subject, "error": str(error)})
            else:
                results.append({"letter": letter.sequence, "subject": letter.original_subject, "sequence": sequence})
        return results

    results = _run(stream, work)
    if as_json:
        print_json(results)
    else:
        rows = [
            (result["letter"], result["subject"], result.get("sequence"), result.get("error")) for result in results
        ]
        print_table(("letter", "subject", "stored as", "error"), rows)
    if any("error" in result for result in results):
        raise typer.Exit(1)


async def _named(dead: DeadLetters, numbers: list[int]) -> AsyncIterator[DeadLetter]:
    """Yield the letters that the line names, once all of them were found: a number may be wrong."""
    for number in numbers:
        await dead.get(number)
    async for letter in _each_of(dead, numbers):
        yield letter


async def _each_of(dead: DeadLetters, numbers: list[int]) -> AsyncIterator[DeadLetter]:
    """Yield letters by their numbers; one is in memory at a time."""
    for number in numbers:
        yield await dead.get(number)


def _letters_in(table: Path, keeper: str, origin: str, consumer: str, cause: str) -> list[int]:
    """Return the letters of a table that are wanted, oldest first."""
    from jetlake.spark.lake.table import LakeTable

    rows = LakeTable(table).to_arrow(["keeper", "letter", "stream", "consumer", "cause"]).to_pylist()
    wanted = {"keeper": keeper, "stream": origin, "consumer": consumer, "cause": cause}
    return sorted(
        {row["letter"] for row in rows if all(not value or row[name] == value for name, value in wanted.items())}
    )


def _run(stream: str, work: Callable[[DeadLetters], Awaitable[Any]]) -> Any:
    async def connected() -> Any:
        async with DeadLetters(current().access(), stream) as dead:
            return await work(dead)

    # Messages that were published again are told of by the exit code, whether the table is read or not.
    outlive_readers()
    with refusals():
        return asyncio.run(connected())


def _facts(letter: DeadLetter) -> dict[str, Any]:
    return {
        "letter": letter.sequence,
        "time": letter.time,
        "stream": letter.stream,
        "sequence": letter.original_sequence,
        "subject": letter.original_subject,
        "consumer": letter.consumer,
        "deliveries": letter.deliveries,
        "reason": letter.reason,
        "bytes": len(letter.payload),
    }
