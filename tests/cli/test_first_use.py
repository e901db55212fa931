"""What a person meets in the first minutes: plain messages, JSON everywhere, pipes that close, narrow terminals."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest

from jetlake.cli import output
from jetlake.presentation.cells import Bytes
from tests.cli.test_questions import on_a_terminal

COMMAND = [sys.executable, "-m", "jetlake"]


@pytest.mark.parametrize("words", [("--version",), ("version",)])
def test_version_is_shown(done, words):
    assert done(*words).startswith("jetlake ")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("help",), "Create, inspect and manage streams."),
        (("help", "stream"), "Create a stream."),
        (("stream", "help"), "Create a stream."),
        (("stream", "help", "add"), "--max-age"),
        (("server", "help"), "Inspect and check running servers."),
    ],
)
def test_help_is_a_word_too(done, words, text):
    printed = done(*words)

    assert text in printed
    assert "<bool>" not in printed


def test_old_tools_are_not_in_the_list(done):
    assert "Legacy" not in done("help")


def test_every_command_prints_json(done, cli):
    done("stream", "add", "J1", "--subjects", "j1.>", "--json")
    done("pub", "j1.a", "x", "--jetstream")

    assert json.loads(done("version", "--json"))["nats_server"]
    assert json.loads(done("export", "J1", "--json"))
    assert json.loads(done("stream", "rm-msg", "J1", "1", "--force", "--json")) == {
        "stream": "J1",
        "sequence": 1,
        "deleted": True,
    }
    done("consumer", "add", "J1", "c", "--pull", "--defaults", "--json")
    assert "message" in json.loads(done("consumer", "rm", "J1", "c", "--force", "--json"))
    assert json.loads(done("stream", "seal", "J1", "--force", "--json")) == {"stream": "J1", "sealed": True}
    assert json.loads(done("stream", "rm", "J1", "--force", "--json")) == {"stream": "J1", "deleted": True}


def test_errors_are_json_too(cli):
    refused = cli("stream", "info", "NOPE", "--json")
    wrong = cli("stream", "ls", "--bogus", "--json")

    assert refused.exit_code == 1
    error = json.loads(refused.stderr)["error"]
    assert (error["command"], error["error_code"], error["code"]) == ("jetlake stream info", 10059, 404)
    assert wrong.exit_code == 2
    assert "No such option: --bogus" in json.loads(wrong.stderr)["error"]["message"]


def test_refusals_name_what_is_there_and_what_to_do(done, cli):
    done("stream", "add", "F1", "--subjects", "f1.>")
    done("consumer", "add", "F1", "worker", "--pull", "--defaults")

    assert "No stream NOPE. Existing streams: " in cli("stream", "info", "NOPE").stderr
    assert "F1" in cli("stream", "info", "NOPE").stderr
    overlap = cli("stream", "add", "F2", "--subjects", "f2,f1.a").stderr
    assert "`f1.a` is already used by stream F1. (10065)" in overlap
    assert (
        "F1 exists with other settings. Use `jetlake stream edit F1`."
        in cli("stream", "add", "F1", "--subjects", "f1.>", "--max-msgs", "5").stderr
    )
    assert "No consumer nope on stream F1. Existing consumers: worker." in cli("consumer", "info", "F1", "nope").stderr
    assert "Not a terminal: add --force to delete F1 (0 messages)." in cli("stream", "rm", "F1").stderr
    assert "Give a stream name: `jetlake stream add ORDERS" in cli("stream", "add").stderr
    done("stream", "rm", "F1", "--force")


def test_stream_without_subjects_says_what_it_listens_on(cli):
    result = cli("stream", "add", "Q1")

    assert result.exit_code == 0
    assert "No --subjects: stream Q1 listens on subject 'Q1'." in result.stderr


def test_facts_in_a_pipe_have_names_of_their_own(done):
    done("stream", "add", "I1", "--subjects", "i1", "--max-msgs", "9")
    lines = done("stream", "info", "I1").splitlines()
    names = [line.partition(":")[0] for line in lines if ": " in line]

    assert len(names) == len(set(names)), sorted(names)
    assert "max messages: 9" in lines
    assert "messages: 0" in lines
    assert "Limits:" in lines


def test_connection_that_fails_says_why(cli, monkeypatch):
    monkeypatch.setenv("NATS_URL", "nats://127.0.0.1:9")

    assert "Nothing is listening at 127.0.0.1:9. Start a server with `jetlake dev`." in cli("stream", "ls").stderr


def test_server_without_jetstream_is_named(start_server, cli, monkeypatch):
    monkeypatch.setenv("NATS_URL", start_server().url)

    assert "JetStream is off on this server" in cli("stream", "ls").stderr


def test_closed_pipe_ends_a_subscription(url):
    """`jetlake sub … | head` ends although no further message comes."""
    process = subprocess.Popen(
        [*COMMAND, "sub", "pipe.>", "--json"], stdout=subprocess.PIPE, env=os.environ | {"NATS_URL": url}
    )
    assert process.stdout is not None
    process.stdout.close()

    try:
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()


def test_trace_prints_requests_and_answers(cli):
    result = cli("stream", "ls", "--trace")

    assert ">>> $JS.API.STREAM.LIST" in result.stderr
    assert '"streams"' in result.stderr


def test_context_is_left_out_when_told(done, cli, url, monkeypatch):
    done("context", "add", "dead", "--server", "nats://127.0.0.1:9")
    done("context", "select", "dead")
    monkeypatch.delenv("NATS_URL")

    assert "127.0.0.1:9" in cli("rtt").stderr
    assert cli("rtt", "--no-context", "--server", url).exit_code == 0
    assert cli("rtt", "--no-context", "--context", "dead").exit_code == 2


def test_ctrl_c_at_a_question_ends_with_130(url):
    """As the docs say of every command that is interrupted."""
    import pty
    import select
    import time

    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "stream", "add"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=os.environ | {"NATS_URL": url},
        start_new_session=True,
    )
    os.close(terminal)
    printed, deadline = "", time.monotonic() + 60
    while "Name of the stream" not in printed and time.monotonic() < deadline:
        if select.select([controller], [], [], 0.2)[0]:
            printed += os.read(controller, 65536).decode(errors="replace")
    # One that comes between the question and the wait for its answer is noticed with the next one.
    try:
        while process.poll() is None and time.monotonic() < deadline:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
        assert process.returncode == 130
    finally:
        process.kill()
        process.wait()
        os.close(controller)


def test_columns_that_do_not_fit_are_left_out_and_named():
    rows = [("ORDERS_OF_EUROPE", "orders.>", 12_345, Bytes(10**9), 3, "1s")]
    columns = ("stream", "subjects", "messages", "bytes", "consumers", "last message")

    assert output.columns_that_fit(columns, rows, 120) == 6
    assert output.columns_that_fit(columns, rows, 44) == 3
    assert output.columns_that_fit(columns, rows, 10) == 1


def test_names_are_not_broken_on_a_narrow_terminal(url, done):
    done("stream", "add", "A_RATHER_LONG_NAME", "--subjects", "narrow.>")

    code, printed = on_a_terminal(url, "stream", "ls", columns="40")
    help_code, help_text = on_a_terminal(url, "stream", "add", "--help", columns="40")

    assert code == 0
    assert "A_RATHER_LONG_NAME" in printed
    assert "not shown: " in printed
    assert help_code == 0
    assert "--subject-del-markers-ttl" in help_text


def test_apply_asks_on_a_terminal(url, done, tmp_path):
    path = tmp_path / "streams.yaml"
    path.write_text("streams:\n  - name: ASKED_APPLY\n    subjects: [asked.apply]\n")

    code, printed = on_a_terminal(url, "apply", str(path), answers=["n"])
    assert code == 1
    assert "Apply these changes to nats://" in printed
    assert "ASKED_APPLY" not in done("stream", "ls", "--names")
    code, printed = on_a_terminal(url, "apply", str(path), answers=["y"])
    assert code == 0, printed
    assert "ASKED_APPLY" in done("stream", "ls", "--names")


def test_dev_says_when_its_port_is_taken(monkeypatch, capsys):
    import jetlake
    from jetlake.cli import dev

    with jetlake.Server() as server:
        monkeypatch.setattr(dev, "PORT", server.port)
        other = dev.start(0, 0, None)
        other.stop()

    assert capsys.readouterr().out == f"Port {server.port} is taken, using {other.port}\n"
