"""`/metrics` of a running server: what its streams and consumers do is there."""

import asyncio
import re
import urllib.request

import jetlake


def metrics_of(server: jetlake.Server) -> dict[str, float]:
    with urllib.request.urlopen(f"{server.monitor_url}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def test_lag_age_and_syncs_of_a_stream_that_is_read_slowly(tmp_path):
    async def work(server: jetlake.Server) -> None:
        connection = await jetlake.connect(server)
        js = connection.jetstream()
        await js.add_stream(name="S", subjects=["s"])
        for _ in range(10):
            await js.publish("s", b"12345")
        subscription = await js.pull_subscribe("s", "C")
        first, *_ = await subscription.fetch(4, timeout=60)
        await first.ack_sync(timeout=60)
        await connection.close()

    with jetlake.Server(jetstream=True, store_directory=tmp_path, monitor_port=0) as server:
        asyncio.run(work(server))
        metrics = metrics_of(server)

    of_stream = '{account="$G",stream="S"}'
    of_consumer = '{account="$G",stream="S",consumer="C"}'
    assert metrics[f"jetlake_stream_messages{of_stream}"] == 10
    assert metrics[f"jetlake_stream_bytes{of_stream}"] == 10 * (30 + 1 + 5)
    assert metrics[f"jetlake_stream_consumers{of_stream}"] == 1
    assert metrics[f"jetlake_consumer_lag_messages{of_consumer}"] == 6
    assert metrics[f"jetlake_consumer_unacknowledged_messages{of_consumer}"] == 3
    assert metrics[f"jetlake_consumer_oldest_unacknowledged_seconds{of_consumer}"] > 0
    assert metrics["jetlake_sync_seconds_count"] >= 1
    buckets = [value for name, value in metrics.items() if re.match(r"jetlake_sync_seconds_bucket", name)]
    assert buckets == sorted(buckets)
    assert buckets[-1] == metrics["jetlake_sync_seconds_count"]
