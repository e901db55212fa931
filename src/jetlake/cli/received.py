"""What becomes of received messages: they are printed, counted by subject, or drawn as a rate.

Invariant: `receive` is called once per message, inside the `async with` block of its receiver, and never waits.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec
import typer

from jetlake.cli.message_text import (
    data_facts,
    message_facts,
    message_head,
    print_headers,
    print_payload,
    translated,
)
from jetlake.cli.output import print_note, print_table
from jetlake.cli.rate_graph import RateGraph
from jetlake.cli.readers import check_reader
from jetlake.errors import ClientError, reason_of
from jetlake.presentation.cells import Bytes, Cell, shown

if TYPE_CHECKING:
    from nats.aio.msg import Msg

REFRESH_S = 1.0
"""Between two bars of a graph: a rate per second is what a reader expects."""


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How messages are printed."""

    raw: bool = False
    headers_only: bool = False
    subjects_only: bool = False
    timestamp: bool = False
    translate: str = ""
    dump: Path | None = None
    as_json: bool = False


class Receiver(ABC):
    """Gets every message; a summary is printed when its block is left."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_unused: object) -> None:
        self.finish()

    @abstractmethod
    def receive(self, message: "Msg", number: int) -> None:
        """Take the next message."""

    @abstractmethod
    def finish(self) -> None:
        """Print what is left to say after the last message."""


class Printed(Receiver):
    """Prints each message."""

    def __init__(self, manner: Manner) -> None:
        self._manner = manner

    def receive(self, message: "Msg", number: int) -> None:
        show(message, number, self._manner)

    def finish(self) -> None:
        # Each message was printed when it came.
        return


class Counted(Receiver):
    """Counts messages by subject, and prints the subjects with most of them at the end."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._count: Counter[str] = Counter()

    def receive(self, message: "Msg", number: int) -> None:  # noqa: ARG002
        self._count[message.subject] += 1

    def finish(self) -> None:
        rows: list[tuple[Cell, ...]] = [(subject, amount) for subject, amount in self._count.most_common(self._top)]
        print_table(("subject", "messages"), rows, totals=("", self._count.total()))


class Drawn(Receiver):
    """Draws the rate of what arrives, once a second."""

    def __init__(self, name: str) -> None:
        self._graph = RateGraph(name)
        self._messages = 0
        self._bytes = 0
        self._ticker: asyncio.Task[None] | None = None

    def receive(self, message: "Msg", number: int) -> None:  # noqa: ARG002
        self._messages += 1
        self._bytes += len(message.data)

    async def __aenter__(self) -> Self:
        self._graph.__enter__()
        self._graph.start(0, 0)
        self._ticker = asyncio.create_task(self._tick())
        return self

    def finish(self) -> None:
        assert self._ticker is not None, "it was entered"
        self._ticker.cancel()
        self._draw()
        self._graph.__exit__()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_S)
            self._draw()

    def _draw(self) -> None:
        self._graph.sample(self._messages, self._bytes, f"{self._messages:,} messages, {shown(Bytes(self._bytes))}")
        self._graph.line(self._messages)


def show(message: "Msg", number: int, manner: Manner) -> None:
    """Print one message. Raises `PipeClosedError` if nobody reads it: it must not be acknowledged then."""
    payload = translated(message.data, manner.translate, message.subject) if manner.translate else message.data
    if manner.dump is not None:
        write(manner.dump, number, payload)
    elif manner.as_json:
        facts: dict[str, Any] = message_facts(message)
        if manner.translate:
            facts = {key: value for key, value in facts.items() if not key.startswith("data")} | data_facts(payload)
        typer.echo(msgspec.json.encode(facts).decode())
    elif manner.subjects_only:
        typer.echo(message.subject)
    elif manner.raw:
        print_payload(payload)
    else:
        when = f"{time.strftime('%H:%M:%S')} " if manner.timestamp else ""
        print_note(when + message_head(message, number), style="cyan")
        print_headers(message.headers)
        if message.headers:
            typer.echo()
        if not manner.headers_only:
            print_payload(payload)
            typer.echo()
    check_reader()


def write(folder: Path, number: int, payload: bytes) -> None:
    """Write a payload to a file named by its number."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}").write_bytes(payload)
    except OSError as error:
        raise ClientError(f"cannot write to {folder}: {reason_of(error)}") from error
