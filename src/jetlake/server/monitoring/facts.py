"""From a server's options to its facts.

The one place where options become visible: what is not copied into `ServerFacts` here is not shown anywhere.
"""

from functools import lru_cache

import msgspec

from jetlake._engine import __version__
from jetlake.config import NATS_VERSION
from jetlake.monitoring.claims_facts import ClaimsFacts
from jetlake.monitoring.facts import (
    JetStreamFacts,
    LeafFacts,
    LeafRemoteFacts,
    ServerFacts,
    TlsFacts,
    WebSocketFacts,
)
from jetlake.server.monitoring.sharing import sharing_of
from jetlake.server.options import (
    JetStreamOptions,
    LeafOptions,
    LeafRemote,
    ServerOptions,
    TlsOptions,
    WebSocketOptions,
)
from jetlake.shared.engine_reports import GLOBAL_ACCOUNT

RUNTIME = f"rust jetlake-{__version__}"
"""The same as in INFO."""

NANOSECONDS_PER_MILLISECOND = 1_000_000

CONSUMERS_DEFAULT_MAX = 1_000
"""Consumers a stream may have when nobody said how many."""


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """What only a running server knows about itself."""

    server_id: str
    git_commit: str
    port: int
    # 0 = there is no such listener, for this port and the next.
    websocket_port: int = 0
    leaf_port: int = 0
    config_loaded_unix_ns: int
    config_digest: str = ""
    monitor_port: int = 0
    accepts_clients: bool = True
    store_directory: str = ""
    # What JetStream may use, as it was found out at the start.
    memory_bytes_max: int = 0
    storage_bytes_max: int = 0


def facts_of(options: ServerOptions, running: Running, claims: ClaimsFacts | None = None) -> ServerFacts:
    """Return all that may be shown of a server. `claims` are those of operator mode."""
    limits, monitoring = options.limits, options.monitoring
    host, port = _advertised(options.client_advertise, options.host, running.port)
    return ServerFacts(
        server_id=running.server_id,
        server_name=options.server_name or running.server_id,
        version=NATS_VERSION,
        git_commit=running.git_commit,
        runtime=RUNTIME,
        host=host,
        port=port,
        max_connections=limits.max_connections,
        max_subscriptions=limits.max_subscriptions,
        max_control_line_bytes=limits.max_control_line_bytes,
        max_payload_bytes=limits.max_payload_bytes,
        max_pending_bytes=limits.max_pending_bytes,
        ping_interval_ns=limits.ping_interval_ms * NANOSECONDS_PER_MILLISECOND,
        ping_max=limits.ping_max,
        write_deadline_ns=limits.write_deadline_ms * NANOSECONDS_PER_MILLISECOND,
        auth_timeout_s=limits.auth_timeout_ms / 1_000,
        config_loaded_unix_ns=running.config_loaded_unix_ns,
        config_digest=running.config_digest,
        http_host=monitoring.host or options.host,
        http_port=0 if monitoring.http_port is None else running.monitor_port,
        http_base_path=monitoring.base_path,
        https_port=0 if monitoring.https_port is None else running.monitor_port,
        # As in INFO: where strangers become a user, nobody must present anything.
        auth_required=options.access.required and not options.access.no_auth_user,
        tls=_tls_facts(options.tls, running),
        websocket=_websocket_facts(options.websocket, running),
        leaf=_leaf_facts(options.leaf, running),
        tags=options.tags,
        metadata=options.metadata,
        accounts=tuple(options.access.account_names()),
        system_account=options.access.system_account,
        jetstream=_jetstream_facts(options, running),
        dashboard_url="" if options.dashboard is None else options.dashboard.address,
        accepts_clients=running.accepts_clients,
        sharing=sharing_of(options.access),
        claims=claims,
    )


def _tls_facts(tls: TlsOptions | None, running: Running) -> TlsFacts:
    if tls is None:
        return TlsFacts()
    return TlsFacts(
        required=not tls.allow_plain,
        verify=tls.verify_clients,
        timeout_s=tls.timeout_s,
        certificate_expires_unix_ns=_expiry_unix_ns(tls.certificate_file, running.config_loaded_unix_ns),
    )


