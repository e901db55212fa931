"""The options that cross into the engine, and what makes them valid.

`Limits` is what a user may bound; `EngineOptions` adds what a server decides for itself. Both are frozen values
that are checked when they are made: an `EngineOptions` that exists is one the engine accepts. They cross as one
JSON object whose fields are exactly the fields below, and the engine refuses a field it does not know.
"""

import msgspec

from jetlake.errors import ConfigurationError

NATS_VERSION = "2.15.1"
"""The nats-server release whose behaviour this server shows; clients choose their features by it."""

MAX_PAYLOAD_BYTES_CEILING = 64 * 1024 * 1024
"""The engine's own ceiling: buffers of this size must be made for every connection that sends one."""

MAX_CONTROL_LINE_BYTES_CEILING = 64 * 1024
"""Half a read of the engine: a control line is always whole within two reads."""

MAX_SUBSCRIPTION_TOKENS_CEILING = 255
"""nats-server's own ceiling."""

WORKER_THREADS_CEILING = 64
"""The engine's own ceiling: more threads bring nothing and cost a wake-up each."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a server bounds, with nats-server's defaults. Sizes are in bytes, times in milliseconds.

    | usage                            | effect                                        |
    |----------------------------------|-----------------------------------------------|
    | `Limits()`                       | as nats-server without a configuration file   |
    | `Limits(max_payload_bytes=4096)` | refuses larger messages                       |
    | `Limits(ping_interval_ms=1000)`  | finds dead connections after about 3 seconds  |
    """

    # 0 = nobody comes in.
    max_connections: int = 65_536
    # 0 = unlimited, for this field and the next.
    max_subscriptions: int = 0
    max_subscription_tokens: int = 0
    max_control_line_bytes: int = 4_096
    max_payload_bytes: int = 1_048_576
    # What may wait for one slow client before it is cut off.
    max_pending_bytes: int = 67_108_864
    write_deadline_ms: int = 10_000
    ping_interval_ms: int = 120_000
    # Unanswered PINGs after which a connection is stale.
    ping_max: int = 2
    auth_timeout_ms: int = 2_000
    # For connections that never say anything where no authentication hurries them.
    handshake_timeout_ms: int = 30_000

    def __post_init__(self) -> None:
        for field in (
            "max_pending_bytes",
            "write_deadline_ms",
            "ping_interval_ms",
            "ping_max",
            "auth_timeout_ms",
            "handshake_timeout_ms",
        ):
            _check_range(field, getattr(self, field), lowest=1)
        _check_range("max_connections", self.max_connections, lowest=0)
        _check_range("max_subscriptions", self.max_subscriptions, lowest=0)
        _check_range(
            "max_subscription_tokens", self.max_subscription_tokens, lowest=0, highest=MAX_SUBSCRIPTION_TOKENS_CEILING
        )
        _check_range(
            "max_control_line_bytes", self.max_control_line_bytes, lowest=1, highest=MAX_CONTROL_LINE_BYTES_CEILING
        )
        _check_range("max_payload_bytes", self.max_payload_bytes, lowest=1, highest=MAX_PAYLOAD_BYTES_CEILING)
        if self.max_payload_bytes > self.max_pending_bytes:
            # One message of the allowed size would by itself make its receiver a slow consumer.
            raise ConfigurationError(
                f"max_payload_bytes ({self.max_payload_bytes}) cannot be higher than max_pending_bytes "
                f"({self.max_pending_bytes}): no client could receive such a message; raise max_pending_bytes"
            )


class EngineCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate and its key, as text."""

    certificate_pem: str
    key_pem: str

    def __repr__(self) -> str:
        return "EngineCertificate(…)"


class EngineMessageTrace(msgspec.Struct, frozen=True, kw_only=True):
    """Where an account wants traces that a trace context asks for, and of how many of a hundred messages."""

    destination: str
    sampling_percent: int


class EngineMappingDestination(msgspec.Struct, frozen=True, kw_only=True):
    """A subject that messages may be mapped to, and how many of a hundred are."""

    subject: str
    weight_percent: int


class EngineMapping(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a subject that clients of an account publish to."""

    source: str
    destinations: tuple[EngineMappingDestination, ...]


