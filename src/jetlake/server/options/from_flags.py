"""From a command line to options. Only flags that were given change anything: they go over what a file said.

The command line's own conventions end here: a port of -1 is a random one, a port of 0 is the default.
"""

from msgspec.structs import replace

from jetlake.errors import ConfigurationError
from jetlake.server.addresses import RANDOM_PORT, port_of
from jetlake.server.flags import ParsedFlags
from jetlake.server.options.server import LogOptions, MonitoringOptions, ServerOptions
from jetlake.server.options.tls import DEFAULT_TIMEOUT_S, TlsOptions

CLUSTER_FLAGS = (
    "routes",
    "cluster_listen",
    "cluster_name",
    "cluster_advertise",
    "no_advertise",
    "connect_retries",
)

UNSERVED_FLAGS = (*CLUSTER_FLAGS, "syslog", "remote_syslog", "profile", "max_traced_msg_len")


def from_flags(flags: ParsedFlags, program: str, base: ServerOptions | None = None) -> ServerOptions:
    """Return `base` with the given flags over it. Raises `ConfigurationError`."""
    options = base or ServerOptions()
    given = flags.values
    return replace(
        options,
        host=flags.text("addr") or options.host,
        port=port_of(flags.number("port")) if "port" in given else options.port,
        server_name=flags.text("server_name", options.server_name),
        client_advertise=flags.text("client_advertise", options.client_advertise),
        jetstream=replace(
            options.jetstream,
            enabled=flags.switch("jetstream", options.jetstream.enabled),
            store_directory=flags.text("store_dir", options.jetstream.store_directory),
        ),
        access=replace(
            options.access,
            credentials=replace(
                options.access.credentials,
                user=flags.text("user", options.access.credentials.user),
                password=flags.text("pass", options.access.credentials.password),
                token=flags.text("auth", options.access.credentials.token),
            ),
        ),
        log=_log(flags, options.log),
        monitoring=_monitoring(flags, options.monitoring),
        tls=_tls(flags, options.tls, allow_plain=options.allow_plain),
        pid_file=flags.text("pid", options.pid_file),
        ports_file_directory=flags.text("ports_file_dir", options.ports_file_directory),
        program=program,
        unserved=(*options.unserved, *(flag for flag in UNSERVED_FLAGS if given.get(flag))),
    )


def monitoring_port_of(number: int) -> int | None:
    """Return the port of a monitoring page: 0 means none."""
    if number == 0:
        return None
    return 0 if number == RANDOM_PORT else number


def _log(flags: ParsedFlags, log: LogOptions) -> LogOptions:
    debug = flags.switch("debug", log.debug)
    trace = flags.switch("trace", log.trace)
    for flag in ("DV", "DVV", "VV"):
        if flag in flags.values:
            trace = flags.switch(flag)
            debug = trace if flag != "VV" else debug
    return replace(
        log,
        file=flags.text("log", log.file),
        size_limit_bytes=flags.number("log_size_limit", log.size_limit_bytes),
        timestamps=flags.switch("logtime", log.timestamps),
        utc=flags.switch("logtime_utc", log.utc),
        debug=debug,
        trace=trace,
    )


def _monitoring(flags: ParsedFlags, monitoring: MonitoringOptions) -> MonitoringOptions:
    given = flags.values
    return replace(
        monitoring,
        http_port=monitoring_port_of(flags.number("http_port")) if "http_port" in given else monitoring.http_port,
        https_port=monitoring_port_of(flags.number("https_port")) if "https_port" in given else monitoring.https_port,
    )


def _tls(flags: ParsedFlags, tls: TlsOptions | None, *, allow_plain: bool) -> TlsOptions | None:
    given = [flag for flag in ("tls", "tlsverify", "tlscert", "tlskey", "tlscacert") if flag in flags.values]
    if "tls" in given and not flags.switch("tls"):
        return None
    if not given:
        return tls
    if not flags.text("tlscert"):
        raise ConfigurationError("TLS Server certificate must be present and valid; name its file with --tlscert")
    if not flags.text("tlskey"):
        raise ConfigurationError("TLS Server private key must be present and valid; name its file with --tlskey")
    return TlsOptions(
        certificate_file=flags.text("tlscert"),
        key_file=flags.text("tlskey"),
        authority_file=flags.text("tlscacert"),
        verify_clients=flags.switch("tlsverify"),
        # What a file said about the port beside its certificates still holds.
        allow_plain=allow_plain,
        timeout_s=DEFAULT_TIMEOUT_S if tls is None else tls.timeout_s,
    )
