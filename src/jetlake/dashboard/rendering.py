"""Templates: how values become text on a page, and what every page is given.

Invariant: everything is escaped. No template turns it off (a test looks), and the policy of `guard` forbids scripts and
styles inside of a page, so nothing from a message, subject or name is ever HTML.
"""

import shlex
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from jetlake.client.connection import DEFAULT_URL
from jetlake.dashboard.guard import FORM_TOKEN_FIELD, FORM_TOKEN_HEADER
from jetlake.dashboard.keys import OPTIONS, PAGE, SESSION, TEMPLATES
from jetlake.dashboard.message_view import preview, visible
from jetlake.dashboard.series import shown, unit_of
from jetlake.dashboard.sessions import Session
from jetlake.units import SECOND, shown_duration, shown_rate, shown_size

__all__ = [
    "FOLDER",
    "attachment",
    "attachment_headers",
    "command_line",
    "is_fragment",
    "make_templates",
    "render",
    "render_notice",
]

FOLDER = Path(__file__).parent

NEVER = "0001-"
"""How the time of nothing begins: the API says the year 1."""


def make_templates() -> Environment:
    """Return the templates of the package, with the filters that pages use."""
    templates = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., str]] = {
        "age": _age,
        "amount": lambda count: f"{count:,}",
        "duration": shown_duration,
        "preview": preview,
        "rate": shown_rate,
        "size": shown_size,
        "visible": visible,
    }
    templates.filters.update(filters)
    return templates


def render(request: web.Request, template: str, *, status: int = 200, **values: Any) -> web.Response:
    """Return a page or a part of one. Templates know `page`, `pages`, `profile`, `live` and `url_of` as well."""
    # Imported late: pages use this module.
    from jetlake.dashboard.pages import PAGES

    session = request.get(SESSION)
    profile = None if session is None else session.profile

    def url_of(name: str, **parts: str) -> str:
        """Return the address of a route, or nothing if no page has it, so that a link can be left out."""
        resource = request.app.router.named_resources().get(name)
        return "" if resource is None else str(resource.url_for(**parts))

    def live(key: str) -> str:
        return shown(None if session is None else session.sampler.history.last(key), unit_of(key))

    context = {
        "page": request.get(PAGE),
        "pages": [each for each in PAGES if profile is not None and profile.offers(each.needs)],
        "path": request.path,
        "profile": profile,
        "server": request.app[OPTIONS].server.shown,
        "read_only": request.app[OPTIONS].read_only,
        "form_token": "" if session is None else session.form_token,
        "form_token_field": FORM_TOKEN_FIELD,
        "form_token_header": FORM_TOKEN_HEADER,
        "messages": [] if session is None or is_fragment(request) else _taken(session),
        "url_of": url_of,
        "live": live,
        "unit_of": lambda key: unit_of(key).value,
    }
    text = request.app[TEMPLATES].get_template(template).render(context | values)
    return web.Response(text=text, status=status, content_type="text/html")


def render_notice(request: web.Request, message: str, *, status: int) -> web.Response:
    """Return an error as a page, or as a notice on the page that has asked for a part of itself."""
    if not is_fragment(request):
        return render(request, "problem.html", status=status, message=message)
    response = render(request, "notice.html", status=status, message=message)
    response.headers["HX-Retarget"] = "#notices"
    response.headers["HX-Reswap"] = "innerHTML"
    response.headers["HX-Reselect"] = ".notice"
    return response


def is_fragment(request: web.Request) -> bool:
    """Tell whether a page has asked for a part of itself."""
    return request.headers.get("HX-Request") == "true"


def attachment_headers(name: str) -> dict[str, str]:
    """Return the headers with which a browser saves an answer as a file, and never shows or runs it."""
    return {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": f"attachment; filename=\"download\"; filename*=UTF-8''{quote(name, safe='')}",
    }


def attachment(payload: bytes, name: str) -> web.Response:
    """Return bytes as a file to save."""
    return web.Response(body=payload, headers=attachment_headers(name))


def command_line(request: web.Request, *words: str) -> str:
    """Return the `jetlake` command that does the same as a page, to paste into a shell."""
    server = request.app[OPTIONS].server
    flags = [] if server.url == DEFAULT_URL else ["--server", server.url]
    return shlex.join(["jetlake", *words, *flags])


def _taken(session: Session) -> list[str]:
    """Return the notice for the session, once."""
    messages = list(session.messages)
    session.messages.clear()
    return messages


def _age(text: str | None) -> str:
    """Return how long ago a time of the API is."""
    if not text or text.startswith(NEVER):
        return "never"
    age_ns = time.time_ns() - round(datetime.fromisoformat(text).timestamp() * SECOND)
    return f"{shown_duration(max(SECOND, age_ns // SECOND * SECOND))} ago"
