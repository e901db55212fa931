"""`jetlake consumer next` and `sub` against both servers."""

import json

import pytest


@pytest.fixture
def consumer(done, read):
    """A consumer of five messages."""
    if "TAKE" in read("stream", "ls", "--names"):
        done("stream", "rm", "TAKE", "--force")
    done("stream", "add", "TAKE", "--subjects", "take.>")
    done("pub", "take.{{Count}}", "{{Count}}", "--count", "5", "-J", "-q")
    done("consumer", "add", "TAKE", "c", "--max-deliver", "3")


def test_next_prints_and_acknowledges(done, read, consumer):
    text = done("consumer", "next", "TAKE", "c")

    assert "subj: take.1 / stream: TAKE / seq: 1 / tries: 1 / pending: 4" in text
    info = read("consumer", "info", "TAKE", "c")
    assert (info["ack_floor"]["stream_seq"], info["num_ack_pending"]) == (1, 0)


def test_next_can_leave_refuse_and_give_up(done, read, consumer):
    done("consumer", "next", "TAKE", "c", "--no-ack")
    assert read("consumer", "info", "TAKE", "c")["num_ack_pending"] == 1

    assert done("consumer", "next", "TAKE", "c", "--nak", "--raw") == "2\n"
    assert json.loads(done("consumer", "next", "TAKE", "c", "--term", "--json"))["deliveries"] == 2
    assert done("consumer", "next", "TAKE", "c", "--raw") == "3\n"


def test_next_takes_as_many_as_there_are(done, cli, consumer):
    assert done("consumer", "next", "TAKE", "c", "--count", "9", "--wait", "4s", "--raw") == "1\n2\n3\n4\n5\n"

    answer = cli("consumer", "next", "TAKE", "c", "--wait", "100ms")
    assert (answer.exit_code, "had no message within 0.1 s" in answer.stderr) == (1, True)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("TAKE", "none"), 1, "TAKE has no consumer none that is pulled"),
        (("TAKE", "c", "--nak", "--term"), 2, "exclude each other"),
    ],
)
def test_what_gives_no_messages_is_told(cli, consumer, words, code, text):
    answer = cli("consumer", "next", *words)

    assert answer.exit_code == code
    assert text in answer.output


def test_sub_takes_messages_as_they_come(done, read, consumer):
    assert done("consumer", "sub", "TAKE", "c", "--raw", "--count", "5") == "1\n2\n3\n4\n5\n"

    info = read("consumer", "info", "TAKE", "c")
    assert (info["num_pending"], info["num_ack_pending"]) == (0, 0)


def test_sub_listens_to_a_consumer_that_sends(done, consumer):
    done("consumer", "add", "TAKE", "push", "--target", "take-target", "--flow-control", "--heartbeat", "1s")

    assert done("consumer", "sub", "TAKE", "push", "--raw", "--count", "5") == "1\n2\n3\n4\n5\n"


@pytest.mark.parametrize("status", ["shipped", "100", "503"])
def test_sub_shows_an_empty_message_with_a_header_named_status(done, read, consumer, status):
    subject = f"take.empty.{status}"
    target = ["--target", "take-target", "--flow-control", "--heartbeat", "1s"]
    done("consumer", "add", "TAKE", "push", "--filter", subject, *target)
    done("pub", subject, "", "-H", f"Status:{status}", "-J", "-q")

    shown = json.loads(done("consumer", "sub", "TAKE", "push", "--json", "--count", "1"))

    assert (shown["subject"], shown["headers"]["Status"]) == (subject, status)
    assert read("consumer", "info", "TAKE", "push")["num_ack_pending"] == 0


def test_process_takes_the_next(process, consumer):
    assert process("consumer", "next", "TAKE", "c", "--raw").stdout == "1\n"
    assert process("consumer", "next", "TAKE", "none", "--timeout", "1s").returncode == 1
