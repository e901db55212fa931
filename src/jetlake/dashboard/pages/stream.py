"""One stream: its live figures, its configuration, why messages move or do not, and what can be done with it."""

from typing import Any

from aiohttp import web

from jetlake.client.streams import reasons_of
from jetlake.dashboard.keys import session_of
from jetlake.dashboard.pages import (
    stream_browse,
    stream_edit,
    stream_publish,
    stream_purge,
    stream_subjects,
    stream_tail,
)
from jetlake.dashboard.pages.page import Route
from jetlake.dashboard.pages.stream_frame import StreamFrame, render_in_stream, stream_of
from jetlake.dashboard.profile import Feature
from jetlake.dashboard.rendering import command_line
from jetlake.dashboard.sessions import Session
from jetlake.errors import ClientError
from jetlake.presentation.cells import shown
from jetlake.presentation.stream_facts import config_facts, state_facts

__all__ = ["ROUTES", "facts_of", "reasons_for"]

PATH = "/streams/{stream}"

Facts = list[tuple[str, list[tuple[str, str]]]]
"""Sections with a title and pairs of label and value."""


async def show(request: web.Request) -> web.Response:
    """Show the page."""
    session = session_of(request)
    stream = await stream_of(request)
    return render_in_stream(
        request,
        "stream.html",
        stream,
        tab="stream",
        facts=facts_of(config_facts(stream.config) | state_facts(stream.info)),
        reasons=await reasons_for(session, stream),
        command=command_line(request, "stream", "info", stream.name),
    )


async def reasons_for(session: Session, stream: StreamFrame, consumer: str = "") -> list[dict[str, Any]]:
    """Return why messages move or do not; empty if the server cannot tell or the user may not ask."""
    if not session.profile.offers(Feature.JETLAKE):
        return []
    try:
        return await reasons_of(session.api, stream.name, consumer)
    except ClientError:
        # A page without the sentence is better than none.
        return []


def facts_of(sections: dict[str, dict[str, Any]]) -> Facts:
    """Return what commands print about a thing, without what is not set."""
    made = [
        (title, [(label, shown(value)) for label, value in section.items() if value not in (None, "")])
        for title, section in sections.items()
    ]
    return [(title, pairs) for title, pairs in made if pairs]


ROUTES = (
    Route("GET", PATH, show, name="stream"),
    *stream_subjects.ROUTES,
    *stream_browse.ROUTES,
    *stream_tail.ROUTES,
    *stream_publish.ROUTES,
    *stream_edit.ROUTES,
    *stream_purge.ROUTES,
)
