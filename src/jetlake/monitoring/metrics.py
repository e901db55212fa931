"""`/metrics`: the figures of `/varz`, `/accstatz`, `/jsz` and `/leafz` for Prometheus, under names of our own.

Each collector returns the families of one subject.

Invariant: the labels are accounts and pages, whose number the configuration bounds, and streams and consumers, of which
the engine names no more than a bound of its own; how many are left out is a figure, too.
"""

import math
from collections.abc import Callable, Iterator

from jetlake._engine import __version__
from jetlake.monitoring import healthz, jsz, prometheus
from jetlake.monitoring.leaf_metrics import leaf_families
from jetlake.monitoring.prometheus import MetricFamily, Sample, single
from jetlake.monitoring.readings import MonitoredServer
from jetlake.monitoring.usage import resident_bytes
from jetlake.shared.engine_reports import AccountStatistics, OneConsumer, OneStream, Statistics
from jetlake.shared.go_text import NANOSECONDS_PER_SECOND

Collector = Callable[[MonitoredServer, Statistics], Iterator[MetricFamily]]


def page(source: MonitoredServer) -> str:
    """Return the page."""
    # Read once: the families of one page agree with each other.
    statistics = source.statistics()
    return prometheus.render(family for collect in COLLECTORS for family in collect(source, statistics))


def server_families(source: MonitoredServer, statistics: Statistics) -> Iterator[MetricFamily]:
    """Yield what this server is and how it is."""
    facts = source.facts
    labels = {"version": __version__, "nats_version": facts.version, "server_name": facts.server_name}
    yield MetricFamily(
        "jetlake_build_info", "gauge", "Always 1; the labels say which server this is.", [Sample(1, labels)]
    )
    started_s = statistics.started_unix_ns / NANOSECONDS_PER_SECOND
    uptime_s = max(0.0, source.now_unix_ns() / NANOSECONDS_PER_SECOND - started_s)
    yield single("jetlake_start_time_seconds", "gauge", "When the server started, as unix time.", started_s)
    yield single("jetlake_uptime_seconds", "gauge", "How long the server has been running.", uptime_s)
    healthy = healthz.build(source, healthz.HealthzOptions()).status_code == healthz.OK
    yield single("jetlake_healthy", "gauge", "1 if /healthz says ok, else 0.", int(healthy))


def process_families(source: MonitoredServer, _statistics: Statistics) -> Iterator[MetricFamily]:
    """Yield what the process costs."""
    text = "Processor time used by the process."
    yield single("jetlake_process_cpu_seconds_total", "counter", text, source.usage.processor_seconds())
    text = "Memory the process holds."
    yield single("jetlake_process_resident_memory_bytes", "gauge", text, resident_bytes())
    pages = [Sample(count, {"path": path}) for path, count in sorted(source.page_requests.items())]
    yield MetricFamily("jetlake_http_requests_total", "counter", "Requests for pages of monitoring.", pages)


def client_families(source: MonitoredServer, statistics: Statistics) -> Iterator[MetricFamily]:
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


def account_families(_source: MonitoredServer, statistics: Statistics) -> Iterator[MetricFamily]:
    """Yield what the clients of each account do."""

    def family(
        name: str, kind: prometheus.Kind, text: str, value_of: Callable[[AccountStatistics], int]
    ) -> MetricFamily:
        samples = [Sample(value_of(account), {"account": account.name}) for account in statistics.accounts]
        return MetricFamily(f"jetlake_account_{name}", kind, text, samples)

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


def jetstream_families(source: MonitoredServer, _statistics: Statistics) -> Iterator[MetricFamily]:
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


def stream_families(source: MonitoredServer, _statistics: Statistics) -> Iterator[MetricFamily]:
    """Yield the sizes of streams, the lag of consumers, and how long the disk takes; nothing while JetStream is off."""
    if source.facts.jetstream is None:
        return
    figures = source.stream_figures()

    def of_streams(name: str, kind: prometheus.Kind, text: str, value_of: Callable[[OneStream], int]) -> MetricFamily:
        samples = [Sample(value_of(each), {"account": each.account, "stream": each.stream}) for each in figures.streams]
        return MetricFamily(f"jetlake_stream_{name}", kind, text, samples)

    def of_consumers(name: str, text: str, value_of: Callable[[OneConsumer], float]) -> MetricFamily:
        samples = [
            Sample(value_of(each), {"account": each.account, "stream": each.stream, "consumer": each.consumer})
            for each in figures.consumers
        ]
        return MetricFamily(f"jetlake_consumer_{name}", "gauge", text, samples)

    now_ns = source.now_unix_ns()

    def age_s(each: OneConsumer) -> float:
        since_ns = each.oldest_unacknowledged_ns
        return max(0, now_ns - since_ns) / NANOSECONDS_PER_SECOND if since_ns else 0.0

    yield of_streams("messages", "gauge", "Messages in the stream.", lambda each: each.messages)
    yield of_streams("bytes", "gauge", "Bytes of the stream.", lambda each: each.bytes)
    text = "Messages the stream has ever taken: its last sequence."
    yield of_streams("taken_messages_total", "counter", text, lambda each: each.last_sequence)
    yield of_streams("consumers", "gauge", "Consumers of the stream.", lambda each: each.consumers)
    yield of_consumers("lag_messages", "Messages the consumer has still to deliver.", lambda each: each.pending)
    text = "Messages that are delivered and not acknowledged."
    yield of_consumers("unacknowledged_messages", text, lambda each: each.ack_pending)
    text = "How long ago the oldest message that is delivered and not acknowledged was stored; 0 if there is none."
    yield of_consumers("oldest_unacknowledged_seconds", text, age_s)
    text = "Messages that were delivered more than once and are not acknowledged."
    yield of_consumers("redelivered_messages", text, lambda each: each.redelivered)
    yield of_consumers("waiting_requests", "Pull requests that wait for messages.", lambda each: each.waiting)
    text = "Streams that are not named above, because there are too many."
    yield single("jetlake_streams_left_out", "gauge", text, figures.streams_left_out)
    text = "Consumers that are not named above, because there are too many."
    yield single("jetlake_consumers_left_out", "gauge", text, figures.consumers_left_out)
    bounds = [micros / 1_000_000 for micros in figures.sync_bounds_micros]
    yield prometheus.histogram(
        "jetlake_sync_seconds",
        "How long commits have waited for the disk.",
        zip([*bounds, math.inf], figures.sync_counts, strict=True),
        figures.sync_total_ns / NANOSECONDS_PER_SECOND,
    )


COLLECTORS: tuple[Collector, ...] = (
    server_families,
    process_families,
    client_families,
    account_families,
    jetstream_families,
    stream_families,
    leaf_families,
)
