"""Rates of messages and bytes over time: drawn in place on a terminal, printed as lines elsewhere.

`stream graph` samples what a stream holds, `sub --graph` what has arrived.

Invariant: a graph keeps at most `SAMPLES_MAX` samples, however long it runs.
"""

import time
from collections import deque
from typing import TYPE_CHECKING, Any, Self

import typer

from jetlake.cli.output import console, is_terminal
from jetlake.presentation.cells import Bytes, shown
from jetlake.presentation.quantities import shown_rate

if TYPE_CHECKING:
    from rich.table import Table

BARS = " ▁▂▃▄▅▆▇█"

SAMPLES_MAX = 120
"""Samples kept to be drawn; terminals are rarely wider."""

ELAPSED_S_MIN = 0.001
"""A clock that has not moved must not divide by zero."""


def bars(samples: "deque[float]", width: int) -> str:
    """Return samples as a row of bars, the highest of them full."""
    shown_samples = list(samples)[-width:]
    highest = max(shown_samples, default=0.0) or 1.0
    return "".join(BARS[round(sample / highest * (len(BARS) - 1))] for sample in shown_samples).rjust(width)


class RateGraph:
    """A graph that is open while its `with` block runs; each `sample` adds one bar."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._messages: deque[float] = deque(maxlen=SAMPLES_MAX)
        self._sizes: deque[float] = deque(maxlen=SAMPLES_MAX)
        self._before = (0, 0)
        self._before_s = time.monotonic()
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

    def start(self, messages: int, size: int) -> None:
        """Begin to count from these totals."""
        self._before, self._before_s = (messages, size), time.monotonic()

    def sample(self, messages: int, size: int, title: str) -> None:
        """Add the rates since the last sample, given the totals of now, and show them."""
        now_s = time.monotonic()
        elapsed_s = max(now_s - self._before_s, ELAPSED_S_MIN)
        self._messages.append(max(0.0, (messages - self._before[0]) / elapsed_s))
        self._sizes.append(max(0.0, (size - self._before[1]) / elapsed_s))
        self._before, self._before_s = (messages, size), now_s
        if self._live is not None:
            self._live.update(self._drawing(title))

    def line(self, total: int) -> None:
        """Print the last sample as a line, unless it is drawn."""
        if self._live is None:
            size = shown(Bytes(round(self._sizes[-1])))
            typer.echo(f"{time.strftime('%H:%M:%S')}\t{total}\t{self._messages[-1]:.1f}/s\t{size}/s")

    def _drawing(self, title: str) -> "Table":
        from rich.table import Table

        width = max(10, console().width - 50)
        messages, sizes = self._messages, self._sizes
        table = Table(title=f"{self._name}: {title}", title_justify="left", box=None, show_header=False)
        table.add_row(
            "messages", f"[green]{bars(messages, width)}[/]", f"{shown_rate(messages[-1])}, most {max(messages):,.0f}"
        )
        table.add_row(
            "bytes",
            f"[blue]{bars(sizes, width)}[/]",
            f"{shown(Bytes(round(sizes[-1])))}/s, most {shown(Bytes(round(max(sizes))))}",
        )
        return table
