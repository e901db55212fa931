"""`jetlake submit` and `jetlake submission`: without a connection, and with one."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

WAIT_S_MAX = 60.0


@pytest.fixture
def spool(tmp_path, monkeypatch):
    folder = tmp_path / "spool"
    monkeypatch.setenv("JETLAKE_SPOOL", str(folder))
    return folder


def spooled(spool, priority=4):
    return [json.loads(path.read_bytes()) for path in sorted(spool.glob(f"P{priority}/*.msg"))]


def test_a_file_is_submitted_and_its_id_printed(done, spool, tmp_path):
    payload = tmp_path / "payload"
    payload.write_bytes(b"\0\xff")

    printed = done(
        "submit", "--reliable", "--sender", "host Task Agent", "--priority", "1", "--ttl", "1h", "--tries", "7",
        "-H", "a=b=c", "tasks.status", str(payload),
    )  # fmt: skip

    (message,) = spooled(spool, 1)
    assert printed == f"{message['id']}\n"
    assert (message["subject"], message["payload"], message["reliable"]) == ("tasks.status", "AP8=", True)
    assert (message["sender"], message["ttl"], message["max_tries"]) == ("host Task Agent", 3600, 7)
    assert message["headers"] == {"a": "b=c"}


def test_the_defaults_are_choria_s(done, spool):
    done("submit", "tasks.status", "-", stdin=b"hello")

    (message,) = spooled(spool)
    assert (message["reliable"], message["priority"], message["ttl"], message["max_tries"]) == (False, 4, 86400, 100)
    assert message["sender"] == f"user {os.geteuid()}"
    assert (message["payload"], message["sign"], message["headers"]) == ("aGVsbG8=", False, None)


@pytest.mark.parametrize(
    ("words", "stdin", "reason"),
    [
        (("a", "no-such-file"), b"", "payload no-such-file does not exist"),
        (("a", "-"), b"", "payload is empty"),
        (("a", "-"), bytes(1_100_000), "payload has more than 1,032,192 bytes"),
        (("a..b", "-"), b"x", "subject is 'a..b'"),
        (("a", "-", "--header", "x"), b"x", "has no value: write NAME=VALUE"),
        (("a", "-", "--header", "Nats-x=y"), b"x", "is reserved"),
        (("a", "-", "--ttl", "40d"), b"x", "at most 31 days"),
    ],
)
def test_what_cannot_be_submitted_is_refused_with_the_reason(cli, spool, words, stdin, reason):
    result = cli("submit", *words, stdin=stdin)

    assert result.exit_code == 1
    assert reason in result.stderr
    assert spooled(spool) == []


def test_no_spool_is_an_error(cli, monkeypatch):
    monkeypatch.delenv("JETLAKE_SPOOL", raising=False)

    result = cli("submit", "a", "-", stdin=b"x")

    assert result.exit_code == 1
    assert "spool is not configured" in result.stderr


def test_submitting_needs_no_server(spool):
    command = [sys.executable, "-m", "jetlake", "submit", "a", "-", "--reliable"]

    done = subprocess.run(
        command, input=b"x", env=os.environ | {"NATS_URL": "nats://127.0.0.1:1"}, capture_output=True, check=True
    )

    assert len(done.stdout) == 37
    assert len(spooled(spool)) == 1


def test_the_sender_delivers_until_it_is_told_to_stop_and_status_says_so(cli, done, read, spool, url):
    stream = "CLI" + str(time.monotonic_ns())
    collective = stream.lower()
    done("stream", "add", stream, "--subjects", f"{collective}.submission.in.>", "--defaults")
    done("submit", "a", "-", "--reliable", stdin=b"x")
    before = read("submission", "status")
    process = subprocess.Popen(
        [sys.executable, "-m", "jetlake", "submission", "run", "--collective", collective],
        env=os.environ | {"NATS_URL": url, "JETLAKE_SPOOL": str(spool)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + WAIT_S_MAX
        while read("stream", "info", stream)["state"]["messages"] < 1 or read("submission", "status")["delivered"] < 1:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        while_running = read("submission", "status")
        shown = done("submission", "status")
        page = done("submission", "status", "--prometheus")
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=WAIT_S_MAX)
    after = read("submission", "status")

    assert (before["running"], before["spooled"]) == (False, [0, 0, 0, 0, 1])
    assert (while_running["running"], while_running["connected"], while_running["delivered"]) == (True, True, 1)
    assert "Delivered: 1\n" in shown
    assert "jetlake_submission_delivered_total 1\n" in page
    assert process.returncode == 0
    assert "INFO connected to nats://" in log
    assert (after["running"], after["connected"], after["spooled"]) == (False, False, [0] * 5)


def test_the_status_of_no_spool_is_an_error(cli, spool):
    result = cli("submission", "status")

    assert result.exit_code == 1
    assert "there is no spool" in result.stderr
