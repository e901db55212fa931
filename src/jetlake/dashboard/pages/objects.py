"""Object stores and the objects in them: details, and delete. `object_transfer` sends contents up and down."""

from typing import NamedTuple
from urllib.parse import urlencode

from aiohttp import web

from jetlake.client.api import token
from jetlake.dashboard.confirmation import ConfirmationDialog, check_confirmed, confirm, done
from jetlake.dashboard.keys import session_of
from jetlake.dashboard.listing import ListQuery, cached, is_unchanged
from jetlake.dashboard.pages import object_transfer, streams
from jetlake.dashboard.pages.page import Page, Route, SearchHit
from jetlake.dashboard.profile import Feature
from jetlake.dashboard.rendering import command_line, render
from jetlake.dashboard.sessions import Session
from jetlake.objects.info import ObjectInfo
from jetlake.objects.names import STREAM_PREFIX, SUBJECT_PREFIX
from jetlake.objects.store import ObjectStore, StoreStatus, status_of
from jetlake.objects.stores import Stores
from jetlake.units import shown_size

__all__ = ["PAGE"]

PATH = object_transfer.PATH

OBJECTS_MAX = 10_000
"""Objects read for one list, some ten megabytes of descriptions."""

LIVE_OBJECTS_MAX = 2_000
"""A list of more objects is not read again while it is open."""

HITS_MAX = 8
"""Object stores that a search names."""

WORD_LETTERS_MAX = 60
"""A longer name nobody types; the name of the store confirms then."""


class FoundObjects(NamedTuple):
    """The objects of a store, sorted by name."""

    infos: list[ObjectInfo]
    # There are more.
    is_cut: bool


async def show(request: web.Request) -> web.Response:
    """Show one page of the object stores."""
    session = session_of(request)
    query = ListQuery.of(request, sorts=("name",))
    listing = await query.page_of_names(await store_names(session), lambda name: _read(session, name))
    return render(
        request,
        "objects.html",
        listing=listing,
        command=command_line(request, "object", "ls"),
        first_store=command_line(request, "object", "add", "FILES"),
    )


async def store_names(session: Session) -> list[str]:
    """Return the names of all object stores, read a moment ago at most."""
    names = await streams.stream_names(session)
    return [name.removeprefix(STREAM_PREFIX) for name in names if name.startswith(STREAM_PREFIX)]


async def search(session: Session, text: str) -> list[SearchHit]:
    """Return the object stores whose names contain a text."""
    wanted = text.casefold()
    names = [name for name in await store_names(session) if wanted in name.casefold()]
    return [SearchHit("object store", name, f"{PATH}/{name}") for name in names[:HITS_MAX]]


async def show_store(request: web.Request) -> web.Response:
    """Show one page of the objects of a store."""
    session = session_of(request)
    status = await Stores(session.api).status(request.match_info["store"])
    state = status.stream["state"]
    mark = f"{state['last_seq']}.{state['messages']}"
    if is_unchanged(request, mark):
        return web.Response(status=204)
    store = ObjectStore(session.api, status.store)
    # The state is part of the name: what was read is used while nothing has changed.
    found = await cached(session, f"objects of {status.store} {mark}", lambda: _read_objects(store))
    query = ListQuery.of(request)
    text = query.text.casefold()
    matching = [info for info in found.infos if text in info.name.casefold()]
    return render(
        request,
        "objects_store.html",
        store=status,
        listing=query.page_of_rows(matching, total=len(found.infos)),
        mark=mark,
        is_cut=found.is_cut,
        is_live=len(found.infos) <= LIVE_OBJECTS_MAX,
        objects_max=OBJECTS_MAX,
        object_address=object_address,
        upload_bytes_max=object_transfer.UPLOAD_BYTES_MAX,
        command=command_line(request, "object", "ls", status.store),
        first_object=command_line(request, "object", "put", status.store, "FILE"),
    )


async def show_object(request: web.Request) -> web.Response:
    """Show what is known about an object."""
    store, name = _named(request)
    info = await store.info(name)
    return render(
        request,
        "objects_object.html",
        store=store.name,
        info=info,
        object_address=object_address,
        command=command_line(request, "object", "info", store.name, name),
        get_command=command_line(request, "object", "get", store.name, name),
    )


async def preview_delete(request: web.Request) -> web.Response:
    """Show what a delete would remove."""
    store, name = _named(request)
    info = await store.info(name)
    return confirm(
        request,
        ConfirmationDialog(
            title=f"Delete object {name}",
            facts=(
                ("Store", store.name),
                ("Size", shown_size(info.size)),
                ("Chunks", f"{info.chunks:,}"),
                ("Stored", info.modified.isoformat(sep=" ", timespec="seconds")),
            ),
            warning="The object is deleted with its contents. This cannot be undone.",
            word=_word(store.name, name),
            action=object_address(store.name, name, action="delete"),
            button="Delete",
            command=command_line(request, "object", "del", store.name, name),
        ),
    )


async def delete(request: web.Request) -> web.Response:
    """Delete an object."""
    store, name = _named(request)
    await check_confirmed(request, _word(store.name, name))
    await session_of(request).api.until_refused(store.delete(name), f"{SUBJECT_PREFIX}{store.name}.>")
    return done(request, f"Deleted object {name} of {store.name}.", f"{PATH}/{store.name}")


def object_address(store: str, name: str, *, action: str = "object") -> str:
    """Return the address of an object; it is not part of the path, because any text can be a name."""
    return f"{PATH}/{store}/{action}?{urlencode({'name': name})}"


async def _read(session: Session, name: str) -> StoreStatus | None:
    found = await session.api.find(f"STREAM.INFO.{token(STREAM_PREFIX + name)}")
    return None if found is None else status_of(found)


async def _read_objects(store: ObjectStore) -> FoundObjects:
    found: dict[str, ObjectInfo] = {}
    async with store.watch() as watcher:
        async for info in watcher:
            if info is None or len(found) >= OBJECTS_MAX:
                break
            found.pop(info.name, None)
            if not info.deleted:
                found[info.name] = info
    return FoundObjects(sorted(found.values(), key=lambda info: info.name), len(found) >= OBJECTS_MAX)


def _named(request: web.Request) -> tuple[ObjectStore, str]:
    return ObjectStore(session_of(request).api, request.match_info["store"]), request.query.get("name", "")


def _word(store: str, name: str) -> str:
    """Return what is typed to delete an object: its name, if that can be typed."""
    return name if name.isprintable() and name == name.strip() and len(name) <= WORD_LETTERS_MAX else store


PAGE = Page(
    title="Objects",
    path=PATH,
    shortcut="b",
    needs=Feature.JETSTREAM,
    routes=(
        Route("GET", PATH, show, name="objects"),
        Route("GET", PATH + "/{store}", show_store, name="store"),
        Route("GET", PATH + "/{store}/object", show_object),
        Route("GET", PATH + "/{store}/delete", preview_delete),
        Route("POST", PATH + "/{store}/delete", delete),
        *object_transfer.ROUTES,
    ),
    search=search,
)