def _websocket_facts(websocket: WebSocketOptions | None, running: Running) -> WebSocketFacts | None:
    if websocket is None:
        return None
    tls = websocket.tls
    expires_unix_ns = None if tls is None else _expiry_unix_ns(tls.certificate_file, running.config_loaded_unix_ns)
    return WebSocketFacts(
        host=websocket.listen_host,
        port=running.websocket_port,
        advertise=websocket.advertise,
        no_auth_user=websocket.no_auth_user,
        jwt_cookie=websocket.jwt_cookie,
        handshake_timeout_ns=int(websocket.handshake_timeout_s * 1_000) * NANOSECONDS_PER_MILLISECOND,
        auth_timeout_s=websocket.auth_timeout_s,
        allows_plain=websocket.allows_plain,
        maps_certificates=tls is not None and tls.map_users,
        pinned_certificates=() if tls is None else tls.pinned_certificates,
        same_origin=websocket.same_origin,
        allowed_origins=websocket.allowed_origins,
        compress=websocket.compress,
        certificate_expires_unix_ns=expires_unix_ns,
    )


def _leaf_facts(leaf: LeafOptions | None, running: Running) -> LeafFacts | None:
    if leaf is None:
        return None
    listener, remotes = leaf.listener, tuple(map(_remote_facts, leaf.remotes))
    if listener is None:
        return LeafFacts(remotes=remotes)
    tls = listener.tls
    return LeafFacts(
        host=listener.listen_host,
        port=running.leaf_port,
        auth_timeout_s=listener.login_timeout_s,
        tls_timeout_s=listener.tls_timeout_s,
        tls_required=tls is not None,
        tls_verify=tls is not None and tls.verify_clients,
        certificate_expires_unix_ns=None
        if tls is None
        else _expiry_unix_ns(tls.certificate_file, running.config_loaded_unix_ns),
        remotes=remotes,
    )


def _remote_facts(remote: LeafRemote) -> LeafRemoteFacts:
    return LeafRemoteFacts(
        account=remote.account,
        addresses=tuple(url.address for url in remote.urls),
        tls_timeout_s=0.0 if remote.tls is None else remote.tls.timeout_s,
        deny_imports=remote.deny_imports,
        deny_exports=remote.deny_exports,
    )


@lru_cache(maxsize=8)
def _expiry_unix_ns(certificate_file: str, _config_loaded_unix_ns: int) -> int | None:
    """Return until when a certificate is valid, None if that cannot be read. It is read again after a reload."""
    # Only servers with TLS pay for loading it, and only when they are asked.
    from cryptography import x509

    from jetlake.server.authentication.certificates import UNREADABLE

    try:
        with open(certificate_file, "rb") as file:
            expiry = x509.load_pem_x509_certificate(file.read()).not_valid_after_utc
    except (OSError, *UNREADABLE):
        return None
    return int(expiry.timestamp()) * 1_000 * NANOSECONDS_PER_MILLISECOND


def _jetstream_facts(options: ServerOptions, running: Running) -> JetStreamFacts | None:
    jetstream = options.jetstream
    if not jetstream.enabled:
        return None
    return JetStreamFacts(
        max_memory_bytes=running.memory_bytes_max,
        max_storage_bytes=running.storage_bytes_max,
        store_directory=running.store_directory,
        sync_interval_ns=int(jetstream.sync_interval_s * 1_000) * NANOSECONDS_PER_MILLISECOND,
        sync_always=jetstream.sync_always,
        domain=jetstream.domain,
        strict=jetstream.strict,
        limits=_jetstream_limits(jetstream),
        accounts=_accounts_with_jetstream(options),
    )


def _jetstream_limits(jetstream: JetStreamOptions) -> dict[str, int]:
    window_s = jetstream.duplicate_window_s
    limits = {
        "max_request_batch": jetstream.max_request_batch,
        "max_ack_pending": jetstream.max_acknowledgements_pending,
        "max_duplicate_window": None if window_s is None else int(window_s * 1_000) * NANOSECONDS_PER_MILLISECOND,
        "default_max_consumers": CONSUMERS_DEFAULT_MAX,
    }
    return {name: limit for name, limit in limits.items() if limit}


def _accounts_with_jetstream(options: ServerOptions) -> tuple[str, ...]:
    """Return who may store: where no accounts are configured, everybody is in `$G`."""
    system = options.access.system_account
    has_accounts = options.access.trust is not None or any(
        account.name != system for account in options.access.accounts
    )
    if not has_accounts:
        return (GLOBAL_ACCOUNT,)
    return tuple(account.name for account in options.access.accounts if account.jetstream is not None)


def _advertised(advertised: str, host: str, port: int) -> tuple[str, int]:
    """Return what INFO says as well: the engine has refused an address that cannot be read."""
    if not advertised:
        return host, port
    name, colon, number = advertised.rpartition(":")
    return (name, int(number)) if colon else (number, port)
