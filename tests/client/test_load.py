"""The native load generator."""

import asyncio
import json

import nats
import pytest

import jetlake
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


@pytest.fixture
def stream():
    """A server and its stream: what is asked of the API, by subject below `STREAM.`."""
    with jetlake.Server(jetstream=True) as server:

        async def ask(subject, request):
            client = await nats.connect(server.url)
            try:
                answer = await client.request(f"$JS.API.STREAM.{subject}", json.dumps(request).encode(), timeout=10)
            finally:
                await client.close()
            return json.loads(answer.data)

        def of(subject, **request):
            return asyncio.run(ask(subject, request))

        of.port = server.port
        yield of


def create(stream, **config):
    answer = stream("CREATE.S", name="S", subjects=["bench", "bench.*"], **config)
    assert "error" not in answer, answer


def test_stored_messages_are_acknowledged_and_timed(stream):
    create(stream)

    figures = load.run(plan(stream, workload="store", publishers=3, messages=5_000, in_flight=100, message_ids=True))

    assert (figures.published, figures.delivered) == (15_000, 15_000)
    assert figures.latency_us is not None
    assert stream("INFO.S")["state"]["messages"] == 15_000


def test_subjects_of_a_store_are_used_equally_often(stream):
    create(stream, max_msgs_per_subject=1)

    load.run(plan(stream, workload="store", messages=2_000, in_flight=50, subjects=500))

    state = stream("INFO.S")["state"]
    assert (state["messages"], state["num_subjects"], state["last_seq"]) == (500, 500, 2_000)


def test_atomic_batches_are_committed_as_a_whole(stream):
    create(stream, allow_atomic=True)

    figures = load.run(plan(stream, workload="store", messages=1_000, in_flight=200, atomic_batch=50))

    assert figures.delivered == 1_000
    assert stream("INFO.S")["state"]["messages"] == 1_000


@pytest.mark.parametrize(
    ("config", "reason"),
    [({"max_msgs": 10, "discard": "new"}, "maximum messages exceeded"), (None, "NATS/1.0 503")],
)
def test_message_that_is_not_stored_fails_the_run(stream, config, reason):
    if config is not None:
        create(stream, **config)

    with pytest.raises(ClientError, match=reason):
        load.run(plan(stream, workload="store", messages=100, in_flight=5))


@pytest.mark.parametrize("get", ["sequential", "random", "last"])
def test_stored_messages_are_read_one_by_one(stream, get):
    create(stream, allow_direct=True)
    load.run(plan(stream, workload="store", messages=100, in_flight=100, subjects=10))

    figures = load.run(
        plan(
            stream,
            workload="directget",
            messages=1_000,
            in_flight=20,
            subjects=10,
            stream="S",
            get=get,
            sequences=100,
        )
    )

    assert figures.delivered == 1_000
    assert figures.latency_us is not None


def test_message_that_is_not_found_fails_the_run(stream):
    create(stream, allow_direct=True)
    load.run(plan(stream, workload="store", messages=10, in_flight=10))

    with pytest.raises(ClientError, match="404 Message Not Found"):
        load.run(plan(stream, workload="directget", messages=20, get="sequential", stream="S", sequences=11))


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
        ({"workload": "store", "in_flight": 0}, "in_flight is 0"),
        ({"workload": "store", "messages": 10, "atomic_batch": 3}, "no whole batches of 3"),
        ({"workload": "directget"}, "has no stream"),
    ],
)
def test_plan_that_cannot_work_is_refused(fields, message):
    with pytest.raises(ConfigurationError, match=message):
        load.Plan(**{"url": "127.0.0.1:1", "workload": "pubsub", **fields})
