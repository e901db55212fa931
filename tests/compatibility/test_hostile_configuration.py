"""Files and flags with values that mean nothing: a server that runs goes on as before, and none ends in a traceback."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compatibility.server_process import ServerProcess, run_to_end

DONE = "Reloaded server configuration (sha256:"
FAILED = "[ERR] Failed to reload server configuration: "

MANY = "9" * 306
TIMES = [
    f"authorization {{ timeout: {MANY}.0 }}",
    f"authorization {{ timeout: {'9' * 400}.0 }}",
    f"authorization {{ timeout: -{MANY}.0 }}",
    "authorization { timeout: 18446744073709549.0 }",
    "authorization { timeout: 9223372036854775807 }",
    f"leafnodes {{ authorization {{ timeout: {MANY}.0 }} }}",
    f"websocket {{ no_tls: true, authorization {{ timeout: {MANY}.0 }} }}",
    "ping_interval: 9223372036854775807",
    "write_deadline: 9223372036854775807",
]
FILES = [
    *('operator: "a\\x00b"', 'operator: ["a\\x00b"]', 'trusted_keys: "a\\x00b"'),
    # A log file of that name ends nats-server.
    *('pid_file: "a\\x00b"', 'ports_file_dir: "a\\x00b"'),
    *(
        'tls { cert_file: "a\\x00b", key_file: b }',
        'leafnodes { remotes: [ { url: "nats://h", credentials: "a\\x00" } ] }',
    ),
    *('include "a\\x00b"', 'include "/"'),
]
DEEP = "x0: {a: 1}\n" + "".join(f"x{number}: {{a: $x{number - 1}}}\n" for number in range(1, 1500))


@pytest.fixture
def reload(start_server) -> Callable[[ServerProcess, str], str]:
    """Give the server another file, make it read it, and return the lines of the log that came of it."""

    def reload(server: ServerProcess, config: str) -> str:
        (server.folder / "server.conf").write_text(config)
        before = len(server.log())
        server.signal(signal.SIGHUP)
        while True:
            log = server.wait_for_log('Trapped "hangup" signal')[before:]
            if (DONE in log or FAILED in log) and log.endswith("\n"):
                return log
            assert server.process.poll() is None, server.log()
            time.sleep(0.005)

    return reload


@pytest.mark.parametrize("text", [*TIMES, *FILES], ids=lambda text: text[:60])
def test_file_that_means_nothing_leaves_clients_in(start_server, reload, text: str) -> None:
    server = start_server(config="")
    with server.client() as client:
        client.connect()

        reload(server, text)

        client.expect_pong()
    assert server.process.poll() is None


def test_values_inside_each_other_by_variables_leave_clients_in(start_server, reload) -> None:
    server = start_server(config="")
    with server.client() as client:
        client.connect()

        reload(server, f"{DEEP}server_metadata {{ a: b }}\nocsp_cache: $x1499\n")

        client.expect_pong()
    assert server.process.poll() is None


def test_longest_times_there_are_can_be_waited_for(start_server) -> None:
    longest = "2562047h47m16.854775807s"
    server = start_server(
        config=f"""
          ping_interval: "{longest}", write_deadline: "{longest}", lame_duck_duration: "{longest}"
        """
    )

    for _ in range(2):
        with server.client() as client:
            client.connect()
            client.expect_pong()
    assert server.process.poll() is None


@pytest.mark.parametrize("digits", ["99999999999999999999", "9" * 5_000, "18446744073709551616"], ids=len)
def test_signal_for_a_process_that_no_number_stands_for(server_kind: str, tmp_path: Path, digits: str) -> None:
    (tmp_path / "server.pid").write_text(digits)

    for target in (digits, "server.pid"):
        completed = run_to_end(server_kind, ["--signal", f"quit={target}"], tmp_path)

        assert completed.returncode == 1
        assert f"invalid pid: {digits[:20]}" in completed.stderr
        assert "Traceback" not in completed.stderr
