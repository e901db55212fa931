"""Signals received by a real process, and `--signal`, which sends them."""

import signal
import subprocess
import sys
import threading

import pytest

from jetlake.errors import ConfigurationError, ServerError
from jetlake.server.signals import is_server, send, signals_blocked


def run_sender(*words):
    return subprocess.run(
        [sys.executable, "-m", "jetlake.server.main", "--signal", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(("number", "name"), [(signal.SIGINT, "interrupt"), (signal.SIGTERM, "terminated")])
def test_process_ends_with_0_when_asked(start_process, number, name):
    process = start_process()

    process.send(number)

    assert process.wait() == 0
    assert f'Trapped "{name}" signal' in process.log()
    assert "Initiating Shutdown..." in process.log()
    assert process.log().rstrip().endswith("Server Exiting..")


def test_log_file_is_opened_anew_on_sigusr1(start_process, tmp_path):
    path = tmp_path / "chosen.log"
    process = start_process("-l", str(path), wait=False)
    wait_for(lambda: path.exists() and "Server is ready" in path.read_text())
    path.rename(tmp_path / "moved.log")

    process.send(signal.SIGUSR1)

    wait_for(lambda: path.exists() and "File log re-opened" in path.read_text())
    assert 'Trapped "user defined signal 1" signal' in (tmp_path / "moved.log").read_text()


def test_without_a_log_file_sigusr1_is_answered_and_ignored(start_process):
    process = start_process()

    process.send(signal.SIGUSR1)

    process.wait_for_line("File log re-open ignored, not a file logger")


def test_without_a_configuration_file_sighup_is_refused(start_process):
    process = start_process()

    process.send(signal.SIGHUP)

    process.wait_for_line(
        "[ERR] Failed to reload server configuration: "
        "can only reload config when a file is provided using -c or --config"
    )
    assert process.process.poll() is None


def test_sender_reaches_a_pid(start_process):
    process = start_process()

    answer = run_sender(f"quit={process.pid}")

    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
    assert process.wait() == 0


def test_sender_reads_a_pid_file(start_process, tmp_path):
    pid_file = tmp_path / "server.pid"
    process = start_process("-P", str(pid_file))

    answer = run_sender(f"ldm={pid_file}")

    assert answer.returncode == 0
    assert process.wait() == 0


def test_sender_stops_a_process_the_hard_way(start_process):
    process = start_process()

    assert run_sender(f"stop={process.pid}").returncode == 0

    assert process.wait() == -signal.SIGKILL


def test_sender_fails_with_one_line():
    answer = run_sender("bogus=1")

    assert answer.returncode == 1
    assert answer.stderr.startswith('nats-server: unknown signal "bogus"')


NO_PROCESS = [
    *("0", "-1", "abc", "missing.pid", "1.5", "²", "٢", "0" * 11 + "1"),
    *(str(number) for number in (2**31, 2**32 + 1, 2**63, 2**64 + 1, 10**20 - 1)),
    *("9" * 5_000, "0" * 5_000 + "1"),
]
"""The kernel counts processes in 31 bits. Python reads no number of more than 4,300 digits."""


@pytest.mark.parametrize("target", NO_PROCESS)
def test_target_that_is_no_process_is_refused_before_anything_is_sent(target):
    with pytest.raises(ConfigurationError, match="invalid pid"):
        send(f"quit={target}")


@pytest.mark.parametrize("content", [b"9" * 5_000, b"9" * 20, b"\xff", b"", b"1 2", b"12\0"])
def test_pid_file_without_a_pid_is_refused(tmp_path, content):
    path = tmp_path / "server.pid"
    path.write_bytes(content)

    with pytest.raises(ConfigurationError, match="invalid pid"):
        send(f"quit={path}")


def test_pid_file_that_cannot_be_read_is_refused_with_one_line(tmp_path, monkeypatch):
    def deny(*_, **__):
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "server.pid"
    path.write_text("1")
    monkeypatch.setattr("builtins.open", deny)

    with pytest.raises(ServerError, match=f"open {path}: permission denied"):
        send(f"quit={path}")


def test_too_many_parts_are_refused():
    with pytest.raises(ConfigurationError, match="invalid signal parameters"):
        send("quit=1=2")


def test_process_that_is_gone_is_reported():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()

    with pytest.raises(ServerError, match=f'signal "quit" {gone.pid}: no such process'):
        send(f"quit={gone.pid}")


@pytest.mark.parametrize(
    "command_line",
    [
        ["/usr/bin/nats-server", "-js"],
        ["/opt/venv/bin/python3.11", "/opt/venv/bin/jetlake-nats-server", "-p", "-1"],
        ["python", "/usr/local/bin/nats-server"],
        ["/usr/bin/python3", "/usr/bin/jetlake", "server", "-js"],
    ],
)
def test_server_is_known_by_its_command_line(command_line):
    assert is_server(command_line)


@pytest.mark.parametrize(
    "command_line",
    [[], [""], ["vim", "nats-server"], ["python", "jetlake", "bench"], ["/usr/bin/python3", "-c", "pass"], ["python"]],
)
def test_other_programs_are_not_taken_for_a_server(command_line):
    assert not is_server(command_line)


def test_threads_started_while_signals_are_blocked_never_see_them():
    seen = []

    with signals_blocked():
        thread = threading.Thread(target=lambda: seen.append(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
        thread.start()
        thread.join()

    assert signal.SIGINT in seen[0]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def wait_for(condition):
    for _ in range(6_000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("did not happen within a minute")
