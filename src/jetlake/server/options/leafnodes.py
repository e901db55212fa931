"""Leaf nodes: the listener of a hub, the hubs that this server is a leaf node of, and how both compress.

Files with credentials and certificates are named here and read when the engine gets them: at the start, and
again at every reload.

Invariant: nothing here shows a password, a token or a seed: not `repr`, and not the name by which a remote is reported.
"""

import msgspec

from jetlake.config import EngineLeaf, EngineLeafListener, EngineLeafRemote, EngineLeafUrl
from jetlake.server.addresses import DEFAULT_HOST
from jetlake.server.options.accounts import AccessOptions, Credentials
from jetlake.server.options.remote_files import RemoteTls, read_credentials, read_system_authorities
from jetlake.server.options.tls import DEFAULT_TIMEOUT_S, TlsOptions
from jetlake.server.options.users import GLOBAL_ACCOUNT, User
from jetlake.shared.listener_urls import join_address

DEFAULT_LEAF_PORT = 7422
"""Of a hub whose URL has none, whatever its scheme: as nats-server."""

DEFAULT_AUTH_TIMEOUT_S = 2.0

AFTER_HANDSHAKE_S = 1.0
"""What a leaf node has to say who it is on top of the time for its handshake."""

RECONNECT_S = 1.0
DIAL_TIMEOUT_S = 1.0
FIRST_INFO_TIMEOUT_S = 1.0
"""nats-server's: a hub is on another machine, and one that is there answers much sooner."""

AUTO_RTT_MS = (10, 50, 100)
"""Round trips up to which `s2_auto` does not compress, compresses fast, and better; beyond the last, best."""

S2_AUTO, OFF = "s2_auto", "off"

REDACTED_PASSWORD = "xxxxx"  # noqa: S105 - what Go shows instead of a password


class LinkCompression(msgspec.Struct, frozen=True, kw_only=True):
    """How a link compresses. Thresholds are those of `s2_auto`: one for each level but the last; 0 = level not used."""

    mode: str = S2_AUTO
    rtt_ms: tuple[int, ...] = AUTO_RTT_MS

    def __str__(self) -> str:
        """Return it as nats-server says it when it is reloaded."""
        return f"{{{self.mode} [{' '.join(f'{threshold}ms' for threshold in self.rtt_ms)}]}}"


class LeafAuthorization(msgspec.Struct, frozen=True, kw_only=True):
    """Who may come in as a leaf node, and to which account. No users = the users of the server."""

    users: tuple[User, ...] = ()
    # Where leaf nodes come in if nobody needs to log in.
    default_account: str = GLOBAL_ACCOUNT

    @property
    def is_given(self) -> bool:
        return bool(self.users) or self.default_account != GLOBAL_ACCOUNT


class LeafListenerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where leaf nodes connect, and how they log in if not as clients do."""

    # Empty = all addresses.
    host: str = ""
    port: int
    # "host:port" advertised to leaf nodes; empty = the listener's.
    advertise: str = ""
    no_advertise: bool = False
    tls: TlsOptions | None = None
    authorization: LeafAuthorization = LeafAuthorization()
    # 0 = the default.
    auth_timeout_s: float = 0.0
    compression: LinkCompression = LinkCompression()
    # Leaf nodes do not see each other's subscriptions.
    isolate: bool = False
    # Empty = all come in.
    min_version: str = ""

    @property
    def listen_host(self) -> str:
        return self.host or DEFAULT_HOST

    @property
    def tls_timeout_s(self) -> float:
        return DEFAULT_TIMEOUT_S if self.tls is None else self.tls.timeout_s

    @property
    def login_timeout_s(self) -> float:
        """How long a leaf node has to say who it is."""
        default_s = DEFAULT_AUTH_TIMEOUT_S if self.tls is None else self.tls.timeout_s + AFTER_HANDSHAKE_S
        return self.auth_timeout_s or default_s

    @property
    def overrides_access(self) -> bool:
        """Tell whether leaf nodes log in by users that hold nowhere else."""
        return bool(self.authorization.users)

    def access(self, access: AccessOptions) -> AccessOptions:
        """Return what decides about leaf nodes, from what decides about clients."""
        map_certificates = self.tls is not None and self.tls.map_users
        if not self.overrides_access:
            return msgspec.structs.replace(
                access, map_certificates=map_certificates, default_account=self.authorization.default_account
            )
        return msgspec.structs.replace(
            access,
            map_certificates=map_certificates and not any(user.nkey for user in self.authorization.users),
            users=self.authorization.users,
            credentials=Credentials(),
            no_auth_user="",
            only_system_users=False,
            callout=None,
        )

    def for_engine(self, access: AccessOptions) -> EngineLeafListener:
        """Return the part that the engine needs. Reads certificates; raises `ConfigurationError`."""
        return EngineLeafListener(
            host=self.listen_host,
            port=self.port,
            tls=None if self.tls is None else self.tls.for_engine(),
            auth_required=self.authorization.is_given or access.required,
            auth_timeout_ms=_milliseconds(self.login_timeout_s),
            advertise=self.advertise,
            no_advertise=self.no_advertise,
            compression=self.compression.mode,
            compression_rtt_ms=self.compression.rtt_ms,
            isolate=self.isolate,
            min_version=self.min_version,
        )


class LeafUrl(msgspec.Struct, frozen=True, kw_only=True):
    """One address of a hub. A user without a password is a token as well, as in nats-server."""

    scheme: str
    host: str
    port: int
    path: str = ""
    user: str = ""
    # None = the URL has none.
    password: str | None = None

    def __repr__(self) -> str:
        return f"LeafUrl({self})"

    def __str__(self) -> str:
        """Return the URL without what must not be shown."""
        # Only servers with remotes wait for this import.
        from urllib.parse import quote

        password = "" if self.password is None else f":{REDACTED_PASSWORD}"
        # A token is as secret as a password.
        user = REDACTED_PASSWORD if self.user and self.password is None else quote(self.user, safe="")
        login = f"{user}{password}@" if user or password else ""
        return f"{self.scheme}://{login}{self.address}{self.path}"

    @property
    def address(self) -> str:
        return join_address(self.host, self.port)

    @property
    def is_websocket(self) -> bool:
        return self.scheme in ("ws", "wss")

    @property
    def is_secure(self) -> bool:
        return self.scheme in ("tls", "wss")

    def for_engine(self) -> EngineLeafUrl:
        return EngineLeafUrl(
            host=self.host,
            port=self.port,
            websocket=self.is_websocket,
            tls=self.is_secure,
            path=self.path,
            user=self.user,
            password=self.password or "",
            token=self.user if self.password is None else "",
        )


class LeafRemote(msgspec.Struct, frozen=True, kw_only=True):
    """A hub that this server connects to as a leaf node."""

    urls: tuple[LeafUrl, ...]
    account: str = GLOBAL_ACCOUNT
    # A file with JWT and seed of a user, or the seed alone.
    credentials_file: str = ""
    seed: str = ""
    tls: RemoteTls | None = None
    # This side behaves as the hub.
    hub: bool = False
    deny_imports: tuple[str, ...] = ()
    deny_exports: tuple[str, ...] = ()
    compression: LinkCompression = LinkCompression()
    no_randomize: bool = False
    first_info_timeout_s: float = FIRST_INFO_TIMEOUT_S
    dial_timeout_s: float = DIAL_TIMEOUT_S
    websocket_compress: bool = False
    websocket_no_masking: bool = False
    # It is not connected to until a reload says otherwise.
    disabled: bool = False
    isolate: bool = False
    request_isolation: bool = False
    ignore_discovered_servers: bool = False
    # Keys of the file that are accepted and have no effect.
    without_effect: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"LeafRemote({self.name})"

    @property
    def name(self) -> str:
        """What a remote is called in the log and in errors."""
        urls = " ".join(f'"{url}"' for url in self.urls)
        login = f', credentials="{self.credentials_file}"' if self.credentials_file else ""
        login += ', nkey="[REDACTED]"' if self.seed else ""
        return f'urls=[{urls}], account="{self.account}"{login}'

    @property
    def identity(self) -> tuple[object, ...]:
        """What makes two remotes the same one, when a file is read again."""
        return self.urls, self.account, self.credentials_file, self.seed

    def for_engine(self) -> EngineLeafRemote:
        """Return the part that the engine needs. Reads credentials and certificates; raises `ConfigurationError`."""
        jwt, seed = read_credentials(self.credentials_file) if self.credentials_file else ("", self.seed)
        tls = self.tls
        if tls is None and any(url.is_secure for url in self.urls):
            tls = RemoteTls()
        return EngineLeafRemote(
            urls=tuple(url.for_engine() for url in self.urls),
            account=self.account,
            jwt=jwt,
            seed=seed,
            tls=None if tls is None else tls.for_engine(),
            hub=self.hub,
            deny_imports=self.deny_imports,
            deny_exports=self.deny_exports,
            compression=self.compression.mode,
            compression_rtt_ms=self.compression.rtt_ms,
            no_randomize=self.no_randomize,
            first_info_timeout_ms=_milliseconds(self.first_info_timeout_s),
            dial_timeout_ms=_milliseconds(self.dial_timeout_s),
            websocket_compress=self.websocket_compress,
            websocket_no_masking=self.websocket_no_masking,
            isolate=self.isolate,
            request_isolation=self.request_isolation,
            ignore_discovered_servers=self.ignore_discovered_servers,
        )


class LeafOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The server as a hub of leaf nodes, as a leaf node, or both."""

    # None = it is not a hub.
    listener: LeafListenerOptions | None = None
    remotes: tuple[LeafRemote, ...] = ()
    reconnect_s: float = RECONNECT_S
    # Keys of the file that are accepted and have no effect.
    without_effect: tuple[str, ...] = ()

    def for_engine(self, access: AccessOptions) -> EngineLeaf:
        """Return the part that the engine needs. Reads credentials and certificates; raises `ConfigurationError`."""
        # A hub that is not connected to needs nothing of this machine.
        remotes = [remote for remote in self.remotes if not remote.disabled]
        return EngineLeaf(
            listener=None if self.listener is None else self.listener.for_engine(access),
            remotes=tuple(remote.for_engine() for remote in remotes),
            reconnect_ms=_milliseconds(self.reconnect_s),
            system_ca_pem=read_system_authorities() if remotes else "",
        )


def _milliseconds(seconds: float) -> int:
    """Return a time of at least one millisecond."""
    return max(1, int(seconds * 1000))
