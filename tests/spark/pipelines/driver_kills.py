"""How tests kill the driver of a shipped pipeline at an exact place, as often as they like."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from jetlake.spark.pipelines.state import PipelineFiles

RUN_S_MAX = 900
BEFORE, AFTER = "before_commit", "after_commit"


def die_at(url, lake, pipeline, rows_per_trigger, table, batch, place=AFTER, settings=None):
    """Run a pipeline in a process that is killed when a batch of a table, or a later one, is written or committed."""
    wanted = {
        "server": url,
        "lake": str(lake.folder),
        "pipeline": pipeline,
        "settings": settings or {},
        "rows_per_trigger": rows_per_trigger,
        "table": table,
        "batch": batch,
        "place": place,
    }
    folder = Path(__file__).parents[3]
    died = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("shipped_crash_runner.py")), json.dumps(wanted)],
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])},
    )
    assert died.returncode == -signal.SIGKILL, died.stdout + died.stderr[-3000:]
    assert PipelineFiles(lake.folder, pipeline).status().state == "died"