class EngineStreamImport(msgspec.Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """What is published to `source` in that account is `to` in the one that imports it."""

    account: str
    source: str
    to: str
    # Traces show what happens to the messages in the account that imports.
    allow_trace: bool = False


class EngineLatency(msgspec.Struct, frozen=True, kw_only=True):
    """Where latency events of a service go, and for how many of a hundred requests."""

    subject: str
    # 0 = only those whose tracing headers ask for it.
    sampling_percent: int = 100


class EngineServiceImport(msgspec.Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """A request to `source` in the account that imports goes to `to` in that one."""

    account: str
    source: str
    to: str
    # The subject of the export that it is of.
    export: str = ""
    # one, stream or chunked.
    responses: str
    response_timeout_ms: int
    share: bool = False
    # Traces show what happens to the requests in the account that exports.
    allow_trace: bool = False
    latency: EngineLatency | None = None


class EngineImports(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one account sees of others."""

    streams: tuple[EngineStreamImport, ...] = ()
    services: tuple[EngineServiceImport, ...] = ()


class EngineTls(msgspec.Struct, frozen=True, kw_only=True):
    """Certificates as the engine takes them: their content, not the names of their files."""

    certificate_pem: str
    key_pem: str
    ca_pem: str | None = None
    verify: bool = False
    min_version: str = "1.2"
    # Empty = all.
    cipher_suites: tuple[str, ...] = ()
    # None = INFO first; 0 = always the handshake first; more = if it begins within this time.
    handshake_first_ms: int | None = None
    allow_non_tls: bool = False
    timeout_ms: int = 2_000
    # SHA-256 of the public keys that may come; empty = all.
    pinned_certificates: tuple[str, ...] = ()
    # A client gets the first certificate that has the name it asks for.
    further_certificates: tuple[EngineCertificate, ...] = ()
    # Empty = all.
    curves: tuple[str, ...] = ()
    # 0 = no limit.
    handshakes_per_second_max: int = 0

    def __repr__(self) -> str:
        # Options end up in logs and tracebacks; a private key must not.
        return f"EngineTls(verify={self.verify}, min_version={self.min_version!r})"


class EngineWebSocket(msgspec.Struct, frozen=True, kw_only=True):
    """The listener for clients that speak WebSocket."""

    host: str
    # 0 = a random free port.
    port: int
    # None = in the clear.
    tls: EngineTls | None = None
    # A browser's page must come from where it connects to.
    same_origin: bool = False
    # Where pages may come from; empty = from everywhere.
    allowed_origins: tuple[str, ...] = ()
    # 0 = the engine's default.
    handshake_timeout_ms: int = 0
    compress: bool = False
    # Clients are asked who they are, even if those of the client port are not.
    auth_required: bool = False
    # 0 = as on the client port, for this field and the next.
    auth_timeout_ms: int = 0
    ping_interval_ms: int = 0
    # The cookies that stand in for fields of CONNECT; empty = none does.
    jwt_cookie: str = ""
    user_cookie: str = ""
    password_cookie: str = ""
    token_cookie: str = ""
    # Further headers of the response to an upgrade.
    headers: tuple[tuple[str, str], ...] = ()


class EngineRemoteTls(msgspec.Struct, frozen=True, kw_only=True):
    """Certificates for a connection to another server, as text."""

    # Who signs the certificates of that server.
    ca_pem: str
    # What it is shown; empty = nothing.
    certificate_pem: str = ""
    key_pem: str = ""
    # The certificate of that server is not checked.
    insecure: bool = False
    handshake_first: bool = False
    # 0 = the engine's default.
    timeout_ms: int = 0

    def __repr__(self) -> str:
        return "EngineRemoteTls(…)"


class EngineRemote(msgspec.Struct, frozen=True, kw_only=True):
    """Another server, or another account of this one, that streams may be copied from."""

    name: str
    # Of this server; None = another server, by its addresses.
    account: str | None = None
    addresses: tuple[str, ...] = ()
    user: str = ""
    password: str = ""
    token: str = ""
    # Of the user's key, and the claims about it.
    seed: str = ""
    jwt: str = ""
    tls: EngineRemoteTls | None = None
    domain: str = ""
    api_prefix: str = ""
    # Those whose streams may read from it; empty = all.
    allowed_accounts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        # Options end up in logs and tracebacks; a password must not.
        return f"EngineRemote(name={self.name!r})"


class EngineLeafUrl(msgspec.Struct, frozen=True, kw_only=True):
    """One address of a hub, and what to log in with there."""

    host: str
    port: int
    websocket: bool = False
    tls: bool = False
    # Of the HTTP request that opens a WebSocket.
    path: str = ""
    user: str = ""
    password: str = ""
    token: str = ""

    def __repr__(self) -> str:
        # Options end up in logs and tracebacks; a password must not.
        return f"EngineLeafUrl(host={self.host!r}, port={self.port})"


class EngineLeafRemote(msgspec.Struct, frozen=True, kw_only=True):
    """A hub that the server connects to as a leaf."""

    urls: tuple[EngineLeafUrl, ...]
    # Of this server: whose subjects are shared with the hub.
    account: str
    # The claims about a user, and the seed of its key.
    jwt: str = ""
    seed: str = ""
    # None = the hub decides, and its certificate is checked by the authorities of this machine.
    tls: EngineRemoteTls | None = None
    # This side behaves as the hub.
    hub: bool = False
    deny_imports: tuple[str, ...] = ()
    deny_exports: tuple[str, ...] = ()
    compression: str
    compression_rtt_ms: tuple[int, ...] = ()
    no_randomize: bool = False
    first_info_timeout_ms: int
    dial_timeout_ms: int
    websocket_compress: bool = False
    websocket_no_masking: bool = False
    isolate: bool = False
    request_isolation: bool = False
    ignore_discovered_servers: bool = False

    def __repr__(self) -> str:
        return f"EngineLeafRemote(urls={self.urls!r}, account={self.account!r})"


class EngineLeafListener(msgspec.Struct, frozen=True, kw_only=True):
    """The listener for leaf nodes."""

    host: str
    # 0 = a random free port.
    port: int
    # None = in the clear.
    tls: EngineTls | None = None
    # Leaf nodes are asked who they are.
    auth_required: bool = False
    auth_timeout_ms: int
    # "host:port" advertised to leaf nodes; empty = the listener's.
    advertise: str = ""
    no_advertise: bool = False
    compression: str
    compression_rtt_ms: tuple[int, ...] = ()
    isolate: bool = False
    # Of nats-server, below which a leaf node is refused; empty = all come in.
    min_version: str = ""


class EngineLeaf(msgspec.Struct, frozen=True, kw_only=True):
    """The server as a hub of leaf nodes, as a leaf node, or both."""

    # None = it is not a hub.
    listener: EngineLeafListener | None = None
    remotes: tuple[EngineLeafRemote, ...] = ()
    reconnect_ms: int
    # The authorities of this machine, for hubs whose remote names none; empty = there are none, or no remotes.
    system_ca_pem: str = ""

    def __repr__(self) -> str:
        return f"EngineLeaf(listener={self.listener!r}, remotes={self.remotes!r})"


class EngineOptions(Limits, frozen=True, kw_only=True):
    """Everything the engine needs when it is created."""

    host: str
    # 0 = a random free port.
    port: int
    # Empty = the server id.
    server_name: str = ""
    version: str = NATS_VERSION
    git_commit: str = ""
    # "host:port" to show in INFO instead of the listener's.
    client_advertise: str | None = None
    auth_required: bool = False
    # What INFO says instead, where that is not the same.
    info_auth_required: bool | None = None
    # A client may begin with something else than CONNECT, and is then asked about as one without credentials.
    admits_without_connect: bool = False
    # Clients get a nonce to sign.
    nonce: bool = False
    # The account of the server's own events and requests; empty = there is none.
    system_account: str = ""
    # What operators call the server and say about it, for events.
    server_tags: tuple[str, ...] = ()
    server_metadata: dict[str, str] = {}
    # Where accounts want traces that a trace context asks for, by name.
    message_traces: dict[str, EngineMessageTrace] = {}
    # What accounts make of the subjects their clients publish to, by name.
    mappings: dict[str, tuple[EngineMapping, ...]] = {}
    # What accounts see of others, by the name of the account that imports.
    imports: dict[str, EngineImports] = {}
    # Connections that have ended and are still reported.
    max_closed_connections: int = 10_000
    headers: bool = True
    # Slow a publisher down for a receiver that is three quarters full, rather than drop.
    fast_producer_stall: bool = True
    # 0 = as many as the machine has cores.
    worker_threads: int = 0
    jetstream: bool = False
    domain: str | None = None
    # The time of day stands still but for `Engine.advance`.
    manual_clock: bool = False
    debug: bool = False
    trace: bool = False
    # None = the client port speaks in the clear.
    tls: EngineTls | None = None
    # None = there is no such listener.
    websocket: EngineWebSocket | None = None
    # None = the server is neither a hub nor a leaf node.
    leaf: EngineLeaf | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.host:
            raise ConfigurationError("host is empty: give an address to listen on, 0.0.0.0 for all of them")
        _check_range("port", self.port, lowest=0, highest=65_535)
        _check_range("max_closed_connections", self.max_closed_connections, lowest=0)
        _check_range("worker_threads", self.worker_threads, lowest=0, highest=WORKER_THREADS_CEILING)
        check_server_name(self.server_name)

    def to_json(self) -> bytes:
        """Return the JSON object that `jetlake._engine.Engine` takes."""
        return msgspec.json.encode(self)


def check_server_name(name: str) -> None:
    """Refuse a server name that would break the subjects it becomes a token of."""
    if any(character.isspace() for character in name):
        raise ConfigurationError(
            f"server name cannot contain spaces: {name!r} would split the subjects it is part of; use '-' or '_'"
        )


def _check_range(field: str, value: int, *, lowest: int, highest: int | None = None) -> None:
    if value < lowest or (highest is not None and value > highest):
        allowed = f"at least {lowest}" if highest is None else f"between {lowest} and {highest}"
        raise ConfigurationError(f"{field} is {value}: it must be {allowed}")
