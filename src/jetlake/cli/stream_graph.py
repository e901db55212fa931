"""`jetlake stream graph`: how fast messages come, drawn in the terminal."""

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from jetlake.cli.choose import StreamArgument, choose_stream
from jetlake.cli.output import Bytes, console, is_terminal, shown
from jetlake.cli.quantities import SECOND, read_duration, shown_rate
from jetlake.cli.run import run
from jetlake.client.api import token

if TYPE_CHECKING:
    from rich.table import Table

    from jetlake.client.api import Api

BARS = " ▁▂▃▄▅▆▇█"
SAMPLES_MAX = 120
"""What is kept to be drawn; terminals are seldom wider."""


def graph(
    name: StreamArgument = "",
    interval: Annotated[
        int, typer.Option(parser=read_duration, metavar="TIME", help="Between two looks, 1s unless given.")
    ] = SECOND,
    count: Annotated[int, typer.Option(min=0, help="Stop after N refreshes (0: run until interrupted).")] = 0,
) -> None:
    """Draw the rates of messages and bytes that a stream takes, until Ctrl-C; in a pipe one line for each look."""

    async def work(api: "Api") -> None:
        chosen = await choose_stream(api, name)
        messages: deque[float] = deque(maxlen=SAMPLES_MAX)
        sizes: deque[float] = deque(maxlen=SAMPLES_MAX)
        before, before_s = await _state(api, chosen), time.monotonic()
        screen = _Screen(chosen)
        with screen:
            number = 0
            while not count or number < count:
                await asyncio.sleep(interval / SECOND)
                state, now_s = await _state(api, chosen), time.monotonic()
                elapsed_s = max(now_s - before_s, 0.001)
                messages.append(max(0.0, (state["last_seq"] - before["last_seq"]) / elapsed_s))
                sizes.append(max(0.0, (state["bytes"] - before["bytes"]) / elapsed_s))
                before, before_s = state, now_s
                number += 1
                screen.show(state, messages, sizes)

    run(work, reconnect=True)


async def _state(api: "Api", stream: str) -> dict[str, Any]:
    state: dict[str, Any] = (await api.request(f"STREAM.INFO.{token(stream)}"))["state"]
    return state


def bars(samples: "deque[float]", width: int) -> str:
    """Return samples as a row of bars, the highest of them full."""
    shown_samples = list(samples)[-width:]
    highest = max(shown_samples, default=0.0) or 1.0
    return "".join(BARS[round(sample / highest * (len(BARS) - 1))] for sample in shown_samples).rjust(width)


class _Screen:
    """Redraws in place on a terminal, prints lines elsewhere."""

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._live: Any = None

    def __enter__(self) -> Self:
        if is_terminal():
            from rich.live import Live

            self._live = Live(console=console(), refresh_per_second=4)
            self._live.start()
        return self

    def __exit__(self, *_unused: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, state: dict[str, Any], messages: "deque[float]", sizes: "deque[float]") -> None:
        if self._live is not None:
            self._live.update(self._drawing(state, messages, sizes))
            return
        size = shown(Bytes(round(sizes[-1])))
        typer.echo(f"{time.strftime('%H:%M:%S')}\t{state['messages']}\t{messages[-1]:.1f}/s\t{size}/s")

    def _drawing(self, state: dict[str, Any], messages: "deque[float]", sizes: "deque[float]") -> "Table":
        from rich.table import Table

        width = max(10, console().width - 50)
        title = f"{self._stream}: {state['messages']:,} messages, {shown(Bytes(state['bytes']))}"
        table = Table(title=title, title_justify="left", box=None, show_header=False)
        table.add_row(
            "messages", f"[green]{bars(messages, width)}[/]", f"{shown_rate(messages[-1])}, most {max(messages):,.0f}"
        )
        table.add_row(
            "bytes",
            f"[blue]{bars(sizes, width)}[/]",
            f"{shown(Bytes(round(sizes[-1])))}/s, most {shown(Bytes(round(max(sizes))))}",
        )
        return table
