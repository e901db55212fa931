"""The process: command line, log lines, files it writes, signals and exit codes."""

from __future__ import annotations

import json
import re
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.compatibility.server_process import (
    START_SECONDS_MAX,
    ServerProcess,
    find_executable,
    run_to_end,
    start_server_process,
)

LOG_LINE = re.compile(r"\[(\d+)\] \d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{6} \[(INF|WRN|ERR|FTL|DBG|TRC)\] (.*)")


def log_messages(log: str) -> list[tuple[int, str, str]]:
    """Return process id, label and text of each line; every line must have the form."""
    messages = []
    for line in log.splitlines():
        match = LOG_LINE.fullmatch(line)
        assert match is not None, f"not a log line: {line!r}"
        messages.append((int(match[1]), match[2], match[3]))
    return messages


@pytest.mark.parametrize("argument", ["-v", "--v", "-version", "--version", "version"])
def test_version_is_printed(server_kind: str, tmp_path: Path, argument: str) -> None:
    completed = run_to_end(server_kind, [argument], tmp_path)

    assert completed.returncode == 0
    assert re.fullmatch(r"nats-server: v2\.\d+\.\d+(-\S+)?\n", completed.stdout)


@pytest.mark.parametrize("argument", ["-h", "--help", "help"])
def test_help_shows_the_usage(server_kind: str, tmp_path: Path, argument: str) -> None:
    completed = run_to_end(server_kind, [argument], tmp_path)

    assert completed.returncode == 0
    assert "Usage: nats-server [options]" in completed.stdout
    assert "--port" in completed.stdout


def test_unknown_word_is_refused(server_kind: str, tmp_path: Path) -> None:
    completed = run_to_end(server_kind, ["bogus"], tmp_path)

    assert completed.returncode == 1
    assert completed.stderr == 'nats-server: unrecognized command: "bogus"\n'


def test_unknown_flag_shows_the_usage_and_ends_with_0(server_kind: str, tmp_path: Path) -> None:
    completed = run_to_end(server_kind, ["--bogus"], tmp_path)

    assert completed.returncode == 0
    assert "Usage: nats-server [options]" in completed.stdout
    assert completed.stderr == "flag provided but not defined: -bogus\n"


@pytest.mark.parametrize(
    "flags",
    [
        ["-p", "-1", "-a", "127.0.0.1"],
        ["--port", "-1", "--addr", "127.0.0.1"],
        ["-port", "-1", "-addr", "127.0.0.1"],
        ["-p=-1", "-a=127.0.0.1"],
        ["--port=-1", "--net=127.0.0.1"],
        ["-p", "-1", "--net", "127.0.0.1", "-D=false"],
    ],
    ids=" ".join,
)
def test_flags_have_one_or_two_dashes_and_an_optional_equals_sign(
    server_kind: str, tmp_path: Path, flags: list[str]
) -> None:
    server = ServerProcess(server_kind, tmp_path, flags)
    try:
        server.wait_until_ready()

        assert server.host == "127.0.0.1"
        with server.client() as client:
            client.expect_pong()
    finally:
        server.stop()


@pytest.mark.parametrize("flag", ["-n", "--name", "--server_name"])
def test_name_flag_names_the_server(start_server, flag: str) -> None:
    server = start_server(flags=[flag, "harbour"])

    with server.client() as client:
        assert client.info["server_name"] == "harbour"


def test_start_is_logged_line_by_line(start_server) -> None:
    server = start_server(flags=["-n", "harbour"])

    messages = log_messages(server.log())

    assert {pid for pid, _, _ in messages} == {server.pid}
    texts = [text for _, label, text in messages if label == "INF"]
    with server.client() as client:
        for expected in [
            f"  Version:  {client.info['version']}",
            "  Name:     harbour",
            f"  ID:       {client.info['server_id']}",
            f"Listening for client connections on 127.0.0.1:{server.port}",
            "Server is ready",
        ]:
            assert expected in texts
    assert texts[0].startswith("Starting nats-server")
    assert texts[-1] == "Server is ready"


def test_log_goes_to_the_given_file(server_kind: str, tmp_path: Path) -> None:
    log_path = tmp_path / "server.log"

    server = ServerProcess(server_kind, tmp_path, ["-a", "127.0.0.1", "-p", "-1", "-l", str(log_path)])
    try:
        server.wait_until_ready(log_path)

        assert server.log() == ""
        assert log_messages(log_path.read_text())
    finally:
        server.stop()


def test_sigusr1_opens_the_log_file_again(server_kind: str, tmp_path: Path) -> None:
    log_path = tmp_path / "server.log"
    server = ServerProcess(server_kind, tmp_path, ["-a", "127.0.0.1", "-p", "-1", "-l", str(log_path)])
    try:
        server.wait_until_ready(log_path)
        log_path.rename(tmp_path / "server.log.1")

        server.signal(signal.SIGUSR1)

        server.wait_for_log("File log re-opened", log_path=log_path)
        with server.client() as client:
            client.expect_pong()
    finally:
        server.stop()


