"""What changes when the configuration is read again while the server runs, and what cannot.

Every option is in one of two lists. `FIXED` cannot change: a different value refuses the whole reload, in
nats-server's words. `APPLIED` changes at once, with a line in the log. What decides about clients is also compared as a
whole: the engine then asks about every client again, and closes those that may no longer be in.

Invariant: a reload that is refused has changed nothing.
"""

from collections.abc import Callable

import msgspec

from jetlake.errors import ConfigurationError
from jetlake.server.authentication.verdict import REDACTED
from jetlake.server.banner import readable_bytes
from jetlake.server.leaf_reload import plan_leaf_reload
from jetlake.server.options import ServerOptions
from jetlake.server.options.remotes import Remote
from jetlake.server.options.submission import SubmissionOptions
from jetlake.server.options.tls import DEFAULT_TIMEOUT_S
from jetlake.server.options.trust import TrustOptions, without_credentials
from jetlake.server.options.websocket import WebSocketOptions

Get = Callable[[ServerOptions], object]


class _Hidden(msgspec.Struct, frozen=True):
    """A secret that is compared, and never shown."""

    text: str

    def __str__(self) -> str:
        return REDACTED if self.text else ""


def _encoded(submission: SubmissionOptions | None) -> str:
    """The same for the sender."""
    return msgspec.json.encode(submission).decode() if submission else ""


def _written(remotes: tuple[Remote, ...]) -> str:
    """Everything to compare; it contains passwords, so it must never be shown."""
    return msgspec.json.encode(remotes).decode() if remotes else ""


def _fixed_part(websocket: WebSocketOptions | None) -> str:
    """The part of the listener that cannot change, all but its certificates; it contains credentials: never show it."""
    if websocket is None:
        return ""
    tls = websocket.tls
    rest = msgspec.structs.replace(websocket, tls=None, allows_plain=True)
    certificates = None if tls is None else (tls.map_users, tls.pinned_certificates)
    return msgspec.json.encode((rest, websocket.allows_plain, certificates)).decode()


def _resolver_of(trust: TrustOptions | None) -> str:
    """Where claims are: what is known of accounts would not fit another place."""
    if trust is None or trust.resolver is None:
        return ""
    resolver = trust.resolver
    return f"{resolver.kind} {resolver.directory}{without_credentials(resolver.url)}".strip()


def _claims_of(trust: TrustOptions | None) -> object:
    return None if trust is None else (trust.preloaded, trust.pinned_accounts)


FIXED: tuple[tuple[str, Get], ...] = (
    ("Host", lambda options: options.host),
    ("Port", lambda options: options.port),
    ("ServerName", lambda options: options.server_name),
    ("NoHeaderSupport", lambda options: not options.headers),
    ("MaxPending", lambda options: options.limits.max_pending_bytes),
    ("MaxSubs", lambda options: options.limits.max_subscriptions),
    ("MaxSubTokens", lambda options: options.limits.max_subscription_tokens),
    ("MaxClosedClients", lambda options: options.closed_connections_max),
    ("LameDuckDuration", lambda options: spoken(options.lame_duck.duration_s)),
    ("LameDuckGracePeriod", lambda options: spoken(options.lame_duck.grace_period_s)),
    ("HTTPHost", lambda options: options.monitoring.host),
    ("HTTPPort", lambda options: options.monitoring.http_port or 0),
    ("HTTPSPort", lambda options: options.monitoring.https_port or 0),
    ("HTTPBasePath", lambda options: options.monitoring.base_path),
    ("SystemAccount", lambda options: options.access.system_account),
    ("TrustedOperators", lambda options: options.access.trust.operators if options.access.trust else ()),
    ("TrustedKeys", lambda options: options.access.trust.keys if options.access.trust else ()),
    ("AccountResolver", lambda options: _resolver_of(options.access.trust)),
    ("AuthCallout", lambda options: options.access.callout),
    ("TLSMap", lambda options: options.access.map_certificates),
    ("Websocket", lambda options: _Hidden(_fixed_part(options.websocket))),
    ("AllowNonTLS", lambda options: options.allow_plain),
    ("LogSizeLimit", lambda options: options.log.size_limit_bytes),
    ("LogMaxFiles", lambda options: options.log.files_max),
    ("JetStream", lambda options: options.jetstream.enabled),
    ("StoreDir", lambda options: options.jetstream.store_directory),
    ("JetStreamDomain", lambda options: options.jetstream.domain),
    ("SyncInterval", lambda options: spoken(options.jetstream.sync_interval_s)),
    ("SyncAlways", lambda options: options.jetstream.sync_always),
    ("JetStreamKey", lambda options: _Hidden(options.jetstream.key)),
    ("JetStreamPreviousKey", lambda options: _Hidden(options.jetstream.previous_key)),
    ("Submission", lambda options: _Hidden(_encoded(options.submission))),
    ("Dashboard", lambda options: options.dashboard.address if options.dashboard else ""),
    ("Choria", lambda options: _Hidden(str(options.choria) if options.choria else "")),
    ("JetStreamRemotes", lambda options: _Hidden(_written(options.jetstream.remotes))),
)

