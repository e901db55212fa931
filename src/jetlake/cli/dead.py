"""`jetlake dead`: messages that consumers have given up on."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer

from jetlake.cli.invocation import current
from jetlake.cli.output import JsonOption, print_json, print_table
from jetlake.cli.run import refusals
from jetlake.client.dead_letters import DeadLetter, DeadLetters
from jetlake.errors import ClientError

application = typer.Typer(help="Messages that consumers have given up on.", no_args_is_help=True)

StreamArgument = Annotated[str, typer.Argument(help="The stream that keeps the dead letters.", metavar="STREAM")]

PAYLOAD_SHOWN_MAX = 2_000
"""Bytes of a payload that `show` prints on a terminal."""


@application.callback()
def dead() -> None:
    """Messages that consumers have given up on.

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
    letters = _run(stream, lambda dead: dead.all(stream=origin, consumer=consumer))
    if as_json:
        print_json([_facts(letter) for letter in letters])
        return
    columns = ("letter", "time", "from", "consumer", "subject", "deliveries", "reason")
    rows = [
        (
            letter.sequence,
            letter.time,
            f"{letter.stream}@{letter.original_sequence}",
            letter.consumer,
            letter.original_subject,
            letter.deliveries,
            letter.reason,
        )
        for letter in letters
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
        typer.echo(f"{key}: {value}")
    for name, value in found.headers:
        typer.echo(f"header {name}: {value}")
    shown = found.payload[:PAYLOAD_SHOWN_MAX].decode(errors="replace")
    left = len(found.payload) - PAYLOAD_SHOWN_MAX
    typer.echo(f"\n{shown}" + (f"\n({left:,} bytes more)" if left > 0 else ""))


@application.command()
def redrive(
    stream: StreamArgument,
    letters: Annotated[list[int] | None, typer.Argument(help="Numbers, as `list` shows them.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    origin: Annotated[str, typer.Option("--stream", help="With --all: only those of this stream.")] = "",
    consumer: Annotated[str, typer.Option(help="With --all: only those of this consumer.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Publish messages again where they came from, and remove their letters.

    A letter that could not be redriven stays; the command then ends with 1.
    """
    if bool(letters) == everything:
        raise typer.BadParameter("name the letters to redrive, or give --all")

    async def work(dead: DeadLetters) -> list[dict[str, Any]]:
        chosen = (
            await dead.all(stream=origin, consumer=consumer)
            if everything
            else [await dead.get(number) for number in letters or []]
        )
        results: list[dict[str, Any]] = []
        for letter in chosen:
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


def _run(stream: str, work: Callable[[DeadLetters], Awaitable[Any]]) -> Any:
    async def connected() -> Any:
        async with DeadLetters(current().access(), stream) as dead:
            return await work(dead)

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
