"""`jetlake governor`: what it prints, what it refuses, and how it runs commands."""

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

WAIT_S_MAX = 60.0

RENEWED_LEASE = ("2", "9s")
"""Capacity and time of a lease that is renewed after a third of its time: six seconds are left on a busy machine."""

_numbers = itertools.count(1)


@pytest.fixture
def name():
    return f"CLI{next(_numbers)}"


@pytest.fixture
def start(url):
    """Start the command as a process that goes on."""
    started = []

    def run(*words):
        environment = os.environ | {"NATS_URL": url}
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", "jetlake", "governor", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment,
            )
        )
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def wait_until(is_true, what):
    deadline = time.monotonic() + WAIT_S_MAX
    while not is_true():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def is_caught(process_id, number):
    """Tell whether a process has a handler of its own for a signal."""
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:"))
    return bool(caught & 1 << number - 1)


def leases(read, name):
    return read("governor", "view", name)["leases"]


def test_a_governor_is_shown_as_choria_shows_it(done, name):
    made = done("governor", "add", name, "50", "20m")
    shown = done("governor", "view", name)

    assert made == "Configuration:\n\n  Capacity: 50\n   Expires: 20m0s\n  Replicas: 1\n\n"
    assert shown == (
        f"Configuration for Governor {name}\n\n"
        "       Capacity: 50\n        Expires: 20m0s\n       Replicas: 1\n  Active Leases: 0\n\n"
    )


def test_the_same_again_changes_nothing_and_asks_nothing(done, name):
    done("governor", "add", name, "5", "1h")

    assert done("governor", "add", name, "5", "1h").startswith("Configuration:\n")


def test_a_change_is_shown_and_must_be_confirmed(cli, done, read, name):
    done("governor", "add", name, "5", "1h")

    refused = cli("governor", "add", name, "6", "1h")
    kept = read("governor", "view", name)["settings"]["capacity"]
    changed = done("governor", "add", name, "6", "2h", "--force")

    assert refused.exit_code == 2
    assert kept == 5
    assert "  Capacity: 5 desired: 6\n   Expires: 1h0m0s desired: 2h0m0s\n  Replicas: 1\n" in changed
    assert changed.endswith("Configuration:\n\n  Capacity: 6\n   Expires: 2h0m0s\n  Replicas: 1\n\n")


def test_a_server_that_is_not_clustered_has_one_replica_and_says_so(cli, name):
    result = cli("governor", "add", name, "50", "20m", "3")

    assert result.exit_code == 0
    assert f"warning: the server is not clustered: {name} has 1 replica instead of 3" in result.stderr
    assert "  Replicas: 1\n" in result.stdout


def test_governors_are_listed_by_collective(done, read, name):
    done("governor", "add", name, "1", "1m")
    done("governor", "add", f"{name}EU", "1", "1m", "--collective", "eu")

    assert name in read("governor", "ls")
    assert f"{name}EU" not in read("governor", "ls")
    assert read("governor", "list", "--collective", "eu") == [f"{name}EU"]
    assert done("governor", "ls", "--collective", "eu") == f"Known Governors:\n\n\t{name}EU\n"
    assert done("governor", "ls", "--collective", "nowhere") == "No Governors found\n"
    done("governor", "rm", f"{name}EU", "--force")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("0", "1m"), "cannot have a capacity of 0"),
        (("1", "1ms"), "at least 100ms"),
        (("1", "1m", "9"), "cannot have 9 replicas"),
    ],
)
def test_what_cannot_be_a_governor_is_refused(cli, name, words, reason):
    result = cli("governor", "add", name, *words)

    assert result.exit_code == 1
    assert reason in result.stderr


@pytest.mark.parametrize("command", ["view", "reset", "rm"])
def test_an_unknown_governor_is_an_error_and_is_not_made(cli, read, command):
    result = cli("governor", command, "NOSUCH", *([] if command == "view" else ["--force"]))

    assert result.exit_code == 1
    assert "unknown governor 'NOSUCH'" in result.stderr
    assert "NOSUCH" not in read("governor", "ls")


