"""A box for SQL over streams and lake tables: the answer as a table in pages and as a chart.

The query is part of the address, so that it can be kept and sent to others; opening such an address fills the box, and
only the button runs it. It runs in a helper (`helpers`), with the user's own login.
"""

import secrets
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec
from aiohttp import web

from jetlake.dashboard.answer_chart import chart_of
from jetlake.dashboard.extras import Extra, install_command
from jetlake.dashboard.helper_process import CELL_LETTERS_MAX, ROWS_MAX
from jetlake.dashboard.helpers import TIME_S_MAX, HelperAnswer, SqlTask
from jetlake.dashboard.keys import HELPERS, OPTIONS, session_of
from jetlake.dashboard.listing import Listing, ListQuery
from jetlake.dashboard.pages.page import Page, Route
from jetlake.dashboard.pages.streams import stream_names
from jetlake.dashboard.profile import Feature
from jetlake.dashboard.rendering import command_line, is_fragment, render
from jetlake.dashboard.sessions import Session
from jetlake.errors import JetlakeError
from jetlake.spark.connecting import options_of
from jetlake.spark.naming import table_name
from jetlake.sql.sources import BUCKET_PREFIXES, Sources

__all__ = ["PAGE"]

PATH = "/sql"
KEPT = "sql"

QUERY_LETTERS_MAX = 2_000
"""Fits into an address, which a server may limit to 8 KB, also if each letter takes three there."""

TABLES_MAX = 40
"""Streams and lake tables that the page offers, of each; a query may name any."""

EXAMPLE = "SELECT subject, count(*) AS messages FROM streams.orders GROUP BY subject ORDER BY messages DESC"


class KeptAnswer(NamedTuple):
    """The last answer of a session, which pages turn through."""

    key: str
    query: str
    answer: HelperAnswer


class TableLink(NamedTuple):
    """A table to click on."""

    name: str
    query: str


async def show(request: web.Request) -> web.Response:
    """Show the box; a query of the address stands in it and is not run."""
    session = session_of(request)
    lake = request.app[OPTIONS].lake
    streams = [name for name in await stream_names(session) if not name.startswith(BUCKET_PREFIXES)]
    tables = [] if lake is None else Sources({}, lake).lake_tables()
    return render(
        request,
        "sql.html",
        query=request.query.get("query", "")[:QUERY_LETTERS_MAX],
        letters_max=QUERY_LETTERS_MAX,
        rows_max=ROWS_MAX,
        time_s_max=TIME_S_MAX,
        example=EXAMPLE,
        install=install_command(Extra.SQL),
        streams=[_link("streams", table_name(name)) for name in streams[:TABLES_MAX]],
        streams_left=max(0, len(streams) - TABLES_MAX),
        tables=[_link("lake", name) for name in tables[:TABLES_MAX]],
        tables_left=max(0, len(tables) - TABLES_MAX),
        has_lake=lake is not None,
    )


async def answer(request: web.Request) -> web.StreamResponse:
    """Run the query and show the first rows."""
    query = request.query.get("query", "").strip()
    # Only the button of the page sends this header: a link from elsewhere runs nothing.
    if not is_fragment(request):
        return web.Response(status=303, headers={"Location": _address(query)})
    session = session_of(request)
    lake = request.app[OPTIONS].lake
    problem = _problem_of(query)
    if not problem:
        task = SqlTask(query=query, options=options_of(session.api.access), lake="" if lake is None else str(lake))
        try:
            found = await request.app[HELPERS].answer(task)
        except JetlakeError as error:
            problem = str(error)
    if problem:
        return render(request, "sql_answer.html", problem=problem[:1].upper() + problem[1:], install="", kept=None)
    kept = KeptAnswer(secrets.token_urlsafe(8), query, found)
    session.kept[KEPT] = kept
    return _render_answer(request, kept, ListQuery(path=f"{PATH}/answers/{kept.key}"))


async def turn(request: web.Request) -> web.StreamResponse:
    """Show other rows of the last answer."""
    kept = _kept(session_of(request), request.match_info["key"])
    if kept is None:
        raise web.HTTPGone(text="The answer was replaced by a newer one. Run the query again.")
    if not is_fragment(request):
        return web.Response(status=303, headers={"Location": _address(kept.query)})
    return _render_answer(request, kept, ListQuery.of(request))


def _render_answer(request: web.Request, kept: KeptAnswer, query: ListQuery) -> web.Response:
    rows = kept.answer.rows
    listing: Listing[list[str | int | float | None]] = query.page_of_rows(rows, total=len(rows))
    chart = chart_of(kept.answer)
    lake = request.app[OPTIONS].lake
    words = ("sql", kept.query, *(() if lake is None else ("--lake", str(lake))))
    return render(
        request,
        "sql_answer.html",
        problem="",
        kept=kept,
        listing=listing,
        rows_max=ROWS_MAX,
        letters_max=CELL_LETTERS_MAX,
        chart=chart,
        chart_json="" if chart is None else msgspec.json.encode(chart).decode(),
        command=command_line(request, *words),
    )


def _kept(session: Session, key: str) -> KeptAnswer | None:
    found = session.kept.get(KEPT)
    return found if isinstance(found, KeptAnswer) and found.key == key else None


def _problem_of(query: str) -> str:
    if not query:
        return f"The query is empty. Write one, such as {EXAMPLE}"
    if len(query) > QUERY_LETTERS_MAX:
        return (
            f"The query has {len(query):,} letters: at most {QUERY_LETTERS_MAX:,} are taken here. Use `jetlake sql -`."
        )
    return install_command(Extra.SQL) and f"SQL needs DuckDB: run `{install_command(Extra.SQL)}`."


def _link(schema: str, table: str) -> TableLink:
    quoted = table.replace('"', '""')
    name = f"{schema}.{table}" if table.isidentifier() else f'{schema}."{quoted}"'
    return TableLink(name, _address(f"SELECT * FROM {name} LIMIT 100"))  # noqa: S608 - a text for the box


def _address(query: str) -> str:
    return f"{PATH}?{urlencode({'query': query})}" if query else PATH


PAGE = Page(
    title="SQL",
    path=PATH,
    shortcut="q",
    needs=Feature.JETSTREAM,
    routes=(
        Route("GET", PATH, show, name="sql"),
        Route("GET", PATH + "/answer", answer, name="sql.answer"),
        Route("GET", PATH + "/answers/{key}", turn),
    ),
)
