"""The block `websocket`: the listener for browsers, and for all clients that speak WebSocket.

```text
websocket {
  listen: "0.0.0.0:8443"
  tls { cert_file: "server.pem", key_file: "server-key.pem" }
  same_origin: true
}
```

Without a port there is no listener, whatever else the block says, as in nats-server.
"""

import re

from jetlake.server.addresses import PORT_MAX, RANDOM_PORT
from jetlake.server.configuration.accounts import read_credentials
from jetlake.server.configuration.section import Section
from jetlake.server.configuration.tls import read_tls
from jetlake.server.options.accounts import AccessOptions, Credentials
from jetlake.server.options.websocket import TLS_REQUIRED, WebSocketOptions

HANDSHAKE_HEADERS = frozenset({"host", "content-length", "connection", "upgrade", "nats-no-masking"})
"""What the response to an upgrade says by itself, or must not say; all headers with the next prefix are such, too."""

HANDSHAKE_HEADER_PREFIX = "sec-websocket-"

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")

ORIGIN_EXAMPLE = 'write the scheme, the host and, if it is not the default, the port: "https://example.com:8443"'


def read_websocket(section: Section, access: AccessOptions) -> WebSocketOptions | None:
    """Return the options of the listener; None if it is off."""
    inner = section.section("websocket", "ws")
    if inner is None:
        return None
    host, port = _read_address(inner)
    tls = read_tls(inner, allow_plain=False)
    allows_plain = bool(inner.switch("no_tls"))
    credentials, auth_timeout_s = _read_authorization(inner)
    options = WebSocketOptions(
        host=host,
        port=max(port, 0),
        advertise=inner.text("advertise") or "",
        tls=tls,
        # What is missing is reported below, with its place in the file.
        allows_plain=allows_plain or tls is None,
        same_origin=bool(inner.switch("same_origin")),
        allowed_origins=inner.texts(
            "allowed_origins", "allowed_origin", "allow_origins", "allow_origin", "origins", "origin"
        )
        or (),
        handshake_timeout_s=_not_negative(inner, "handshake_timeout", inner.seconds("handshake_timeout")),
        compress=bool(inner.switch("compress", "compression")),
        credentials=credentials,
        auth_timeout_s=auth_timeout_s,
        no_auth_user=inner.text("no_auth_user") or "",
        ping_interval_s=_not_negative(inner, "ping_interval", inner.duration_s("ping_interval")),
        jwt_cookie=inner.text("jwt_cookie") or "",
        user_cookie=inner.text("user_cookie") or "",
        password_cookie=inner.text("pass_cookie") or "",
        token_cookie=inner.text("token_cookie") or "",
        headers=tuple((inner.map_of_texts("headers") or {}).items()),
    )
    inner.finish()
    if port == 0:
        return None
    if tls is None and not allows_plain:
        inner.error(None, TLS_REQUIRED)
    _check_origins(inner, options.allowed_origins)
    _check_login(inner, options, access)
    _check_jwt_cookie(inner, options.jwt_cookie, access)
    _check_headers(inner, options.headers)
    return options


def _read_address(section: Section) -> tuple[str, int]:
    """Return host and port: RANDOM_PORT = any free one, 0 = none is given."""
    host, port = section.address("listen") or ("", 0)
    port = section.integer("port", lowest=RANDOM_PORT, highest=PORT_MAX) or port
    if not RANDOM_PORT <= port <= PORT_MAX:
        node = section.node("listen")
        section.error(node, f'"listen" has the port {port}: it must be at most {PORT_MAX}, or -1 for a random one')
        port = 0
    return section.host("host", "net") or host, port


def _read_authorization(section: Section) -> tuple[Credentials, float]:
    """Return what WebSocket clients must present, and how many seconds they have for it (0 = as all clients)."""
    inner = section.section("authorization", "authentication")
    if inner is None:
        return Credentials(), 0.0
    credentials = read_credentials(inner)
    timeout_s = _not_negative(inner, "timeout", inner.seconds("timeout"))
    inner.finish()
    return credentials, timeout_s


def _not_negative(section: Section, name: str, seconds: float | None) -> float:
    if seconds is not None and seconds < 0:
        section.error(section.node(name), f'"{name}" is negative: write how long to wait, such as "2s"')
    return max(seconds or 0.0, 0.0)


def _check_origins(section: Section, origins: tuple[str, ...]) -> None:
    node = section.node("allowed_origins", "allowed_origin", "allow_origins", "allow_origin", "origins", "origin")
    for origin in origins:
        reason = _wrong_with_origin(origin)
        if reason:
            section.error(node, f'unable to parse allowed origin "{origin}": {reason}; {ORIGIN_EXAMPLE}')


def _wrong_with_origin(origin: str) -> str:
    """Return why a browser would never send this origin; empty if it might."""
    # Only servers with such a list wait for this import.
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("http", "https"):
        return "allowed origins must be absolute URLs with http or https scheme"
    if not parts.hostname:
        return "host is required"
    if port == 0:
        return "0 is not a port that a page can come from"
    return ""


def _check_login(section: Section, options: WebSocketOptions, access: AccessOptions) -> None:
    """Report credentials that cannot be meant together with the users of the file, and a user that is not there."""
    name = options.no_auth_user
    if access.users:
        for kind, given in (("username", options.credentials.user), ("token", options.credentials.token)):
            if given:
                section.error(
                    section.node("authorization", "authentication"),
                    f"websocket authentication {kind} not compatible with presence of users/nkeys: remove it here, and "
                    'add a user with connection_types: ["WEBSOCKET"] to the others',
                )
    if not name or any(user.name == name for user in access.users):
        return
    reason = (
        "not present as user or nkey in authorization block or account configuration; add this user there"
        if access.users
        else "present, but users/nkeys are not defined; add this user to authorization"
    )
    section.error(section.node("no_auth_user"), f'no_auth_user: "{name}" {reason}')


def _check_jwt_cookie(section: Section, cookie: str, access: AccessOptions) -> None:
    if cookie and access.trust is None:
        section.error(
            section.node("jwt_cookie"),
            "trusted operators or trusted keys configuration is required for JWT authentication via cookie "
            f'"{cookie}": add `operator`, or name user_cookie and pass_cookie, or token_cookie, instead',
        )


def _check_headers(section: Section, headers: tuple[tuple[str, str], ...]) -> None:
    node = section.node("headers")
    for name, value in headers:
        lower = name.lower()
        if lower in HANDSHAKE_HEADERS:
            section.error(node, f'websocket: invalid header "{name}" not allowed; the handshake decides it: remove it')
        elif lower.startswith(HANDSHAKE_HEADER_PREFIX):
            section.error(
                node, f'websocket: invalid header "{name}", "Sec-WebSocket-" prefix not allowed; give it another name'
            )
        elif not HEADER_NAME.fullmatch(name):
            section.error(node, f"websocket: invalid header {name!r}: take letters, digits and hyphens for its name")
        elif not HEADER_VALUE.fullmatch(value):
            section.error(node, f'websocket: invalid value of header "{name}": write one line of printable ASCII')
