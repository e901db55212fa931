"""`jetlake stream` against both servers; what only Jetlake can do against a Jetlake."""

import asyncio
import json
from collections import deque

import nats
import pytest
from typer.testing import CliRunner

import jetlake
from jetlake.cli.app import create
from jetlake.cli.rate_graph import bars
from tests.cli.test_questions import on_a_terminal


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
        (("ORDERS@x", "TRIAL"), 2, "is not a sequence"),
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


@pytest.fixture
def stream(done, read):
    """A stream of six messages of three subjects."""
    if "LIST" in read("stream", "ls", "--names"):
        done("stream", "rm", "LIST", "--force")
    done("stream", "add", "LIST", "--subjects", "list.>", "--description", "to list")
    done("pub", "list.{{Count}}", "x", "--count", "3", "-J")
    done("pub", "list.1", "yy", "--count", "3", "-J")


def test_list_shows_what_streams_hold(done, stream):
    head, *lines = done("stream", "ls").splitlines()

    assert head.split("\t") == ["stream", "subjects", "messages", "bytes", "consumers", "last message"]
    (line,) = [line.split("\t") for line in lines if line.startswith("LIST\t")]
    assert line[1:3] == ["list.>", "6"]


def test_list_leaves_out_buckets_unless_asked(done, stream, read):
    done("stream", "add", "KV_bucket", "--subjects", "$KV.bucket.>")

    assert "KV_bucket" not in read("stream", "ls", "--names")
    assert "KV_bucket" in read("stream", "ls", "--names", "--all")
    assert read("str", "list", "-n", "--subject", "list.7") == ["LIST"]
    done("stream", "rm", "KV_bucket", "--force")


def test_info_shows_configuration_and_state(done, stream, read):
    text = done("stream", "info", "LIST")

    assert "description: to list" in text
    assert "age: unlimited" in text
    assert "messages: 6" in text
    assert read("stream", "state", "LIST")["last_seq"] == 6
    assert "retention" not in done("stream", "info", "LIST", "--state")


def test_stream_that_is_not_named_is_asked_for_or_refused(cli, stream):
    answer = cli("stream", "info")

    assert answer.exit_code == 1
    assert "no stream is named; there are: " in answer.stderr


def test_subjects_are_counted(done, stream, read):
    assert done("stream", "subjects", "LIST").splitlines() == [
        "subject\tmessages",
        "list.1\t4",
        "list.2\t1",
        "list.3\t1",
    ]
    assert done("stream", "subjects", "LIST", "list.3", "--names") == "list.3\n"
    assert read("stream", "subjects", "LIST") == {"list.1": 4, "list.2": 1, "list.3": 1}


@pytest.mark.parametrize(
    ("words", "purged"),
    [((), 6), (("--subject", "list.1"), 4), (("--keep", "2"), 4), (("--seq", "3"), 2)],
)
def test_purge_deletes_all_or_some(read, stream, words, purged):
    assert read("stream", "purge", "LIST", "--force", *words) == {"stream": "LIST", "purged": purged}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--subject", ""), "--subject is empty: leave it out to purge all messages"),
        (("--seq", "0"), "0 is not in the range x>=1"),
        (("--keep", "0"), "0 is not in the range x>=1"),
    ],
)
def test_purge_of_some_messages_never_becomes_one_of_all(cli, stream, read, words, reason):
    answer = cli("stream", "purge", "LIST", "--force", *words)

    assert (answer.exit_code, reason in answer.stderr) == (2, True), answer.stderr
    assert read("stream", "info", "LIST")["state"]["messages"] == 6


@pytest.mark.parametrize("words", [("rm",), ("purge",), ("seal",), ("edit", "--max-msgs", "1")])
def test_nothing_is_chosen_for_a_line_that_answers_every_question(orders, words):
    code, printed = on_a_terminal(orders.url, "stream", *words, "--force")

    assert (code, "no stream is named; there are: ORDERS" in printed) == (1, True), printed
    info = ask(orders.url, "$JS.API.STREAM.INFO.ORDERS")
    assert (info["state"]["messages"], info["config"]["max_msgs"], info["config"]["sealed"]) == (4, 100, False)


@pytest.mark.parametrize("words", [("rm",), ("edit", "--description", "new")])
def test_no_consumer_is_chosen_for_a_line_that_answers_every_question(orders, words):
    config = {"stream_name": "ORDERS", "config": {"durable_name": "worker", "ack_policy": "explicit"}}
    ask(orders.url, "$JS.API.CONSUMER.CREATE.ORDERS.worker", config)

    code, printed = on_a_terminal(orders.url, "consumer", words[0], "ORDERS", "--force", *words[1:])

    assert (code, "no consumer is named; there are: worker" in printed) == (1, True), printed
    assert "description" not in ask(orders.url, "$JS.API.CONSUMER.INFO.ORDERS.worker")["config"]


