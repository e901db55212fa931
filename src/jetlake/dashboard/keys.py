"""What the application and each request carry, by typed keys."""

from typing import TYPE_CHECKING

from aiohttp import web

from jetlake.dashboard.helpers import Helpers
from jetlake.dashboard.options import DashboardOptions
from jetlake.dashboard.sessions import Session, Sessions

if TYPE_CHECKING:
    from jinja2 import Environment

    from jetlake.dashboard.pages.page import Page

__all__ = ["ENTRY_KEY", "HELPERS", "OPTIONS", "PAGE", "SESSION", "SESSIONS", "TEMPLATES", "session_of"]

OPTIONS = web.AppKey("options", DashboardOptions)
SESSIONS = web.AppKey("sessions", Sessions)
TEMPLATES: "web.AppKey[Environment]" = web.AppKey("templates")
HELPERS = web.AppKey("helpers", Helpers)
ENTRY_KEY = web.AppKey("entry_key", str)
"""Opens a session as the user of the command line; the terminal shows it."""

SESSION = web.RequestKey("session", Session)
PAGE: "web.RequestKey[Page]" = web.RequestKey("page")


def session_of(request: web.Request) -> Session:
    """Return the session of a request; pages have one, the login page does not."""
    return request[SESSION]
