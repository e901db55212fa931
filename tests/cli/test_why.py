"""`jetlake why` against a real server: the reason it gives is the one there is."""

import asyncio
import json

import nats
import pytest
from nats.js.api import AckPolicy, ConsumerConfig
from typer.testing import CliRunner

import jetlake
from jetlake.cli.app import create

WAIT_S_MAX = 60


@pytest.fixture
def server(tmp_path):
    with jetlake.Server(jetstream=True, store_directory=tmp_path) as running:
        yield running


def prepare(server, work):
    """Do something with a stream ORDERS of ten messages."""

    async def connected():
        connection = await nats.connect(server.url)
        js = connection.jetstream()
        await js.add_stream(name="ORDERS", subjects=["orders.>"])
        for number in range(10):
            await js.publish(f"orders.{number}", b"")
        await work(connection, js)
        await connection.close()

    asyncio.run(connected())


def reasons(server, *names):
    answer = CliRunner().invoke(create(), ["why", *names, "--json", "--server", server.url])
    assert answer.exit_code == 0, answer.output
    return {reason["code"]: reason for reason in json.loads(answer.output)}


async def add(js, **options):
    await js.add_consumer("ORDERS", ConsumerConfig(durable_name="C", ack_policy=AckPolicy.EXPLICIT, **options))


def test_consumer_that_nobody_asks(server):
    async def work(_connection, js):
        await add(js)

    prepare(server, work)

    (reason,) = reasons(server, "ORDERS", "C").values()
    assert reason["code"] == "no_request"
    assert "10 messages are waiting" in reason["text"]
    assert reason["command"] == "jetlake consumer next ORDERS C"


def test_consumer_whose_clients_do_not_acknowledge(server):
    async def work(connection, js):
        await add(js, max_ack_pending=3)
        subscription = await js.pull_subscribe_bind("C", "ORDERS")
        await subscription.fetch(3, timeout=WAIT_S_MAX)
        with pytest.raises(TimeoutError):
            await subscription.fetch(1, timeout=0.5)
        # The server has seen the request that it cannot fulfil.
        await connection.flush()

    prepare(server, work)

    found = reasons(server, "ORDERS", "C")
    assert next(iter(found)) == "max_ack_pending"
    assert found["max_ack_pending"]["text"].startswith("3 messages are with clients and not acknowledged")
    assert found["max_ack_pending"]["command"] == "jetlake consumer edit ORDERS C --max-pending 6"


def test_filter_that_matches_nothing(server):
    async def work(_connection, js):
        await add(js, filter_subject="orders.none")

    prepare(server, work)

    assert reasons(server, "ORDERS", "C")["no_match"]["text"] == (
        "None of the 10 messages of the stream matches the filter orders.none."
    )


def test_paused_consumer(server):
    async def work(connection, js):
        await add(js)
        await connection.request("$JS.API.CONSUMER.PAUSE.ORDERS.C", b'{"pause_until":"2100-01-01T00:00:00Z"}')

    prepare(server, work)

    found = reasons(server, "ORDERS", "C")
    assert list(found) == ["paused"]
    assert "2100-01-01T00:00:00Z" in found["paused"]["text"]
    assert found["paused"]["command"] == "jetlake consumer resume ORDERS C"


def test_push_consumer_without_a_subscriber(server):
    async def work(_connection, js):
        await add(js, deliver_subject="to.me")

    prepare(server, work)

    assert reasons(server, "ORDERS", "C")["no_subscriber"]["command"] == "jetlake sub to.me"


def test_consumer_that_has_delivered_everything(server):
    async def work(_connection, js):
        await add(js)
        subscription = await js.pull_subscribe_bind("C", "ORDERS")
        for message in await subscription.fetch(10, timeout=WAIT_S_MAX):
            await message.ack_sync(WAIT_S_MAX)

    prepare(server, work)

    assert list(reasons(server, "ORDERS", "C")) == ["caught_up"]


def test_stream_that_is_full(server):
    async def work(connection, _js):
        config = {"name": "ORDERS", "subjects": ["orders.>"], "max_msgs": 10, "discard": "new"}
        await connection.request("$JS.API.STREAM.UPDATE.ORDERS", json.dumps(config).encode())

    prepare(server, work)

    (reason,) = reasons(server, "ORDERS").values()
    assert reason["code"] == "max_msgs"
    assert "new ones are refused" in reason["text"]


def test_unknown_consumer_is_an_error_in_words(server):
    async def work(_connection, _js):
        return

    prepare(server, work)

    answer = CliRunner().invoke(create(), ["why", "ORDERS", "nobody", "--server", server.url])

    assert answer.exit_code == 1
    assert "consumer not found" in answer.output


def test_sentences_are_printed_with_the_command_below(server):
    async def work(_connection, js):
        await add(js)

    prepare(server, work)

    answer = CliRunner().invoke(create(), ["why", "ORDERS", "C", "--server", server.url])

    assert answer.output == ("No client is pulling. 10 messages are waiting.\n  jetlake consumer next ORDERS C\n")
