"""The overview: what the server is doing, live, and which consumers are behind."""

from typing import NamedTuple

from aiohttp import web

from jetlake.dashboard.keys import OPTIONS, session_of
from jetlake.dashboard.pages.page import Page, Route
from jetlake.dashboard.profile import Feature
from jetlake.dashboard.rendering import command_line, render
from jetlake.dashboard.sessions import Session

__all__ = ["PAGE"]


class Tile(NamedTuple):
    """One figure at the top."""

    title: str
    key: str
    help: str
    # A number that grows while the page is open deserves a look.
    is_alarm: bool = False


class Chart(NamedTuple):
    """One chart; the keys are its lines, with their names."""

    title: str
    lines: tuple[tuple[str, str], ...]


async def show(request: web.Request) -> web.Response:
    """Show the page."""
    session = session_of(request)
    return render(
        request,
        "overview.html",
        tiles=_tiles(session),
        charts=_charts(session, has_metrics=bool(request.app[OPTIONS].monitor_url)),
        lag=session.sampler.lag,
        has_jetstream=session.profile.offers(Feature.JETSTREAM),
        is_system=session.profile.offers(Feature.SYSTEM),
        wants_monitor=session.profile.is_jetlake and not request.app[OPTIONS].monitor_url,
        command=command_line(request, "server", "info"),
    )


def _tiles(session: Session) -> list[Tile]:
    profile = session.profile
    tiles = [
        Tile("Messages in", "messages.in", "Published by clients"),
        Tile("Messages out", "messages.out", "Delivered to clients"),
        Tile("Connections", "connections", "Clients that are connected now"),
        Tile("Slow consumers", "slow_consumers", "Clients cut off because they read too slowly", is_alarm=True),
    ]
    if profile.offers(Feature.JETSTREAM):
        tiles += [
            Tile("Streams", "streams", "Of this account"),
            Tile("Consumers", "consumers", "Of this account"),
            Tile("Consumer lag", "lag", "Messages that consumers have still to receive"),
        ]
    if profile.offers(Feature.JETSTREAM) or profile.offers(Feature.SYSTEM):
        tiles += [
            Tile("Storage", "storage", "Bytes of streams on disk"),
            Tile("API errors", "api.errors", "Requests to JetStream's API that were refused, since the start", True),
        ]
    return tiles


def _charts(session: Session, *, has_metrics: bool) -> list[Chart]:
    profile = session.profile
    charts = [
        Chart("Messages per second", (("messages.in", "in"), ("messages.out", "out"))),
        Chart("Bytes per second", (("bytes.in", "in"), ("bytes.out", "out"))),
    ]
    if profile.offers(Feature.JETSTREAM):
        charts.append(Chart("Consumer lag", (("lag", "messages"),)))
    if profile.offers(Feature.JETSTREAM) or profile.offers(Feature.SYSTEM):
        charts.append(Chart("Storage", (("storage", "on disk"), ("memory", "in memory"))))
    if profile.is_jetlake and has_metrics:
        charts.append(Chart("Fsync latency", (("fsync", "mean"), ("fsync.worst", "slowest 1 %"))))
    errors = [("slow_consumers", "slow consumers")]
    if profile.offers(Feature.JETSTREAM) or profile.offers(Feature.SYSTEM):
        errors.append(("api.errors", "API errors"))
    return [*charts, Chart("Errors since the start", tuple(errors))]


PAGE = Page(
    title="Overview",
    path="/",
    shortcut="o",
    routes=(Route("GET", "/", show, name="overview"),),
)
