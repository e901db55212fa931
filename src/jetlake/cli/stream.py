"""`jetlake stream`: what can be done with streams."""

import asyncio
import sys
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from jetlake.client import streams
from jetlake.client.connection import DEFAULT_URL
from jetlake.errors import JetlakeError

application = typer.Typer(help="What can be done with streams.", no_args_is_help=True)


@application.callback()
def stream() -> None:
    """What can be done with streams."""


@application.command()
def fork(
    origin: Annotated[str, typer.Argument(help="The stream, and with @ the last sequence wanted: ORDERS@1000.")],
    name: Annotated[str, typer.Argument(help="Name of the new stream.")],
    subject: Annotated[
        list[str] | None, typer.Option(help="A subject the new stream takes; its name unless given.")
    ] = None,
    server: Annotated[str, typer.Option(envvar="NATS_URL", help="Address of the server.")] = DEFAULT_URL,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Make a writable copy of a stream as it was at a sequence; the two share their files until either changes.

    Ends with 0 when it is made, 1 when the server refuses or cannot be reached, 2 when the command is wrong.
    """
    origin_name, _, sequence = origin.partition("@")
    if sequence and not sequence.isdecimal():
        raise typer.BadParameter(f"{sequence!r} is no sequence; write ORDERS@1000, or ORDERS for all of it")
    wanted = streams.fork(server, origin_name, name, last_sequence=int(sequence or 0), subjects=subject)
    try:
        answer = asyncio.run(wanted)
    except JetlakeError as error:
        typer.echo(f"jetlake stream fork: {error}", err=True)
        raise typer.Exit(1) from error
    if as_json:
        typer.echo(msgspec.json.encode(answer).decode())
        return
    state = answer["state"]
    rows = {
        "stream": name,
        "copy of": origin_name,
        "messages": f"{state['messages']:,}",
        "last sequence": f"{state['last_seq']:,}",
        "subjects": ", ".join(answer["config"].get("subjects", [])),
    }
    console = Console(file=sys.stdout)
    if console.is_terminal:
        table = Table(show_header=False)
        for key, value in rows.items():
            table.add_row(key, value, style="bold" if key == "stream" else "")
        console.print(table)
    else:
        for key, value in rows.items():
            typer.echo(f"{key}: {value}")
