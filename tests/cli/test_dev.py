"""`jetlake dev`: a server to play with."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

import jetlake
from jetlake.cli.app import create

START_S_MAX = 60.0


class Playing:
    """A `jetlake dev` that runs."""

    def __init__(self, *words):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jetlake", "dev", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if "Ctrl-C" in line:
                break

    @property
    def url(self):
        return self.lines[0].removeprefix("Server is ready at ")

    def folder(self):
        return Path(next(line for line in self.lines if "storage" in line).split()[1])

    def end(self):
        self.process.send_signal(signal.SIGINT)
        rest, _ = self.process.communicate(timeout=START_S_MAX)
        return self.process.returncode, rest


def run(*words):
    return CliRunner().invoke(create(), list(words))


def test_server_has_a_stream_to_look_at_and_is_gone_after_ctrl_c(unused_port):
    playing = Playing("--port", str(unused_port))
    try:
        info = json.loads(run("stream", "info", "DEMO", "--json", "-s", playing.url).output)
        folder = playing.folder()
        assert folder.is_dir()
    finally:
        code, rest = playing.end()

    assert info["state"]["messages"] == 10
    assert (code, rest) == (0, "Stopped\n")
    assert any(f"jetlake sub -s {playing.url} 'demo.>'" in line for line in playing.lines)
    assert not folder.exists()


def test_store_that_is_named_stays_and_is_not_filled_twice(unused_port, tmp_path):
    for _ in range(2):
        playing = Playing("--port", str(unused_port), "--store", str(tmp_path))
        try:
            state = json.loads(run("stream", "state", "DEMO", "--json", "-s", playing.url).output)
        finally:
            assert playing.end()[0] == 0
        assert state["messages"] == 10


def test_port_that_is_taken_is_told():
    with jetlake.Server() as server:
        answer = run("dev", "--port", str(server.port))

    assert answer.exit_code == 1
    assert "jetlake dev: " in answer.output


@pytest.fixture
def unused_port():
    with jetlake.Server() as server:
        return server.port


def test_the_dashboard_runs_beside_the_server_and_ends_with_it(unused_port):
    pytest.importorskip("jinja2", reason="the extra `dashboard` is not installed")
    playing = Playing("--port", str(unused_port))
    try:
        address = next(line for line in playing.lines if "dashboard" in line).split()[1]
        page = page_once_there(address)
    finally:
        code, _ = playing.end()

    assert "Overview" in page
    assert code == 0
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(address, timeout=60)


def test_the_dashboard_can_be_left_out(unused_port):
    playing = Playing("--port", str(unused_port), "--no-dashboard")
    playing.end()

    assert not any("dashboard" in line for line in playing.lines)


def page_once_there(address):
    deadline = time.monotonic() + START_S_MAX
    while True:
        try:
            with urllib.request.urlopen(address, timeout=60) as response:
                return response.read().decode()
        except OSError:
            assert time.monotonic() < deadline, "no dashboard answers"
            time.sleep(0.1)
