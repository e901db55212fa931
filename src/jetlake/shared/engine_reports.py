"""What the engine reports about itself, as typed values: figures, subscriptions, connections, streams.

The engine hands out JSON (crates/engine/src/routing/monitoring/statistics.rs); these structs are its Python side.
Times are unix nanoseconds.
"""

import msgspec

GLOBAL_ACCOUNT = "$G"

CLIENT_TYPES = {"STANDARD": "nats", "WEBSOCKET": "websocket", "LEAFNODE": "", "LEAFNODE_WS": "", "INPROCESS": "nats"}
"""How pages and events name the ways to connect, by the engine's names; leaf nodes are not clients."""

KINDS = {name: "Leafnode" if name.startswith("LEAFNODE") else "Client" for name in CLIENT_TYPES}
"""How they name what is connected."""


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """Messages and bytes as seen from the server: `in` came from clients."""

    in_messages: int = 0
    in_bytes: int = 0
    out_messages: int = 0
    out_bytes: int = 0


class Routing(msgspec.Struct, frozen=True, kw_only=True):
    """How an account's subjects were looked up."""

    inserts: int = 0
    removes: int = 0
    # Lookups that walked the tree, because no cache knew the subject.
    walks: int = 0
    fanout_total: int = 0
    fanout_max: int = 0


class AccountStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one account."""

    name: str
    connections: int = 0
    total_connections: int = 0
    subscriptions: int = 0
    slow_consumers: int = 0
    traffic: Traffic = Traffic()
    routing: Routing = Routing()


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of the whole engine."""

    started_unix_ns: int
    worker_threads: int
    connections: int = 0
    total_connections: int = 0
    subscriptions: int = 0
    pending_bytes: int = 0
    slow_consumers: int = 0
    stale_connections: int = 0
    # How often a publisher was held back for a slow receiver.
    stalls: int = 0
    traffic: Traffic = Traffic()
    accounts: list[AccountStatistics] = []


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """One subscription. `connection_id` 0 = the server's own."""

    account: str
    subject: str
    queue: str = ""
    sid: str
    delivered: int = 0
    delivered_max: int = 0
    connection_id: int = 0


class SubscriptionList(msgspec.Struct, frozen=True, kw_only=True):
    """One page of subscriptions, and how many there are in all."""

    total: int
    subscriptions: list[Subscription]


class SubscriptionQuery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which subscriptions are wanted. Empty and None mean all of them."""

    account: str = ""
    connection_ids: list[int] | None = None
    # Only those that would get a message on this subject.
    subject: str = ""
    offset: int = 0
    limit: int | None = None


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """A connection of now, or of the past: then `stopped_unix_ns` and `reason` are set."""

    id: int
    ip: str
    port: int
    started_unix_ns: int
    last_activity_unix_ns: int
    round_trip_ns: int = 0
    pending_bytes: int = 0
    subscriptions: int = 0
    stalls: int = 0
    traffic: Traffic = Traffic()
    name: str = ""
    language: str = ""
    version: str = ""
    account: str = GLOBAL_ACCOUNT
    user: str = ""
    tls_version: str = ""
    tls_cipher: str = ""
    # A key of `CLIENT_TYPES`.
    connection_type: str = "STANDARD"
    # What the client logged in with, if the verdict over it said so.
    details: str = ""
    stopped_unix_ns: int | None = None
    reason: str = ""
    # Only of a closed connection, and only the first few: the living ones are asked for with a `SubscriptionQuery`.
    last_subscriptions: list[Subscription] = []


class LeafLink(msgspec.Struct, frozen=True, kw_only=True):
    """An open connection to a hub, or of a leaf node."""

    id: int
    # Of the other server, and its id.
    name: str
    remote_id: str
    account: str
    # This side is the leaf node.
    is_spoke: bool
    is_isolated: bool
    # This side has connected to the other.
    is_solicited: bool
    ip: str
    port: int
    round_trip_ns: int
    in_messages: int
    out_messages: int
    in_bytes: int
    out_bytes: int
    # What the other side wants.
    subscriptions: int
    # As it is in use; empty = none.
    compression: str
    cluster: str
    domain: str
    remote_account: str
    # Empty = the other side has connected.
    url: str
    started_unix_ns: int
    # What waits to be sent.
    pending_bytes: int


class LeafRemoteState(msgspec.Struct, frozen=True, kw_only=True):
    """How one of the configured hubs stands."""

    account: str
    urls: list[str]
    is_connected: bool
    # 0 = there is no connection.
    link_id: int
    # Since the start.
    attempts: int
    last_error: str
    changed_unix_ns: int
    retry_in_ms: int
    pending_bytes: int


class OneStream(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one stream."""

    account: str
    stream: str
    messages: int
    bytes: int
    last_sequence: int
    consumers: int


class OneConsumer(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one consumer."""

    account: str
    stream: str
    consumer: str
    pending: int
    ack_pending: int
    redelivered: int
    waiting: int
    # When the oldest message that is delivered and not acknowledged was stored, in unix nanoseconds; 0 = there is none.
    oldest_unacknowledged_ns: int


class StreamFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of all streams and consumers, as many as the engine names."""

    streams: list[OneStream]
    consumers: list[OneConsumer]
    streams_left_out: int
    consumers_left_out: int
    sync_bounds_micros: list[int]
    # One more than there are bounds.
    sync_counts: list[int]
    sync_total_ns: int
