"""The driver is killed in the middle of a batch, and the tables are exact afterwards, also upserted ones.

`JETLAKE_CRASH_ROWS` makes the stream larger, `JETLAKE_CRASH_KILLS` the deaths more.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines.state import PipelineFiles

pytestmark = [pytest.mark.spark, pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(900)]

ROWS = int(os.environ.get("JETLAKE_CRASH_ROWS", "2000"))
KILLS = int(os.environ.get("JETLAKE_CRASH_KILLS", "2"))
BATCHES = 6
RUN_S_MAX = 300

PLACES = [
    # Files of the first table are in place and do not count yet.
    ("added", "before_commit"),
    # Every table has the batch, and Spark has not noted that.
    ("upserted", "after_commit"),
    # The first table has the batch, the last one has not.
    ("added", "after_commit"),
    ("upserted", "before_commit"),
]


def run(stream, lake, table="none", place="nowhere", batch=0):
    command = [sys.executable, str(Path(__file__).with_name("crash_runner.py"))]
    return subprocess.run(
        [*command, str(stream.folder), str(lake), table, place, str(batch)],
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )


def test_tables_are_exact_after_the_driver_was_killed(spark, stream, tmp_path):
    lake = tmp_path / "lake"
    for batch in range(BATCHES):
        numbers = range(batch * ROWS // BATCHES, (batch + 1) * ROWS // BATCHES)
        stream.publish(*({"id": number} for number in numbers), seconds=3600 * 8)

    for number in range(KILLS):
        died = run(stream, lake, *PLACES[number % len(PLACES)], batch=number + 1)
        assert died.returncode == -signal.SIGKILL, died.stdout + died.stderr[-2000:]
        assert PipelineFiles(lake, "crash").status().state == "died"
    ended = run(stream, lake)

    assert ended.returncode == 0, ended.stdout + ended.stderr[-2000:]
    for name in ("added", "upserted"):
        rows = Lake(lake).existing(name).read(spark).select("id", "sequence").collect()
        assert sorted(tuple(row) for row in rows) == [(number, number + 1) for number in range(ROWS)]
    added = Lake(lake).existing("added")
    on_disk = {path.relative_to(added.path).as_posix() for path in added.path.rglob("*.parquet")}
    assert on_disk == set(added.snapshot().files)
