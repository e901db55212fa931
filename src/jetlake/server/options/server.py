"""`ServerOptions`: one server, completely described, and the part of it that the engine gets.

Invariant: here a port of 0 always means "a random free one" and an empty text always means "not given"; the conventions
of command line and file (-1 for random, 0 for the default) end where these options are made.
"""

from typing import Self

import msgspec

from jetlake.config import EngineMessageTrace, EngineOptions, Limits, check_server_name
from jetlake.errors import ConfigurationError
from jetlake.server.addresses import DEFAULT_HOST, DEFAULT_PORT
from jetlake.server.options.accounts import AccessOptions
from jetlake.server.options.choria import ChoriaOptions
from jetlake.server.options.dashboard import HostedDashboardOptions
from jetlake.server.options.jetstream import JetStreamOptions
from jetlake.server.options.leafnodes import LeafOptions
from jetlake.server.options.submission import SubmissionOptions
from jetlake.server.options.tls import TlsOptions
from jetlake.server.options.websocket import WebSocketOptions
from jetlake.server.times import SECONDS_MAX

TIMES = ("write_deadline_ms", "ping_interval_ms", "auth_timeout_ms", "handshake_timeout_ms")
"""The limits that are times."""


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where the log goes and how much of it."""

    file: str = ""
    # 0 = the file is never rotated, and none is ever removed.
    size_limit_bytes: int = 0
    files_max: int = 0
    timestamps: bool = True
    utc: bool = False
    debug: bool = False
    trace: bool = False


class LameDuckOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How long a leaving server takes: `grace_period_s` of nothing, then clients are closed until `duration_s`."""

    duration_s: float = 120.0
    grace_period_s: float = 10.0

    def __post_init__(self) -> None:
        if not 0 <= self.grace_period_s < self.duration_s:
            raise ConfigurationError(
                f"lame duck grace period ({self.grace_period_s} s) must be shorter than the duration "
                f"({self.duration_s} s): clients are closed in the time between; raise the duration"
            )


class MonitoringOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The monitoring pages. A port that is None is not served; an empty host is the one clients connect to."""

    host: str = ""
    http_port: int | None = None
    https_port: int | None = None
    base_path: str = ""


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One server, completely described."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    server_name: str = ""
    client_advertise: str = ""
    worker_threads: int = 0
    # The time of day advances only on request.
    manual_clock: bool = False
    headers: bool = True
    fast_producer_stall: bool = True
    # Closed connections that monitoring still shows.
    closed_connections_max: int = 10_000
    access: AccessOptions = AccessOptions()
    limits: Limits = Limits()
    jetstream: JetStreamOptions = JetStreamOptions()
    log: LogOptions = LogOptions()
    lame_duck: LameDuckOptions = LameDuckOptions()
    monitoring: MonitoringOptions = MonitoringOptions()
    tls: TlsOptions | None = None
    # None = only the client port is served.
    websocket: WebSocketOptions | None = None
    # None = the server is neither a hub nor a leaf node.
    leaf: LeafOptions | None = None
    submission: SubmissionOptions | None = None
    dashboard: HostedDashboardOptions | None = None
    # What a file says about plain text; it holds for certificates of the command line, too.
    allow_plain: bool = False
    tags: tuple[str, ...] = ()
    metadata: dict[str, str] = {}
    pid_file: str = ""
    ports_file_directory: str = ""
    # The first part of the ports file's name: what the process was called as.
    program: str = "nats-server"
    # What was asked for and has no effect in this build, under the name of its flag: `unserved` warns about each.
    unserved: tuple[str, ...] = ()
    choria: "ChoriaOptions | None" = None

    def __post_init__(self) -> None:
        check_server_name(self.server_name)
        for name in TIMES:
            if getattr(self.limits, name) > SECONDS_MAX * 1_000:
                # A file cannot ask for it; a program can.
                raise ConfigurationError(
                    f"{name} is {getattr(self.limits, name)}: it must be at most {SECONDS_MAX * 1_000}, or 292 years"
                )
        if self.log.size_limit_bytes < 0:
            raise ConfigurationError(
                f"log size limit is {self.log.size_limit_bytes}: give a number of bytes, or 0 to never rotate"
            )

    def with_default_host(self, host: str) -> Self:
        """Return these options with an address for the listeners for WebSocket and leaf nodes that have none."""
        websocket, leaf = self.websocket, self.leaf
        if websocket is not None and not websocket.host:
            websocket = msgspec.structs.replace(websocket, host=host)
        if leaf is not None and leaf.listener is not None and not leaf.listener.host:
            leaf = msgspec.structs.replace(leaf, listener=msgspec.structs.replace(leaf.listener, host=host))
        return msgspec.structs.replace(self, websocket=websocket, leaf=leaf)

    def engine_options(self, git_commit: str) -> EngineOptions:
        """Return the part of these options that the engine needs. Reads certificates; raises `ConfigurationError`."""
        access = self.access
        return EngineOptions(
            **msgspec.structs.asdict(self.limits),
            host=self.host,
            port=self.port,
            server_name=self.server_name,
            git_commit=git_commit,
            client_advertise=self.client_advertise or None,
            auth_required=access.required,
            info_auth_required=False if access.no_auth_user else None,
            admits_without_connect=access.admits_strangers,
            nonce=access.signs_nonce,
            system_account=access.system_account,
            server_tags=self.tags,
            server_metadata=self.metadata,
            message_traces={
                account.name: EngineMessageTrace(
                    destination=account.message_trace.destination,
                    sampling_percent=account.message_trace.sampling_percent,
                )
                for account in access.accounts
                if account.message_trace is not None
            },
            mappings=access.engine_mappings(),
            imports=access.engine_imports(),
            max_closed_connections=self.closed_connections_max,
            headers=self.headers,
            fast_producer_stall=self.fast_producer_stall,
            worker_threads=self.worker_threads,
            manual_clock=self.manual_clock,
            jetstream=self.jetstream.enabled,
            domain=self.jetstream.domain or None,
            debug=self.log.debug,
            trace=self.log.trace,
            tls=None if self.tls is None else self.tls.for_engine(),
            websocket=None if self.websocket is None else self.websocket.for_engine(),
            leaf=None if self.leaf is None else self.leaf.for_engine(access),
        )
