"""The events of the system account: their subjects and their JSON.

| subject                                                            | when                                   |
|--------------------------------------------------------------------|----------------------------------------|
| `$SYS.ACCOUNT.<account>.CONNECT`                                   | a client was let in                    |
| `$SYS.ACCOUNT.<account>.LEAFNODE.CONNECT`                          | a leaf node was let in, or a hub is    |
|                                                                    | connected to                           |
| `$SYS.ACCOUNT.<account>.DISCONNECT`                                | a client has gone                      |
| `$SYS.SERVER.<id>.CLIENT.AUTH.ERR`                                 | a client was refused                   |
| `$SYS.ACCOUNT.CLIENT.AUTH.ERR`, in the account of a service        | it was asked about a client, which was |
|                                                                    | refused                                |
| `$SYS.ACCOUNT.<account>.SERVER.CONNS`, and with a name of before   | an account has more or fewer clients   |

Invariant: an event says who a client is and where it comes from, never with what it proved that.
"""

import secrets
from typing import Any

import msgspec

from jetlake.monitoring.accstatz import DirectionFigures, MessageFigures, account_figures
from jetlake.monitoring.claims_facts import ClaimsFacts, ShownUser
from jetlake.monitoring.statsz import ServerInformation
from jetlake.shared.engine_reports import CLIENT_TYPES, KINDS, AccountStatistics, Connection, LeafLink
from jetlake.shared.go_text import time_text

TYPE_PREFIX = "io.nats.server.advisory.v1."

LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ID_LENGTH = 22
"""nats-server's: 131 random bits, so that no two are ever equal."""

connection_decoder = msgspec.json.Decoder(Connection)


class ClientInformation(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Who a client is."""

    start: str
    host: str
    id: int
    acc: str
    user: str = ""
    name: str = ""
    lang: str = ""
    ver: str = ""
    rtt: int = 0
    stop: str = ""
    jwt: str = ""
    issuer_key: str = ""
    name_tag: str
    tags: list[str] = []
    kind: str
    client_type: str = ""


class ConnectAdvisory(msgspec.Struct, kw_only=True):
    """A client was let in."""

    type: str
    id: str
    timestamp: str
    server: ServerInformation
    client: ClientInformation


class LeafAdvisory(msgspec.Struct, kw_only=True):
    """A leaf node was let in, or a hub is connected to."""

    server: ServerInformation
    acc: str


class DisconnectAdvisory(ConnectAdvisory, kw_only=True):
    """A client has gone, or was refused. `sent` is what it sent."""

    sent: MessageFigures
    received: MessageFigures
    reason: str


class CountsAdvisory(msgspec.Struct, kw_only=True):
    """How many clients an account has, with its figures."""

    type: str
    id: str
    timestamp: str
    server: ServerInformation
    acc: str
    name: str
    conns: int
    leafnodes: int
    total_conns: int
    num_subscriptions: int
    sent: DirectionFigures
    received: DirectionFigures
    slow_consumers: int


def connect_advisory(
    connection: Connection, server: ServerInformation, claims: ClaimsFacts | None = None
) -> ConnectAdvisory:
    """Return the event of an arrival."""
    return ConnectAdvisory(**_head("client_connect", server), client=_client(connection, claims, gone=False))


def disconnect_advisory(
    connection: Connection, server: ServerInformation, claims: ClaimsFacts | None = None
) -> DisconnectAdvisory:
    """Return the event of a departure or a refusal."""
    traffic = connection.traffic
    return DisconnectAdvisory(
        **_head("client_disconnect", server),
        client=_client(connection, claims, gone=True),
        sent=MessageFigures(msgs=traffic.in_messages, bytes=traffic.in_bytes),
        received=MessageFigures(msgs=traffic.out_messages, bytes=traffic.out_bytes),
        reason=connection.reason,
    )


def counts_advisory(
    account: AccountStatistics, server: ServerInformation, name: str, links: list[LeafLink]
) -> CountsAdvisory:
    """Return the event with the figures of an account, and what people call it."""
    figures = msgspec.structs.asdict(account_figures(account, name, links))
    return CountsAdvisory(**_head("account_connections", server), **figures)


def counts_subjects(account: str) -> tuple[str, str]:
    """Return where the figures of an account are published: the name of before first, as nats-server does."""
    return f"$SYS.SERVER.ACCOUNT.{account}.CONNS", f"$SYS.ACCOUNT.{account}.SERVER.CONNS"


def _head(kind: str, server: ServerInformation) -> dict[str, Any]:
    identifier = "".join(secrets.choice(LETTERS) for _ in range(ID_LENGTH))
    return {"type": f"{TYPE_PREFIX}{kind}", "id": identifier, "timestamp": server.time, "server": server}


def _client(connection: Connection, claims: ClaimsFacts | None, *, gone: bool) -> ClientInformation:
    stopped_unix_ns = connection.stopped_unix_ns
    user = (claims.user(connection.details) if claims else None) or ShownUser()
    return ClientInformation(
        start=time_text(connection.started_unix_ns),
        host=connection.ip,
        id=connection.id,
        acc=connection.account,
        user=connection.user,
        name=connection.name,
        lang=connection.language,
        ver=connection.version,
        rtt=connection.round_trip_ns if gone else 0,
        stop=time_text(stopped_unix_ns) if gone and stopped_unix_ns is not None else "",
        jwt=user.jwt,
        issuer_key=user.issuer_key,
        name_tag=claims.account_name(connection.account) if claims else connection.account,
        tags=user.tags,
        kind=KINDS[connection.connection_type],
        client_type=CLIENT_TYPES[connection.connection_type],
    )
