"""The native load generator."""

import asyncio
import json

import nats
import pytest

import jetlake
from jetlake.client import load
from jetlake.errors import ClientError, ConfigurationError


def plan(server, **fields):
    return load.LoadPlan(url=f"127.0.0.1:{server.port}", **{"messages": 100_000, **fields})


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
    """A server and its stream: what is asked of the API below `STREAM.`; `consumer` asks below `CONSUMER.`."""
    with jetlake.Server(jetstream=True) as server:

        async def ask(subject, request):
            client = await nats.connect(server.url)
            try:
                answer = await client.request(f"$JS.API.{subject}", json.dumps(request).encode(), timeout=60)
            finally:
                await client.close()
            return json.loads(answer.data)

        def of(subject, **request):
            return asyncio.run(ask(f"STREAM.{subject}", request))

        of.consumer = lambda subject, **request: asyncio.run(ask(f"CONSUMER.{subject}", request))
        of.port = server.port
        yield of


def create(stream, **config):
    answer = stream("CREATE.S", name="S", subjects=["bench", "bench.*"], **config)
    assert "error" not in answer, answer


def create_consumer(stream, ack_policy):
    config = {"name": "c", "durable_name": "c", "ack_policy": ack_policy}
    answer = stream.consumer("CREATE.S.c", stream_name="S", config=config)
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


@pytest.mark.parametrize("acknowledge", ["none", "each", "read"])
@pytest.mark.parametrize(("batch", "in_flight"), [(1, 1), (10, 3), (100, 1)])
def test_consumer_is_fetched_from_in_batches(stream, acknowledge, batch, in_flight):
    create(stream)
    load.run(plan(stream, workload="store", messages=1_000, in_flight=100))
    create_consumer(stream, "none" if acknowledge == "none" else "explicit")

    figures = load.run(
        plan(
            stream,
            workload="fetch",
            messages=1_000,
            stream="S",
            consumer="c",
            batch=batch,
            in_flight=in_flight,
            acknowledge=acknowledge,
        )
    )

    assert figures.delivered == 1_000
    assert figures.latency_us is not None


def test_several_connections_share_a_consumer(stream):
    create(stream)
    load.run(plan(stream, workload="store", messages=1_000, in_flight=100))
    create_consumer(stream, "explicit")

    figures = load.run(
        plan(
            stream,
            workload="fetch",
            publishers=4,
            messages=250,
            stream="S",
            consumer="c",
            batch=25,
            in_flight=2,
            acknowledge="read",
        )
    )

    assert figures.delivered == 1_000


def test_message_that_is_not_due_fails_the_run(stream):
    create(stream)
    load.run(plan(stream, workload="store", messages=10, in_flight=10))
    create_consumer(stream, "none")

    with pytest.raises(ClientError, match="message 1 came where 3 was due"):
        load.run(plan(stream, workload="fetch", messages=5, stream="S", consumer="c", first_sequence=3))


def test_stream_is_pushed_as_a_whole(stream):
    create(stream)
    load.run(plan(stream, workload="store", messages=20_000, in_flight=1_000))

    figures = load.run(plan(stream, workload="push", publishers=2, messages=19_990, stream="S", first_sequence=11))

    assert figures.delivered == 2 * 19_990


def test_consumers_are_made(stream):
    create(stream)

    figures = load.run(plan(stream, workload="consumerscreate", publishers=2, messages=10, in_flight=4, stream="S"))

    assert figures.delivered == 20
    assert stream("INFO.S")["state"]["consumer_count"] == 20


@pytest.mark.parametrize("workload", ["push", "consumerscreate"])
def test_stream_that_is_not_there_fails_the_run(stream, workload):
    with pytest.raises(ClientError, match="stream not found"):
        load.run(plan(stream, workload=workload, messages=1, stream="S"))


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
        ({"workload": "store", "messages": 10, "atomic_batch": 3}, "cannot be divided into batches of 3"),
        ({"workload": "directget"}, "has no stream"),
        ({"workload": "push"}, "has no stream"),
        ({"workload": "fetch", "stream": "S"}, "has no consumer"),
        ({"workload": "fetch", "messages": 10, "batch": 3}, "cannot be divided into batches of 3"),
    ],
)
def test_plan_that_cannot_work_is_refused(fields, message):
    with pytest.raises(ConfigurationError, match=message):
        load.LoadPlan(**{"url": "127.0.0.1:1", "workload": "pubsub", **fields})
