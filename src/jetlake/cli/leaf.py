"""`jetlake leaf`: the links between hubs and leaf nodes, of all servers of a system or of one monitoring port."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli.output import JsonOption, print_json, print_note, print_table
from jetlake.cli.run import refusals, run
from jetlake.cli.server_pages import Page, collect_answers, monitor_address, read_page
from jetlake.presentation.cells import Bytes, Cell, Nanoseconds, as_dict

if TYPE_CHECKING:
    from jetlake.client.api import Api

application = typer.Typer(help="Show links to hubs and leaf nodes.", no_args_is_help=True)

REQUEST = "$SYS.REQ.SERVER.PING.LEAFZ"

LINK_COLUMNS = ("server", "role", "peer", "account", "address", "round trip", "subs", "msgs in", "msgs out", "bytes in",
                "bytes out", "compression")  # fmt: skip

REMOTE_COLUMNS = ("server", "account", "hub", "state", "changed", "attempts", "retry in", "pending", "error")

MonitorOption = Annotated[
    str,
    typer.Option(
        "--monitor", "-m", help="Port or address of the monitoring pages; without it all servers are asked over NATS."
    ),
]
AccountOption = Annotated[str, typer.Option("--account", help="Only links of this account.", metavar="ACCOUNT")]


@application.callback()
def leaf() -> None:
    """Show links to hubs and leaf nodes. Over NATS this needs a user of the system account."""


@application.command("ls")
def list_all(monitor: MonitorOption = "", account: AccountOption = "", as_json: JsonOption = False) -> None:
    """List the links that are open, in both directions."""
    pages = _pages(monitor, account)
    if as_json:
        print_json(pages)
        return
    rows = [_link_row(page, link) for page in pages for link in page.get("leafs") or []]
    if not rows:
        print_note("No links to hubs or leaf nodes")
        return
    print_table(LINK_COLUMNS, rows)


application.command("list", hidden=True)(list_all)


@application.command()
def status(monitor: MonitorOption = "", account: AccountOption = "", as_json: JsonOption = False) -> None:
    """Show whether servers are connected to their hubs, and why not.

    Of a nats-server only the hubs are known that it is connected to.
    """
    pages = _pages(monitor, account)
    if as_json:
        print_json(pages)
        return
    rows = [row for page in pages for row in _remote_rows(page)]
    if not rows:
        print_note("No hubs are configured")
        return
    print_table(REMOTE_COLUMNS, rows)


def _pages(monitor: str, account: str) -> list[Page]:
    """Return the page of each server, with the server's name."""
    if monitor:
        options = {"remotes": "true"} | ({"acc": account} if account else {})
        with refusals():
            page = read_page(monitor_address(monitor), "leafz", options)
        return [{"server": page.get("server_id", ""), **page}]

    async def work(api: "Api") -> list[Page]:
        payload = json.dumps({"remotes": True, "account": account}).encode()
        answers = await collect_answers(api, REQUEST, payload)
        return [{"server": each["server"].get("name"), **as_dict(each.get("data"))} for each in answers]

    return run(work)


def _link_row(page: Page, link: dict[str, Any]) -> tuple[Cell, ...]:
    return (
        page["server"],
        "spoke" if link.get("is_spoke") else "hub",
        link.get("name"),
        link.get("account"),
        f"{link.get('ip', '')}:{link.get('port', '')}",
        link.get("rtt"),
        link.get("subscriptions", 0),
        link.get("in_msgs", 0),
        link.get("out_msgs", 0),
        Bytes(link.get("in_bytes", 0)),
        Bytes(link.get("out_bytes", 0)),
        link.get("compression"),
    )


def _remote_rows(page: Page) -> list[tuple[Cell, ...]]:
    """Return a row for each hub; a server that does not tell its hubs has those it is connected to."""
    remotes = page.get("remotes")
    if remotes is None:
        links = [link for link in page.get("leafs") or [] if link.get("is_spoke")]
        return [
            (page["server"], link.get("account"), link.get("name"), "connected", None, None, None, None, None)
            for link in links
        ]
    return [
        (
            page["server"],
            remote.get("account"),
            ", ".join(remote.get("urls") or []),
            "connected" if remote.get("connected") else "disconnected",
            remote.get("changed"),
            remote.get("attempts", 0),
            Nanoseconds(remote["retry_in"]) if remote.get("retry_in") else None,
            Bytes(remote.get("pending_bytes", 0)),
            remote.get("last_error"),
        )
        for remote in remotes
    ]
