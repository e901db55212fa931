"""Pipelines of a lake: their state and progress, how fresh their tables are and how many rows they have, their report.

All of it is read from the folder that `--lake` names: pipelines leave their state there (`jetlake.spark.pipelines`).
"""

import asyncio
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from jetlake.dashboard.answer_chart import AnswerChart, AnswerLine
from jetlake.dashboard.extras import Extra, install_command
from jetlake.dashboard.guard import DOCUMENT_POLICY, POLICY_HEADER
from jetlake.dashboard.helpers import ReportTask, TableFacts, TablesTask
from jetlake.dashboard.keys import HELPERS, OPTIONS, session_of
from jetlake.dashboard.listing import ListQuery, cached
from jetlake.dashboard.pages.page import Page, Route
from jetlake.dashboard.rendering import render
from jetlake.errors import ApiError, JetlakeError
from jetlake.spark.pipelines.state import PipelineFiles, RunState, known

__all__ = ["PAGE", "lake_command"]

PATH = "/pipelines"

BATCHES_MAX = 200
"""Of the progress that a page draws, the newest."""

GOOD_STATES = ("running", "finished", "starting")
BAD_STATES = ("failed", "died")


class PipelineRow(NamedTuple):
    """What the list shows of a pipeline."""

    name: str
    state: str
    tone: str
    about: str
    error: str
    rows: int
    rows_per_second: float
    lag: int | None
    # Since the last batch; None before the first.
    fresh_s: float | None
    table_count: int


async def show(request: web.Request) -> web.Response:
    """Show the list."""
    lake = request.app[OPTIONS].lake
    query = ListQuery.of(request)
    names = [] if lake is None else await asyncio.to_thread(known, lake)

    async def read_row(name: str) -> PipelineRow | None:
        assert lake is not None, "there are no names without a lake"
        return await asyncio.to_thread(_row, lake, name)

    return render(
        request,
        "pipelines.html",
        listing=await query.page_of_names(names, read_row),
        has_lake=lake is not None,
        command=lake_command("pipeline status", lake),
        first=lake_command("pipeline run logs", lake),
        restart="jetlake dashboard --lake lake",
    )


async def show_one(request: web.Request) -> web.Response:
    """Show one pipeline."""
    lake, name = await _lake_and_pipeline(request)
    files = PipelineFiles(lake, name)
    state, lines = await asyncio.gather(asyncio.to_thread(files.status), asyncio.to_thread(files.progress))
    tables, problem = await _tables(request, lake, state)
    chart = _progress_chart(lines[-BATCHES_MAX:])
    return render(
        request,
        "pipeline.html",
        row=_described(name, state, lines),
        state=state,
        tables=tables,
        tables_problem=problem,
        install=install_command(Extra.LAKE),
        chart=chart,
        chart_json="" if chart is None else msgspec.json.encode(chart).decode(),
        batches=list(reversed(lines[-10:])),
        command=lake_command(f"pipeline show {name}", lake),
    )


async def report(request: web.Request) -> web.Response:
    """Show the page that `jetlake pipeline show` writes, freshly rendered and in a sandbox."""
    lake, name = await _lake_and_pipeline(request)
    page = await request.app[HELPERS].report(ReportTask(lake=str(lake), pipeline=name))
    return web.Response(text=page, content_type="text/html", headers={POLICY_HEADER: DOCUMENT_POLICY})


def lake_command(words: str, lake: Path | None) -> str:
    """Return a command about a lake; it needs no server."""
    return f"jetlake {words}" if lake is None else f"jetlake {words} --lake {lake}"


async def _lake_and_pipeline(request: web.Request) -> tuple[Path, str]:
    """Return the lake and a name that is one of its pipelines; never a path of the address itself."""
    lake, name = request.app[OPTIONS].lake, request.match_info["pipeline"]
    if lake is None or name not in await asyncio.to_thread(known, lake):
        raise ApiError(404, 0, f"No pipeline {name} has run on this lake. The list shows those that have.")
    return lake, name


async def _tables(request: web.Request, lake: Path, state: RunState | None) -> tuple[list[TableFacts], str]:
    if state is None or not state.tables or install_command(Extra.LAKE):
        return [], ""
    task = TablesTask(lake=str(lake), names=state.tables)
    try:
        return await cached(session_of(request), f"tables {state.pipeline}", lambda: _ask(request, task)), ""
    except JetlakeError as error:
        # The state of the pipeline is worth showing without its tables.
        return [], str(error)


async def _ask(request: web.Request, task: TablesTask) -> list[TableFacts]:
    return await request.app[HELPERS].tables(task)


def _row(lake: Path, name: str) -> PipelineRow:
    files = PipelineFiles(lake, name)
    return _described(name, files.status(), files.progress())


def _described(name: str, state: RunState | None, lines: list[dict[str, Any]]) -> PipelineRow:
    queries = [] if state is None else state.queries
    lags = [query.lag for query in queries if query.lag is not None]
    status = "never ran" if state is None else state.state
    return PipelineRow(
        name=name,
        state=status,
        tone="good" if status in GOOD_STATES else "bad" if status in BAD_STATES else "",
        about="" if state is None else state.about,
        error="" if state is None else state.error or next((query.error for query in queries if query.error), ""),
        rows=sum(query.rows for query in queries),
        rows_per_second=sum(query.rows_per_second for query in queries),
        lag=sum(lags) if lags else None,
        fresh_s=_fresh_s(lines),
        table_count=0 if state is None else len(state.tables),
    )


def _fresh_s(lines: list[dict[str, Any]]) -> float | None:
    moments = [line["at_ms"] for line in lines[-BATCHES_MAX:] if isinstance(line.get("at_ms"), int)]
    return max(0.0, time.time() - max(moments) / 1000) if moments else None


def _progress_chart(lines: list[dict[str, Any]]) -> AnswerChart | None:
    known_at = [line for line in lines if isinstance(line.get("at_ms"), int)]
    points = sorted((line["at_ms"] / 1000, float(line.get("rows_per_second") or 0)) for line in known_at)
    if len(points) < 2:
        return None
    rates = AnswerLine("rows per second", [rate for _, rate in points])
    return AnswerChart(axis="time", is_time=True, x=[at for at, _ in points], labels=[], lines=[rates])


PAGE = Page(
    title="Pipelines",
    path=PATH,
    shortcut="p",
    routes=(
        Route("GET", PATH, show, name="pipelines"),
        Route("GET", PATH + "/{pipeline}", show_one, name="pipeline"),
        Route("GET", PATH + "/{pipeline}/report", report, name="pipeline.report"),
    ),
)
