"""`/metrics` from recorded readings, read back as Prometheus reads it."""

import re

from jetlake.monitoring import metrics
from tests.monitoring.recorded import JETSTREAM, STARTED_NS, account, recorded, traffic

LABELS = r'(?:\w+="(?:[^"\\]|\\.)*",?)*'
SAMPLE = re.compile(rf"^(?P<name>[a-z_]+)(?:\{{(?P<labels>{LABELS})\}})? (?P<value>[-+0-9.e]+|\+Inf)$")


def read(text):
    """Return the value of each sample by its name and labels, and check what the format demands."""
    values, kinds = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            sample = SAMPLE.match(line)
            assert sample, line
            family = re.sub(r"_(bucket|sum|count)$", "", sample["name"])
            assert kinds.get(sample["name"]) or kinds.get(family) == "histogram", f"{line} comes before its type"
            values[sample["name"], sample["labels"] or ""] = float(sample["value"])
    assert text.endswith("\n")
    return values, kinds


def test_figures_of_the_server_and_of_each_account():
    source = recorded(
        connections=[],
        total_connections=9,
        pending_bytes=64,
        slow_consumers=2,
        traffic=traffic(1, 2, 3, 4),
        accounts=[account("$G", connections=1, traffic=traffic(5, 6, 7, 8)), account("A", slow_consumers=1)],
    )
    source.page_requests["/varz"] = 3

    values, kinds = read(metrics.page(source))

    assert values["jetlake_connections_total", ""] == 9
    assert values["jetlake_pending_bytes", ""] == 64
    assert values["jetlake_received_messages_total", ""] == 1
    assert values["jetlake_sent_bytes_total", ""] == 4
    assert values["jetlake_slow_consumers_total", ""] == 2
    assert values["jetlake_account_received_bytes_total", 'account="$G"'] == 6
    assert values["jetlake_account_slow_consumers_total", 'account="A"'] == 1
    assert values["jetlake_http_requests_total", 'path="/varz"'] == 3
    assert values["jetlake_uptime_seconds", ""] == 3_723
    assert values["jetlake_healthy", ""] == 1
    assert kinds["jetlake_connections"] == "gauge"


def test_counters_end_in_total_and_gauges_do_not():
    _, kinds = read(metrics.page(recorded(facts={"jetstream": JETSTREAM})))

    assert all(name.endswith("_total") == (kind == "counter") for name, kind in kinds.items())
    assert all(name.startswith("jetlake_") for name in kinds)


def test_jetstream_has_figures_only_while_it_is_on():
    off, _ = read(metrics.page(recorded()))
    on, _ = read(metrics.page(recorded(facts={"jetstream": JETSTREAM})))

    assert not [name for name, _ in off if "jetstream" in name]
    assert on["jetlake_jetstream_storage_bytes_max", ""] == 2_000
    assert on["jetlake_jetstream_streams", ""] == 0


def test_streams_and_consumers_are_named_with_their_lag_and_the_age_of_what_is_not_acknowledged():
    stream = {"account": "$G", "stream": "S", "messages": 7, "bytes": 700, "last_sequence": 9, "consumers": 1}
    consumer = {
        "account": "$G",
        "stream": "S",
        "consumer": "C",
        "pending": 3,
        "ack_pending": 2,
        "redelivered": 1,
        "waiting": 4,
        "oldest_unacknowledged_ns": STARTED_NS,
    }
    figures = {
        "streams": [stream],
        "consumers": [consumer],
        "consumers_left_out": 5,
        "sync_counts": [4, 2, 1],
        "sync_total_ns": 2_500_000,
    }

    samples, kinds = read(metrics.page(recorded(facts={"jetstream": JETSTREAM}, stream_figures=figures)))

    of_stream, of_consumer = 'account="$G",stream="S"', 'account="$G",stream="S",consumer="C"'
    assert samples["jetlake_stream_bytes", of_stream] == 700
    assert samples["jetlake_stream_taken_messages_total", of_stream] == 9
    assert samples["jetlake_consumer_lag_messages", of_consumer] == 3
    assert samples["jetlake_consumer_oldest_unacknowledged_seconds", of_consumer] == 3600 + 2 * 60 + 3
    assert samples["jetlake_consumers_left_out", ""] == 5
    assert kinds["jetlake_sync_seconds"] == "histogram"
    assert samples["jetlake_sync_seconds_bucket", 'le="0.001"'] == 6
    assert samples["jetlake_sync_seconds_count", ""] == 7
    assert samples["jetlake_sync_seconds_sum", ""] == 0.0025


def test_a_server_that_is_leaving_is_not_healthy():
    values, _ = read(metrics.page(recorded(facts={"accepts_clients": False})))

    assert values["jetlake_healthy", ""] == 0


def test_names_of_servers_and_accounts_cannot_forge_samples():
    evil = 'x"} 1\njetlake_connections 666\n#'

    values, _ = read(metrics.page(recorded(facts={"server_name": evil}, accounts=[account(evil)])))

    assert values["jetlake_connections", ""] == 0
