"""The checks that every request passes before a page sees it, and the headers that every answer gets.

- `Host` must be a name of this dashboard: a page of another site that has its own name point here is refused.
- A request that changes something, and a websocket, must come from a page of this dashboard (`Origin`), and the
  former must carry the token of its session. Logging in has no session yet; there `Origin` alone decides.
- In read-only mode nothing that changes something passes, whatever a page shows.

Invariant: a handler for POST never runs without these checks; there is no way to leave them out for one page.
"""

import hmac
import ipaddress
from urllib.parse import urlsplit

from aiohttp import web

from jetlake.dashboard.keys import OPTIONS, SESSION
from jetlake.dashboard.options import DashboardOptions

__all__ = ["DOCUMENT_POLICY", "LIVE_PATH", "POLICY_HEADER", "check_request", "protect_answer"]

SAFE_METHODS = frozenset({"GET", "HEAD"})
LOGIN_PATH = "/login"
LOGOUT_PATH = "/logout"
LIVE_PATH = "/live"
STATIC_PREFIX = "/static/"

FORM_TOKEN_FIELD = "form_token"  # noqa: S105 - the name of a field
FORM_TOKEN_HEADER = "X-Form-Token"  # noqa: S105 - the name of a header

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing from other hosts, nothing inline: what a message smuggles into a page is not run."""

POLICY_HEADER = "Content-Security-Policy"

DOCUMENT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
"""For a document that is not a page of the dashboard, such as a report: no script runs in it, it loads nothing, and it
has an origin of its own. The only other policy that a page may choose."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not `no-referrer`: browsers would then send `Origin: null` with forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


async def check_request(request: web.Request) -> None:
    """Refuse a request that is not from a page of this dashboard. Raises `web.HTTPException`."""
    options = request.app[OPTIONS]
    if not is_own_host(request.host, options):
        raise web.HTTPMisdirectedRequest(
            text=f"This dashboard is not called {request.host!r}. Open it by its address, or start it with "
            "`--allowed-host NAME`."
        )
    is_change = request.method not in SAFE_METHODS
    is_websocket = request.headers.get("Upgrade", "").casefold() == "websocket"
    if (is_change or is_websocket or request.path == LIVE_PATH) and not _is_own_origin(request):
        raise web.HTTPForbidden(
            text="The request does not come from a page of this dashboard. Open the page and repeat it."
        )
    if not is_change or request.path == LOGIN_PATH:
        return
    session = request.get(SESSION)
    if session is not None and not hmac.compare_digest(await _form_token(request), session.form_token.encode()):
        raise web.HTTPForbidden(text="The page is from an earlier session. Load it again and repeat the action.")
    if options.read_only and request.path != LOGOUT_PATH:
        raise web.HTTPForbidden(text="This dashboard is read-only. Start it without `--read-only` to change something.")


def protect_answer(request: web.Request, response: web.StreamResponse) -> None:
    """Add the headers that keep browsers from running or keeping what they should not."""
    response.headers.update(HEADERS)
    if response.headers.get(POLICY_HEADER) != DOCUMENT_POLICY:
        response.headers[POLICY_HEADER] = POLICY
    is_static = request.path.startswith(STATIC_PREFIX)
    response.headers["Cache-Control"] = "no-cache" if is_static else "no-store"


def is_own_host(host: str, options: DashboardOptions) -> bool:
    """Tell whether a `Host` is a name of this dashboard.

    An address of the network is one: only names can be made to point here by others.
    """
    name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    if name == "localhost" or name in (options.host, *options.allowed_hosts):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or not options.is_loopback


def _is_own_origin(request: web.Request) -> bool:
    origin = urlsplit(request.headers.get("Origin", ""))
    # A proxy may speak TLS to browsers and not to us, so the scheme is not compared.
    return origin.scheme in ("http", "https") and origin.netloc == request.host


async def _form_token(request: web.Request) -> bytes:
    sent = request.headers.get(FORM_TOKEN_HEADER)
    if sent is None and request.content_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
        field = (await request.post()).get(FORM_TOKEN_FIELD)
        sent = field if isinstance(field, str) else None
    return (sent or "").encode()