def test_leases_are_shown_evicted_and_reset(done, read, start, name):
    done("governor", "add", name, "3", "1m")
    start("run", name, "sleep 60", "--identity", "a.example.net")
    wait_until(lambda: len(leases(read, name)) == 1, "a does not get in")
    start("run", name, "sleep 60", "--identity", "b.example.net")
    wait_until(lambda: len(leases(read, name)) == 2, "b does not get in")

    table = done("governor", "view", name).splitlines()
    first = leases(read, name)[0]["id"]
    evicted = done("governor", "evict", name, str(first), "--force")
    left = [lease["holder"] for lease in leases(read, name)]
    reset = done("governor", "reset", name, "--force")

    assert table[-3] == "ID\tProcess Name\tAge"
    assert re.fullmatch(r"\d+\ta\.example\.net\t(\d+m)?[\d.]+m?s", table[-2])
    assert evicted == f'Evicted "a.example.net" from slot {first}\n'
    assert left == ["b.example.net"]
    assert reset == f"Removed 1 lease entries from {name}\n"
    assert leases(read, name) == []
    assert done("governor", "reset", name, "--force") == "No lease entries to remove\n"


def test_run_ends_with_the_exit_code_of_the_command_and_gives_the_slot_back(process, done, read, name):
    done("governor", "add", name, "1", "1m")

    ended = process("governor", "run", name, "--", "sh", "-c", "cat; echo error >&2; exit 7", stdin="hello")
    killed = process("governor", "run", name, "sh -c 'kill -9 $$'")

    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "hello", "error\n")
    assert killed.returncode == 128 + signal.SIGKILL
    assert leases(read, name) == []


def test_flags_may_stand_between_name_and_command_as_in_choria(process, done, name, tmp_path):
    done("governor", "add", name, "1", "1m")
    config = tmp_path / "server.conf"
    config.write_text("# of a node\nidentity = node1.example.net\ncollectives = mcollective,other\n")

    ended = process(
        "governor", "run", "--config", str(config), name, "--max-wait", "20m", f"{sys.executable} -c 'print(1)' --x"
    )

    assert (ended.returncode, ended.stdout) == (0, "1\n")


def test_a_command_that_cannot_start_gives_the_slot_back(process, done, read, name):
    done("governor", "add", name, "1", "1m")

    ended = process("governor", "run", name, "./no-such-program")

    assert ended.returncode == 1
    assert "execution failed: ./no-such-program: No such file or directory" in ended.stderr
    assert leases(read, name) == []


def test_no_slot_within_max_wait_is_an_error_and_with_max_per_period_is_not(process, done, start, read, name):
    done("governor", "add", name, "1", "1m")
    start("run", name, "sleep 60")
    wait_until(lambda: leases(read, name), "nobody gets in")

    refused = process("governor", "run", name, "--max-wait", "0s", "true")
    quiet = process("governor", "run", name, "--max-wait", "0s", "--max-per-period", "true")

    assert refused.returncode == 1
    assert "could not get a execution slot" in refused.stderr
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")


def test_max_per_period_keeps_the_slot_until_it_expires(process, done, read, name):
    done("governor", "add", name, "1", "1m")

    first = process("governor", "run", name, "--max-per-period", "echo once")
    second = process("governor", "run", name, "--max-per-period", "--max-wait", "0s", "echo twice")

    assert first.stdout == "once\n"
    assert (second.returncode, second.stdout) == (0, "")
    assert len(leases(read, name)) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_passed_on_and_the_slot_given_back(done, start, read, name, number):
    done("governor", "add", name, "1", "1m")
    word = number.name.removeprefix("SIG")
    running = start("run", name, "--", "sh", "-c", f"trap 'echo got {word}; exit 3' {word}; echo ready; "
                    "while :; do sleep 0.1; done")  # fmt: skip
    assert running.stdout.readline() == "ready\n"

    running.send_signal(number)

    assert running.wait(WAIT_S_MAX) == 3
    assert running.stdout.readline() == f"got {word}\n"
    assert leases(read, name) == []


