"""`ServerOptions`: everything a server needs to know, whether it came from flags, a configuration file or a program.

Nothing behind this module looks at flags. The small frozen values below are grouped as the parts of the server use
them.

Invariant: here a port of 0 always means "a random free one" and an empty text always means "not given"; the command
line's own conventions (`-p -1` for random, `-p 0` for the default) end in `from_flags`.
"""

import os

import msgspec

from jetlake.config import EngineOptions, Limits, check_server_name
from jetlake.errors import ConfigurationError
from jetlake.server.flags import ParsedFlags

DEFAULT_HOST = "0.0.0.0"  # noqa: S104 - nats-server's default; `jetlake.Server` listens on the loopback address
DEFAULT_PORT = 4222
RANDOM_PORT_FLAG = -1

CLUSTER_FLAGS = (
    "routes",
    "cluster_listen",
    "cluster_name",
    "cluster_advertise",
    "no_advertise",
    "connect_retries",
)


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """What every client must present. With a token, user and password are not looked at, as in nats-server."""

    user: str = ""
    password: str = ""
    token: str = ""

    @property
    def required(self) -> bool:
        return bool(self.user or self.token)

    def __repr__(self) -> str:
        # Options end up in logs and tracebacks; secrets must not.
        shown = [name for name in ("user", "password", "token") if getattr(self, name)]
        return f"Credentials(given: {', '.join(shown) or 'none'})"


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where the log goes and how much of it. `size_limit_bytes` 0 = the file is never rotated."""

    file: str = ""
    size_limit_bytes: int = 0
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
    """Ports of the monitoring pages; None = not served."""

    http_port: int | None = None
    https_port: int | None = None


class TlsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Certificates of the client port."""

    certificate_file: str = ""
    key_file: str = ""
    authority_file: str = ""
    verify_clients: bool = False


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One server, completely described."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    server_name: str = ""
    client_advertise: str = ""
    worker_threads: int = 0
    jetstream: bool = False
    # Empty with JetStream on = `default_store_directory()`, whose loss at a reboot is warned about.
    store_directory: str = ""
    credentials: Credentials = Credentials()
    limits: Limits = Limits()
    log: LogOptions = LogOptions()
    lame_duck: LameDuckOptions = LameDuckOptions()
    monitoring: MonitoringOptions = MonitoringOptions()
    tls: TlsOptions | None = None
    pid_file: str = ""
    ports_file_directory: str = ""
    # The first part of the ports file's name: what the process was called as.
    program: str = "nats-server"
    # Flags that were given and have no effect in this build: `unserved` warns about each.
    unserved_flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_server_name(self.server_name)
        if self.log.size_limit_bytes < 0:
            raise ConfigurationError(
                f"log size limit is {self.log.size_limit_bytes}: give a number of bytes, or 0 to never rotate"
            )

    def engine_options(self, git_commit: str) -> EngineOptions:
        """Return the part of these options that the engine needs."""
        return EngineOptions(
            **msgspec.structs.asdict(self.limits),
            host=self.host,
            port=self.port,
            server_name=self.server_name,
            git_commit=git_commit,
            client_advertise=self.client_advertise or None,
            auth_required=self.credentials.required,
            worker_threads=self.worker_threads,
            jetstream=self.jetstream,
            debug=self.log.debug,
            trace=self.log.trace,
        )


def from_flags(flags: ParsedFlags, program: str) -> ServerOptions:
    """Return the options that a command line asks for. Raises `ConfigurationError`."""
    verbose = flags.switch("DV") or flags.switch("DVV")
    return ServerOptions(
        host=flags.text("addr") or DEFAULT_HOST,
        port=_port_from_flag(flags.number("port")),
        server_name=flags.text("server_name"),
        client_advertise=flags.text("client_advertise"),
        jetstream=flags.switch("jetstream"),
        store_directory=flags.text("store_dir"),
        credentials=Credentials(user=flags.text("user"), password=flags.text("pass"), token=flags.text("auth")),
        log=LogOptions(
            file=flags.text("log"),
            size_limit_bytes=flags.number("log_size_limit"),
            timestamps=flags.switch("logtime", default=True),
            utc=flags.switch("logtime_utc"),
            debug=verbose or flags.switch("debug"),
            trace=verbose or flags.switch("trace") or flags.switch("VV"),
        ),
        monitoring=MonitoringOptions(
            http_port=_monitoring_port(flags.number("http_port")),
            https_port=_monitoring_port(flags.number("https_port")),
        ),
        tls=_tls_from_flags(flags),
        pid_file=flags.text("pid"),
        ports_file_directory=flags.text("ports_file_dir"),
        program=program,
        unserved_flags=tuple(
            field
            for field in (*CLUSTER_FLAGS, "syslog", "remote_syslog", "profile", "max_traced_msg_len")
            if flags.values.get(field)
        ),
    )


def default_store_directory() -> str:
    """Return the folder JetStream stores in when none is given: the same as nats-server's."""
    return os.path.join(os.environ.get("TMPDIR") or "/tmp", "nats")  # noqa: S108 - warned about in the log


def _port_from_flag(number: int) -> int:
    if number == RANDOM_PORT_FLAG:
        return 0
    return number or DEFAULT_PORT


def _monitoring_port(number: int) -> int | None:
    if number == 0:
        return None
    return 0 if number == RANDOM_PORT_FLAG else number


def _tls_from_flags(flags: ParsedFlags) -> TlsOptions | None:
    if not (flags.switch("tls") or flags.switch("tlsverify")):
        return None
    return TlsOptions(
        certificate_file=flags.text("tlscert"),
        key_file=flags.text("tlskey"),
        authority_file=flags.text("tlscacert"),
        verify_clients=flags.switch("tlsverify"),
    )