APPLIED: tuple[tuple[str, Get], ...] = (
    ("trace = {}", lambda options: options.log.trace),
    ("debug = {}", lambda options: options.log.debug),
    ("logtime = {}", lambda options: options.log.timestamps),
    ("logtime_utc = {}", lambda options: options.log.utc),
    ("log_file = {}", lambda options: options.log.file),
    ("tls = {}", lambda options: "enabled" if options.tls else "disabled"),
    ("tls timeout = {}", lambda options: options.tls.timeout_s if options.tls else DEFAULT_TIMEOUT_S),
    ("authorization timeout = {}", lambda options: options.limits.auth_timeout_ms / 1000),
    ("tags", lambda options: options.tags),
    ("metadata", lambda options: options.metadata),
    ("max_connections = {}", lambda options: options.limits.max_connections),
    ("pid_file = {}", lambda options: options.pid_file),
    ("ports_file_dir = {}", lambda options: options.ports_file_directory),
    ("max_control_line = {}", lambda options: options.limits.max_control_line_bytes),
    ("max_payload = {}", lambda options: options.limits.max_payload_bytes),
    ("ping_interval = {}", lambda options: spoken(options.limits.ping_interval_ms / 1000)),
    ("ping_max = {}", lambda options: options.limits.ping_max),
    ("write_deadline = {}", lambda options: spoken(options.limits.write_deadline_ms / 1000)),
    ("client_advertise = {}", lambda options: options.client_advertise),
    ("fast producers will {}be stalled", lambda options: "" if options.fast_producer_stall else "not "),
    ("authorization username", lambda options: options.access.credentials.user),
    ("authorization password", lambda options: options.access.credentials.password),
    ("authorization token", lambda options: options.access.credentials.token),
    ("authorization users", lambda options: {user for user in options.access.users if not user.nkey}),
    ("authorization nkey users", lambda options: {user for user in options.access.users if user.nkey}),
    ("accounts", lambda options: (options.access.accounts, _claims_of(options.access.trust))),
    ("default_sentinel", lambda options: options.access.trust.default_sentinel if options.access.trust else ""),
)


def plan_reload(old: ServerOptions, new: ServerOptions) -> list[str]:
    """Return a line for each change. Raises `ConfigurationError` when something changed that cannot."""
    for name, get in FIXED:
        if get(old) != get(new):
            raise ConfigurationError(
                f"config reload not supported for {name}: old={_shown(get(old))}, new={_shown(get(new))}; "
                "restart the server for this change"
            )
    _check_stranger(old, new)
    leaf_lines = plan_leaf_reload(old.leaf, new.leaf)
    lines = [f"Reloaded: {line.format(_shown(get(new)))}" for line, get in APPLIED if get(old) != get(new)]
    if new.tls is not None and old.tls is not None:
        # Certificates may have changed under the same names; they are read again in any case.
        lines.append("Reloaded: tls = enabled")
    return lines + leaf_lines + _grown_limits(old, new)


def spoken(seconds: float) -> str:
    """Return a duration as Go prints it: `2m0s`, `1.5s`, `300ms`."""
    if seconds < 1:
        return f"{seconds * 1000:g}ms" if seconds else "0s"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    shown = f"{round(rest, 3):g}s"
    if hours:
        return f"{hours}h{minutes}m{shown}"
    return f"{minutes}m{shown}" if minutes else shown


def _check_stranger(old: ServerOptions, new: ServerOptions) -> None:
    """`no_auth_user` may go together with its user, but not change: connected clients would not know."""
    before, after = old.access.no_auth_user, new.access.no_auth_user
    if before == after or (not after and all(user.name != before for user in new.access.users)):
        return
    raise ConfigurationError(
        f"config reload not supported for NoAuthUser: old={before}, new={after}; restart the server"
    )


def _grown_limits(old: ServerOptions, new: ServerOptions) -> list[str]:
    """What JetStream may use may grow."""
    lines = []
    for key, before, after in (
        ("max_mem_store", old.jetstream.max_memory_bytes, new.jetstream.max_memory_bytes),
        ("max_file_store", old.jetstream.max_storage_bytes, new.jetstream.max_storage_bytes),
    ):
        if before == after:
            continue
        if before is None or after is None:
            raise ConfigurationError("config reload not supported for jetstream dynamic max memory and store")
        if after < before:
            raise ConfigurationError("config reload not supported for decreasing jetstream max memory and store")
        lines.append(f"Reloaded: JetStream {key} = {readable_bytes(after)}")
    return lines


def _shown(value: object) -> str:
    """Return a value as Go prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)
