"""`jetlake top`: over NATS from both servers, and from monitoring pages."""

import json

from typer.testing import CliRunner

import jetlake
from jetlake.cli.app import create
from tests.cli.conftest import asked_until


def answered(cli, *words):
    """Return what `top` prints as soon as the server has answered in the second that it waits."""
    answer = asked_until(lambda: cli("top", *words), lambda answer: answer.exit_code == 0)
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def test_server_is_asked_for_its_connections(cli):
    head, *lines = answered(cli, "--connection-name", "the one that looks").splitlines()

    assert head.startswith("cid\taddress\tname\taccount\tsubs\tpending\tmsgs to\tmsgs from\tbytes to\tbytes from")
    assert [line.split("\t")[2] for line in lines] == ["the one that looks"]
    # The server may still have the connection before.
    page = asked_until(lambda: json.loads(answered(cli, "--json")), lambda page: page["num_connections"] == 1)
    assert page["num_connections"] == 1


def test_rates_are_those_between_two_looks(cli):
    text = answered(cli, "--max-refresh", "2", "--interval", "50ms", "--batch")

    heads = [number for number, line in enumerate(text.splitlines()) if line.startswith("cid\t")]
    assert len(heads) == 2
    first, second = (text.splitlines()[number + 1].split("\t") for number in heads)
    assert (first[10], first[11]) == ("", "")
    assert second[11].isdecimal()


def test_monitoring_pages_are_read():
    with jetlake.Server(monitor_port=0) as server:
        port = server.monitor_url.rpartition(":")[2]

        answer = CliRunner().invoke(create(), ["top", "--monitor", port, "--json", "--sort", "bytes_to"])

    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.output)["num_connections"] == 0


def test_pages_that_are_not_there_are_told():
    answer = CliRunner().invoke(create(), ["top", "--monitor", "1"])

    assert answer.exit_code == 1
    assert "jetlake top: cannot read http://127.0.0.1:1/connz" in answer.stderr


def test_unknown_order_is_wrong_usage(cli):
    assert cli("top", "--sort", "colour").exit_code == 2


def test_process_looks_once_in_a_pipe(process):
    # The server may still have a connection before.
    answer = asked_until(lambda: process("top"), lambda answer: len(answer.stdout.splitlines()) == 2)

    assert answer.returncode == 0
    assert len(answer.stdout.splitlines()) == 2
