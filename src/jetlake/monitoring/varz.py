"""`/varz`: the server at a glance. Every number on the first level is a gauge for monitoring tools.

Invariant: each key comes from `ServerFacts` or from the engine's counters, never from the options themselves.
"""

from typing import Any

import msgspec

from jetlake.monitoring import jsz
from jetlake.monitoring.facts import LeafFacts, LeafRemoteFacts, ServerFacts, WebSocketFacts
from jetlake.monitoring.readings import MonitoredServer
from jetlake.monitoring.usage import processor_count, resident_bytes
from jetlake.shared.engine_reports import Statistics
from jetlake.shared.go_text import time_text, uptime_text

PROTOCOL = 1
"""The version of the client protocol, as INFO says it."""


class VarzOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing can be asked for; the struct lets this page look like the others."""


class JetStreamVarz(msgspec.Struct, kw_only=True):
    """The part about JetStream; an empty object while it is off."""

    config: jsz.JetStreamConfiguration | msgspec.UnsetType = msgspec.UNSET
    stats: jsz.JetStreamFigures | msgspec.UnsetType = msgspec.UNSET
    limits: dict[str, int] | msgspec.UnsetType = msgspec.UNSET


class WebSocketVarz(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The part about the listener for WebSocket clients; an empty object without one."""

    host: str = ""
    port: int = 0
    advertise: str = ""
    no_auth_user: str = ""
    jwt_cookie: str = ""
    handshake_timeout: int = 0
    auth_timeout: float | msgspec.UnsetType = msgspec.UNSET
    no_tls: bool = False
    tls_map: bool = False
    tls_pinned_certs: list[str] = []
    same_origin: bool = False
    allowed_origins: list[str] = []
    compression: bool = False
    tls_cert_not_after: str = ""