def test_debug_flag_logs_more(start_server) -> None:
    server = start_server(flags=["-D"])

    with server.client() as client:
        client.connect()
        server.wait_for_log("Client connection created")

    assert "DBG" in {label for _, label, _ in log_messages(server.log())}


def test_trace_flag_logs_the_protocol(start_server) -> None:
    server = start_server(flags=["-V"])

    with server.client() as client:
        client.connect()
        client.send(b"SUB traced 1\r\nPUB traced 2\r\nhi\r\n")
        client.expect(b"MSG traced 1 2\r\nhi\r\n")
        client.expect_pong()

        log = server.wait_for_log("->> [MSG traced 1 2]")
    assert "<<- [SUB traced 1]" in log
    assert "<<- [PUB traced 2]" in log
    assert '<<- MSG_PAYLOAD: ["hi"]' in log


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_to_stop_ends_with_0_and_clients_see_the_end(start_server, number: signal.Signals) -> None:
    server = start_server()

    with server.client() as client, server.client() as silent:
        client.connect()
        server.signal(number)

        client.expect_closed()
        silent.expect_closed()
        assert server.wait_for_exit() == 0
    texts = [text for _, _, text in log_messages(server.log())]
    assert "Initiating Shutdown..." in texts
    assert texts[-1] == "Server Exiting.."


@pytest.mark.parametrize("name", ["quit", "term"])
def test_signal_flag_stops_another_server(start_server, server_kind: str, tmp_path: Path, name: str) -> None:
    server = start_server()

    completed = run_to_end(server_kind, ["--signal", f"{name}={server.pid}"], tmp_path)

    assert completed.returncode == 0
    assert server.wait_for_exit() == 0


def test_signal_flag_kills_another_server(start_server, server_kind: str, tmp_path: Path) -> None:
    server = start_server()

    completed = run_to_end(server_kind, ["--signal", f"stop={server.pid}"], tmp_path)

    assert completed.returncode == 0
    assert server.wait_for_exit() == -signal.SIGKILL


def test_signal_flag_reads_a_pid_file(start_server, server_kind: str, tmp_path: Path) -> None:
    pid_path = tmp_path / "server.pid"
    server = start_server(flags=["-P", str(pid_path)])

    completed = run_to_end(server_kind, [f"--signal=term={pid_path}"], tmp_path)

    assert completed.returncode == 0
    assert server.wait_for_exit() == 0


def test_signal_flag_with_an_unknown_name_is_refused(server_kind: str, tmp_path: Path) -> None:
    completed = run_to_end(server_kind, ["--signal", "dance=1"], tmp_path)

    assert completed.returncode == 1
    assert completed.stderr == 'nats-server: unknown signal "dance"\n'


def test_sighup_without_a_configuration_file_is_logged_and_ignored(start_server) -> None:
    server = start_server()

    server.signal(signal.SIGHUP)

    server.wait_for_log("can only reload config when a file is provided using -c or --config")
    with server.client() as client:
        client.expect_pong()


def test_pid_file_holds_digits_only_and_stays(start_server, tmp_path: Path) -> None:
    pid_path = tmp_path / "server.pid"
    server = start_server(flags=["-P", str(pid_path)])

    assert pid_path.read_bytes() == b"%d" % server.pid

    server.signal(signal.SIGTERM)
    assert server.wait_for_exit() == 0
    assert pid_path.exists()


def test_ports_file_names_the_listener_and_goes(start_server, server_kind: str, tmp_path: Path) -> None:
    server = start_server(flags=["--ports_file_dir", str(tmp_path)])
    ports_path = tmp_path / f"{Path(find_executable(server_kind)).name}_{server.pid}.ports"

    # nats-server writes it in the background.
    deadline = time.monotonic() + START_SECONDS_MAX
    while not (ports_path.exists() and ports_path.read_text().endswith("}")):
        assert time.monotonic() < deadline, "no file appears"
        time.sleep(0.01)
    assert json.loads(ports_path.read_text()) == {"nats": [f"nats://127.0.0.1:{server.port}"]}

    server.signal(signal.SIGTERM)
    assert server.wait_for_exit() == 0
    assert not ports_path.exists()


def test_port_in_use_is_fatal(server_kind: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        completed = run_to_end(server_kind, ["-a", "127.0.0.1", "-p", str(port)], tmp_path)

    assert completed.returncode == 1
    fatal = [text for _, label, text in log_messages(completed.stderr) if label == "FTL"]
    assert len(fatal) == 1
    assert fatal[0].startswith(f"Error listening on port: 127.0.0.1:{port}, ")
    assert "address already in use" in fatal[0]


def test_server_starts_again_on_the_same_port_at_once(start_server, server_kind: str, tmp_path: Path) -> None:
    first = start_server()
    with first.client() as client:
        client.connect()
        first.signal(signal.SIGTERM)
        assert first.wait_for_exit() == 0

        second = start_server_process(server_kind, tmp_path, port=first.port)

    try:
        assert second.port == first.port
        with second.client() as client:
            client.expect_pong()
    finally:
        second.stop()
