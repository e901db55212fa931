"""`jetlake stream` against a real server."""

import asyncio
import json

import nats
import pytest
from typer.testing import CliRunner

import jetlake
from jetlake.cli.app import create


@pytest.fixture
def orders(tmp_path):
    """A server with a stream ORDERS of five messages, the second of which is deleted."""

    async def fill(url):
        connection = await nats.connect(url)
        config = {"name": "ORDERS", "subjects": ["orders.>"], "max_msgs": 100}
        await connection.request("$JS.API.STREAM.CREATE.ORDERS", json.dumps(config).encode())
        for number in range(1, 6):
            await connection.request(f"orders.{number}", b"%d" % number)
        await connection.request("$JS.API.STREAM.MSG.DELETE.ORDERS", b'{"seq":2}')
        await connection.close()

    with jetlake.Server(jetstream=True, store_directory=tmp_path) as server:
        asyncio.run(fill(server.url))
        yield server


def ask(url, subject, body=None):
    async def request():
        connection = await nats.connect(url)
        answer = await connection.request(subject, b"" if body is None else json.dumps(body).encode())
        await connection.close()
        return json.loads(answer.data)

    return asyncio.run(request())


def run(*arguments):
    return CliRunner().invoke(create(), ["stream", *arguments])


def test_fork_is_a_copy_up_to_a_sequence_that_takes_messages(orders):
    answer = run("fork", "ORDERS@4", "TRIAL", "--server", orders.url)

    assert answer.exit_code == 0, answer.output
    assert "messages: 3" in answer.output
    info = ask(orders.url, "$JS.API.STREAM.INFO.TRIAL", {"deleted_details": True})
    assert (info["state"]["messages"], info["state"]["last_seq"], info["state"]["deleted"]) == (3, 4, [2])
    assert (info["config"]["subjects"], info["config"]["max_msgs"]) == (["TRIAL"], 100)
    assert ask(orders.url, "TRIAL", {"new": True}) == {"stream": "TRIAL", "seq": 5}
    assert ask(orders.url, "$JS.API.STREAM.MSG.GET.TRIAL", {"seq": 4})["message"]["subject"] == "orders.4"
    assert ask(orders.url, "$JS.API.STREAM.INFO.ORDERS")["state"]["last_seq"] == 5


def test_neither_of_the_two_sees_what_happens_to_the_other(orders):
    run("fork", "ORDERS", "TRIAL", "--subject", "trial.>", "--server", orders.url)

    ask(orders.url, "$JS.API.STREAM.MSG.DELETE.ORDERS", {"seq": 3})
    ask(orders.url, "$JS.API.STREAM.PURGE.TRIAL", {"filter": "orders.5"})
    ask(orders.url, "$JS.API.STREAM.DELETE.ORDERS")

    state = ask(orders.url, "$JS.API.STREAM.INFO.TRIAL")["state"]
    assert (state["messages"], state["first_seq"], state["last_seq"]) == (3, 1, 5)
    assert ask(orders.url, "$JS.API.STREAM.MSG.GET.TRIAL", {"seq": 3})["message"]["subject"] == "orders.3"
    assert ask(orders.url, "trial.a") == {"stream": "TRIAL", "seq": 6}


def test_fork_survives_a_restart(orders, tmp_path):
    run("fork", "ORDERS@3", "TRIAL", "--server", orders.url)
    ask(orders.url, "TRIAL", {})
    orders.stop()

    with jetlake.Server(jetstream=True, store_directory=tmp_path) as again:
        state = ask(again.url, "$JS.API.STREAM.INFO.TRIAL")["state"]
        assert (state["messages"], state["last_seq"]) == (3, 4)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("NONE", "TRIAL"), 1, "stream not found (10059)"),
        (("ORDERS", "ORDERS"), 1, "stream name already in use"),
        (("ORDERS@6", "TRIAL"), 1, "the stream ends with sequence 5"),
        (("ORDERS@x", "TRIAL"), 2, "is no sequence"),
        (("ORDERS", "TRIAL", "--subject", "orders.9"), 1, "subjects overlap with an existing stream"),
        (("ORDERS", "a.b"), 1, "10"),
    ],
)
def test_what_cannot_be_forked_is_refused_in_words(orders, arguments, code, text):
    answer = run("fork", *arguments, "--server", orders.url)

    assert (answer.exit_code, text in answer.output) == (code, True), answer.output
    assert ask(orders.url, "$JS.API.STREAM.NAMES")["streams"] == ["ORDERS"]


def test_fork_as_json_is_the_answer_of_the_server(orders):
    answer = run("fork", "ORDERS", "TRIAL", "--json", "--server", orders.url)

    assert json.loads(answer.stdout)["config"]["name"] == "TRIAL"


def test_server_that_is_not_there_is_told():
    answer = run("fork", "ORDERS", "TRIAL", "--server", "nats://127.0.0.1:1")

    assert answer.exit_code == 1
    assert "cannot connect" in answer.output
