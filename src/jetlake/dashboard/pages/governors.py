"""Governors: how many slots each has, who holds them since when, and the eviction of a holder."""

from typing import Any

import msgspec
from aiohttp import web

from jetlake.client.api import token
from jetlake.dashboard.confirmation import ConfirmationDialog, check_confirmed, confirm, done
from jetlake.dashboard.keys import session_of
from jetlake.dashboard.listing import ListQuery, is_unchanged
from jetlake.dashboard.pages import streams
from jetlake.dashboard.pages.page import Page, Route, SearchHit
from jetlake.dashboard.profile import Feature
from jetlake.dashboard.rendering import command_line, render
from jetlake.dashboard.sessions import Session
from jetlake.errors import ClientError, ConfigurationError
from jetlake.governor import catalog
from jetlake.governor.layout import STREAM_PREFIX, GovernorSettings, check_name, settings_of, stream_of
from jetlake.units import SECOND, shown_duration

__all__ = ["PAGE"]

PATH = "/governors"

COMPONENT = "Jetlake dashboard"
"""Whom the event of an eviction names."""

LEASES_MAX = 200
"""Leases that a page reads, the oldest ones; each is a request."""

HITS_MAX = 8
"""Governors that a search names."""


class GovernorRow(msgspec.Struct, frozen=True):
    """What the list shows of a governor."""

    settings: GovernorSettings
    held: int
    # When the youngest lease began.
    last: str


async def show(request: web.Request) -> web.Response:
    """Show one page of the list."""
    session = session_of(request)
    query = ListQuery.of(request, sorts=("name",))
    listing = await query.page_of_names(await governor_names(session), lambda name: _read(session, name))
    return render(
        request,
        "governors.html",
        listing=listing,
        command=command_line(request, "governor", "ls"),
        first_governor=command_line(request, "governor", "add", "DEPLOY", "2", "20m"),
    )


async def governor_names(session: Session) -> list[str]:
    """Return the names of the governors of all collectives, read a moment ago at most."""
    names = await streams.stream_names(session)
    return [name.removeprefix(STREAM_PREFIX) for name in names if name.startswith(STREAM_PREFIX)]


async def search(session: Session, text: str) -> list[SearchHit]:
    """Return the governors whose names contain a text."""
    wanted = text.casefold()
    names = [name for name in await governor_names(session) if wanted in name.casefold()]
    return [SearchHit("governor", name, f"{PATH}/{name}") for name in names[:HITS_MAX]]


async def show_governor(request: web.Request) -> web.Response:
    """Show a governor and who holds its slots, kept up to date while the page is open."""
    session = session_of(request)
    name = check_name(request.match_info["governor"])
    info = await _info(session, name)
    state = info["state"]
    mark = f"{state['first_seq']}.{state['last_seq']}.{state['messages']}"
    if is_unchanged(request, mark):
        return web.Response(status=204)
    settings = settings_of(info["config"])
    leases = await catalog.leases(session.api, name, info, leases_max=LEASES_MAX)
    query = ListQuery.of(request)
    held = int(state["messages"])
    return render(
        request,
        "governors_governor.html",
        settings=settings,
        held=held,
        listing=query.page_of_rows(leases, total=len(leases)),
        is_cut=held > len(leases) >= LEASES_MAX,
        leases_max=LEASES_MAX,
        mark=mark,
        command=command_line(request, "governor", "view", name),
        run_command=command_line(request, "governor", "run", name, "--", "COMMAND"),
    )


async def preview_evict(request: web.Request) -> web.Response:
    """Show whose lease would end."""
    session, name, lease_id = _named(request)
    await _info(session, name)
    lease = await catalog.lease_at(session.api, name, lease_id)
    if lease is None:
        raise ClientError(f"Governor {name} has no lease {lease_id} any more: it was given back, or has expired.")
    return confirm(
        request,
        ConfirmationDialog(
            title=f"Evict lease {lease_id} of governor {name}",
            facts=(("Holder", lease.holder), ("Since", shown_duration(max(SECOND, lease.age_ns // SECOND * SECOND)))),
            warning="The slot is free at once. The holder is not told and goes on, unless it renews its lease: "
            "more may then run at once than there are slots.",
            word=name,
            action=f"{PATH}/{name}/evict/{lease_id}",
            button="Evict",
            command=command_line(request, "governor", "evict", name, str(lease_id)),
        ),
    )


async def evict(request: web.Request) -> web.Response:
    """End a lease."""
    session, name, lease_id = _named(request)
    await check_confirmed(request, name)
    holder = await catalog.evict(session.api, name, lease_id, COMPONENT)
    return done(request, f"Evicted {holder} from governor {name}.", f"{PATH}/{name}")


async def _read(session: Session, name: str) -> GovernorRow | None:
    found = await session.api.find(f"STREAM.INFO.{token(stream_of(name))}")
    if found is None:
        return None
    try:
        settings = settings_of(found["config"])
    except ConfigurationError:
        # A stream that only has such a name.
        return None
    return GovernorRow(settings, int(found["state"]["messages"]), str(found["state"].get("last_ts", "")))


async def _info(session: Session, name: str) -> dict[str, Any]:
    found = await session.api.find(f"STREAM.INFO.{token(stream_of(name))}")
    if found is None:
        raise catalog.unknown(name)
    return found


def _named(request: web.Request) -> tuple[Session, str, int]:
    return session_of(request), check_name(request.match_info["governor"]), int(request.match_info["lease"])


PAGE = Page(
    title="Governors",
    path=PATH,
    shortcut="v",
    needs=Feature.JETSTREAM,
    routes=(
        Route("GET", PATH, show, name="governors"),
        Route("GET", PATH + "/{governor}", show_governor, name="governor"),
        Route("GET", PATH + "/{governor}/evict/{lease:[0-9]{1,19}}", preview_evict, name="governor.evict"),
        Route("POST", PATH + "/{governor}/evict/{lease:[0-9]{1,19}}", evict),
    ),
    search=search,
)
