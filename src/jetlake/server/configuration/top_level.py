"""The keys outside all blocks: addresses, limits, log, files.

Where nats-server takes 0 for "not given", so do we. What only makes sense together is checked here too, with the line
of the key, so that options made from a file never fail anywhere else.
"""

import msgspec

from jetlake.config import (
    MAX_CONTROL_LINE_BYTES_CEILING,
    MAX_PAYLOAD_BYTES_CEILING,
    MAX_SUBSCRIPTION_TOKENS_CEILING,
    Limits,
)
from jetlake.server.configuration import unsupported
from jetlake.server.configuration.accounts import read_access
from jetlake.server.configuration.address import read_address
from jetlake.server.configuration.choria import read_choria
from jetlake.server.configuration.dashboard import read_dashboard
from jetlake.server.configuration.document import ConfigurationNode
from jetlake.server.configuration.jetstream import read_jetstream
from jetlake.server.configuration.leafnodes import read_leafnodes
from jetlake.server.configuration.remotes import check_accounts
from jetlake.server.configuration.section import Problems, Section
from jetlake.server.configuration.submission import read_submission
from jetlake.server.configuration.tls import read_tls
from jetlake.server.configuration.websocket import read_websocket
from jetlake.server.options.from_flags import monitoring_port_of
from jetlake.server.options.server import (
    LameDuckOptions,
    LogOptions,
    MonitoringOptions,
    ServerOptions,
)
from jetlake.server.times import SECONDS_MAX
from jetlake.shared.durations import DURATION_EXAMPLES

LAME_DUCK_S_MIN = 30

AFTER_HANDSHAKE_S = 1.0
"""What a client has to say who it is on top of the time for its handshake, where nothing else was said."""

PING_MAX_CEILING = 2**31 - 1
"""The engine counts in 32 bits."""

WITHOUT_EFFECT = (
    "connect_error_reports",
    "disable_sublist_cache",
    "no_sublist_cache",
    "ocsp_cache",
    "prof_block_rate",
    "reconnect_error_reports",
)
"""They tune insides that this server does not have; a file may keep them."""

DEFAULTS = ServerOptions()


def read_options(document: ConfigurationNode, problems: Problems) -> ServerOptions:
    """Return the options a file asks for; mistakes are noted, and the options then not to be used."""
    section = Section(document, problems)
    section.refuse(unsupported.TOP_LEVEL)
    _refuse_switches(section)
    host, port = read_address(section)
    allow_plain = bool(section.switch("allow_non_tls"))
    tls = read_tls(section, allow_plain=allow_plain)
    default_timeout_s = DEFAULTS.limits.auth_timeout_ms / 1000
    if tls is not None:
        default_timeout_s = min(tls.timeout_s + AFTER_HANDSHAKE_S, SECONDS_MAX)
    access, auth_timeout_s = read_access(section, map_certificates=tls is not None and tls.map_users)
    section.accept(*WITHOUT_EFFECT)
    jetstream = msgspec.structs.replace(read_jetstream(section), long_ack_subjects=_read_flags(section))
    options = ServerOptions(
        host=host,
        port=port,
        server_name=_read_name(section),
        client_advertise=section.text("client_advertise") or "",
        headers=not section.switch("no_header_support"),
        fast_producer_stall=not section.switch("no_fast_producer_stall"),
        closed_connections_max=_count(section, "max_closed_clients", default=DEFAULTS.closed_connections_max),
        access=access,
        limits=_read_limits(section, auth_timeout_s or default_timeout_s),
        jetstream=jetstream,
        log=_read_log(section),
        lame_duck=_read_lame_duck(section),
        monitoring=_read_monitoring(section),
        tls=tls,
        websocket=read_websocket(section, access),
        leaf=read_leafnodes(section, access),
        submission=read_submission(section),
        dashboard=read_dashboard(section),
        allow_plain=allow_plain,
        tags=_read_tags(section),
        metadata=section.map_of_texts("server_metadata") or {},
        pid_file=section.path("pid_file", "pidfile") or "",
        ports_file_directory=section.path("ports_file_dir") or "",
        unserved=_read_unserved(section),
        choria=read_choria(section, access),
    )
    check_accounts(section, options.jetstream.remotes, set(access.account_names()))
    section.finish()
    return options


def _refuse_switches(section: Section) -> None:
    """Refuse what is not supported only when it is switched on."""
    for name, instead in (
        ("proxy_protocol", "let clients connect directly"),
        ("ocsp", "let the proxy or the clients check revocation"),
    ):
        node = section.node(name)
        if node is not None and node.data is not False:
            section.error(node, f'"{name}" is not supported yet: {instead}')
    policy = section.text("write_timeout")
    if policy is not None and policy not in ("default", "close"):
        section.error(
            section.node("write_timeout"),
            "\"write_timeout\" must be 'default' or 'close'; 'retry' is not supported: raise max_pending",
        )


def _read_flags(section: Section) -> bool:
    """Return whether acknowledgements have long subjects; no other flag means anything here."""
    flags = section.section("feature_flags")
    return flags is not None and bool(flags.switch("js_ack_fc_v2"))


