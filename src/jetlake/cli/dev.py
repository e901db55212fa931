"""`jetlake dev`: a server to play with, with a stream and some messages in it."""

import asyncio
import json
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetlake.cli.output import print_note
from jetlake.cli.run import refusals
from jetlake.errors import StartError

if TYPE_CHECKING:
    from jetlake.server.server import Server

PORT = 4222
STREAM = "DEMO"
SUBJECTS = "demo.>"
SAMPLES = 10
"""Messages in the stream to begin with."""


def dev(
    port: Annotated[
        int, typer.Option("--port", "-p", help="Port for clients; a free one if it is taken and not given.")
    ] = 0,
    monitor: Annotated[int, typer.Option("--monitor", "-m", help="Port of the monitoring pages; -1 chooses one.")] = -1,
    store: Annotated[
        Path | None, typer.Option(help="Store here; a temporary folder unless given.", metavar="FOLDER")
    ] = None,
    sample: Annotated[bool, typer.Option(help="Make a stream with some messages.")] = True,
) -> None:
    """Run a server with a sample stream until Ctrl-C; a temporary folder is gone then."""
    with refusals():
        server = start(port, max(0, monitor), store)
    try:
        if sample:
            with refusals():
                asyncio.run(fill(server.url))
        greet(server, sample=sample)
        wait_for_end()
    finally:
        server.stop()
    print_note("Stopped")


def start(port: int, monitor_port: int, store: Path | None) -> "Server":
    """Start the server: on the port that is given, else on the usual one if it is free."""
    from jetlake.server.server import Server

    def made(number: int) -> "Server":
        return Server(port=number, monitor_port=monitor_port, store_directory="" if store is None else store)

    if port:
        return made(max(0, port)).start()
    try:
        return made(PORT).start()
    except StartError:
        server = made(0).start()
        print_note(f"Port {PORT} is taken, using {server.port}", style="yellow")
        return server


async def fill(url: str) -> None:
    """Make the sample stream, unless it is there from an earlier time, and put messages in it."""
    from jetlake.client.api import open_api

    async with open_api(url) as api:
        if await api.find(f"STREAM.INFO.{STREAM}") is not None:
            return
        await api.request(
            f"STREAM.CREATE.{STREAM}", {"name": STREAM, "subjects": [SUBJECTS], "allow_direct": True, "num_replicas": 1}
        )
        for number in range(1, SAMPLES + 1):
            body = {"order": number, "item": f"sample {number}", "amount": number * 5}
            await api.ask(f"demo.orders.{number}", json.dumps(body).encode())


def greet(server: "Server", *, sample: bool) -> None:
    """Print what there is, and lines to paste."""
    print_note(f"Server is ready at {server.url}", style="bold green")
    print_note(f"  pages     {server.monitor_url}")
    print_note(f"  storage   {server.store_directory}")
    flag = "" if server.port == PORT else f" -s {server.url}"
    lines = [f"jetlake pub{flag} demo.hello 'hello {{{{Count}}}}' --count 3", f"jetlake sub{flag} 'demo.>'"]
    if sample:
        lines += [f"jetlake stream view{flag} {STREAM}", f"jetlake sub{flag} --stream {STREAM} --all"]
    print_note("Try in another terminal:")
    for line in lines:
        print_note(f"  {line}", style="cyan")
    print_note("Ctrl-C stops it.")


def wait_for_end() -> None:
    """Return when Ctrl-C is pressed or the process is asked to end."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_unused: ended.set())
    with suppress(KeyboardInterrupt):
        ended.wait()
