"""`/metrics`: the figures of `/varz`, `/accstatz` and `/jsz` for Prometheus, under names of our own.

Each collector returns the families of one subject. What comes later (sizes and lag of streams, the age of the oldest
unacknowledged message, the latency of syncs as a `prometheus.histogram`) is one more collector in `COLLECTORS`.

Invariant: the only labels are accounts and pages, whose number the configuration bounds; clients cannot add any.
"""

from collections.abc import Callable, Iterator

from jetlake._engine import __version__
from jetlake.monitoring import healthz, jsz, prometheus
from jetlake.monitoring.go_text import NANOSECONDS_PER_SECOND
from jetlake.monitoring.prometheus import Family, Sample, single
from jetlake.monitoring.readings import AccountStatistics, Source, Statistics
from jetlake.monitoring.usage import resident_bytes

Collector = Callable[[Source, Statistics], Iterator[Family]]


def page(source: Source) -> str:
    """Return the page."""
    # Read once: the families of one page agree with each other.
    statistics = source.statistics()
    return prometheus.render(family for collect in COLLECTORS for family in collect(source, statistics))


def server_families(source: Source, statistics: Statistics) -> Iterator[Family]:
    """Yield what this server is and how it is."""
    facts = source.facts
    labels = {"version": __version__, "nats_version": facts.version, "server_name": facts.server_name}
    yield Family("jetlake_build_info", "gauge", "Always 1; the labels say which server this is.", [Sample(1, labels)])
    started_s = statistics.started_unix_ns / NANOSECONDS_PER_SECOND
    uptime_s = max(0.0, source.now_unix_ns() / NANOSECONDS_PER_SECOND - started_s)
    yield single("jetlake_start_time_seconds", "gauge", "When the server started, as unix time.", started_s)
    yield single("jetlake_uptime_seconds", "gauge", "How long the server has been running.", uptime_s)
    healthy = healthz.build(source, healthz.HealthzOptions()).status_code == healthz.OK
    yield single("jetlake_healthy", "gauge", "1 if /healthz says ok, else 0.", int(healthy))


def process_families(source: Source, _statistics: Statistics) -> Iterator[Family]:
    """Yield what the process costs."""
    text = "Processor time used by the process."
    yield single("jetlake_process_cpu_seconds_total", "counter", text, source.usage.processor_seconds())
    text = "Memory the process holds."
    yield single("jetlake_process_resident_memory_bytes", "gauge", text, resident_bytes())
    pages = [Sample(count, {"path": path}) for path, count in sorted(source.page_requests.items())]
    yield Family("jetlake_http_requests_total", "counter", "Requests for pages of monitoring.", pages)


def client_families(source: Source, statistics: Statistics) -> Iterator[Family]:
    """Yield what clients do, all accounts together."""
    traffic = statistics.traffic
    yield single("jetlake_connections", "gauge", "Clients that are connected.", statistics.connections)
    yield single("jetlake_connections_total", "counter", "Clients that ever connected.", statistics.total_connections)
    yield single("jetlake_connections_max", "gauge", "Clients that may connect.", source.facts.max_connections)
    yield single("jetlake_subscriptions", "gauge", "Subscriptions.", statistics.subscriptions)
    yield single("jetlake_pending_bytes", "gauge", "Bytes that wait for slow clients.", statistics.pending_bytes)
    yield single("jetlake_received_messages_total", "counter", "Messages from clients.", traffic.in_messages)
    yield single("jetlake_received_bytes_total", "counter", "Bytes of messages from clients.", traffic.in_bytes)
    yield single("jetlake_sent_messages_total", "counter", "Messages to clients.", traffic.out_messages)
    yield single("jetlake_sent_bytes_total", "counter", "Bytes of messages to clients.", traffic.out_bytes)
    text = "Clients that were cut off for reading too slowly."
    yield single("jetlake_slow_consumers_total", "counter", text, statistics.slow_consumers)
    text = "Clients that were cut off for answering no PING."
    yield single("jetlake_stale_connections_total", "counter", text, statistics.stale_connections)
    text = "Times a publisher was held back for a slow receiver."
    yield single("jetlake_stalls_total", "counter", text, statistics.stalls)


def account_families(_source: Source, statistics: Statistics) -> Iterator[Family]:
    """Yield what the clients of each account do."""

    def family(name: str, kind: prometheus.Kind, text: str, value_of: Callable[[AccountStatistics], int]) -> Family:
        samples = [Sample(value_of(account), {"account": account.name}) for account in statistics.accounts]
        return Family(f"jetlake_account_{name}", kind, text, samples)

    yield family("connections", "gauge", "Clients of the account.", lambda each: each.connections)
    yield family("subscriptions", "gauge", "Subscriptions of the account.", lambda each: each.subscriptions)
    text = "Messages from clients of the account."
    yield family("received_messages_total", "counter", text, lambda each: each.traffic.in_messages)
    text = "Bytes of messages from clients of the account."
    yield family("received_bytes_total", "counter", text, lambda each: each.traffic.in_bytes)
    text = "Messages to clients of the account."
    yield family("sent_messages_total", "counter", text, lambda each: each.traffic.out_messages)
    text = "Bytes of messages to clients of the account."
    yield family("sent_bytes_total", "counter", text, lambda each: each.traffic.out_bytes)
    text = "Clients of the account that were cut off for reading too slowly."
    yield family("slow_consumers_total", "counter", text, lambda each: each.slow_consumers)


def jetstream_families(source: Source, _statistics: Statistics) -> Iterator[Family]:
    """Yield what JetStream stores; nothing while it is off."""
    jetstream = source.facts.jetstream
    if jetstream is None:
        return
    usages = jsz.account_usages(source)
    figures = jsz.figures(source, usages)
    yield single("jetlake_jetstream_memory_bytes", "gauge", "Bytes of streams in memory.", figures.memory)
    yield single("jetlake_jetstream_storage_bytes", "gauge", "Bytes of streams on disk.", figures.storage)
    text = "Bytes that streams in memory may take."
    yield single("jetlake_jetstream_memory_bytes_max", "gauge", text, jetstream.max_memory_bytes)
    text = "Bytes that streams on disk may take."
    yield single("jetlake_jetstream_storage_bytes_max", "gauge", text, jetstream.max_storage_bytes)
    yield single("jetlake_jetstream_api_requests_total", "counter", "Requests to the API.", figures.api.total)
    yield single("jetlake_jetstream_api_errors_total", "counter", "Requests that were refused.", figures.api.errors)
    count = sum(len(usage.streams) for usage in usages)
    yield single("jetlake_jetstream_streams", "gauge", "Streams.", count)


COLLECTORS: tuple[Collector, ...] = (
    server_families,
    process_families,
    client_families,
    account_families,
    jetstream_families,
)
