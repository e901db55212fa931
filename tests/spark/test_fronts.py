"""The format in the other front ends of Spark: Connect, and Declarative Pipelines. Their examples are what is run."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jetlake.spark.java import find_java

pytestmark = [
    pytest.mark.spark,
    # Each example starts a Spark of its own.
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("pyspark", "grpc", "grpc_status", "zstandard")),
        reason="the extra `spark-connect` is not installed: make setup",
    ),
]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RUN_S_MAX = 400


def run(command: list[str], folder: Path, **variables: str) -> str:
    """Run a program to its end and return what it printed."""
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java()),
        "PYSPARK_PYTHON": sys.executable,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        **variables,
    }
    # Of the classic session of the other tests.
    environment.pop("SPARK_CONNECT_MODE_ENABLED", None)
    answer = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=RUN_S_MAX
    )
    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr[-3000:]
    return answer.stdout


def test_spark_connect_reads_a_stream(fresh_shore, tmp_path):
    fresh_shore.create("ORDERS")
    fresh_shore.fill("ORDERS", 8)

    said = run([sys.executable, str(EXAMPLES / "spark_connect.py"), fresh_shore.url, "ORDERS"], tmp_path)

    assert said.splitlines()[-4:] == [f"ORDERS.{number} 2" for number in range(4)]


def test_a_declarative_pipeline_reads_and_writes_streams(fresh_shore, tmp_path):
    fresh_shore.create("ORDERS")
    fresh_shore.create("TOTALS", subjects=["totals.>"])
    fresh_shore.fill("ORDERS", 8)
    project = tmp_path / "project"
    shutil.copytree(EXAMPLES / "spark_declarative", project)
    specification = project / "spark-pipeline.yml"
    specification.write_text(
        specification.read_text().replace("file:///tmp/jetlake-declarative", f"file://{tmp_path / 'storage'}")
    )

    run(["spark-pipelines", "run"], project, NATS_URL=fresh_shore.url)

    assert fresh_shore.streams.state("TOTALS").messages == 8
