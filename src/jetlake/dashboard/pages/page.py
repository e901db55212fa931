"""`Page`: one page of the dashboard and everything that belongs to it.

Invariant: what a page adds to the navigation, the keyboard and the search is in its `Page` and nowhere else.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from aiohttp import web

from jetlake.dashboard.profile import Feature
from jetlake.dashboard.sessions import Session

__all__ = ["Handler", "Page", "Route", "SearchHit"]

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Route(NamedTuple):
    """One address. GET shows, POST changes; `guard` has checked both before the handler runs."""

    method: str
    path: str
    handler: Handler
    # For `url_of` of templates; one of a page's routes is enough.
    name: str | None = None


class SearchHit(NamedTuple):
    """One line of the search."""

    kind: str
    title: str
    address: str


class Page(NamedTuple):
    """One entry of the navigation."""

    title: str
    path: str
    # The letter after `g` that leads here.
    shortcut: str
    routes: tuple[Route, ...]
    # The page is hidden on a server that does not offer it.
    needs: Feature | None = None
    # What of this page a text finds, at most a few.
    search: Callable[[Session, str], Awaitable[list[SearchHit]]] | None = None
