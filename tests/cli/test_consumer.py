"""`jetlake consumer` against both servers."""

import json
from datetime import UTC, datetime, timedelta

import pytest
import typer

from jetlake.cli.consumer_options import consumer_fields


@pytest.fixture
def stream(done, read):
    """A stream of five messages, without consumers."""
    if "CON" in read("stream", "ls", "--names"):
        done("stream", "rm", "CON", "--force")
    done("stream", "add", "CON", "--subjects", "con.>")
    done("pub", "con.{{Count}}", "{{Count}}", "--count", "5", "-J", "-q")


def test_flags_become_the_configuration(read, stream):
    made = read(
        "consumer", "add", "CON", "all",
        "--filter", "con.1,con.2", "--ack", "explicit", "--wait", "10s", "--max-deliver", "5", "--max-pending", "50",
        "--max-waiting", "10", "--max-pull-batch", "100", "--max-pull-expire", "30s", "--max-pull-bytes", "1MiB",
        "--deliver", "3", "--replay", "original", "--headers-only", "--sample", "50", "--description", "all flags",
        "--inactive-threshold", "1h", "--metadata", "a=b", "--memory", "--replicas", "1", "--pause", "1h",
    )  # fmt: skip

    config = made["config"]
    assert (config["durable_name"], config["filter_subjects"]) == ("all", ["con.1", "con.2"])
    assert (config["ack_wait"], config["max_deliver"], config["max_ack_pending"]) == (10 * 10**9, 5, 50)
    assert (config["max_waiting"], config["max_batch"], config["max_expires"]) == (10, 100, 30 * 10**9)
    assert (config["max_bytes"], config["sample_freq"], config["headers_only"]) == (1 << 20, "50", True)
    assert (config["deliver_policy"], config["opt_start_seq"]) == ("by_start_sequence", 3)
    assert (config["replay_policy"], config["inactive_threshold"]) == ("original", 3600 * 10**9)
    assert (config["mem_storage"], config["metadata"]["a"], made["paused"]) == (True, "b", True)


def test_consumer_that_sends_has_a_target(read, stream):
    made = read("consumer", "add", "CON", "push", "--target", "con-target", "--deliver-group", "g",
                "--heartbeat", "5s", "--ack", "none", "--deliver", "new")  # fmt: skip

    config = made["config"]
    assert (config["deliver_subject"], config["deliver_group"]) == ("con-target", "g")
    assert (config["idle_heartbeat"], config["ack_policy"], config["deliver_policy"]) == (5 * 10**9, "none", "new")


def test_ephemeral_consumer_gets_a_name_from_the_server(read, stream):
    made = read("consumer", "add", "CON", "--ephemeral", "--deliver", "last", "--inactive-threshold", "1m")

    assert made["name"]
    assert "durable_name" not in made["config"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all", {"deliver_policy": "all"}),
        ("subject", {"deliver_policy": "last_per_subject"}),
        ("17", {"deliver_policy": "by_start_sequence", "opt_start_seq": 17}),
    ],
)
def test_beginning_is_a_word_or_a_sequence(text, expected):
    assert consumer_fields(deliver=text) == expected


def test_beginning_can_be_a_time_ago():
    made = consumer_fields(deliver="1h")

    begin = datetime.fromisoformat(made["opt_start_time"])
    assert timedelta(minutes=59) < datetime.now(UTC) - begin < timedelta(minutes=61)


def test_waits_between_deliveries_are_listed_or_made():
    assert consumer_fields(backoff="1s,1m") == {"backoff": [10**9, 60 * 10**9]}
    assert consumer_fields(backoff="none") == {"backoff": None}
    made = consumer_fields(backoff="linear", backoff_steps=3, backoff_min=10, backoff_max=30)
    assert made == {"backoff": [10, 20, 30]}


@pytest.mark.parametrize("options", [{"deliver": "sometime"}, {"backoff": "soon"}, {"pause": "a while"}])
def test_what_means_nothing_is_refused(options):
    with pytest.raises(typer.BadParameter):
        consumer_fields(**options)


def test_configuration_can_be_written_checked_and_used(done, read, stream, tmp_path):
    path = tmp_path / "consumer.json"

    done("consumer", "add", "CON", "file", "--filter", "con.1", "--output", str(path))
    assert done("consumer", "add", "CON", "--config", str(path), "--validate") == "The configuration is valid\n"
    assert read("consumer", "ls", "CON") == []
    made = read("consumer", "add", "CON", "--config", str(path), "--max-pending", "3")

    assert (made["name"], made["config"]["filter_subject"], made["config"]["max_ack_pending"]) == ("file", "con.1", 3)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("CON", "--defaults"), 1, "the consumer has no name"),
        (("CON", "x", "--pull", "--target", "y"), 1, "exclude each other"),
        (("CON", "a.b"), 1, "is not a name"),
        (("NOWHERE", "x"), 1, "No stream NOWHERE. Existing streams: "),
        (("CON", "x", "--ack", "maybe"), 2, "--ack is 'maybe'"),
        (("CON", "x", "--deliver", "sometime"), 2, "--deliver is 'sometime'"),
    ],
)
def test_what_cannot_be_added_is_refused_in_words(cli, stream, words, code, text):
    answer = cli("consumer", "add", *words)

    assert answer.exit_code == code
    assert text in answer.output


