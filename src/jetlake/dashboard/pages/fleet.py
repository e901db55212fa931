"""The fleet: nodes with their availability, checks and machines.

With `--lake` from the tables of the pipeline `fleet`; without, or before that has run, from the newest events of nodes
that streams keep, which say who was heard from.
"""

from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import web

from jetlake.dashboard.extras import Extra, install_command
from jetlake.dashboard.fleet_events import EVENTS_MAX, event_streams, heard_nodes
from jetlake.dashboard.helpers import FleetTask, HelperAnswer
from jetlake.dashboard.keys import HELPERS, OPTIONS, session_of
from jetlake.dashboard.listing import ROWS_MAX, Listing, ListQuery, cached
from jetlake.dashboard.pages.page import Page, Route
from jetlake.dashboard.pages.pipelines import lake_command
from jetlake.dashboard.profile import Feature
from jetlake.dashboard.rendering import command_line, render
from jetlake.sql.sources import Sources

__all__ = ["PAGE"]

PATH = "/fleet"
VIEWS = {"nodes": "Nodes", "checks": "Checks", "machines": "Machines"}
NEEDED = ("nodes", "sessions", "checks", "machines")
DEFAULT_PREFIX = "fleet"

TONES = {
    "up": "good",
    "OK": "good",
    "silent": "bad",
    "CRITICAL": "bad",
    "WARNING": "warning",
    "UNKNOWN": "warning",
}


class FleetView(NamedTuple):
    """One page of a view, and the figures of the whole fleet."""

    listing: "Listing[dict[str, Any]]"
    figures: dict[str, Any]


async def show_nodes(request: web.Request) -> web.Response:
    """Show the nodes; without a lake those that were heard from."""
    prefix = _prefix(request.app[OPTIONS].lake)
    if prefix and not install_command(Extra.SQL) and not install_command(Extra.LAKE):
        return await _show(request, prefix, "nodes")
    return await _show_heard(request)


async def show_view(request: web.Request) -> web.Response:
    """Show the checks or the machines."""
    view = request.match_info["view"]
    prefix = _prefix(request.app[OPTIONS].lake)
    if not prefix or view not in VIEWS:
        raise web.HTTPNotFound(text="The dashboard does not know this part of the fleet. It needs `--lake FOLDER`.")
    return await _show(request, prefix, view)


async def _show(request: web.Request, prefix: str, view: str) -> web.Response:
    lake = request.app[OPTIONS].lake
    query = ListQuery.of(request)
    task = FleetTask(lake=str(lake), prefix=prefix, view=view, text=query.text, offset=query.offset, rows_max=ROWS_MAX)

    async def ask() -> HelperAnswer:
        return await request.app[HELPERS].answer(task)

    answer = await cached(session_of(request), f"fleet {view} {query.text} {query.number}", ask)
    found = _view_of(answer, query)
    return render(
        request,
        "fleet.html",
        view=view,
        views=VIEWS,
        path=PATH,
        listing=found.listing,
        figures=found.figures,
        tones=TONES,
        command=lake_command("pipeline show fleet", lake),
    )


async def _show_heard(request: web.Request) -> web.Response:
    session = session_of(request)
    lake = request.app[OPTIONS].lake
    query = ListQuery.of(request)
    streams = await event_streams(session.api) if session.profile.offers(Feature.JETSTREAM) else []
    nodes = await cached(session, "heard nodes", lambda: heard_nodes(session.api, streams))
    names = set(query.matching([node.identity for node in nodes]))
    rows = [node for node in nodes if node.identity in names]
    return render(
        request,
        "fleet_heard.html",
        listing=query.page_of_rows(rows, total=len(nodes)),
        streams=streams,
        events_max=EVENTS_MAX,
        has_lake=lake is not None,
        install=install_command(Extra.SQL) or install_command(Extra.LAKE),
        pipeline=lake_command("pipeline run fleet", lake or Path("lake")),
        command=command_line(request, "events", "--lifecycle", "--machines"),
        declare=command_line(request, "apply", "@choria_streams"),
    )


def _view_of(answer: HelperAnswer, query: ListQuery) -> FleetView:
    names = [column.name for column in answer.columns]
    rows = [dict(zip(names, row, strict=True)) for row in answer.rows]
    figures = rows[0] if rows else {}
    shown = [row for row in rows if row["identity"] is not None]
    count, total = int(figures.get("list_count") or 0), int(figures.get("list_total") or 0)
    return FleetView(Listing(query=query, rows=shown, count=count, total=total), figures)


def _prefix(lake: Path | None) -> str:
    """Return how the names of the fleet's tables begin; empty if there are none."""
    tables = set() if lake is None else set(Sources({}, lake).lake_tables())
    prefixes = [DEFAULT_PREFIX, *sorted(name.removesuffix("_nodes") for name in tables if name.endswith("_nodes"))]
    return next((each for each in prefixes if all(f"{each}_{name}" in tables for name in NEEDED)), "")


PAGE = Page(
    title="Fleet",
    path=PATH,
    shortcut="f",
    routes=(
        Route("GET", PATH, show_nodes, name="fleet"),
        Route("GET", PATH + "/{view}", show_view, name="fleet.view"),
    ),
)
