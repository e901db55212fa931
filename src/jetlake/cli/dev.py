"""`jetlake dev`: a server to play with, with a stream and some messages in it."""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
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
INSTALL = "needs pip install 'jetlake[dashboard]'"
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
    dashboard: Annotated[bool, typer.Option(help="Run the dashboard beside the server.")] = True,
) -> None:
    """Run a server with a sample stream until Ctrl-C. A temporary store is removed then."""
    # Before the server starts: a caller that reads that it is ready may stop it.
    with Stop() as stop:
        with refusals():
            server = start(port, max(0, monitor), store)
        try:
            if sample:
                with refusals():
                    asyncio.run(fill(server.url))
            with beside(server, wanted=dashboard) as address:
                greet(server, sample=sample, dashboard=address)
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


@contextmanager
def beside(server: "Server", *, wanted: bool) -> Iterator[str | None]:
    """Run the dashboard of a server in a process of its own; give its address, empty if it is not installed."""
    if not wanted or not is_installed():
        yield "" if wanted else None
        return
    import msgspec

    from jetlake.server.children import Child, Children
    from jetlake.server.options.dashboard import DEFAULT_PORT, WORDS, HostedDashboardOptions
    from jetlake.server.python_log import PythonLog

    options = HostedDashboardOptions(port=free_port(DEFAULT_PORT), url=server.url, monitor_url=server.monitor_url)
    log = PythonLog(debug=False, trace=False)
    children = Children([Child(name="dashboard", words=WORDS, settings=msgspec.to_builtins(options))], log)
    children.start()
    try:
        yield options.address
    finally:
        children.stop()


def is_installed() -> bool:
    """Whether the extra of the dashboard is there."""
    return all(find_spec(name) is not None for name in ("aiohttp", "jinja2"))


def free_port(wanted: int) -> int:
    """Return a free port: the wanted one if possible."""
    for number in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", number))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    return wanted


def greet(server: "Server", *, sample: bool, dashboard: str | None) -> None:
    """Print what there is, and lines to paste."""
    print_note(f"Server is ready at {server.url}", style="bold green")
    if dashboard is not None:
        print_note(f"  dashboard {dashboard or INSTALL}")
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
