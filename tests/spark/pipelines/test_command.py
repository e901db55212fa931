"""`jetlake pipeline`, as it is typed."""

import json
import os
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from jetlake.cli.app import create
from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines.catalog import SHIPPED
from jetlake.spark.pipelines.state import PipelineFiles

WAIT_S_MAX = 300.0


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder to work in, with no settings from outside."""
    monkeypatch.chdir(tmp_path)
    for name in ("JETLAKE_LAKE", "JETLAKE_PIPELINES", "NATS_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(create(), ["pipeline", *(str(argument) for argument in arguments)])


def test_ls_shows_what_ships_what_is_there_and_what_is_broken(place):
    assert run("new", "mine", "--stream", "SALES").exit_code == 0
    (place / "pipelines" / "broken.yaml").write_text("from: {")

    answer = run("ls", "--json")

    rows = {row["name"]: row for row in json.loads(answer.stdout)}
    assert answer.exit_code == 1
    assert sorted(rows) == sorted([*SHIPPED, "broken", "mine"])
    assert rows["mine"]["from"] == "SALES"
    assert rows["mine"]["to"] == "mine"
    assert "broken.yaml" in rows["broken"]["about"]
    assert "mine\tSALES\tmine" in run("ls").stdout


def test_new_does_not_overwrite_and_refuses_names_that_are_none(place):
    assert run("new", "mine", "--python").exit_code == 0

    again, wrong = run("new", "mine", "--python"), run("new", "a-b")

    assert (again.exit_code, wrong.exit_code) == (1, 1)
    assert "mine.py is there already: choose another name" in again.stderr
    assert "cannot be a name in Python and SQL" in wrong.stderr


def test_what_is_not_there_is_refused_in_one_sentence(place):
    cases = {
        ("run", "archiv"): "there is no pipeline archiv in pipelines; did you mean archive?",
        ("run", "archive", "--server", "nats://127.0.0.1:1"): "127.0.0.1:1",
        ("run", "archive", "--set", "streams=X"): "archive has no setting streams; did you mean stream?",
        ("status", "archive"): "no pipeline archive ever ran on lake; there are none",
        ("stop", "archive"): "no pipeline archive ever ran on lake",
        ("show", "archiv"): "did you mean archive?",
        ("validate", "nothing.yaml", "--offline"): "there is no file nothing.yaml",
    }
    for arguments, text in cases.items():
        answer = run(*arguments)
        assert answer.exit_code == 1, arguments
        assert text in answer.stderr, answer.stderr
        assert "Traceback" not in answer.stderr
    assert run("run", "archive", "--set", "stream").exit_code == 2


def test_status_says_that_a_runner_died(place):
    files = PipelineFiles(place / "lake", "archive")
    files.folder.mkdir(parents=True)
    from jetlake.spark.pipelines.state import RunState

    files.write(RunState("archive", "running", 1, os.uname().nodename, 0, 0))

    answer = run("status")
    stopped = run("stop", "archive", "--json")

    assert answer.exit_code == 1
    assert "archive\tdied" in answer.stdout
    assert json.loads(stopped.stdout) == [{"pipeline": "archive", "state": "died", "was_running": False}]


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_show_prints_the_tables_and_writes_a_page(spark, place):
    frame = spark.sql(
        "SELECT 'ORDERS' AS stream, 'a.b' AS subject, id AS sequence, timestamp_seconds(id * 3600) AS timestamp, "
        "CAST('x' AS BINARY) AS data, to_date(timestamp_seconds(id * 3600)) AS day FROM range(50)"
    )
    Lake("lake").table("archive").append(frame, "q", 0, ["day"])

    answer = run("show", "archive", "--html", "page.html")
    as_json = json.loads(run("show", "archive", "--json").stdout)

    assert answer.exit_code == 0, answer.output
    assert "archive\t50\t" in answer.stdout
    assert "page: page.html" in answer.stdout
    assert "<svg" in (place / "page.html").read_text()
    assert as_json["tables"][0]["rows"] == 50
    assert as_json["tables"][0]["newest"][0]["sequence"] == 49
    assert as_json["tables"][0]["partitions"] == {"1970-01-01": 24, "1970-01-02": 24, "1970-01-03": 2}


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_a_new_pipeline_is_good_as_it_is_and_a_typo_is_named(spark, place):
    run("new", "mine")
    run("new", "own", "--python")
    wrong = (place / "pipelines" / "mine.yaml").read_text().replace("WHERE total", "WHERE totl")
    (place / "pipelines" / "typo.yaml").write_text(wrong.replace("pipeline: mine", "pipeline: typo"))

    good = run("validate", "mine", "own", "--offline")
    typo = run("validate", "typo", "--offline", "--json")

    assert good.exit_code == 0, good.output
    assert "mine: good" in good.stdout
    assert "the sample gives 1 rows of own" in good.stdout
    assert "sets aside row 3 of orders: the payload is not JSON" in good.stdout
    assert typo.exit_code == 1
    assert json.loads(typo.stdout)[0]["problems"] == ["step large: there is no column totl; did you mean total?"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_test_that_comes_with_a_new_pipeline_passes(place):
    run("new", "mine")

    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "pipelines"],
        capture_output=True,
        text=True,
        timeout=220,
        check=False,
    )

    assert answer.returncode == 0, answer.stdout[-2000:]
    assert "1 passed" in answer.stdout


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(500)
def test_a_pipeline_runs_in_one_shell_and_is_seen_and_stopped_from_another(place, jetlake_shore):
    stream = jetlake_shore.create()
    jetlake_shore.fill(stream, 100)
    command = [sys.executable, "-m", "jetlake", "pipeline"]
    settings = ["--set", f"stream={stream}", "--set", "trigger=500ms"]
    log = (place / "run.log").open("w")
    process = subprocess.Popen(
        [*command, "run", "archive", *settings, "--json", "--server", jetlake_shore.url, "--master", "local[2]"],
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )

    def rows():
        answer = run("status", "--json")
        states = json.loads(answer.stdout)
        return sum(query["rows"] for state in states for query in state["queries"])

    try:
        deadline = time.monotonic() + WAIT_S_MAX
        while rows() < 100:
            assert process.poll() is None, (place / "run.log").read_text()[-2000:]
            assert time.monotonic() < deadline
            time.sleep(0.2)
        again = run("run", "archive", "--set", f"stream={stream}", "--server", jetlake_shore.url)
        stopped = run("stop", "archive")
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
        log.close()

    assert again.exit_code == 1
    assert "archive is running already" in again.stderr
    assert (stopped.exit_code, process.returncode) == (0, 0)
    assert [json.loads(line)["state"] for line in output.splitlines()][-1] == "stopped"
    shown = json.loads(run("show", "archive", "--json").stdout)
    assert shown["tables"][0]["rows"] == 100
    assert shown["state"]["queries"][0]["lag"] == 0