def test_the_only_stream_there_is_need_not_be_named_to_look_at_it(orders):
    code, printed = on_a_terminal(orders.url, "stream", "info")

    assert (code, "Stream ORDERS" in printed) == (0, True), printed


def test_sources_that_stay_keep_what_is_copied_from_them(done, read, tmp_path):
    for name in ("FROM1", "FROM2", "FROM3"):
        done("stream", "add", name, "--subjects", f"{name}.>")
    config = tmp_path / "config.json"
    sources = [
        {"name": "FROM1", "filter_subject": "FROM1.a"},
        {"name": "FROM1", "filter_subject": "FROM1.b"},
        {"name": "FROM2", "filter_subject": "FROM2.a"},
    ]
    config.write_text(json.dumps({"name": "INTO", "sources": sources}))
    done("stream", "add", "--config", str(config))

    done("stream", "edit", "INTO", "--source", "FROM3,FROM1", "--force")

    found = read("stream", "info", "INTO")["config"]["sources"]
    for name in ("INTO", "FROM1", "FROM2", "FROM3"):
        done("stream", "rm", name, "--force")
    assert sorted(found, key=str) == sorted([{"name": "FROM3"}, *sources[:2]], key=str)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--schedule-every", "500ms"), "--schedule-every is 500ms"),
        (("--schedule-every", "1500ms"), "--schedule-every is 1.5s"),
        (("--schedule-every", "5s", "--schedule-ttl", "500ms"), "--schedule-ttl is 500ms"),
        (("--schedule-after", "1h", "--schedule-ttl", "-1"), "--schedule-ttl is -1"),
    ],
)
def test_times_that_servers_would_cut_to_whole_seconds_are_refused(words, reason):
    answer = CliRunner(env={"COLUMNS": "200"}).invoke(
        create(), ["pub", "plan", "later", "--schedule-dest", "out", *words]
    )

    assert (answer.exit_code, reason in answer.stderr) == (2, True), answer.stderr
    assert "whole seconds, and at least 1s" in answer.stderr


def test_nothing_is_deleted_without_a_yes(cli, stream, read):
    for words in (("purge", "LIST"), ("rm", "LIST"), ("seal", "LIST")):
        answer = cli("stream", *words)
        assert answer.exit_code == 2
        assert "--force" in answer.output

    assert read("stream", "info", "LIST")["state"]["messages"] == 6


def test_sealed_stream_takes_nothing_more(done, stream, cli):
    done("stream", "seal", "LIST", "--force")

    assert "sealed" in cli("pub", "list.1", "x", "-J").stderr
    assert cli("stream", "purge", "LIST", "--force").exit_code == 1


def test_deleted_stream_is_gone(done, stream, cli):
    assert done("stream", "rm", "LIST", "--force") == "Deleted stream LIST\n"

    assert "No stream LIST. Existing streams: " in cli("stream", "rm", "LIST", "--force").stderr


def test_report_compares_streams(done, stream, read, cli):
    head, *lines = done("stream", "report", "--sort", "messages").splitlines()

    assert head.startswith("stream\tstorage\treplicas\tconsumers\tmessages\tbytes")
    assert [line.split("\t")[4] for line in lines if line.startswith("LIST\t")] == ["6"]
    assert [info["config"]["name"] for info in read("stream", "report", "--sort", "name")] == sorted(
        info["config"]["name"] for info in read("stream", "ls", "--all")
    )
    assert cli("stream", "report", "--sort", "colour").exit_code == 2


def test_graph_prints_a_line_for_each_look_in_a_pipe(done, stream):
    lines = done("stream", "graph", "LIST", "--interval", "10ms", "--count", "2").splitlines()

    assert [line.split("\t")[1:3] for line in lines] == [["6", "0.0/s"], ["6", "0.0/s"]]


def test_bars_are_as_high_as_the_highest():
    assert bars(deque([0, 1, 2, 4]), 6) == "   ▂▄█"
    assert bars(deque([0.0]), 3) == "   "


def test_process_lists_and_ends_with_0(process, stream):
    answer = process("stream", "ls", "--names")

    assert answer.returncode == 0
    assert "LIST" in answer.stdout.splitlines()