def _read_name(section: Section) -> str:
    name = section.text("server_name") or ""
    if any(character.isspace() for character in name):
        section.error(section.node("server_name"), "server name cannot contain spaces; use '-' or '_'")
        return ""
    return name


def _read_tags(section: Section) -> tuple[str, ...]:
    """Return the tags as nats-server has them: in small letters, each once."""
    tags = [tag.strip().lower() for tag in section.texts("server_tags") or ()]
    return tuple(dict.fromkeys(tag for tag in tags if tag))


def _read_limits(section: Section, auth_timeout_s: float) -> Limits:
    defaults = DEFAULTS.limits
    # 0 connections is what the file says, unlike all other zeros: nobody comes in.
    connections = section.integer("max_connections", "max_conn", lowest=-1)
    pending = _count(section, "max_pending", default=defaults.max_pending_bytes)
    payload = _count(section, "max_payload", default=defaults.max_payload_bytes, highest=MAX_PAYLOAD_BYTES_CEILING)
    if payload > pending:
        section.error(
            section.node("max_payload") or section.node("max_pending"),
            f"max_payload ({payload}) cannot be higher than max_pending ({pending}); raise max_pending",
        )
        pending = payload
    return Limits(
        max_connections=defaults.max_connections if connections is None else max(connections, 0),
        max_subscriptions=max(section.integer("max_subscriptions", "max_subs") or 0, 0),
        max_subscription_tokens=section.integer(
            "max_sub_tokens", "max_subscription_tokens", lowest=1, highest=MAX_SUBSCRIPTION_TOKENS_CEILING
        )
        or 0,
        max_control_line_bytes=_count(
            section,
            "max_control_line",
            default=defaults.max_control_line_bytes,
            highest=MAX_CONTROL_LINE_BYTES_CEILING,
        ),
        max_payload_bytes=payload,
        max_pending_bytes=pending,
        write_deadline_ms=_milliseconds(section, "write_deadline", default=defaults.write_deadline_ms),
        ping_interval_ms=_milliseconds(section, "ping_interval", default=defaults.ping_interval_ms),
        ping_max=_count(section, "ping_max", default=defaults.ping_max, highest=PING_MAX_CEILING),
        auth_timeout_ms=max(int(auth_timeout_s * 1000), 1),
    )


def _read_log(section: Section) -> LogOptions:
    # As in nats-server, each of the three switches tracing on.
    trace = [section.switch(name) for name in ("trace", "trace_verbose", "trace_headers")]
    return LogOptions(
        file=section.path("log_file", "logfile") or "",
        size_limit_bytes=section.integer("log_size_limit", "logfile_size_limit", lowest=0) or 0,
        files_max=section.integer("log_max_num", "logfile_max_num", lowest=0) or 0,
        timestamps=section.switch("logtime") is not False,
        utc=bool(section.switch("logtime_utc")),
        debug=bool(section.switch("debug")),
        trace=any(trace),
    )


def _read_lame_duck(section: Section) -> LameDuckOptions:
    defaults = DEFAULTS.lame_duck
    duration_s = section.strict_duration_s("lame_duck_duration")
    grace_s = section.strict_duration_s("lame_duck_grace_period")
    if duration_s is not None and duration_s < LAME_DUCK_S_MIN:
        section.error(
            section.node("lame_duck_duration"),
            f"invalid lame_duck_duration of {duration_s:g}s, minimum is {LAME_DUCK_S_MIN} seconds",
        )
        return defaults
    duration_s = duration_s or defaults.duration_s
    grace_s = grace_s or defaults.grace_period_s
    if not 0 <= grace_s < duration_s:
        section.error(
            section.node("lame_duck_grace_period"),
            f"lame duck grace period ({grace_s:g}s) should be strictly lower than lame duck duration "
            f"({duration_s:g}s), and not negative",
        )
        return defaults
    return LameDuckOptions(duration_s=duration_s, grace_period_s=grace_s)


def _read_monitoring(section: Section) -> MonitoringOptions:
    http_host, http_port = section.address("http") or ("", 0)
    https_host, https_port = section.address("https") or ("", 0)
    return MonitoringOptions(
        host=https_host or http_host,
        http_port=monitoring_port_of(section.integer("http_port", "monitor_port") or http_port),
        https_port=monitoring_port_of(section.integer("https_port") or https_port),
        base_path=section.text("http_base_path") or "",
    )


def _read_unserved(section: Section) -> tuple[str, ...]:
    """Return what is accepted without effect and warned about, under the names of the flags."""
    asked = {
        "syslog": section.switch("syslog"),
        "remote_syslog": section.text("remote_syslog"),
        "profile": section.integer("prof_port"),
        "max_traced_msg_len": section.integer("max_traced_msg_len"),
    }
    return tuple(name for name, value in asked.items() if value)


def _count(section: Section, name: str, *, default: int, highest: int | None = None) -> int:
    return section.integer(name, lowest=0, highest=highest) or default


def _milliseconds(section: Section, name: str, *, default: int) -> int:
    seconds = section.duration_s(name)
    if seconds is None or seconds == 0:
        return default
    if seconds < 0:
        section.error(section.node(name), f'"{name}" is negative; {DURATION_EXAMPLES}')
        return default
    return max(int(seconds * 1000), 1)
