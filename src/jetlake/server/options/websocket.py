"""The listener for clients that speak WebSocket, browsers above all.

Invariant: it has certificates, or explicitly allows plain connections (`allows_plain`).
"""

import msgspec

from jetlake.config import EngineWebSocket
from jetlake.errors import ConfigurationError
from jetlake.server.addresses import DEFAULT_HOST
from jetlake.server.options.accounts import AccessOptions, Credentials
from jetlake.server.options.tls import TlsOptions

TLS_REQUIRED = (
    "websocket requires TLS configuration: add a tls block to it, or no_tls: true if a proxy in front of the server "
    "ends TLS"
)


class WebSocketOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where WebSocket clients connect, from which pages, and how they log in if not as everybody else."""

    # Empty = all addresses.
    host: str = ""
    port: int
    # "host:port" that a cluster tells clients; a server that runs alone only shows it.
    advertise: str = ""
    tls: TlsOptions | None = None
    allows_plain: bool = False
    same_origin: bool = False
    allowed_origins: tuple[str, ...] = ()
    # 0 = the default, for this field, `auth_timeout_s` and `ping_interval_s`.
    handshake_timeout_s: float = 0.0
    compress: bool = False
    credentials: Credentials = Credentials()
    auth_timeout_s: float = 0.0
    no_auth_user: str = ""
    ping_interval_s: float = 0.0
    # Empty = no cookie stands in for what CONNECT does not say.
    jwt_cookie: str = ""
    user_cookie: str = ""
    password_cookie: str = ""
    token_cookie: str = ""
    headers: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.tls is None and not self.allows_plain:
            raise ConfigurationError(TLS_REQUIRED)

    @property
    def scheme(self) -> str:
        return "ws" if self.tls is None else "wss"

    @property
    def listen_host(self) -> str:
        return self.host or DEFAULT_HOST

    @property
    def overrides_access(self) -> bool:
        """Tell whether clients log in here by credentials that hold nowhere else."""
        return self.credentials.required or bool(self.no_auth_user)

    def access(self, access: AccessOptions) -> AccessOptions:
        """Return what decides about WebSocket clients, from what decides about all others."""
        map_certificates = self.tls is not None and self.tls.map_users
        if not self.overrides_access:
            return msgspec.structs.replace(access, map_certificates=map_certificates)
        return msgspec.structs.replace(
            access,
            map_certificates=map_certificates,
            credentials=self.credentials,
            no_auth_user=self.no_auth_user,
            only_system_users=False,
        )

    def for_engine(self) -> EngineWebSocket:
        """Return the part that the engine needs. Reads certificates; raises `ConfigurationError`."""
        return EngineWebSocket(
            host=self.listen_host,
            port=self.port,
            tls=None if self.tls is None else self.tls.for_engine(),
            same_origin=self.same_origin,
            allowed_origins=self.allowed_origins,
            handshake_timeout_ms=_milliseconds(self.handshake_timeout_s),
            compress=self.compress,
            auth_required=self.overrides_access,
            auth_timeout_ms=_milliseconds(self.auth_timeout_s),
            ping_interval_ms=_milliseconds(self.ping_interval_s),
            jwt_cookie=self.jwt_cookie,
            user_cookie=self.user_cookie,
            password_cookie=self.password_cookie,
            token_cookie=self.token_cookie,
            headers=self.headers,
        )


def _milliseconds(seconds: float) -> int:
    """Return a time that was given as at least one millisecond: 0 would mean that none was."""
    return max(1, int(seconds * 1000)) if seconds > 0 else 0
