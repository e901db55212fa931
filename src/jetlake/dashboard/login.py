"""How a user gets a session: by the login page, by the key that the terminal shows, or, on an open server, freely.

A server that demands no login gives a session to every browser that reaches the dashboard, so that holds on loopback
only.

Invariant: credentials of the command line are used for nobody but the holder of the key.
"""

import hmac
from typing import Any
from urllib.parse import urlsplit

import msgspec
from aiohttp import web
from aiohttp.web_request import FileField

from jetlake.client.access import Access
from jetlake.client.user_keys import SECRET_BYTES_MAX
from jetlake.dashboard.keys import ENTRY_KEY, OPTIONS, SESSION, SESSIONS
from jetlake.dashboard.rendering import render
from jetlake.dashboard.sessions import Session
from jetlake.errors import ClientError, ConfigurationError, JetlakeError

__all__ = ["COOKIE", "add_routes", "enter_without_login"]

COOKIE = "jetlake_dashboard"

OPEN_SERVER = (
    "This server accepts every user, so the dashboard serves it on loopback only. Configure users on the server, or "
    "start the dashboard with `--host 127.0.0.1`."
)


def add_routes(app: web.Application) -> None:
    """Add the login, the logout and the entry by key."""
    app.router.add_get("/login", show_login, name="login")
    app.router.add_post("/login", log_in)
    app.router.add_post("/logout", log_out, name="logout")
    app.router.add_get("/enter", enter, name="enter")


async def enter_without_login(request: web.Request) -> Session | None:
    """Open a session for a browser that has none, if server and dashboard let everybody in. Raises `ClientError`.

    None means that a login is needed.
    """
    options = request.app[OPTIONS]
    if not options.is_loopback:
        return None
    try:
        session = await request.app[SESSIONS].open(options.server)
    except ClientError as error:
        if "rejected the login" in str(error):
            return None
        raise
    if session.api.server_info.get("auth_required"):
        # A user for clients without credentials may be configured; a person decides which one that is.
        await request.app[SESSIONS].close(session)
        return None
    return session


async def show_login(request: web.Request) -> web.StreamResponse:
    """Show the login page."""
    if request.get(SESSION) is not None:
        return web.HTTPSeeOther(_next(request.query.get("next", "")))
    return _login_page(request, after=request.query.get("next", ""))


async def log_in(request: web.Request) -> web.StreamResponse:
    """Log in with what the form says."""
    form = await request.post()
    after = str(form.get("next", ""))
    try:
        changes, credentials = _credentials_of(form)
        access: Access = msgspec.structs.replace(request.app[OPTIONS].server, **changes)
        session = await request.app[SESSIONS].open(access, credentials=credentials)
        if not request.app[OPTIONS].is_loopback and not session.api.server_info.get("auth_required"):
            await request.app[SESSIONS].close(session)
            raise ConfigurationError(OPEN_SERVER)
    except JetlakeError as error:
        return _login_page(request, after=after, problem=_sentence(error), status=401, user=str(form.get("user", "")))
    response = web.HTTPSeeOther(_next(after))
    set_cookie(response, session)
    return response


async def log_out(request: web.Request) -> web.StreamResponse:
    """End the session."""
    session = request.get(SESSION)
    if session is not None:
        await request.app[SESSIONS].close(session)
    response = render(request, "goodbye.html")
    response.del_cookie(COOKIE, path="/")
    return response


async def enter(request: web.Request) -> web.StreamResponse:
    """Open a session as the user of the command line."""
    if not hmac.compare_digest(request.query.get("key", "").encode(), request.app[ENTRY_KEY].encode()):
        raise web.HTTPForbidden(
            text="The key is not the one of this dashboard. Copy the address that the terminal shows."
        )
    if request.get(SESSION) is not None:
        return web.HTTPSeeOther("/")
    session = await request.app[SESSIONS].open(request.app[OPTIONS].given)
    # Not a redirect to the page itself: browsers do not send a strict cookie after a redirect from elsewhere.
    response = render(request, "entered.html")
    set_cookie(response, session)
    return response


def set_cookie(response: web.StreamResponse, session: Session) -> None:
    """Have the browser show its session from now on."""
    response.set_cookie(COOKIE, session.key, httponly=True, samesite="Strict", path="/")


def _login_page(
    request: web.Request, *, after: str, problem: str = "", status: int = 200, user: str = ""
) -> web.Response:
    return render(request, "login.html", status=status, problem=problem, after=after, user=user)


def _credentials_of(form: Any) -> tuple[dict[str, Any], bytes]:
    """Return what a form sets of `Access`, and the content of a credentials file. Raises `ConfigurationError`."""
    match form.get("method"):
        case "password" if form.get("user"):
            return {"user": str(form["user"]), "password": str(form.get("password", ""))}, b""
        case "password":
            raise ConfigurationError("The user name is empty. Enter the name of a user of the server.")
        case "token" if form.get("token"):
            return {"token": str(form["token"])}, b""
        case "token":
            raise ConfigurationError("The token is empty. Enter the token of the server.")
        case "credentials":
            file = form.get("credentials")
            content = file.file.read(SECRET_BYTES_MAX + 1) if isinstance(file, FileField) else b""
            if not content:
                raise ConfigurationError("No credentials file is chosen. Choose the file of your user.")
            if len(content) > SECRET_BYTES_MAX:
                raise ConfigurationError("The file is too large for credentials. Choose the .creds file of your user.")
            return {}, content
        case _:
            raise ConfigurationError("The form is incomplete. Load the page again.")


def _sentence(error: JetlakeError) -> str:
    """Return why a login failed, without the path of the copy of a credentials file and without hints for a shell."""
    text = str(error)
    if "rejected the login" in text:
        return "The server rejected the login. Check what you have entered."
    if "holds no" in text or ".creds" in text:
        return "The file holds no credentials of a user. Choose a .creds file, or one with the seed of your key."
    return text[:1].upper() + text[1:]


def _next(address: str) -> str:
    """Return where to go after a login: a page of this dashboard, whatever the address says."""
    parts = urlsplit(address)
    is_own = address.startswith("/") and not address.startswith(("//", "/\\")) and not parts.netloc
    return address if is_own and address.isprintable() and "\\" not in address else "/"
