"""`jetlake dev`: a server to play with, with a stream and some messages in it."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetlake.cli.hosted import Stop
from jetlake.cli.output import print_note
from jetlake.cli.own_name import own_name
from jetlake.cli.run import refusals
from jetlake.errors import StartError

if TYPE_CHECKING:
    from jetlake.server.server import Server

PORT = 4222
STREAM = "DEMO"
SUBJECTS = "demo.>"
SAMPLES = 10
"""Messages of the sample stream."""


def dev(
    port: Annotated[
        int, typer.Option("--port", "-p", help="Port for clients; 4222 unless given, or a free one if that is taken.")
    ] = 0,
    monitor: Annotated[int, typer.Option("--monitor", "-m", help="Port of the monitoring pages (-1: any).")] = -1,
    store: Annotated[
        Path | None, typer.Option(help="Folder of the store; a temporary one unless given.", metavar="FOLDER")
    ] = None,
    sample: Annotated[bool, typer.Option(help="Create a stream with some messages.")] = True,
) -> None:
    """Run a server with a sample stream until Ctrl-C. A temporary store is removed then."""
    # Before the server starts: whoever reads that it is ready may stop it.
    with Stop() as stop:
        with refusals():
            server = start(port, max(0, monitor), store)
        try:
            if sample:
                with refusals():
                    asyncio.run(fill(server.url))
            greet(server, sample=sample)
            stop.wait()
        finally:
            server.stop()
    print_note("Stopped")


def start(port: int, monitor_port: int, store: Path | None) -> "Server":
    """Start the server: on the port that is given, else on the default one if it is free."""
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
    """Create the sample stream and publish messages to it, unless it is there already."""
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
    name, flag = own_name(), "" if server.port == PORT else f" -s {server.url}"
    lines = [f"{name} sub{flag} 'demo.>'", f"{name} pub{flag} demo.hello 'hello {{{{Count}}}}' --count 3"]
    if sample:
        lines += [f"{name} stream view{flag} {STREAM}", f"{name} sub{flag} --stream {STREAM} --all"]
    print_note("Try in another terminal:")
    for line in lines:
        print_note(f"  {line}", style="cyan")
    print_note("Ctrl-C stops it.")
