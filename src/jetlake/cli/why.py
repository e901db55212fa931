"""`jetlake why`: why messages move, or do not."""

import asyncio
import sys
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from jetlake.client import streams
from jetlake.client.connection import DEFAULT_URL
from jetlake.errors import JetlakeError


def why(
    stream: Annotated[str, typer.Argument(help="The stream.")],
    consumer: Annotated[str, typer.Argument(help="One of its consumers; the stream itself unless given.")] = "",
    server: Annotated[str, typer.Option(envvar="NATS_URL", help="Address of the server.")] = DEFAULT_URL,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say why messages of a stream or a consumer move or do not, and what would change it.

    Ends with 0 when the server could tell, 1 when it refuses or cannot be reached.
    """
    try:
        answer = asyncio.run(streams.why(server, stream, consumer))
    except JetlakeError as error:
        typer.echo(f"jetlake why: {error}", err=True)
        raise typer.Exit(1) from error
    reasons: list[dict[str, Any]] = answer["reasons"]
    if as_json:
        typer.echo(msgspec.json.encode(reasons).decode())
        return
    console = Console(file=sys.stdout)
    for reason in reasons:
        if console.is_terminal:
            console.print(reason["text"], markup=False, highlight=False)
            if "command" in reason:
                console.print(f"  {reason['command']}", style="cyan", markup=False, highlight=False)
        else:
            typer.echo(reason["text"])
            if "command" in reason:
                typer.echo(f"  {reason['command']}")
