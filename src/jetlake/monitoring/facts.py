"""What a server knows about itself without asking its engine: the fixed half of every page.

The server builds these values from its options, again after every reload, and monitoring only reads them. This is the
allow-list of what may leave a server: there is no field for a password, a token, a key or a command line, so none can
be printed by mistake. A new option becomes visible only by a new field here.
"""

import msgspec

from jetlake.monitoring.claims_facts import ClaimsFacts
from jetlake.monitoring.sharing_facts import SharingFacts


class JetStreamFacts(msgspec.Struct, frozen=True, kw_only=True):
    """How JetStream is configured."""

    max_memory_bytes: int
    max_storage_bytes: int
    store_directory: str
    sync_interval_ns: int = 120_000_000_000
    sync_always: bool = False
    domain: str = ""
    unique_tag: str = ""
    strict: bool = True
    # As the configuration names them: `max_ack_pending` and the like.
    limits: dict[str, int] = {}
    # The accounts that may use it.
    accounts: tuple[str, ...] = ()


class TlsFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What clients must do to come in over TLS."""

    required: bool = False
    verify: bool = False
    timeout_s: float = 2.0
    # None = not known.
    certificate_expires_unix_ns: int | None = None


class WebSocketFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The listener for WebSocket clients."""

    host: str
    port: int
    advertise: str = ""
    no_auth_user: str = ""
    # The name of a cookie, not what is in it.
    jwt_cookie: str = ""
    # 0 = the default, for this field and the next.
    handshake_timeout_ns: int = 0
    auth_timeout_s: float = 0.0
    allows_plain: bool = False
    maps_certificates: bool = False
    pinned_certificates: tuple[str, ...] = ()
    same_origin: bool = False
    allowed_origins: tuple[str, ...] = ()
    compress: bool = False
    # None = not known, or there is none.
    certificate_expires_unix_ns: int | None = None


class LeafRemoteFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A hub that the server is a leaf node of."""

    account: str
    # `host:port`, without what the server logs in with.
    addresses: tuple[str, ...] = ()
    # 0 = nothing is said about TLS.
    tls_timeout_s: float = 0.0
    deny_imports: tuple[str, ...] = ()
    deny_exports: tuple[str, ...] = ()


class LeafFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The server as a hub of leaf nodes, as a leaf node, or both."""

    # Empty = it is not a hub; then the next five say nothing.
    host: str = ""
    port: int = 0
    auth_timeout_s: float = 0.0
    tls_timeout_s: float = 0.0
    tls_required: bool = False
    tls_verify: bool = False
    # None = not known, or there is none.
    certificate_expires_unix_ns: int | None = None
    remotes: tuple[LeafRemoteFacts, ...] = ()


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One server as it is configured now."""

    server_id: str
    server_name: str
    version: str
    git_commit: str
    # What stands where nats-server names its Go release.
    runtime: str
    host: str
    port: int
    max_connections: int
    max_subscriptions: int
    max_control_line_bytes: int
    max_payload_bytes: int
    max_pending_bytes: int
    ping_interval_ns: int
    ping_max: int
    write_deadline_ns: int
    auth_timeout_s: float
    config_loaded_unix_ns: int
    http_host: str = ""
    http_port: int = 0
    http_base_path: str = ""
    https_port: int = 0
    auth_required: bool = False
    tls: TlsFacts = TlsFacts()
    # None = there is none.
    websocket: WebSocketFacts | None = None
    leaf: LeafFacts | None = None
    connect_urls: tuple[str, ...] = ()
    config_digest: str = ""
    tags: tuple[str, ...] = ()
    metadata: dict[str, str] = {}
    feature_flags: dict[str, bool] = {}
    # All that are configured; the engine knows those that were used.
    accounts: tuple[str, ...] = ()
    # Empty = there is none.
    system_account: str = ""
    jetstream: JetStreamFacts | None = None
    # Where the dashboard is that the server runs; empty = there is none.
    dashboard_url: str = ""
    # False while the server is leaving: it serves on, and takes no new clients.
    accepts_clients: bool = True
    # What accounts and users claim; None = this server is not in operator mode.
    # What accounts share, by name; those that share nothing are not in it.
    sharing: dict[str, SharingFacts] = {}
    claims: ClaimsFacts | None = None
