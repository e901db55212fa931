"""A pipeline on a Spark cluster of processes, one of which is killed on the way."""

import json
import subprocess
import sys
import time

import pytest

from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines.state import PipelineFiles
from tests.spark.standalone import StandaloneCluster

pytestmark = [pytest.mark.spark, pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(900)]

ROWS = 20_000
RUN_S_MAX = 600
OPTIONS = {"maxRowsPerTrigger": "2000", "maxRowsPerPartition": "1000"}


def test_a_pipeline_is_exact_when_a_worker_is_killed(jetlake_shore, tmp_path):
    stream = jetlake_shore.create()
    jetlake_shore.fill(stream, ROWS)
    definition = {
        "from": {"orders": {"stream": stream, "columns": "n BIGINT", "options": OPTIONS}},
        "sql": "SELECT n, sequence FROM orders",
        "to": "copy",
    }
    (tmp_path / "copy.yaml").write_text(json.dumps(definition))
    lake = tmp_path / "lake"
    files = PipelineFiles(lake, "copy")
    command = [sys.executable, "-m", "jetlake", "pipeline", "run"]
    places = ["--server", jetlake_shore.url, "--lake", str(lake)]

    with StandaloneCluster(tmp_path / "cluster", workers=2) as cluster, (tmp_path / "run.log").open("w") as log:
        process = subprocess.Popen(
            [*command, str(tmp_path / "copy.yaml"), "--once", *cluster.flags(), *places],
            stdout=log,
            stderr=log,
        )
        try:
            deadline = time.monotonic() + RUN_S_MAX
            while not files.progress():
                assert process.poll() is None, (tmp_path / "run.log").read_text()[-3000:]
                assert time.monotonic() < deadline
                time.sleep(0.1)
            cluster.kill_worker(0)
            code = process.wait(RUN_S_MAX)
        finally:
            process.kill()
            process.wait()

    assert code == 0, (tmp_path / "run.log").read_text()[-3000:]
    assert len(files.progress()) >= 10
    rows = Lake(lake).existing("copy").to_arrow(["n", "sequence"])
    assert sorted(rows["n"].to_pylist()) == list(range(ROWS))
    assert sorted(rows["sequence"].to_pylist()) == list(range(1, ROWS + 1))
