"""`jetlake top`: a live view of the connections of a server, the busiest first."""

import asyncio
import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli.option_values import parse_duration
from jetlake.cli.output import JsonOption, console, is_terminal, print_json, print_table
from jetlake.cli.run import refusals, run
from jetlake.cli.server_pages import Page, monitor_address, read_page
from jetlake.errors import ClientError
from jetlake.presentation.cells import Bytes, Cell
from jetlake.presentation.quantities import SECOND

if TYPE_CHECKING:
    from jetlake.client.api import Api

CONNECTIONS_MAX = 1024

SORTS = ("cid", "subs", "pending", "msgs_to", "msgs_from", "bytes_to", "bytes_from", "last", "idle", "uptime", "rtt")
"""What servers can sort by."""

COLUMNS = ("cid", "address", "name", "account", "subs", "pending", "msgs to", "msgs from", "bytes to", "bytes from",
           "to/s", "from/s", "language", "uptime", "idle")  # fmt: skip


def top(
    monitor: Annotated[
        str,
        typer.Option(
            "--monitor", "-m", help="Port or address of the monitoring pages; without it the server is asked over NATS."
        ),
    ] = "",
    sort: Annotated[str, typer.Option(help=f"One of {', '.join(SORTS)}.")] = "cid",
    connections: Annotated[int, typer.Option("--conns", "-n", min=1, help="Connections to show.")] = CONNECTIONS_MAX,
    interval: Annotated[
        int,
        typer.Option(
            "--interval", "-d", parser=parse_duration, metavar="TIME", help="Time between refreshes.", show_default="1s"
        ),
    ] = SECOND,
    batch: Annotated[bool, typer.Option("--batch", "-b", help="Print tables one below the other.")] = False,
    refreshes: Annotated[
        int, typer.Option("--max-refresh", "-r", min=0, help="Stop after N refreshes (0: run until interrupted).")
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """Show the connections, until Ctrl-C.

    The server is asked over NATS, and shows those of the own account, or all to a user of the system account; with
    --monitor its monitoring pages are read. In a pipe, or with --json, it looks once unless --max-refresh says more.
    """
    if sort not in SORTS:
        raise typer.BadParameter(f"--sort is {sort!r}: it must be one of {', '.join(SORTS)}")
    looks = refreshes or (0 if is_terminal() and not as_json else 1)
    options = {"sort": sort, "limit": connections}

    if monitor:
        address = monitor_address(monitor)
        with refusals():
            asyncio.run(
                _watch(lambda: asyncio.to_thread(read_page, address, "connz", options), looks, interval, batch, as_json)
            )
        return

    async def work(api: "Api") -> None:
        await _watch(lambda: ask_page(api, options), looks, interval, batch, as_json)

    run(work, reconnect=True)


async def _watch(look: Any, looks: int, interval_ns: int, batch: bool, as_json: bool) -> None:
    before: Page = {}
    before_s = time.monotonic()
    number = 0
    while not looks or number < looks:
        if number:
            await asyncio.sleep(interval_ns / SECOND)
        page, now_s = await look(), time.monotonic()
        number += 1
        if as_json:
            print_json(page)
        else:
            if is_terminal() and not batch:
                console().clear()
            show(page, before, now_s - before_s)
        before, before_s = page, now_s


def show(page: Page, before: Page, elapsed_s: float) -> None:
    """Print one look; rates are those since the look before."""
    earlier = {each["cid"]: each for each in before.get("connections") or []}
    rows: list[tuple[Cell, ...]] = []
    for each in page.get("connections") or []:
        past = earlier.get(each["cid"])
        rates: list[Cell] = [
            round((each.get(key, 0) - past.get(key, 0)) / max(elapsed_s, 0.001)) if past else None
            for key in ("out_msgs", "in_msgs")
        ]
        rows.append(
            (
                each["cid"],
                f"{each.get('ip', '')}:{each.get('port', '')}",
                each.get("name"),
                each.get("account"),
                each.get("subscriptions", 0),
                Bytes(each.get("pending_bytes", 0)),
                each.get("out_msgs", 0),
                each.get("in_msgs", 0),
                Bytes(each.get("out_bytes", 0)),
                Bytes(each.get("in_bytes", 0)),
                *rates,
                f"{each.get('lang', '')} {each.get('version', '')}".strip(),
                each.get("uptime"),
                each.get("idle"),
            )
        )
    title = f"{time.strftime('%H:%M:%S')}  {page.get('total', len(rows)):,} connections"
    print_table(COLUMNS, rows, title=title)


async def ask_page(api: "Api", options: dict[str, Any]) -> Page:
    """Ask the server over NATS."""
    answer = await api.ask("$SYS.REQ.SERVER.PING.CONNZ", json.dumps(options).encode())
    if not isinstance(answer.get("data"), dict):
        problem = (answer.get("error") or {}).get("description", "it gives no reason")
        raise ClientError(f"the server does not tell its connections: {problem}")
    page: Page = answer["data"]
    return page
