"""`jetlake stream view`, `get` and `rm-msg` against both servers."""

import json

import pytest


@pytest.fixture
def messages(done):
    """A stream of five messages of two subjects, with a header."""
    done("stream", "rm", "MESSAGES", "--force") if "MESSAGES" in json.loads(done("stream", "ls", "-n", "-j")) else None
    done("stream", "add", "MESSAGES", "--subjects", "m.*")
    for number in range(1, 6):
        done("pub", "m.even" if number % 2 == 0 else "m.odd", str(number), "-J", "-H", f"Number:{number}")


def test_view_prints_a_page_and_leaves_nothing_behind(done, messages, read):
    text = done("stream", "view", "MESSAGES", "2")

    assert "subj: m.odd / stream: MESSAGES / seq: 1" in text
    assert "Number: 2" in text
    assert "seq: 3" not in text
    assert read("consumer", "ls", "MESSAGES") == []


@pytest.mark.parametrize(
    ("words", "payloads"),
    [
        (("10",), "1\n2\n3\n4\n5\n"),
        (("10", "--id", "4"), "4\n5\n"),
        (("10", "--subject", "m.even"), "2\n4\n"),
        (("1", "--since", "1h"), "1\n"),
        (("10", "--translate", "sed s/$/!/", "--id", "5"), "5!\n"),
    ],
)
def test_view_begins_where_it_was_wanted(done, messages, words, payloads):
    text = done("stream", "view", "MESSAGES", "--raw", *words)

    assert text.replace("\n\n", "\n") == payloads


def test_view_prints_a_line_of_json_each(done, messages):
    lines = [json.loads(line) for line in done("stream", "view", "MESSAGES", "--json").splitlines()]

    assert [(line["sequence"], line["data"], line["headers"]) for line in lines][4] == (5, "5", {"Number": "5"})


def test_view_of_nothing_says_so(done, messages):
    assert "has no such messages" in done("stream", "view", "MESSAGES", "--subject", "m.none")


def test_get_finds_by_sequence_and_by_subject(done, messages, read):
    assert done("stream", "get", "MESSAGES", "2", "--raw") == "2\n"
    found = read("stream", "get", "MESSAGES", "--last-for", "m.even")
    assert (found["sequence"], found["subject"], found["headers"]) == (4, "m.even", {"Number": "4"})


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("MESSAGES", "99"), 1, "MESSAGES has no message 99"),
        (("MESSAGES", "--last-for", "m.none"), 1, "MESSAGES has no message of 'm.none'"),
        (("MESSAGES",), 2, "give a sequence"),
        (("NOWHERE", "1"), 1, "stream not found"),
    ],
)
def test_what_is_not_there_is_told(cli, messages, words, code, text):
    answer = cli("stream", "get", *words)

    # nats-server answers 404 for a stream that is not there, as for a message.
    assert answer.exit_code == code
    assert text in answer.output or "NOWHERE" in answer.output


def test_message_can_be_deleted(done, messages, cli, read):
    assert done("stream", "rm-msg", "MESSAGES", "2", "--force") == "Deleted message 2 of MESSAGES\n"

    assert cli("stream", "get", "MESSAGES", "2").exit_code == 1
    assert read("stream", "info", "MESSAGES")["state"]["num_deleted"] == 1
    assert cli("stream", "rmm", "MESSAGES", "3").exit_code == 2
