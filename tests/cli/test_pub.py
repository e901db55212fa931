"""`jetlake pub` against both servers."""

import json

import pytest


def test_message_is_published(done):
    assert done("pub", "pub.plain", "hello") == 'Published 5 bytes to "pub.plain"\n'


def test_templates_make_every_message_its_own(done, read):
    done("stream", "add", "PUB_T", "--subjects", "pub.t.>")

    sent = read("pub", "pub.t.{{Count}}", "{{Count}} {{ID}} {{Random 3 3}}", "--count", "3", "-J", "-H", "N:{{Count}}")

    assert [(each["subject"], each["sequence"]) for each in sent] == [(f"pub.t.{n}", n) for n in (1, 2, 3)]
    bodies = [read("stream", "get", "PUB_T", str(number)) for number in (1, 2, 3)]
    assert [body["headers"] for body in bodies] == [{"N": "1"}, {"N": "2"}, {"N": "3"}]
    words = [body["data"].split() for body in bodies]
    assert [(word[0], len(word[1]), len(word[2])) for word in words] == [(str(n), 32, 3) for n in (1, 2, 3)]
    assert len({word[1] for word in words}) == 3


def test_templates_can_be_left_alone(done, read):
    done("stream", "add", "PUB_N", "--subjects", "pub.n")

    done("pub", "pub.n", "{{Count}}", "--no-templates", "-J")

    assert read("stream", "get", "PUB_N", "1")["data"] == "{{Count}}"


def test_standard_input_is_sent_byte_for_byte_or_line_by_line(done, read):
    done("stream", "add", "PUB_S", "--subjects", "pub.s")

    done("pub", "pub.s", "-J", stdin=b"\xff{{Count}}\n")
    done("pub", "pub.s", "-J", "--send-on", "newline", stdin=b"one\ntwo\n")

    assert read("stream", "get", "PUB_S", "1")["data_base64"] == "/3t7Q291bnR9fQo="
    assert [read("stream", "get", "PUB_S", number)["data"] for number in ("2", "3")] == ["one", "two"]


def test_duplicate_is_told(done, read):
    done("stream", "add", "PUB_D", "--subjects", "pub.d")

    sent = read("pub", "pub.d", "x", "-J", "-H", "Nats-Msg-Id:1", "--count", "2")

    assert [(each["sequence"], each["duplicate"]) for each in sent] == [(1, False), (1, True)]
    assert "(a duplicate)" in done("pub", "pub.d", "x", "-J", "-H", "Nats-Msg-Id:1")


def test_refusals_are_told(cli, done):
    done("stream", "add", "PUB_R", "--subjects", "pub.r", "--max-msg-size", "10")

    nobody = cli("pub", "pub.nobody", "x", "-J")
    large = cli("pub", "pub.r", "x" * 100, "-J")

    assert (nobody.exit_code, large.exit_code) == (1, 1)
    assert "jetlake pub: no stream is listening on subject 'pub.nobody'" in nobody.stderr
    assert "message size exceeds maximum allowed (10054)" in large.stderr


@pytest.mark.parametrize("words", [("--count", "0"), ("--header", "no colon"), ("--sleep", "soon", "--count", "2")])
def test_wrong_usage_ends_with_2(cli, words):
    assert cli("pub", "x", "y", *words).exit_code == 2


def test_quiet_says_nothing_and_json_says_all(done):
    assert done("pub", "pub.q", "x", "--quiet") == ""
    assert json.loads(done("pub", "pub.q", "x", "--json")) == [{"subject": "pub.q", "bytes": 1}]


def test_process_ends_with_0_and_1(process):
    assert process("pub", "pub.process", stdin="from a pipe").stdout == 'Published 11 bytes to "pub.process"\n'
    assert process("pub", "-J", "pub.process", "x").returncode == 1


@pytest.mark.parametrize("subject", ["a..b", "a b", "a.*", "a.>", ""])
def test_subject_that_cannot_be_published_to_is_refused(cli, subject):
    answer = cli("pub", subject, "x")

    assert answer.exit_code == 1
    assert "cannot be published to" in answer.stderr


def test_many_messages_are_summed_up(done):
    text = done("pub", "pub.many", "xx", "--count", "50")

    assert len(text.splitlines()) == 21
    assert text.splitlines()[-1] == "and 30 more, 100 bytes in all"
