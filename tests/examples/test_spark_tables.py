"""The example of streams as tables."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "spark_tables.py"
RUN_S_MAX = 300


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("JETLAKE_LONG") != "1", reason="starts a Spark of its own: make test-long")
@pytest.mark.timeout(RUN_S_MAX + 60)
def test_the_example_counts_orders_and_writes_the_large_ones(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed")

    answer = subprocess.run(
        [sys.executable, str(EXAMPLE)], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=RUN_S_MAX
    )

    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr[-3000:]
    assert "|orders.graz|    50|" in answer.stdout
    # Amounts above 100: the orders from 67 to 99.
    assert answer.stdout.count("totals.") == 33
