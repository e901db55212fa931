"""The bodies that only the system account asks for: who a server is, and its statistics in short.

`server_information` heads every reply and event of the system account; `build` is the body of `STATSZ`. Numbers and
times are those of `/varz`.
"""

import msgspec

from jetlake.monitoring import varz
from jetlake.monitoring.accstatz import MessageFigures
from jetlake.monitoring.facts import ServerFacts
from jetlake.monitoring.readings import MonitoredServer
from jetlake.monitoring.usage import processor_count, resident_bytes
from jetlake.shared.go_text import time_text

JETSTREAM_FLAGS = 7
"""What a server with JetStream can do, as bits: JetStream, binary snapshots, accounts of their own for replication."""


class ServerIdentity(msgspec.Struct, kw_only=True):
    """The bare reply to `IDZ`."""

    name: str
    host: str
    id: str


class ServerInformation(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Which server says something; `seq` counts what it has said."""

    name: str
    host: str
    id: str
    domain: str = ""
    ver: str
    tags: list[str] = []
    metadata: dict[str, str] = {}
    feature_flags: dict[str, bool] = {}
    jetstream: bool
    flags: int
    seq: int
    time: str


class StatszOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing can be asked for."""


class Statsz(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The statistics; the fields are the keys."""

    start: str
    mem: int
    cores: int
    cpu: float
    connections: int
    total_connections: int
    active_accounts: int
    subscriptions: int
    sent: MessageFigures
    sent_to_clients: MessageFigures
    received: MessageFigures
    received_from_clients: MessageFigures
    slow_consumers: int
    active_servers: int
    jetstream: varz.JetStreamVarz | None = None
    gomaxprocs: int


def server_identity(facts: ServerFacts) -> ServerIdentity:
    """Return the reply to `IDZ`."""
    return ServerIdentity(name=facts.server_name, host=facts.host, id=facts.server_id)


def server_information(facts: ServerFacts, *, sequence: int, now_unix_ns: int) -> ServerInformation:
    """Return the head of a reply or event."""
    jetstream = facts.jetstream
    return ServerInformation(
        name=facts.server_name,
        host=facts.host,
        id=facts.server_id,
        domain="" if jetstream is None else jetstream.domain,
        ver=facts.version,
        tags=list(facts.tags),
        metadata=facts.metadata,
        feature_flags=facts.feature_flags,
        jetstream=jetstream is not None,
        flags=0 if jetstream is None else JETSTREAM_FLAGS,
        seq=sequence,
        time=time_text(now_unix_ns),
    )


def build(source: MonitoredServer, _options: StatszOptions) -> Statsz:
    """Return the body of `STATSZ`."""
    statistics = source.statistics()
    linked = {link.account for link in source.leaf_links()}
    traffic = statistics.traffic
    sent = MessageFigures(msgs=traffic.out_messages, bytes=traffic.out_bytes)
    received = MessageFigures(msgs=traffic.in_messages, bytes=traffic.in_bytes)
    return Statsz(
        start=time_text(statistics.started_unix_ns),
        mem=resident_bytes(),
        cores=processor_count(),
        cpu=source.usage.processor_percent(),
        connections=statistics.connections,
        total_connections=statistics.total_connections,
        active_accounts=sum(account.connections > 0 or account.name in linked for account in statistics.accounts),
        subscriptions=statistics.subscriptions,
        sent=sent,
        sent_to_clients=sent,
        received=received,
        received_from_clients=received,
        slow_consumers=statistics.slow_consumers,
        active_servers=1,
        jetstream=None if source.facts.jetstream is None else _jetstream_part(source),
        gomaxprocs=statistics.worker_threads,
    )


def _jetstream_part(source: MonitoredServer) -> varz.JetStreamVarz:
    part = varz.jetstream_part(source)
    if isinstance(part.config, msgspec.Struct):
        # Where a server stores is its own business, as nats-server sees it too.
        part.config.store_dir = ""
    return part
