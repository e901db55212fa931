"""Which stream or consumer is meant when the line does not say: asked on a terminal, an error elsewhere.

The only one there is needs no question, unless the line has answered all questions with `--force`: what is deleted
without one must be named.

Their metavars also tell the shell's completion what to look for on the server.
"""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from jetlake.errors import ClientError

if TYPE_CHECKING:
    from jetlake.client.api import Api

StreamArgument = Annotated[
    str, typer.Argument(help="The stream; asked for on a terminal.", show_default=False, metavar="STREAM")
]
ConsumerArgument = Annotated[
    str, typer.Argument(help="The consumer; asked for on a terminal.", show_default=False, metavar="CONSUMER")
]
NamedStream = Annotated[str, typer.Argument(help="The stream.", metavar="STREAM")]
NamedConsumer = Annotated[str, typer.Argument(help="The consumer.", metavar="CONSUMER")]

INTERNAL = ("KV_", "OBJ_", "$MQTT_")
"""How the names of streams begin that are something else to people: buckets, object stores, MQTT sessions."""


async def choose_stream(api: "Api", name: str, *, force: bool = False) -> str:
    """Return the stream that is meant; with `force` nobody is asked."""
    return name or _chosen("stream", await api.stream_names(), may_ask=not force)


async def choose_consumer(api: "Api", stream: str, name: str, *, force: bool = False) -> str:
    """Return the consumer that is meant; with `force` nobody is asked."""
    return name or _chosen("consumer", await api.consumer_names(stream), may_ask=not force)


def _chosen(what: str, names: list[str], *, may_ask: bool) -> str:
    if not names:
        raise ClientError(f"there is no {what}")
    if not may_ask or not sys.stdin.isatty():
        raise ClientError(f"no {what} is named; there are: {', '.join(names)}")
    if len(names) == 1:
        return names[0]
    for number, name in enumerate(names, 1):
        typer.echo(f"{number:4} {name}")
    answer: str = typer.prompt(f"Which {what}, by number or name?")
    if answer in names:
        return answer
    if answer.isdecimal() and 1 <= int(answer) <= len(names):
        return names[int(answer) - 1]
    raise ClientError(f"there is no {what} {answer!r}")
