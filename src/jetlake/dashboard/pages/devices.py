"""Devices: who is online, twins, and of one device its resources with their values and the commands that wait.

From the event stream of the device bus and not from lake tables: the stream is always there, and has no delay.
"""

from typing import TYPE_CHECKING, Any

from aiohttp import web

from jetlake.dashboard.extras import Extra, install_command
from jetlake.dashboard.keys import session_of
from jetlake.dashboard.listing import Listing, ListQuery, cached
from jetlake.dashboard.pages.page import Page, Route, SearchHit
from jetlake.dashboard.profile import Feature
from jetlake.dashboard.rendering import command_line, render
from jetlake.dashboard.sessions import Session
from jetlake.errors import ApiError, ConfigurationError

if TYPE_CHECKING:
    from jetlake.dashboard.device_reading import DeviceRow, ResourceRow

__all__ = ["PAGE"]

PATH = "/devices"

HITS_MAX = 5
"""Devices that a search names."""


async def show(request: web.Request) -> web.Response:
    """Show one page of the list."""
    query = ListQuery.of(request)
    empty: Listing[DeviceRow] = Listing(query=query, rows=[], count=0, total=0)
    install = install_command(Extra.DEVICES)
    if install:
        return _render_list(request, empty, install=install)
    from jetlake.dashboard.device_reading import row_of

    session = session_of(request)
    try:
        stream = await _stream(session)
    except ConfigurationError as error:
        return _render_list(request, empty, problem=str(error))
    names = await _ids(session, stream)
    listing = await query.page_of_names(names, lambda name: row_of(session.api, stream, name))
    return _render_list(request, listing, stream=stream)


async def show_one(request: web.Request) -> web.Response:
    """Show one device."""
    if install_command(Extra.DEVICES):
        raise ConfigurationError(f"Devices need packages that are missing: run `{install_command(Extra.DEVICES)}`")
    from jetlake.dashboard import device_reading as reading
    from jetlake.devices.ids import check_device_id

    session = session_of(request)
    device_id = check_device_id(request.match_info["device"])
    stream = await _stream(session)
    view = await reading.read_device(session.api, stream, device_id)
    if view.metadata is None and not view.links:
        raise ApiError(404, 0, f"There is no device {device_id}. It was deleted, or the id is misspelt.")
    row = await reading.row_of(session.api, stream, device_id)

    async def read(href: str) -> "ResourceRow":
        return await reading.read_resource(session.api, stream, device_id, view.links[href])

    listing = await ListQuery.of(request).page_of_names(sorted(view.links), read)
    pending = [] if view.metadata is None else [reading.pending_row(each) for each in view.metadata.pendings.values()]
    return render(
        request,
        "device.html",
        row=row,
        listing=listing,
        pending=[("", each) for each in pending] + [(one.href, each) for one in listing.rows for each in one.pending],
        stream=stream,
        command=f"jetlake device state {device_id}",
        events_command=command_line(request, "sub", f"events.{device_id}.>"),
    )


async def search(session: Session, text: str) -> list[SearchHit]:
    """Return the devices whose ids contain a text."""
    if install_command(Extra.DEVICES):
        return []
    try:
        stream = await _stream(session)
    except ConfigurationError:
        return []
    wanted = text.casefold()
    found = [each for each in await _ids(session, stream) if wanted in each.casefold()]
    return [SearchHit("device", each, ListQuery(path=PATH, text=each).address()) for each in found[:HITS_MAX]]


async def _stream(session: Session) -> str:
    from jetlake.devices.stream import find_stream

    return await cached(session, "device stream", lambda: find_stream(session.api))


async def _ids(session: Session, stream: str) -> list[str]:
    from jetlake.devices.inventory import device_ids

    return await cached(session, "device ids", lambda: device_ids(session.api, stream))


def _render_list(request: web.Request, listing: Any, **values: str) -> web.Response:
    return render(
        request,
        "devices.html",
        listing=listing,
        install=values.get("install", ""),
        problem=values.get("problem", ""),
        stream=values.get("stream", ""),
        command="jetlake device state",
        first_stream=command_line(request, "stream", "add", "EVENTS", "--subjects", "events.>", "--defaults"),
        simulate=command_line(request, "simulate", "devices"),
    )


PAGE = Page(
    title="Devices",
    path=PATH,
    shortcut="d",
    needs=Feature.JETSTREAM,
    routes=(
        Route("GET", PATH, show, name="devices"),
        Route("GET", PATH + "/{device:.+}", show_one, name="device"),
    ),
    search=search,
)
