"""What all pages of one stream share: the stream itself, its tabs, and addresses.

Invariant: a page of a stream that is not there says so before it does anything else.
"""

import itertools
from typing import Any, NamedTuple

from aiohttp import web

from jetlake.client.api import token
from jetlake.dashboard.keys import session_of
from jetlake.dashboard.rendering import render
from jetlake.errors import ApiError, ConfigurationError

__all__ = ["StreamFrame", "address_of", "read_number", "render_in_stream", "stream_of"]

NUMBER_MAX = 2**63 - 1
"""Sequences that servers can count to."""


class Tab(NamedTuple):
    """One of a stream's pages."""

    title: str
    # The name of its route; the digit after `g` that leads to it.
    route: str
    shortcut: str
    # Hidden in read-only mode.
    is_action: bool = False


TABS = (
    Tab("Overview", "stream", "1"),
    Tab("Subjects", "stream.subjects", "2"),
    Tab("Messages", "stream.messages", "3"),
    Tab("Live tail", "stream.tail", "4"),
    Tab("Publish", "stream.publish", "5", is_action=True),
    Tab("Consumers", "consumers", "6"),
)


class StreamFrame(NamedTuple):
    """The stream that a page is about."""

    name: str
    config: dict[str, Any]
    state: dict[str, Any]
    info: dict[str, Any]

    @property
    def first_sequence(self) -> int:
        return max(1, int(self.state["first_seq"]))

    @property
    def last_sequence(self) -> int:
        return int(self.state["last_seq"])

    @property
    def sample_subject(self) -> str:
        """A subject of it for examples; empty if it listens on none."""
        subjects = self.config.get("subjects") or ()
        return str(subjects[0]) if subjects else ""

    @property
    def subject_start(self) -> str:
        """What its first subject begins with, up to a wildcard that the user fills in."""
        tokens = self.sample_subject.split(".")
        fixed = list(itertools.takewhile(lambda each: each not in ("*", ">"), tokens))
        return ".".join(fixed) + ("." if fixed and len(fixed) < len(tokens) else "")


async def stream_of(request: web.Request) -> StreamFrame:
    """Read the stream that the address names. Raises `ApiError` if there is none."""
    name = request.match_info["stream"]
    found = await session_of(request).api.find(f"STREAM.INFO.{token(name)}")
    if found is None:
        raise ApiError(404, 0, f"There is no stream {name}. It was deleted, or the name is misspelt.")
    return StreamFrame(name, found["config"], found["state"], found)


def render_in_stream(
    request: web.Request, template: str, stream: StreamFrame, *, tab: str, **values: Any
) -> web.Response:
    """Return a page of a stream; `tab` is the route of the tab that it belongs to."""
    return render(request, template, stream=stream, tabs=TABS, tab=tab, **values)


def address_of(request: web.Request, route: str, query: dict[str, str] | None = None, **parts: str) -> str:
    """Return the address of a route; fields of the query that are empty are left out."""
    url = request.app.router[route].url_for(**parts)
    return str(url.with_query({key: value for key, value in (query or {}).items() if value}))


def read_number(text: str, what: str) -> int:
    """Return the number in a field; 0 if it is empty. Raises `ConfigurationError`."""
    bare = text.strip().replace(",", "").replace("_", "")
    if not bare:
        return 0
    if not (bare.isascii() and bare.isdecimal()) or int(bare) > NUMBER_MAX:
        raise ConfigurationError(f"{what} is {text[:40]!r}: write a whole number.")
    return int(bare)
