"""`jetlake why`: why messages move, or do not."""

import asyncio
from typing import Annotated

import typer

from jetlake.cli.choose import NamedStream
from jetlake.cli.invocation import current
from jetlake.cli.output import JsonOption, print_json, print_note
from jetlake.cli.run import refusals


def why(
    stream: NamedStream,
    consumer: Annotated[
        str, typer.Argument(help="One of its consumers; the stream itself unless given.", metavar="CONSUMER")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Explain why messages of a stream or consumer move or do not, and what would change it.

    Ends with 0 when the server could tell, 1 when it refuses or cannot be reached.
    """
    from jetlake.client import streams

    with refusals():
        answer = asyncio.run(streams.why(current().access(), stream, consumer))
    reasons = streams.in_own_words(answer["reasons"])
    if as_json:
        print_json(reasons)
        return
    for reason in reasons:
        print_note(reason["text"])
        if "command" in reason:
            print_note(f"  {reason['command']}", style="cyan")
