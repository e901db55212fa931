"""The native load generator."""

import pytest

from jetlake.client import load
from jetlake.errors import ClientError, ConfigurationError


def plan(server, **fields):
    return load.Plan(url=f"127.0.0.1:{server.port}", **{"messages": 100_000, **fields})


def test_every_message_reaches_every_subscriber(jetlake_server):
    figures = load.run(plan(jetlake_server, workload="pubsub", publishers=2, subscribers=3))

    assert figures.published == 200_000
    assert figures.delivered == 600_000
    assert figures.seconds > 0


def test_publishing_to_nobody_delivers_nothing(jetlake_server):
    figures = load.run(plan(jetlake_server, workload="publish", subscribers=0))

    assert figures.published == 100_000
    assert figures.delivered == 0


def test_requests_are_timed(jetlake_server):
    figures = load.run(plan(jetlake_server, workload="request", messages=200))

    assert figures.latency_us is not None
    assert 0 < figures.latency_us.p50 <= figures.latency_us.p99 <= figures.latency_us.max


def test_no_server_is_a_client_error(jetlake_server):
    nowhere = plan(jetlake_server, workload="publish", subscribers=0)
    jetlake_server.stop()

    with pytest.raises(ClientError, match=r"publish at 127\.0\.0\.1:"):
        load.run(nowhere)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"publishers": 0}, "publishers is 0: it must be at least 1"),
        ({"messages": 0}, "messages is 0"),
        ({"payload_bytes": -1}, "payload_bytes is -1"),
        ({"subscribers": 0}, "has no subscribers"),
    ],
)
def test_plan_that_cannot_work_is_refused(fields, message):
    with pytest.raises(ConfigurationError, match=message):
        load.Plan(**{"url": "127.0.0.1:1", "workload": "pubsub", **fields})
