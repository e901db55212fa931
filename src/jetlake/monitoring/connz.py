"""`/connz`: who is connected, and who was.

Invariant: what identifies a person or an account (`authorized_user`, `account`, `name_tag`, `jwt`) is shown only when
`auth` asks for it; credentials are never shown: the engine does not keep them, and claims that need no signature are
left out.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from jetlake.monitoring.claims_facts import ClaimsFacts
from jetlake.monitoring.parameters import ConnectionId, Integer, PageError, QueryParameters
from jetlake.monitoring.readings import MonitoredServer
from jetlake.monitoring.subsz import SubscriptionDetail
from jetlake.shared.engine_reports import (
    CLIENT_TYPES,
    GLOBAL_ACCOUNT,
    KINDS,
    Connection,
    Subscription,
    SubscriptionQuery,
)
from jetlake.shared.go_text import duration_text, time_text, uptime_text
from jetlake.shared.subjects import overlap

LIMIT_DEFAULT = 1024

OPEN, CLOSED, ALL = 0, 1, 2
STATE_OF_WORD = {"": OPEN, "open": OPEN, "closed": CLOSED, "any": ALL, "all": ALL}


class ConnzOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted; the fields are those of a `$SYS.REQ.SERVER.*.CONNZ` request."""

    sort: str = ""
    auth: bool = False
    subscriptions: bool = False
    subscriptions_detail: bool = False
    offset: Integer = 0
    limit: Integer = 0
    cid: ConnectionId = 0
    mqtt_client: str = ""
    state: Integer = OPEN
    user: str = ""
    acc: str = ""
    filter_subject: str = ""


class ConnectionEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One connection; the fields are the keys of the page."""

    cid: int
    kind: str
    type: str = ""
    ip: str
    port: int
    start: str
    last_activity: str
    stop: str = ""
    reason: str = ""
    rtt: str
    uptime: str
    idle: str
    pending_bytes: int
    in_msgs: int
    out_msgs: int
    in_bytes: int
    out_bytes: int
    stalls: int = 0
    subscriptions: int
    name: str = ""
    lang: str = ""
    version: str = ""
    tls_version: str = ""
    tls_cipher_suite: str = ""
    authorized_user: str = ""
    account: str = ""
    subscriptions_list: list[str] = []
    subscriptions_list_detail: list[SubscriptionDetail] = []
    jwt: str = ""
    issuer_key: str = ""
    name_tag: str = ""
    tags: list[str] = []


class Connz(msgspec.Struct, kw_only=True):
    """The page."""

    server_id: str
    now: str
    num_connections: int
    total: int
    offset: int
    limit: int
    connections: list[ConnectionEntry]


def options_of(parameters: QueryParameters) -> ConnzOptions:
    """Return the options that the parameters of the page ask for. Raises `PageError`."""
    auth = parameters.boolean("auth")
    subscriptions, details = parameters.subscriptions()
    offset = parameters.integer("offset")
    limit = parameters.integer("limit")
    cid = parameters.unsigned("cid")
    state = STATE_OF_WORD.get(parameters.text("state").lower())
    if state is None:
        raise PageError(f"Error decoding state for {parameters.text('state')}")
    return ConnzOptions(
        sort=parameters.text("sort"),
        auth=auth,
        subscriptions=subscriptions,
        subscriptions_detail=details,
        offset=offset,
        limit=limit,
        cid=cid,
        mqtt_client=parameters.text("mqtt_client"),
        state=state,
        user=parameters.text("user"),
        acc=parameters.text("acc"),
    )


def build(source: MonitoredServer, options: ConnzOptions) -> Connz:
    """Return the page. Raises `PageError`."""
    _check(options)
    now_unix_ns = source.now_unix_ns()
    living = source.connections() if options.state in {OPEN, ALL} else []
    closed = source.closed_connections() if options.state in {CLOSED, ALL} else []
    if options.acc:
        living = [connection for connection in living if connection.account == options.acc]
        closed = [connection for connection in closed if connection.account == options.acc]
    total = len(living) + len(closed)
    chosen = _choose(source, options, living, closed)
    _sort(chosen, options.sort, now_unix_ns)
    offset = max(options.offset, 0)
    limit = 1 if options.cid else options.limit if options.limit > 0 else LIMIT_DEFAULT
    shown = chosen[offset : offset + limit]
    entries = [_entry(connection, now_unix_ns, options) for connection in shown]
    claims = source.facts.claims
    if options.auth and claims is not None:
        for entry, connection in zip(entries, shown, strict=True):
            _add_claims(entry, connection, claims)
    if options.subscriptions or options.subscriptions_detail:
        _add_subscriptions(source, options, entries, chosen[offset : offset + limit])
    return Connz(
        server_id=source.facts.server_id,
        now=time_text(now_unix_ns),
        num_connections=len(entries),
        total=total,
        offset=offset,
        limit=limit,
        connections=entries,
    )


def _check(options: ConnzOptions) -> None:
    if options.sort and options.sort not in _ORDERS:
        raise PageError(f"invalid sorting option: {options.sort}")
    if options.sort in {"stop", "reason"} and options.state != CLOSED:
        raise PageError(f"sort by {options.sort} only valid on closed connections")
    if options.filter_subject not in {"", ">"} and not options.acc:
        raise PageError("filter by subject only valid with account filtering")


def _choose(
    source: MonitoredServer, options: ConnzOptions, living: list[Connection], closed: list[Connection]
) -> list[Connection]:
    if options.cid:
        # A living connection is preferred; no two ever have the same id.
        return [connection for connection in (*living, *closed) if connection.id == options.cid][:1]
    if options.mqtt_client:
        # There is no MQTT here, so no connection has such a client id.
        return []
    chosen = living
    if options.filter_subject not in {"", ">"}:
        interested = _interested(source, options)
        chosen = [connection for connection in chosen if connection.id in interested]
    chosen = chosen + closed
    if options.user:
        chosen = [connection for connection in chosen if connection.user == options.user]
    return chosen


def _interested(source: MonitoredServer, options: ConnzOptions) -> set[int]:
    """Return the connections of the account whose subscriptions meet the wanted subject."""
    listed = source.subscriptions(SubscriptionQuery(account=options.acc)).subscriptions
    return {each.connection_id for each in listed if overlap(options.filter_subject, each.subject)}


_ORDERS: dict[str, tuple[Callable[[Connection, int], Any], bool]] = {
    "cid": (lambda connection, _: connection.id, False),
    "start": (lambda connection, _: connection.id, False),
    "subs": (lambda connection, _: connection.subscriptions, True),
    "pending": (lambda connection, _: connection.pending_bytes, True),
    "msgs_to": (lambda connection, _: connection.traffic.out_messages, True),
    "msgs_from": (lambda connection, _: connection.traffic.in_messages, True),
    "bytes_to": (lambda connection, _: connection.traffic.out_bytes, True),
    "bytes_from": (lambda connection, _: connection.traffic.in_bytes, True),
    "last": (lambda connection, _: connection.last_activity_unix_ns, True),
    "idle": (lambda connection, now_ns: now_ns - connection.last_activity_unix_ns, True),
    "uptime": (lambda connection, now_ns: _end_of(connection, now_ns) - connection.started_unix_ns, False),
    "stop": (lambda connection, _: connection.stopped_unix_ns or 0, True),
    "reason": (lambda connection, _: connection.reason, False),
    "rtt": (lambda connection, _: connection.round_trip_ns, True),
}
"""How each word of `sort` orders: by what, and whether the largest comes first."""


def _sort(connections: list[Connection], word: str, now_unix_ns: int) -> None:
    connections.sort(key=lambda connection: connection.id)
    if word:
        value_of, largest_first = _ORDERS[word]
        connections.sort(key=lambda connection: value_of(connection, now_unix_ns), reverse=largest_first)


def _end_of(connection: Connection, now_unix_ns: int) -> int:
    return now_unix_ns if connection.stopped_unix_ns is None else connection.stopped_unix_ns


def _entry(connection: Connection, now_unix_ns: int, options: ConnzOptions) -> ConnectionEntry:
    end_unix_ns = _end_of(connection, now_unix_ns)
    traffic = connection.traffic
    entry = ConnectionEntry(
        cid=connection.id,
        kind=KINDS[connection.connection_type],
        type=CLIENT_TYPES[connection.connection_type],
        ip=connection.ip,
        port=connection.port,
        start=time_text(connection.started_unix_ns),
        last_activity=time_text(connection.last_activity_unix_ns),
        stop="" if connection.stopped_unix_ns is None else time_text(connection.stopped_unix_ns),
        reason=connection.reason,
        rtt=duration_text(connection.round_trip_ns),
        uptime=uptime_text(end_unix_ns - connection.started_unix_ns),
        idle=uptime_text(end_unix_ns - connection.last_activity_unix_ns),
        pending_bytes=connection.pending_bytes,
        in_msgs=traffic.in_messages,
        out_msgs=traffic.out_messages,
        in_bytes=traffic.in_bytes,
        out_bytes=traffic.out_bytes,
        stalls=connection.stalls,
        subscriptions=connection.subscriptions,
        name=connection.name,
        lang=connection.language,
        version=connection.version,
        tls_version=connection.tls_version,
        tls_cipher_suite=connection.tls_cipher,
    )
    if options.auth:
        entry.authorized_user = connection.user
        is_global = connection.account == GLOBAL_ACCOUNT
        entry.account = "" if is_global else connection.account
        entry.name_tag = "" if is_global and connection.stopped_unix_ns is not None else connection.account
    return entry


def _add_claims(entry: ConnectionEntry, connection: Connection, claims: ClaimsFacts) -> None:
    entry.name_tag = claims.account_name(connection.account)
    user = claims.user(connection.details)
    if user is not None:
        entry.jwt, entry.issuer_key, entry.tags = user.jwt, user.issuer_key, user.tags


def _add_subscriptions(
    source: MonitoredServer, options: ConnzOptions, entries: list[ConnectionEntry], connections: list[Connection]
) -> None:
    of_connection: dict[int, list[Subscription]] = {}
    living = [connection.id for connection in connections if connection.stopped_unix_ns is None]
    if living:
        for subscription in source.subscriptions(SubscriptionQuery(connection_ids=living)).subscriptions:
            of_connection.setdefault(subscription.connection_id, []).append(subscription)
    for entry, connection in zip(entries, connections, strict=True):
        subscriptions = of_connection.get(connection.id, connection.last_subscriptions)
        if options.subscriptions_detail:
            entry.subscriptions_list_detail = [SubscriptionDetail.of(each) for each in subscriptions]
        else:
            entry.subscriptions_list = [each.subject for each in subscriptions]
