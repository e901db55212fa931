"""`make_app`: the dashboard as an aiohttp application. Requests pass through `_gate`, in this order:

```text
session of the cookie → guard.check_request → login if there is no session → the page → headers
```

Invariant: every answer passes here, errors included; an error is a sentence and never a traceback.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator
from urllib.parse import quote

from aiohttp import web

from jetlake.dashboard import login
from jetlake.dashboard.guard import LIVE_PATH, STATIC_PREFIX, check_request, protect_answer
from jetlake.dashboard.helpers import Helpers
from jetlake.dashboard.keys import ENTRY_KEY, HELPERS, OPTIONS, PAGE, SESSION, SESSIONS, TEMPLATES, session_of
from jetlake.dashboard.live import serve_live
from jetlake.dashboard.metrics import MetricsReader
from jetlake.dashboard.options import DashboardOptions
from jetlake.dashboard.pages import PAGES
from jetlake.dashboard.pages.page import Handler, Page, SearchHit
from jetlake.dashboard.rendering import FOLDER, is_fragment, make_templates, render, render_notice
from jetlake.dashboard.session_api import PermissionRefusedError
from jetlake.dashboard.sessions import Sessions, TooManySessionsError
from jetlake.errors import ApiError, ClientError, JetlakeError
from jetlake.shared.cancellation import end

__all__ = ["make_app"]

REQUEST_BYTES_MAX = 1024 * 1024
"""A form, or a credentials file; uploads of objects set their own."""

ENTRY_KEY_BYTES = 24
SEARCH_LETTERS_MAX = 200

WITHOUT_SESSION = frozenset({"/login", "/logout", "/enter"})

LOG = logging.getLogger("jetlake.dashboard")


def make_app(options: DashboardOptions) -> web.Application:
    """Return the application; `web.AppRunner` runs it."""
    app = web.Application(middlewares=[_gate], client_max_size=REQUEST_BYTES_MAX)
    app[OPTIONS] = options
    app[TEMPLATES] = make_templates()
    app[SESSIONS] = Sessions(MetricsReader(options.monitor_url) if options.monitor_url else None)
    app[HELPERS] = Helpers()
    app[ENTRY_KEY] = secrets.token_urlsafe(ENTRY_KEY_BYTES)
    app.cleanup_ctx.append(_sweeping)
    # Before the server waits for open requests: websockets end with their sessions.
    app.on_shutdown.append(_close_sessions)
    login.add_routes(app)
    app.router.add_get(LIVE_PATH, serve_live)
    app.router.add_get("/search", _search, name="search")
    app.router.add_static(STATIC_PREFIX, FOLDER / "static")
    for page in PAGES:
        for route in page.routes:
            app.router.add_route(route.method, route.path, _handler(page, route.handler), name=route.name)
    return app


async def _sweeping(app: web.Application) -> AsyncIterator[None]:
    sweeping = asyncio.create_task(app[SESSIONS].sweep())
    yield
    await end(sweeping)


async def _close_sessions(app: web.Application) -> None:
    await app[SESSIONS].close_all()


@web.middleware
async def _gate(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        response = await _admitted(request, handler)
    except web.HTTPException as error:
        response = (
            error if error.status < 400 else render_notice(request, error.text or error.reason, status=error.status)
        )
    except JetlakeError as error:
        response = render_notice(request, _capital(str(error)), status=_status_of(error))
    except Exception as error:
        if isinstance(error, ConnectionResetError) and (request.transport is None or request.transport.is_closing()):
            # The browser has gone: nobody reads an answer.
            return web.Response(status=400)
        # Our own bug: the log has it, the page says so, the other pages go on.
        LOG.exception("%s %s failed", request.method, request.path)
        response = render_notice(request, "The dashboard failed to show this. Its log says why.", status=500)
    if not response.prepared:
        protect_answer(request, response)
    return response


async def _admitted(request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.path.startswith(STATIC_PREFIX):
        await check_request(request)
        return await handler(request)
    session = request.app[SESSIONS].find(request.cookies.get(login.COOKIE, ""))
    if session is not None:
        request[SESSION] = session
    await check_request(request)
    if session is not None or request.path in WITHOUT_SESSION or request.path == LIVE_PATH:
        return await handler(request)
    # Only a page that a person opens begins a session; what pages ask for later belongs to one.
    entered = None if is_fragment(request) or request.method != "GET" else await login.enter_without_login(request)
    if entered is None:
        return _to_login(request)
    request[SESSION] = entered
    response = await _rendered_with_cookie(request, handler)
    login.set_cookie(response, entered)
    return response


async def _rendered_with_cookie(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Return the page of a new session; an error of the page does not cost the session."""
    try:
        return await handler(request)
    except JetlakeError as error:
        return render_notice(request, _capital(str(error)), status=_status_of(error))
    except web.HTTPException as error:
        return render_notice(request, error.text or error.reason, status=error.status)


def _to_login(request: web.Request) -> web.StreamResponse:
    address = "/login" if request.path == "/" else f"/login?next={quote(request.path_qs)}"
    if is_fragment(request):
        return web.Response(status=401, headers={"HX-Redirect": "/login"})
    return web.Response(status=303, headers={"Location": address})


def _handler(page: Page, handler: Handler) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        request[PAGE] = page
        profile = session_of(request).profile
        if not profile.offers(page.needs):
            raise web.HTTPNotFound(text=f"{profile.product} does not offer this for your user: {page.title}.")
        return await handler(request)

    return handle


async def _search(request: web.Request) -> web.StreamResponse:
    """Return what pages find for a text, as the list below the search field."""
    text = request.query.get("text", "").strip()[:SEARCH_LETTERS_MAX]
    session = session_of(request)
    hits: list[SearchHit] = []
    if text:
        offered = [page for page in PAGES if session.profile.offers(page.needs)]
        hits += [
            SearchHit("page", page.title, page.path) for page in offered if text.casefold() in page.title.casefold()
        ]
        for page in offered:
            if page.search is not None:
                # What one page may not look for does not keep the others from it.
                with contextlib.suppress(ClientError):
                    hits += await page.search(session, text)
    return render(request, "search.html", hits=hits, text=text)


def _status_of(error: JetlakeError) -> int:
    match error:
        case PermissionRefusedError():
            return 403
        case TooManySessionsError():
            return 503
        case ApiError(code=code) if 400 <= code < 600:
            return code
        case ClientError():
            return 502
        case _:
            return 400


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
