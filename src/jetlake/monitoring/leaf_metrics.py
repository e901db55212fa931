"""The figures of leaf connections for Prometheus: the state of each configured hub, and the traffic of each link.

Invariant: hubs are as many as the configuration names; links are named up to `LINKS_MAX`, and how many are left out is
a figure, too.
"""

from collections.abc import Callable, Iterator

from jetlake.monitoring import prometheus
from jetlake.monitoring.prometheus import MetricFamily, Sample, single
from jetlake.monitoring.readings import MonitoredServer
from jetlake.shared.engine_reports import LeafLink, LeafRemoteState, Statistics
from jetlake.shared.go_text import NANOSECONDS_PER_SECOND

LINKS_MAX = 1_000
"""Links that have figures of their own: more leaf nodes than most hubs have, and a page that is read in a moment."""


def leaf_families(source: MonitoredServer, _statistics: Statistics) -> Iterator[MetricFamily]:
    """Yield how hubs stand and what goes over links; nothing on a server that is neither a hub nor a leaf node."""
    if source.facts.leaf is None:
        return
    yield from _remote_families(source.leaf_remotes())
    yield from _link_families(sorted(source.leaf_links(), key=lambda link: link.id))


def _remote_families(states: list[LeafRemoteState]) -> Iterator[MetricFamily]:
    # The place in the configuration tells apart two remotes with the same addresses.
    labels = [
        {"account": state.account, "remote": ",".join(state.urls), "number": str(number)}
        for number, state in enumerate(states, 1)
    ]

    def family(
        name: str, kind: prometheus.Kind, text: str, value_of: Callable[[LeafRemoteState], float]
    ) -> MetricFamily:
        samples = [Sample(value_of(state), label) for state, label in zip(states, labels, strict=True)]
        return MetricFamily(f"jetlake_leaf_remote_{name}", kind, text, samples)

    text = "1 if the server is connected to this hub, else 0."
    yield family("connected", "gauge", text, lambda each: int(each.is_connected))
    yield family("attempts_total", "counter", "Attempts to connect to this hub.", lambda each: each.attempts)
    text = "When the server connected to this hub, lost it or failed to connect, as unix time."
    yield family("changed_seconds", "gauge", text, lambda each: each.changed_unix_ns / NANOSECONDS_PER_SECOND)


def _link_families(links: list[LeafLink]) -> Iterator[MetricFamily]:
    named = links[:LINKS_MAX]
    labels = [
        {"account": link.account, "server": link.name, "role": "spoke" if link.is_spoke else "hub", "id": str(link.id)}
        for link in named
    ]

    def family(name: str, kind: prometheus.Kind, text: str, value_of: Callable[[LeafLink], float]) -> MetricFamily:
        samples = [Sample(value_of(link), label) for link, label in zip(named, labels, strict=True)]
        return MetricFamily(f"jetlake_leaf_{name}", kind, text, samples)

    yield single("jetlake_leaf_links", "gauge", "Connections to hubs and of leaf nodes.", len(links))
    text = "Links that are not named below, because there are too many."
    yield single("jetlake_leaf_links_left_out", "gauge", text, len(links) - len(named))
    text = "Messages from the other side of the link."
    yield family("received_messages_total", "counter", text, lambda each: each.in_messages)
    text = "Bytes of messages from the other side of the link."
    yield family("received_bytes_total", "counter", text, lambda each: each.in_bytes)
    yield family("sent_messages_total", "counter", "Messages to the other side.", lambda each: each.out_messages)
    yield family("sent_bytes_total", "counter", "Bytes of messages to the other side.", lambda each: each.out_bytes)
    yield family("pending_bytes", "gauge", "Bytes that wait for the other side.", lambda each: each.pending_bytes)
    yield family("subscriptions", "gauge", "Subjects that the other side wants.", lambda each: each.subscriptions)
    text = "Round trip to the other side and back."
    yield family("round_trip_seconds", "gauge", text, lambda each: each.round_trip_ns / NANOSECONDS_PER_SECOND)
