"""`jetlake req` and `jetlake reply` against both servers."""

import json
import os
import subprocess
import sys
import time

import pytest

START_S_MAX = 60.0

PATIENT = ("--timeout", "8s", "--reply-timeout", "4s")
"""Who waits for all answers waits as long as this after the last: a machine may stand still between two."""


def test_answer_is_printed_with_its_time(done, answering):
    answering("req.echo")

    head, payload = done("req", "req.echo", "hello").splitlines()

    assert head.startswith("Received with rtt ")
    assert payload == "hello"


def test_raw_prints_the_answer_only(done, answering):
    answering("req.raw")

    assert done("req", "req.raw", "{{Count}}", "--count", "3", "--raw") == "1\n2\n3\n"


def test_several_answers_can_be_awaited(done, answering, read):
    answering("req.many", b"a", b"b", b"c")

    assert done("req", "req.many", "x", "--replies", "2", "--raw", *PATIENT) == "a\nb\n"
    assert done("req", "req.many", "x", "--replies", "0", "--raw", *PATIENT) == "a\nb\nc\n"
    assert [each["data"] for each in read("req", "req.many", "x", "--replies", "3", *PATIENT)] == ["a", "b", "c"]


def test_nobody_there_is_told_at_once(cli):
    answer = cli("req", "req.nobody", "x")

    assert answer.exit_code == 1
    assert answer.stderr == "jetlake req: nobody listens on 'req.nobody'\n"


def test_no_answer_in_time_is_told(cli, sending, done, url):
    listener = start("sub", "req.silent", "--raw", url=url)
    try:
        answer = retry(lambda: cli("req", "req.silent", "x", "--timeout", "200ms"), "nobody answered")
    finally:
        listener.kill()
        listener.communicate()

    assert answer.exit_code == 1
    assert "nobody answered 'req.silent' within 0.2 s" in answer.stderr


def start(*words, url):
    return subprocess.Popen(
        [sys.executable, "-m", "jetlake", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"NATS_URL": url},
    )


def retry(ask, text):
    """Ask until somebody is there."""
    deadline = time.monotonic() + START_S_MAX
    while True:
        answer = ask()
        if text in answer.output or time.monotonic() > deadline:
            return answer
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("reply.body.>", "answer {{Count}} to {{Request}}"), "answer 1 to hello"),
        (("reply.body.>", "--echo"), "hello"),
        (("reply.body.>", "--command", "echo {{2}} {{Request}}"), "london hello"),
        (("reply.body.>", "--command", "printenv NATS_REQUEST_BODY"), "hello"),
        (("reply.body.>", "--command", "/no/such/program"), "cannot run '/no/such/program': no such file or directory"),
    ],
)
def test_reply_answers_with_a_text_an_echo_or_a_command(cli, url, words, expected):
    replier = start("reply", *words, "--count", "1", url=url)
    try:
        answer = retry(lambda: cli("req", "reply.body.london", "hello", "--raw"), expected)
        printed, _ = replier.communicate(timeout=START_S_MAX)
    finally:
        replier.kill()

    assert answer.output.strip() == expected
    assert replier.returncode == 0
    assert '[#1] Received on subject "reply.body.london":\nhello\n' in printed


def test_a_request_does_not_become_an_option_of_the_command(cli, url):
    replier = start("reply", "reply.option", "--command", "ls -- {{Request}} {{Request}}", "--count", "1", url=url)
    try:
        answer = retry(lambda: cli("req", "reply.option", "--raw", "--", "--version"), "refused")
    finally:
        replier.kill()
        replier.communicate()

    assert answer.output.strip().startswith("refused: a request must not begin with '-'")


@pytest.mark.parametrize("command", ["{{Request}} x", " ", "echo 'x"])
def test_a_request_does_not_choose_the_command(cli, command):
    assert cli("reply", "x", "--command", command).exit_code == 2


def test_reply_without_an_answer_is_wrong_usage(cli):
    assert cli("reply", "x").exit_code == 2


def test_request_of_the_api_is_json_for_programs(read):
    (answer,) = read("req", "$JS.API.INFO", "")

    assert json.loads(answer["data"])["type"] == "io.nats.jetstream.api.v1.account_info_response"
