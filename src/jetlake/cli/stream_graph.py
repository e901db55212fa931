"""`jetlake stream graph`: the rate at which a stream stores messages, drawn in the terminal."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli.choose import StreamArgument, choose_stream
from jetlake.cli.option_values import parse_duration
from jetlake.cli.rate_graph import RateGraph
from jetlake.cli.run import run
from jetlake.client.api import token
from jetlake.presentation.cells import Bytes, shown
from jetlake.presentation.quantities import SECOND

if TYPE_CHECKING:
    from jetlake.client.api import Api


def graph(
    name: StreamArgument = "",
    interval: Annotated[
        int, typer.Option(parser=parse_duration, metavar="TIME", help="Time between refreshes.", show_default="1s")
    ] = SECOND,
    count: Annotated[int, typer.Option(min=0, help="Stop after N refreshes (0: run until interrupted).")] = 0,
) -> None:
    """Draw the rate of messages and bytes that a stream stores, until Ctrl-C; in a pipe one line per refresh."""

    async def work(api: "Api") -> None:
        chosen = await choose_stream(api, name)
        state = await _state(api, chosen)
        with RateGraph(chosen) as rates:
            rates.start(state["last_seq"], state["bytes"])
            number = 0
            while not count or number < count:
                await asyncio.sleep(interval / SECOND)
                state = await _state(api, chosen)
                number += 1
                title = f"{state['messages']:,} messages, {shown(Bytes(state['bytes']))}"
                rates.sample(state["last_seq"], state["bytes"], title)
                rates.line(state["messages"])

    run(work, reconnect=True)


async def _state(api: "Api", stream: str) -> dict[str, Any]:
    state: dict[str, Any] = (await api.request(f"STREAM.INFO.{token(stream)}"))["state"]
    return state
