"""The list of streams: name, subjects, size and live rate of each; delete. One stream is in `stream` and `stream_*`."""

from typing import Any
from urllib.parse import quote

import msgspec
from aiohttp import web

from jetlake.client.api import token
from jetlake.dashboard.confirmation import ConfirmationDialog, check_confirmed, confirm, done
from jetlake.dashboard.keys import session_of
from jetlake.dashboard.listing import Listing, ListQuery, cached, forget
from jetlake.dashboard.pages import consumer, consumers, stream
from jetlake.dashboard.pages.page import Page, Route, SearchHit
from jetlake.dashboard.profile import Feature
from jetlake.dashboard.rendering import command_line, render
from jetlake.dashboard.sessions import Session
from jetlake.errors import ApiError
from jetlake.units import shown_size

__all__ = ["PAGE"]

SORTED_MAX = 2_000
"""Streams that can be sorted by something else than their name: for that all of them are read, 256 per request."""

HITS_MAX = 8
"""Streams that a search names."""

SORTS = ("name", "messages", "bytes", "consumers")
NAMES = "stream names"
ROWS = "stream rows"

PATH = "/streams"


class StreamRow(msgspec.Struct, frozen=True, kw_only=True):
    """What the list shows of a stream."""

    name: str
    subjects: tuple[str, ...]
    messages: int
    bytes: int
    consumers: int
    last: str
    storage: str
    replicas: int
    # What it copies, if it does.
    origin: str


async def show(request: web.Request) -> web.Response:
    """Show one page of the list."""
    session = session_of(request)
    query = ListQuery.of(request, sorts=SORTS)
    names = await stream_names(session)
    is_sortable = len(names) <= SORTED_MAX
    if query.sort == "name" or not is_sortable:
        query = msgspec.structs.replace(query, sort="name")
        listing = await query.page_of_names(names, lambda name: read_row(session, name))
    else:
        listing = await _sorted(session, query)
    return render(
        request,
        "streams.html",
        listing=listing,
        sorts=SORTS if is_sortable else ("name",),
        sorted_max=SORTED_MAX,
        command=command_line(request, "stream", "ls"),
        first_stream=command_line(request, "stream", "add", "ORDERS", "--subjects", "orders.>", "--defaults"),
    )


async def stream_names(session: Session) -> list[str]:
    """Return the names of all streams, read a moment ago at most."""
    return await cached(session, NAMES, session.api.stream_names)


async def read_row(session: Session, name: str) -> StreamRow | None:
    """Read one stream; None if it was deleted meanwhile."""
    found = await session.api.find(f"STREAM.INFO.{token(name)}")
    return None if found is None else _row(found)


async def search(session: Session, text: str) -> list[SearchHit]:
    """Return the streams whose names contain a text."""
    wanted = text.casefold()
    names = [name for name in await stream_names(session) if wanted in name.casefold()]
    return [SearchHit("stream", name, f"{PATH}/{quote(name, safe='')}") for name in names[:HITS_MAX]]


async def preview_delete(request: web.Request) -> web.Response:
    """Show what would be deleted with a stream."""
    name, found = await _stream_row(request)
    state = found["state"]
    return confirm(
        request,
        ConfirmationDialog(
            title=f"Delete stream {name}",
            facts=(("Messages", f"{state['messages']:,}"), ("Size", shown_size(state["bytes"])), *_consumers(state)),
            warning="The stream is deleted with its messages and consumers. This cannot be undone.",
            word=name,
            action=f"{PATH}/{quote(name, safe='')}/delete",
            button="Delete",
            command=command_line(request, "stream", "rm", name),
        ),
    )


async def delete(request: web.Request) -> web.Response:
    """Delete a stream."""
    name = request.match_info["stream"]
    await check_confirmed(request, name)
    session = session_of(request)
    await session.api.request(f"STREAM.DELETE.{token(name)}")
    forget(session, NAMES)
    forget(session, ROWS)
    return done(request, f"Deleted stream {name}.", PATH)


async def _sorted(session: Session, query: ListQuery) -> Listing[StreamRow]:
    async def load() -> list[StreamRow]:
        return [_row(found) for found in await session.api.streams()]

    rows = await cached(session, ROWS, load)
    names = set(query.matching([row.name for row in rows]))
    # Large first: that is what is looked for.
    ordered = sorted(
        (row for row in rows if row.name in names),
        key=lambda row: (getattr(row, query.sort), row.name),
        reverse=not query.is_descending,
    )
    return query.page_of_rows(ordered, total=len(rows))


def _row(found: dict[str, Any]) -> StreamRow:
    config, state = found["config"], found["state"]
    origins = [config["mirror"]] if config.get("mirror") else config.get("sources") or []
    return StreamRow(
        name=config["name"],
        subjects=tuple(config.get("subjects") or ()),
        messages=int(state["messages"]),
        bytes=int(state["bytes"]),
        consumers=int(state.get("consumer_count", 0)),
        last=str(state.get("last_ts", "")),
        storage=str(config.get("storage", "")),
        replicas=int(config.get("num_replicas", 1)),
        origin=", ".join(str(each.get("name", "")) for each in origins),
    )


async def _stream_row(request: web.Request) -> tuple[str, dict[str, Any]]:
    name = request.match_info["stream"]
    found = await session_of(request).api.find(f"STREAM.INFO.{token(name)}")
    if found is None:
        raise ApiError(404, 0, f"There is no stream {name}. It was deleted, or the name is misspelt.")
    return name, found


def _consumers(state: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return (("Consumers", f"{state.get('consumer_count', 0):,}"),)


PAGE = Page(
    title="Streams",
    path=PATH,
    shortcut="s",
    needs=Feature.JETSTREAM,
    routes=(
        Route("GET", PATH, show, name="streams"),
        Route("GET", PATH + "/{stream}/delete", preview_delete, name="stream.delete"),
        Route("POST", PATH + "/{stream}/delete", delete),
        *stream.ROUTES,
        *consumers.ROUTES,
        *consumer.ROUTES,
    ),
    search=search,
)
