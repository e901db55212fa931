"""`jetlake dashboard`: what a server, its streams and consumers are doing, in a browser."""

import asyncio
import signal
from pathlib import Path
from typing import Annotated

import typer

from jetlake.cli.hosted import Stop, read_settings_of_host, report_line
from jetlake.cli.invocation import current
from jetlake.cli.output import print_note
from jetlake.cli.run import refusals
from jetlake.cli.server_pages import monitor_address
from jetlake.client.access import Access
from jetlake.dashboard.options import DEFAULT_PORT, DashboardOptions
from jetlake.errors import MissingDependencyError


def dashboard(
    port: Annotated[int, typer.Option("--port", "-p", help="Port for browsers (0: any free one).")] = DEFAULT_PORT,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse every action that changes something.")] = False,
    monitor: Annotated[
        str,
        typer.Option("--monitor", "-m", help="Port or address of the server's monitoring pages, for fsync latency."),
    ] = "",
    lake: Annotated[
        Path | None,
        typer.Option(
            envvar="JETLAKE_LAKE", help="Folder of lake tables and pipelines, shown to everybody who logs in."
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="Name under which browsers reach the dashboard; may be repeated.")
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the dashboard in a browser.")] = False,
    hosted: Annotated[bool, typer.Option("--hosted", hidden=True)] = False,
) -> None:
    """Serve a dashboard until Ctrl-C.

    It is a client of the server that --server or --context names, and works with Jetlake and nats-server. A server that
    demands a login has users log in with their own credentials; on loopback the printed address logs you in as the user
    of this command line.
    """
    with refusals():
        _need_extra()
        if hosted:
            asyncio.run(_serve_hosted(_options_of_host()))
            return
        options = DashboardOptions(
            given=current().access(),
            host=host,
            port=port,
            read_only=read_only,
            monitor_url=monitor_address(monitor) if monitor else "",
            allowed_hosts=tuple(allowed_host or ()),
            lake=None if lake is None else lake.absolute(),
        )
        asyncio.run(_serve(options, open_browser=open_browser))
    print_note("Stopped")


async def _serve(options: DashboardOptions, *, open_browser: bool) -> None:
    from jetlake.dashboard.serving import Dashboard

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    # Before the address is printed: a reader of it may stop the command at once.
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    served = Dashboard(options)
    await served.start()
    try:
        print_note(f"Dashboard is ready at {served.entry_url}", style="bold green")
        print_note(f"  server    {options.server.shown}")
        if not options.is_loopback:
            print_note(
                "  Browsers on other machines reach it without TLS. Put a proxy with TLS before it.", style="yellow"
            )
        print_note("Ctrl-C stops it.")
        if open_browser:
            typer.launch(served.entry_url)
        await stop.wait()
    finally:
        await served.stop()


def _options_of_host() -> DashboardOptions:
    """Return what the server says that runs this dashboard. Raises `ConfigurationError`."""
    given = read_settings_of_host()
    authority, lake = given.get("authority_file"), given.get("lake")
    return DashboardOptions(
        given=Access(url=given["url"], tls_ca=Path(authority) if authority else None),
        host=given["host"],
        port=given["port"],
        read_only=given["read_only"],
        monitor_url=given["monitor_url"],
        allowed_hosts=tuple(given["allowed_hosts"]),
        lake=Path(lake).absolute() if lake else None,
    )


async def _serve_hosted(options: DashboardOptions) -> None:
    """Serve for a server, until that ends or says so; its log has what there is to say."""
    from jetlake.dashboard.serving import Dashboard

    served = Dashboard(options)
    with Stop(hosted=True) as stop:
        await served.start()
        report_line("info", f"The dashboard is ready at {served.url}", hosted=True)
        try:
            await asyncio.to_thread(stop.wait)
        finally:
            await served.stop()


def _need_extra() -> None:
    """Refuse to go on without the packages of the extra. Raises `MissingDependencyError`."""
    try:
        import aiohttp  # noqa: F401
        import jinja2  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            f"the dashboard needs the package {error.name}: run `pip install 'jetlake[dashboard]'`"
        ) from error
