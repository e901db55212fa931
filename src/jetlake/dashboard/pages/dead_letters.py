"""Dead letters: streams that keep them, and their letters in groups of one stream, consumer and cause.

`dead_letter` shows one letter, and redrives and deletes letters.
"""

from aiohttp import web

from jetlake.client.api import token
from jetlake.client.dead_letters import SUBJECTS
from jetlake.dashboard.keys import session_of
from jetlake.dashboard.listing import ListQuery, cached, is_unchanged
from jetlake.dashboard.pages import dead_letter
from jetlake.dashboard.pages.dead_groups import LETTERS_MAX, PATH, find_group, survey
from jetlake.dashboard.pages.page import Page, Route, SearchHit
from jetlake.dashboard.pages.streams import read_row
from jetlake.dashboard.profile import Feature
from jetlake.dashboard.rendering import command_line, render
from jetlake.dashboard.sessions import Session

__all__ = ["PAGE"]

HITS_MAX = 8
"""Streams of dead letters that a search names."""


async def show(request: web.Request) -> web.Response:
    """Show the streams that keep dead letters."""
    session = session_of(request)
    query = ListQuery.of(request, sorts=("name",))
    listing = await query.page_of_names(await keeper_names(session), lambda name: read_row(session, name))
    return render(
        request,
        "dead_letters.html",
        listing=listing,
        command=command_line(request, "stream", "ls"),
        first_keeper=command_line(request, "stream", "add", "DEAD", "--subjects", "dead.>", "--defaults"),
    )


async def keeper_names(session: Session) -> list[str]:
    """Return the streams whose subjects are those of dead letters."""
    return await cached(session, "streams of dead letters", lambda: session.api.stream_names(SUBJECTS))


async def search(session: Session, text: str) -> list[SearchHit]:
    """Return the streams of dead letters whose names contain a text."""
    wanted = text.casefold()
    names = [name for name in await keeper_names(session) if wanted in name.casefold()]
    return [SearchHit("dead letters", name, f"{PATH}/{name}") for name in names[:HITS_MAX]]


async def show_groups(request: web.Request) -> web.Response:
    """Show the letters of a stream by stream, consumer and cause."""
    session = session_of(request)
    name = token(request.match_info["stream"])
    found = await survey(session, name)
    if is_unchanged(request, found.mark):
        return web.Response(status=204)
    query = ListQuery.of(request)
    text = query.text.casefold()
    matching = [
        group
        for group in found.groups
        if any(text in word.casefold() for word in (group.stream, group.consumer, group.cause))
    ]
    return render(
        request,
        "dead_letters_groups.html",
        stream=name,
        survey=found,
        listing=query.page_of_rows(matching, total=len(found.groups)),
        letters_max=LETTERS_MAX,
        mark=found.mark,
        command=command_line(request, "dead", "list", name),
        metadata_command=command_line(request, "stream", "edit", "JOBS", "--metadata", f"jetlake.dead_letters={name}"),
    )


async def show_group(request: web.Request) -> web.Response:
    """Show the letters of one group."""
    session = session_of(request)
    name = token(request.match_info["stream"])
    found = await survey(session, name)
    if is_unchanged(request, found.mark):
        return web.Response(status=204)
    group = find_group(found, request.match_info["group"])
    query = ListQuery.of(request)
    matching = [letter for letter in group.letters if query.text in letter.original_subject]
    return render(
        request,
        "dead_letters_group.html",
        stream=name,
        group=group,
        listing=query.page_of_rows(matching, total=len(group.letters)),
        redrive_max=dead_letter.REDRIVE_MAX,
        is_live=found.is_live,
        mark=found.mark,
        command=command_line(request, "dead", "list", name, "--stream", group.stream, "--consumer", group.consumer),
    )


PAGE = Page(
    title="Dead letters",
    path=PATH,
    shortcut="l",
    needs=Feature.JETSTREAM,
    routes=(
        Route("GET", PATH, show, name="dead"),
        Route("GET", PATH + "/{stream}", show_groups, name="dead.groups"),
        Route("GET", PATH + "/{stream}/group/{group}", show_group, name="dead.group"),
        *dead_letter.ROUTES,
    ),
    search=search,
)
