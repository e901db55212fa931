"""`jetlake plan` on both servers."""

import contextlib
import json
import os
import pty
import subprocess
import sys

import pytest

from tests.iac.servers import jetlake, publish, request, server, server_kind, streams_server  # noqa: F401


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "streams.yaml").write_text(
        "streams:\n  ORDERS:\n    subjects: [orders.>]\n    max_age: ${AGE:-1d}\n"
        "    consumers:\n      worker: {ack_policy: explicit}\n"
    )
    return tmp_path


def test_a_plan_shows_what_would_be_done_and_does_nothing(server, folder):  # noqa: F811
    answer = jetlake(server, "plan", folder)

    assert answer.exit_code == 0, answer.output
    assert answer.stdout.splitlines() == [
        "+ stream ORDERS",
        "    + subjects: [orders.>]",
        "    + max_age: 1d",
        "",
        "+ consumer ORDERS/worker",
        "    + ack_policy: explicit",
        "",
        "2 to create, 0 unchanged.",
    ]
    assert request(server, "STREAM.NAMES")["total"] == 0


def test_variables_come_from_the_line_or_the_environment(server, folder):  # noqa: F811
    by_line = jetlake(server, "plan", folder, "--var", "AGE=2d", environment={"AGE": "3d"})
    by_environment = jetlake(server, "plan", folder, environment={"AGE": "3d"})

    assert "max_age: 2d" in by_line.stdout
    assert "max_age: 3d" in by_environment.stdout


def test_a_plan_says_that_direct_gets_would_be_refused(server, folder):  # noqa: F811
    jetlake(server, "stream", "add", "ORDERS", "--subjects", "orders.>", "--max-age", "1d", "--defaults")

    answer = jetlake(server, "plan", folder)

    assert "~ allow_direct: true → false  (direct gets will be refused; declare allow_direct: true" in answer.stdout


def test_json_holds_the_steps(server, folder):  # noqa: F811
    plan = json.loads(jetlake(server, "plan", folder, "--json").stdout)

    assert [(step["action"], step["key"]) for step in plan["steps"]] == [
        ("create", ["stream", "", "ORDERS"]),
        ("create", ["consumer", "ORDERS", "worker"]),
    ]
    assert plan["steps"][0]["config"]["max_age"] == 86400 * 10**9


def test_the_exit_code_tells_whether_there_is_something_to_do(server, folder):  # noqa: F811
    before = jetlake(server, "plan", folder, "--exit-code")
    jetlake(server, "apply", folder)
    after = jetlake(server, "plan", folder, "--exit-code")

    assert (before.exit_code, after.exit_code) == (2, 0)
    assert after.stdout == "Nothing to do, 2 unchanged.\n"


def test_what_would_be_lost_is_shown(server, folder):  # noqa: F811
    jetlake(server, "apply", folder)
    publish(server, "orders.a", 3)
    (folder / "streams.yaml").write_text("streams: {ORDERS: {subjects: [orders.>], storage: memory}}")

    answer = jetlake(server, "plan", folder)

    assert "-/+ stream ORDERS" in answer.stdout
    assert "~ storage: file → memory  (needs a new stream)" in answer.stdout
    assert "! 3 messages lost" in answer.stdout
    assert "! 1 undeclared consumer lost: worker" in answer.stdout


def test_a_mistake_is_told_with_file_and_line(server, folder):  # noqa: F811
    (folder / "more.yaml").write_text("streams:\n  LOGS:\n    max_mesages: 5\n")

    answer = jetlake(server, "plan", folder)

    assert answer.exit_code == 1
    assert answer.stderr == (
        f"jetlake plan: {folder}/more.yaml:3: a stream has no field 'max_mesages'; did you mean max_messages?\n"
    )


def test_warnings_do_not_stop_a_plan(server, tmp_path):  # noqa: F811
    (tmp_path / "stream.yml").write_text(
        "apiVersion: jetstream.nats.io/v1beta1\nkind: Stream\nmetadata: {name: events}\n"
        'spec: {name: events, subjects: ["events.*"]}\n'
    )

    answer = jetlake(server, "plan", tmp_path)

    assert answer.exit_code == 0
    assert "events.a but not events.a.b" in answer.stderr
    assert "+ subjects: [events.*]" in answer.stdout


def test_a_wrong_variable_is_wrong_usage(server, folder):  # noqa: F811
    assert jetlake(server, "plan", folder, "--var", "AGE").exit_code == 2


def test_a_server_that_is_not_there_is_one_line_of_a_process(folder):
    command = [sys.executable, "-m", "jetlake", "plan", str(folder), "-s", "nats://127.0.0.1:1"]

    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert answer.returncode == 1
    assert answer.stderr.startswith("jetlake plan: ")
    assert "Traceback" not in answer.stderr


def test_a_terminal_shows_colours(server, folder):  # noqa: F811
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"}
    environment.pop("NO_COLOR", None)

    process = subprocess.Popen(
        [sys.executable, "-m", "jetlake", "plan", str(folder), "-s", server.url], stdout=slave, env=environment
    )
    os.close(slave)
    shown = b""
    # The other end is closed when the process ends, which reading tells as an error.
    with contextlib.suppress(OSError):
        while chunk := os.read(master, 65536):
            shown += chunk
    os.close(master)

    assert process.wait(60) == 0
    assert b"\x1b[32m+ stream ORDERS" in shown
    assert b"\x1b[1m2 to create" in shown
