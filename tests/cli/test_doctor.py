"""`jetlake doctor`: every check says how it is and what to do."""

import json
import socket
import threading

import pytest
from typer.testing import CliRunner

from jetlake.cli import doctor
from jetlake.cli.app import create
from jetlake.errors import ClientError

WAIT_S_MAX = 60.0


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """The doctor waits two seconds for a greeting, which may come later on a machine that is busy with other tests."""
    connect = socket.create_connection
    monkeypatch.setattr(socket, "create_connection", lambda address, **_limit: connect(address, timeout=WAIT_S_MAX))


def run(*words):
    return CliRunner().invoke(create(), ["doctor", *words])


def test_every_check_is_told(tmp_path):
    answer = run("--store", str(tmp_path), "--json", "--server", "nats://127.0.0.1:1")

    findings = {finding["check"]: finding for finding in json.loads(answer.output)}
    assert set(findings) == {"python", "engine", "server", "store", "sync", "clock", "open files", "spark", "java"}
    assert findings["server"]["text"] == "no server at 127.0.0.1:1, the port is free"
    assert all(finding["advice"] or finding["state"] == "ok" for finding in findings.values())


def test_server_that_runs_is_found(jetlake_server):
    answer = run("--server", jetlake_server.url)

    assert f"ok\tserver\ta server answers at 127.0.0.1:{jetlake_server.port}" in answer.output


def test_port_that_something_else_uses_is_told():
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet():
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"HTTP/1.1")

        thread = threading.Thread(target=greet)
        thread.start()
        answer = run("-s", f"127.0.0.1:{listener.getsockname()[1]}")
        thread.join()

    assert "is used by something else" in answer.output


def test_folder_that_cannot_be_written_is_bad(tmp_path):
    finding = doctor.carried_out("store", lambda: doctor.check_sync(tmp_path / "file" / "x"))
    assert finding.state in ("ok", "warn")

    answer = run("--store", "/proc/nowhere")

    assert answer.exit_code == 1
    assert "bad\tsync\t" in answer.output


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), ClientError("no way")])
def test_check_that_fails_is_a_finding(error):
    def fail():
        raise error

    finding = doctor.carried_out("x", fail)

    assert finding.state == "bad"
    assert finding.advice


def test_little_space_and_slow_syncs_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "FREE_BYTES_LOW", 1 << 62)
    monkeypatch.setattr(doctor, "SYNC_MS_SLOW", 0.0)
    monkeypatch.setattr(doctor, "OPEN_FILES_LOW", 1 << 62)

    findings = [doctor.check_space(tmp_path), doctor.check_sync(tmp_path), doctor.check_open_files()]

    assert [finding.state for finding in findings] == ["warn", "warn", "warn"]
    monkeypatch.setattr(doctor, "FREE_BYTES_BAD", 1 << 62)
    assert doctor.check_space(tmp_path).state == "bad"
