"""`jetlake bench`: from options to a plan, and the two forms of its answer."""

import json

import pytest
from typer.testing import CliRunner

from jetlake.cli.app import create
from jetlake.cli.bench import Workload, make_plan
from jetlake.client.access import Access


def plan_of(workload, server="nats://127.0.0.1:4222", publishers=None, subscribers=None):
    return make_plan(
        Access(url=server), workload, publishers, subscribers, clients=4, size=16, messages=10, subject="s"
    )


@pytest.mark.parametrize(
    ("workload", "native", "publishers", "subscribers"),
    [
        (Workload.PUBLISH, "publish", 1, 0),
        (Workload.PUBSUB, "pubsub", 1, 1),
        (Workload.FANOUT, "pubsub", 1, 4),
        (Workload.FANIN, "pubsub", 4, 1),
        (Workload.REQUEST, "request", 1, 1),
        (Workload.STORE, "store", 1, 0),
    ],
)
def test_named_shapes_become_numbers(workload, native, publishers, subscribers):
    plan = plan_of(workload)

    assert (plan.workload, plan.publishers, plan.subscribers) == (native, publishers, subscribers)


def test_given_numbers_win_over_the_shape():
    plan = plan_of(Workload.FANOUT, publishers=2, subscribers=9)

    assert (plan.publishers, plan.subscribers) == (2, 9)


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("nats://127.0.0.1:4333", ("127.0.0.1:4333", None, None, None)),
        ("localhost", ("localhost:4222", None, None, None)),
        ("nats://ada:secret@host:1", ("host:1", "ada", "secret", None)),
        ("nats://t0ken@host", ("host:4222", None, None, "t0ken")),
        ("nats://[::1]:5", ("[::1]:5", None, None, None)),
        ("nats://ada:p%40ss@host:1", ("host:1", "ada", "p@ss", None)),
    ],
)
def test_address_and_credentials_come_from_the_url(server, expected):
    plan = plan_of(Workload.PUBSUB, server=server)

    assert (plan.url, plan.user, plan.password, plan.token) == expected


def test_table_is_plain_text_when_piped(jetlake_server):
    answer = CliRunner().invoke(create(), ["bench", "--server", jetlake_server.url, "--messages", "100000"])

    assert answer.exit_code == 0, answer.output
    assert "delivered per second" in answer.output
    assert "│" not in answer.output


def test_json_is_one_object(jetlake_server):
    words = ["bench", "--server", jetlake_server.url, "--workload", "fanout", "--messages", "100000", "--json"]

    answer = CliRunner().invoke(create(), words)

    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.output)["delivered"] == 400_000


def test_failure_is_one_line_and_exit_code_1(jetlake_server):
    url = jetlake_server.url
    jetlake_server.stop()

    answer = CliRunner().invoke(create(), ["bench", "--server", url, "--messages", "10"])

    assert answer.exit_code == 1
    assert answer.stderr.startswith("jetlake bench: ")
    assert len(answer.stderr.splitlines()) == 1