class DeniedSubjects(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What does not go over a link to a hub."""

    exports: list[str] = []
    imports: list[str] = []


class LeafRemoteVarz(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A hub that the server is a leaf node of."""

    local_account: str
    tls_timeout: float | msgspec.UnsetType = msgspec.UNSET
    urls: list[str] = []
    deny: DeniedSubjects | None = None


class LeafVarz(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The part about leaf nodes; an empty object without any."""

    host: str = ""
    port: int = 0
    auth_timeout: float | msgspec.UnsetType = msgspec.UNSET
    tls_timeout: float | msgspec.UnsetType = msgspec.UNSET
    tls_required: bool = False
    tls_verify: bool = False
    remotes: list[LeafRemoteVarz] = []
    tls_cert_not_after: str = ""


class CountsOfKinds(msgspec.Struct, kw_only=True):
    """A count for each kind of connection; here all are clients."""

    clients: int = 0
    routes: int = 0
    gateways: int = 0
    leafs: int = 0


class DiskWaits(msgspec.Struct, kw_only=True):
    """Waits for a turn at the disk. There is no such queue here: appends of all streams share their syncs."""

    waiters: int = 0
    waits: int = 0
    wait_time: int = 0
    max_wait_time: int = 0


class Varz(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The page; the fields are its keys. Those with a default are left out when they have it."""

    server_id: str
    server_name: str
    version: str
    proto: int
    git_commit: str = ""
    go: str
    host: str
    port: int
    auth_required: bool = False
    tls_required: bool = False
    tls_verify: bool = False
    connect_urls: list[str] = []
    max_connections: int
    max_subscriptions: int = 0
    ping_interval: int
    ping_max: int
    http_host: str
    http_port: int
    http_base_path: str
    https_port: int
    auth_timeout: float
    max_control_line: int
    max_payload: int
    max_pending: int
    cluster: dict[str, Any]
    gateway: dict[str, Any]
    leaf: LeafVarz
    mqtt: dict[str, Any]
    websocket: WebSocketVarz
    jetstream: JetStreamVarz
    tls_timeout: float
    write_deadline: int
    start: str
    now: str
    uptime: str
    mem: int
    cores: int
    gomaxprocs: int
    cpu: float
    connections: int
    total_connections: int
    routes: int
    remotes: int
    leafnodes: int
    in_msgs: int
    in_bytes: int
    in_client_msgs: int
    in_client_bytes: int
    out_msgs: int
    out_bytes: int
    out_client_msgs: int
    out_client_bytes: int
    slow_consumers: int
    stale_connections: int
    stalled_clients: int
    subscriptions: int
    http_req_stats: dict[str, int]
    config_load_time: str
    config_digest: str
    tags: list[str] = []
    metadata: dict[str, str] = {}
    feature_flags: dict[str, bool]
    system_account: str = ""
    slow_consumer_stats: CountsOfKinds
    stale_connection_stats: CountsOfKinds
    disk_io_wait_stats: DiskWaits
    tls_cert_not_after: str = ""
    trusted_operators_jwt: list[str] = []
    trusted_operators_claim: list[msgspec.Raw] = []
    pinned_account_fails: int = 0


def build(source: MonitoredServer, _options: VarzOptions) -> Varz:
    """Return the page."""
    facts, statistics = source.facts, source.statistics()
    return Varz(
        **_configured(facts),
        **_claimed(facts),
        **_counted(statistics, leaf_count=len(source.leaf_links())),
        **_running(source, statistics),
        jetstream=jetstream_part(source),
    )


def jetstream_part(source: MonitoredServer) -> JetStreamVarz:
    """Return what the page says about JetStream."""
    facts = source.facts.jetstream
    if facts is None:
        return JetStreamVarz()
    return JetStreamVarz(
        config=jsz.configuration(facts),
        stats=jsz.figures(source, jsz.account_usages(source)),
        limits=facts.limits,
    )


def _claimed(facts: ServerFacts) -> dict[str, Any]:
    """The part about operator mode."""
    if facts.claims is None:
        return {}
    operators = facts.claims.operators()
    return {
        "trusted_operators_jwt": operators.jwts,
        "trusted_operators_claim": operators.claims,
        "pinned_account_fails": facts.claims.pinned_failures,
    }


def _configured(facts: ServerFacts) -> dict[str, Any]:
    expires_unix_ns = facts.tls.certificate_expires_unix_ns
    return {
        "server_id": facts.server_id,
        "server_name": facts.server_name,
        "version": facts.version,
        "proto": PROTOCOL,
        "git_commit": facts.git_commit,
        "go": facts.runtime,
        "host": facts.host,
        "port": facts.port,
        "auth_required": facts.auth_required,
        "tls_required": facts.tls.required,
        "tls_verify": facts.tls.verify,
        "connect_urls": list(facts.connect_urls),
        "max_connections": facts.max_connections,
        "max_subscriptions": facts.max_subscriptions,
        "ping_interval": facts.ping_interval_ns,
        "ping_max": facts.ping_max,
        "http_host": facts.http_host,
        "http_port": facts.http_port,
        "http_base_path": facts.http_base_path,
        "https_port": facts.https_port,
        "auth_timeout": facts.auth_timeout_s,
        "max_control_line": facts.max_control_line_bytes,
        "max_payload": facts.max_payload_bytes,
        "max_pending": facts.max_pending_bytes,
        "cluster": {},
        "gateway": {},
        "leaf": _leaf_part(facts.leaf),
        "mqtt": {},
        "websocket": _websocket_part(facts.websocket),
        "tls_timeout": facts.tls.timeout_s,
        "write_deadline": facts.write_deadline_ns,
        "config_load_time": time_text(facts.config_loaded_unix_ns),
        "config_digest": facts.config_digest,
        "tags": list(facts.tags),
        "metadata": facts.metadata,
        "feature_flags": facts.feature_flags,
        "system_account": facts.system_account,
        "tls_cert_not_after": "" if expires_unix_ns is None else time_text(expires_unix_ns),
    }


def _websocket_part(facts: WebSocketFacts | None) -> WebSocketVarz:
    if facts is None:
        return WebSocketVarz()
    expires_unix_ns = facts.certificate_expires_unix_ns
    return WebSocketVarz(
        host=facts.host,
        port=facts.port,
        advertise=facts.advertise,
        no_auth_user=facts.no_auth_user,
        jwt_cookie=facts.jwt_cookie,
        handshake_timeout=facts.handshake_timeout_ns,
        auth_timeout=facts.auth_timeout_s or msgspec.UNSET,
        no_tls=facts.allows_plain,
        tls_map=facts.maps_certificates,
        tls_pinned_certs=list(facts.pinned_certificates),
        same_origin=facts.same_origin,
        allowed_origins=list(facts.allowed_origins),
        compression=facts.compress,
        tls_cert_not_after="" if expires_unix_ns is None else time_text(expires_unix_ns),
    )


def _leaf_part(facts: LeafFacts | None) -> LeafVarz:
    if facts is None:
        return LeafVarz()
    expires_unix_ns = facts.certificate_expires_unix_ns
    return LeafVarz(
        host=facts.host,
        port=facts.port,
        auth_timeout=facts.auth_timeout_s or msgspec.UNSET,
        tls_timeout=facts.tls_timeout_s or msgspec.UNSET,
        tls_required=facts.tls_required,
        tls_verify=facts.tls_verify,
        remotes=[_leaf_remote_part(remote) for remote in facts.remotes],
        tls_cert_not_after="" if expires_unix_ns is None else time_text(expires_unix_ns),
    )


def _leaf_remote_part(facts: LeafRemoteFacts) -> LeafRemoteVarz:
    denies = facts.deny_exports or facts.deny_imports
    return LeafRemoteVarz(
        local_account=facts.account,
        tls_timeout=facts.tls_timeout_s or msgspec.UNSET,
        urls=list(facts.addresses),
        deny=DeniedSubjects(exports=list(facts.deny_exports), imports=list(facts.deny_imports)) if denies else None,
    )


def _counted(statistics: Statistics, leaf_count: int) -> dict[str, Any]:
    traffic = statistics.traffic
    return {
        "connections": statistics.connections,
        "total_connections": statistics.total_connections,
        "routes": 0,
        "remotes": 0,
        "leafnodes": leaf_count,
        "in_msgs": traffic.in_messages,
        "in_bytes": traffic.in_bytes,
        "in_client_msgs": traffic.in_messages,
        "in_client_bytes": traffic.in_bytes,
        "out_msgs": traffic.out_messages,
        "out_bytes": traffic.out_bytes,
        "out_client_msgs": traffic.out_messages,
        "out_client_bytes": traffic.out_bytes,
        "slow_consumers": statistics.slow_consumers,
        "stale_connections": statistics.stale_connections,
        "stalled_clients": statistics.stalls,
        "subscriptions": statistics.subscriptions,
        "slow_consumer_stats": CountsOfKinds(clients=statistics.slow_consumers),
        "stale_connection_stats": CountsOfKinds(clients=statistics.stale_connections),
        "disk_io_wait_stats": DiskWaits(),
    }


def _running(source: MonitoredServer, statistics: Statistics) -> dict[str, Any]:
    now_unix_ns = source.now_unix_ns()
    return {
        "start": time_text(statistics.started_unix_ns),
        "now": time_text(now_unix_ns),
        "uptime": uptime_text(now_unix_ns - statistics.started_unix_ns),
        "mem": resident_bytes(),
        "cores": processor_count(),
        "gomaxprocs": statistics.worker_threads,
        "cpu": source.usage.processor_percent(),
        "http_req_stats": dict(source.page_requests),
    }
