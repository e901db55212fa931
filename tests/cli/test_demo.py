"""`jetlake demo` as a process: what it prints, what it leaves, and how it is stopped."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jetlake.demo.pipelines import descendants
from jetlake.demo.scenes import SCENES
from tests.processes import processes_of

DEMO_S_MAX = 150
LONG_S_MAX = 400
"""With Spark, on a machine that is busy with other tests."""

END_S_MAX = 60.0
SMALL = ("--seconds", "1", "--no-spark")

pytestmark = [pytest.mark.timeout(DEMO_S_MAX + 30)]

WITHOUT_PYSPARK = (
    "import sys; sys.modules['pyspark'] = None; from jetlake.cli.app import main; sys.argv[0] = 'jetlake'; main()"
)


def run(*words, folder, program=("-m", "jetlake"), seconds_max=DEMO_S_MAX):
    return subprocess.run(
        [sys.executable, *program, "demo", "--folder", str(folder), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds_max,
    )


def commands_of(output):
    """Return the lines to try that a demo has printed."""
    after = output.partition("Try next:\n")[2]
    return [line.strip() for line in after.splitlines() if line.strip()]


def pasted(line):
    """Run a line as a shell does, without the settings of whoever runs the tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NATS_")}
    return subprocess.run(
        ["bash", "-c", f"{line} --no-context"],
        capture_output=True,
        text=True,
        check=False,
        timeout=END_S_MAX,
        env=environment,
    )


class Playing:
    """A demo that runs; its output is read until a scene begins."""

    def __init__(self, folder, *words):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jetlake", "demo", "--folder", str(folder), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.port = int(re.search(r"127\.0\.0\.1:(\d+)", self.read_until("A server is running"))[1])

    def read_until(self, text):
        for line in self.process.stdout:
            if text in line:
                return line
        raise AssertionError(f"{text!r} was never printed")

    def stop(self, number):
        """Send a signal; return the exit code, what was printed since, and what the demo had started."""
        children = descendants(self.process.pid)
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=END_S_MAX)
        return self.process.returncode, rest, children


def is_open(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def running(pids):
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_figures_are_json_and_every_check_holds(tmp_path):
    answer = run(*SMALL, "--json", folder=tmp_path / "demo")

    assert answer.returncode == 0, answer.stdout + answer.stderr
    report = json.loads(answer.stdout)
    assert [scene["name"] for scene in report["scenes"]] == [each.name for each in SCENES if each.name != "pipelines"]
    assert all(check["expected"] == check["found"] for scene in report["scenes"] for check in scene["checks"])
    assert "A fleet of nodes" in answer.stderr
    assert Path(report["page"]).is_file()


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What a demo on a machine without PySpark prints."""
    answer = run("--seconds", "1", folder=tmp_path_factory.mktemp("demo"), program=("-c", WITHOUT_PYSPARK))
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert not answer.stderr
    return answer.stdout


def test_without_pyspark_one_line_says_so_and_the_rest_is_shown(printed):
    assert "not shown: pipelines need the package pyspark: run `pip install 'jetlake[spark]'`" in printed
    assert "SQL over a stream" in printed
    assert "--lake" not in printed


def test_lines_that_it_prints_work_when_they_are_pasted(printed):
    start, *steps = [line for line in commands_of(printed) if not line.startswith("#")]
    server = subprocess.Popen(shlex.split(start), stdout=subprocess.PIPE, text=True)
    try:
        assert any("Server is ready" in line for line in iter(server.stdout.readline, ""))
        answers = {line: pasted(line) for line in steps}
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=END_S_MAX)

    assert len(steps) == 6
    assert {line: each.stderr for line, each in answers.items() if each.returncode} == {}
    assert all(each.stdout.strip() for each in answers.values())


@pytest.mark.parametrize("scene", ["kill -9", "Submission through a spool"])
def test_ctrl_c_leaves_no_process_and_no_port(tmp_path, scene):
    playing = Playing(tmp_path / "demo", "--seconds", "4", "--no-spark")
    playing.read_until(scene)

    code, rest, children = playing.stop(signal.SIGINT)

    assert code == 130
    assert "Traceback" not in rest
    assert not is_open(playing.port)
    assert running(children) == processes_of(tmp_path) == []


def test_sigterm_ends_it_with_the_exit_code_of_shells(tmp_path):
    playing = Playing(tmp_path / "demo", "--seconds", "4", "--no-spark")
    playing.read_until("A fleet of nodes")

    code, rest, children = playing.stop(signal.SIGTERM)

    assert code == 143
    assert "Traceback" not in rest
    assert not is_open(playing.port)
    assert running(children) == []


def test_server_waits_until_ctrl_c_if_asked_to(tmp_path):
    playing = Playing(tmp_path / "demo", *SMALL, "--wait")
    playing.read_until("Ctrl-C stops the server.")
    was_open = is_open(playing.port)

    code, rest, _ = playing.stop(signal.SIGINT)

    assert was_open
    assert (code, rest) == (130, "")
    assert not is_open(playing.port)


def test_folder_with_something_else_in_it_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")

    answer = run(*SMALL, folder=tmp_path)

    assert answer.returncode == 1
    assert answer.stderr.startswith(f"jetlake demo: {tmp_path} is not empty")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("JETLAKE_LONG") != "1", reason="starts a Spark of its own: make test-long")
@pytest.mark.timeout(LONG_S_MAX + 60)
def test_pipelines_end_in_tables_that_agree_with_the_simulators(tmp_path):
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed")

    answer = run("--seconds", "2", folder=tmp_path / "demo", seconds_max=LONG_S_MAX)

    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr
    assert {"index.html", "fleet.html", "devices.html", "dead.html"} <= {
        path.name for path in (tmp_path / "demo").iterdir()
    }
    without_server = commands_of(answer.stdout)[-2:]
    answers = {line: pasted(line) for line in without_server}
    assert {line: each.stderr for line, each in answers.items() if each.returncode} == {}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("JETLAKE_LONG") != "1", reason="starts a Spark of its own: make test-long")
@pytest.mark.timeout(LONG_S_MAX + 60)
def test_ctrl_c_ends_spark_too(tmp_path):
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    playing = Playing(tmp_path / "demo", "--seconds", "2")
    playing.read_until("Pipelines into tables")
    deadline = time.monotonic() + END_S_MAX
    while len(descendants(playing.process.pid)) < 2:
        assert time.monotonic() < deadline, "Java did not start"
        time.sleep(0.1)

    code, rest, children = playing.stop(signal.SIGINT)

    assert code == 130
    assert "Traceback" not in rest
    assert not is_open(playing.port)
    assert running(children) == processes_of(tmp_path) == []
