"""The files by which a running pipeline is known to others."""

import os
import socket

import pytest

from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines import state
from jetlake.spark.pipelines.state import PipelineFiles, QueryState, RunState, known, now_ms


def running(host=None, heartbeat_ms=None):
    return RunState("p", "running", os.getpid(), host or socket.gethostname(), now_ms(), heartbeat_ms or now_ms())


@pytest.fixture
def files(tmp_path):
    """The files of a pipeline that this process runs."""
    made = PipelineFiles(tmp_path, "p")
    made.acquire()
    yield made
    made.release()


def test_a_state_is_read_as_it_was_written(files, tmp_path):
    written = running()
    written.queries = [QueryState("p", batch=3, rows=7, lag=None)]
    files.write(written)

    assert PipelineFiles(tmp_path, "p").status() == written
    assert known(tmp_path) == ["p"]
    assert PipelineFiles(tmp_path, "never").status() is None


def test_a_runner_that_ended_without_a_word_has_died(files, tmp_path):
    files.write(running())
    files.release()

    assert PipelineFiles(tmp_path, "p").status().state == "died"


def test_a_runner_elsewhere_has_died_when_it_is_silent_for_long(files, monkeypatch):
    files.write(running(host="elsewhere"))
    alive = files.status().state
    monkeypatch.setattr(state, "now_ms", lambda: now_ms() + 60_000)

    assert alive == "running"
    assert files.status().state == "died"


def test_two_runners_of_one_pipeline_are_refused(files, tmp_path):
    files.write(running())

    with pytest.raises(ConfigurationError, match=rf"running already by process {os.getpid()} on "):
        PipelineFiles(tmp_path, "p").acquire()


def test_a_wish_to_stop_is_seen_and_forgotten_by_the_next_run(files, tmp_path):
    PipelineFiles(tmp_path, "p").ask_to_stop()
    asked = files.is_asked_to_stop()
    files.release()
    files.acquire()

    assert asked
    assert not files.is_asked_to_stop()


def test_the_progress_that_is_kept_is_bounded_and_a_torn_line_is_left_out(files, monkeypatch):
    monkeypatch.setattr(state, "LINES_MAX", 10)
    for number in range(35):
        files.note({"batch": number})
    path = files.folder / "progress.jsonl"
    lines = len(path.read_bytes().splitlines())
    with path.open("ab") as file:
        file.write(b'{"bat')

    assert lines < 20
    assert [line["batch"] for line in files.progress()][-2:] == [33, 34]