def test_a_signal_while_waiting_ends_the_campaign(done, start, read, name):
    done("governor", "add", name, "1", "1m")
    start("run", name, "sleep 60", "--identity", "holder")
    wait_until(lambda: leases(read, name), "nobody gets in")
    waiting = start("run", name, "echo in")
    wait_until(lambda: is_caught(waiting.pid, signal.SIGTERM), "it does not listen for signals")
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(2)

    waiting.send_signal(signal.SIGTERM)

    assert waiting.wait(WAIT_S_MAX) == 128 + signal.SIGTERM
    assert waiting.stdout.read() == ""
    assert [lease["holder"] for lease in leases(read, name)] == ["holder"]


def test_a_long_command_renews_its_lease_and_is_stopped_when_it_is_lost(cli, done, start, read, name):
    done("governor", "add", name, *RENEWED_LEASE)
    running = start("run", name, "--renew", "--stop-when-lost", "sleep 60")
    wait_until(lambda: leases(read, name), "nobody gets in")
    first = leases(read, name)[0]["id"]
    wait_until(lambda: [lease["id"] for lease in leases(read, name)] not in ([], [first]), "it is not renewed")

    # A lease may be renewed between two lines: the younger one is evicted the next time.
    def is_ended():
        for lease in leases(read, name):
            cli("governor", "evict", name, str(lease["id"]), "--force")
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(1)
        return running.poll() is not None

    wait_until(is_ended, "it is not stopped")
    assert running.returncode == 128 + signal.SIGTERM
    assert "is lost" in running.stdout.read()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--interval", "10ms", "true"), "interval should be >=1s"),
        (("--stop-when-lost", "true"), "needs --renew"),
        (("--renew", "--max-per-period", "true"), "exclude each other"),
        (("'unclosed",), "cannot be split into words"),
        (("",), "the command is empty"),
    ],
)
def test_a_line_that_cannot_be_is_refused_before_anything_is_asked(cli, name, words, reason):
    result = cli("governor", "run", name, *words)

    assert result.exit_code == 1
    assert reason in result.stderr


def test_watch_shows_who_enters_and_leaves(done, start, process, name):
    done("governor", "add", name, "1", "1m")
    watching = start("watch", name, "--count", "2")
    stop = threading.Event()

    def run_until_seen():
        while not stop.is_set():
            process("governor", "run", name, "true", "--identity", "web1")

    runner = threading.Thread(target=run_until_seen)
    runner.start()
    try:
        lines = [watching.stdout.readline() for _ in range(2)]
        assert watching.wait(WAIT_S_MAX) == 0
    finally:
        stop.set()
        runner.join()

    texts = {re.sub(r"slot \d+", "slot N", line) for line in lines}
    assert texts == {f"[governor] web1: obtained slot N on {name}\n", f"[governor] web1: vacated slot N on {name}\n"}


def test_events_are_choria_s(done, start, process, url, name):
    done("governor", "add", name, "1", "1m")
    watching = start("watch", name, "--count", "1", "--json")
    stop = threading.Event()

    def run_until_seen():
        while not stop.is_set():
            process("governor", "run", name, "true", "--identity", "web1")

    runner = threading.Thread(target=run_until_seen)
    runner.start()
    try:
        event = json.loads(watching.stdout.readline())
    finally:
        stop.set()
        runner.join()

    assert set(event) == {
        "protocol", "id", "identity", "component", "timestamp", "governor", "sequence", "event_type"
    }  # fmt: skip
    assert event["protocol"] == "io.choria.lifecycle.v1.governor"
    assert (event["component"], event["identity"], event["governor"]) == ("CLI", "web1", name)
    assert abs(event["timestamp"] - time.time()) < 3600


def test_a_command_that_outlives_its_lease_is_warned_about(start, done, name, tmp_path):
    done("governor", "add", name, "1", "500ms")

    running = start("run", name, "--", "sh", "-c", f"until [ -e {tmp_path}/warned ]; do sleep 0.1; done")
    warning = running.stdout.readline()
    (tmp_path / "warned").touch()

    assert running.wait(WAIT_S_MAX) == 0
    assert "has expired and the command still runs: give --renew" in warning