def test_consumers_are_listed_and_described(done, read, stream):
    done("consumer", "add", "CON", "one", "--filter", "con.1")
    done("consumer", "add", "CON", "two")

    assert done("consumer", "ls", "CON").splitlines()[1:] == [
        "one\tpull\tcon.1\texplicit\t0\t0\t1",
        "two\tpull\t\texplicit\t0\t0\t5",
    ]
    assert done("con", "ls", "CON", "--names") == "one\ntwo\n"
    text = done("consumer", "info", "CON", "one")
    assert "filter: con.1" in text
    assert "outstanding: 0 of at most 1,000" in text
    assert read("consumer", "info", "CON", "two")["num_pending"] == 5


def test_report_says_how_far_consumers_are(done, stream):
    done("consumer", "add", "CON", "far")
    done("consumer", "next", "CON", "far", "--count", "2")

    _, line = done("consumer", "report", "CON").splitlines()

    assert line.split("\t") == ["far", "pull", "explicit", "30s", "0", "0", "3", "60 %", "2"]


def test_edit_shows_the_difference_and_changes(done, read, cli, stream):
    done("consumer", "add", "CON", "edit", "--filter", "con.1,con.2", "--wait", "10s")

    assert cli("consumer", "edit", "CON", "edit", "--wait", "20s").exit_code == 2
    text = done("consumer", "edit", "CON", "edit", "--wait", "20s", "--filter", "con.3", "--force")

    assert text.splitlines()[:4] == [
        "- ack_wait: 10s",
        "+ ack_wait: 20s",
        "+ filter_subject: con.3",
        "- filter_subjects: [con.1, con.2]",
    ]
    config = read("consumer", "info", "CON", "edit")["config"]
    assert (config["ack_wait"], config["filter_subject"]) == (20 * 10**9, "con.3")
    assert "nothing changes" in done("consumer", "edit", "CON", "edit", "--wait", "20s")


def test_copy_takes_the_configuration(done, read, stream):
    done("consumer", "add", "CON", "origin", "--filter", "con.1", "--wait", "7s", "--metadata", "a=b")

    made = read("consumer", "copy", "CON", "origin", "copy", "--max-pending", "3")

    config = made["config"]
    assert (config["name"], config["durable_name"], config["ack_wait"]) == ("copy", "copy", 7 * 10**9)
    assert (config["max_ack_pending"], config["metadata"]["a"]) == (3, "b")


def test_paused_consumer_goes_on_when_told(done, read, cli, stream):
    done("consumer", "add", "CON", "pause")

    assert "is paused until" in done("consumer", "pause", "CON", "pause", "1h", "--force")
    assert read("consumer", "info", "CON", "pause")["paused"] is True
    assert cli("consumer", "next", "CON", "pause", "--timeout", "200ms").exit_code == 1
    done("consumer", "resume", "CON", "pause", "--force")
    assert done("consumer", "next", "CON", "pause", "--raw") == "1\n"
    assert cli("consumer", "pause", "CON", "pause", "later", "--force").exit_code == 2


def test_reset_delivers_again(done, cli, stream):
    done("consumer", "add", "CON", "reset")
    done("consumer", "next", "CON", "reset", "--count", "5")

    assert "begins again at 3" in done("consumer", "reset", "CON", "reset", "--sequence", "3", "--force")

    assert done("consumer", "next", "CON", "reset", "--raw") == "3\n"
    answer = cli("consumer", "reset", "CON", "none", "--force")
    assert (answer.exit_code, "No consumer none on stream CON." in answer.stderr) == (1, True)


def test_pinned_client_can_be_freed(done, cli, stream):
    done("consumer", "add", "CON", "pinned", "--pinned-groups", "g", "--pinned-ttl", "1m")

    assert "Group g of pinned is free" in done("consumer", "unpin", "CON", "pinned", "g", "--force")


def test_deleted_consumer_is_gone(done, cli, stream):
    done("consumer", "add", "CON", "gone")

    assert done("consumer", "rm", "CON", "gone", "--force") == "Consumer gone of CON is deleted\n"
    assert "No consumer gone on stream CON." in cli("consumer", "rm", "CON", "gone", "--force").stderr


def test_process_describes_a_consumer(process, done, stream):
    done("consumer", "add", "CON", "process")

    answer = process("consumer", "info", "CON", "process", "--json")

    assert (answer.returncode, json.loads(answer.stdout)["name"]) == (0, "process")
