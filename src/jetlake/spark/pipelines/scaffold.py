"""The files of a new pipeline: one that runs as it is, and a test of it."""

from pathlib import Path

from jetlake.errors import ConfigurationError
from jetlake.spark.lake.folder import check_name
from jetlake.spark.pipelines.model import IDENTIFIER

YAML = """\
# {name}: what it is for, in one line. Check it with `jetlake pipeline validate {name}`,
# run it with `jetlake pipeline run {name}`.
pipeline: {name}
about: Large orders, by day

from:
  orders:
    stream: {stream}
    # Fields of the JSON payload. They become columns, beside those of every message:
    # stream, subject, sequence, timestamp, time_ns, headers, data.
    columns: id BIGINT, total DOUBLE, city STRING
    # Rows for which this is not true go to the table {name}_bad, with the reason.
    expect:
      no id: id IS NOT NULL

steps:
  - name: large
    sql: |
      SELECT id, total, city, sequence, timestamp, to_date(timestamp) AS day
      FROM orders
      WHERE total >= 100

to:
  - table: {name}
    partition_by: day

trigger: 5 seconds

# What `validate` and the test try the steps with.
sample:
  orders:
    - {{subject: orders.eu, data: {{id: 1, total: 150, city: Rome}}}}
    - {{subject: orders.eu, data: {{id: 2, total: 20, city: Oslo}}}}
    - {{subject: orders.eu, data: no json}}
expected:
  {name}:
    - {{id: 1, total: 150.0, city: Rome}}
"""

YAML_TEST = '''\
"""The pipeline {name}, on a few rows."""

from pathlib import Path

import pytest

import jetlake.spark
from jetlake.spark.pipelines import Catalog, try_out


@pytest.fixture(scope="module")
def spark():
    return jetlake.spark.session("test", master="local[1]", driver_memory="1g")


def test_large_orders_are_kept_and_bad_ones_set_aside(spark):
    pipeline = Catalog().find(str(Path(__file__).with_name("{name}.yaml")))

    trial = try_out(pipeline, spark, pipeline.sample)

    assert [row["id"] for row in trial.outputs["{name}"]] == [1]
    assert [row["reason"] for row in trial.bad] == ["the payload is not JSON"]
'''

PYTHON = '''\
"""{name}: what it is for, in one line.

Check it with `jetlake pipeline validate {name}`, run it with `jetlake pipeline run {name}`.
"""

from pyspark.sql import DataFrame, functions

from jetlake.spark.pipelines import StreamInput, TableOutput, pipeline


@pipeline(
    about="Large orders, by day",
    inputs={{
        "orders": StreamInput(
            stream="{stream}",
            columns="id BIGINT, total DOUBLE, city STRING",
            expect={{"no id": "id IS NOT NULL"}},
        )
    }},
    outputs=[TableOutput("{name}", partition_by=("day",))],
    sample={{
        "orders": [
            {{"subject": "orders.eu", "data": {{"id": 1, "total": 150, "city": "Rome"}}}},
            {{"subject": "orders.eu", "data": {{"id": 2, "total": 20, "city": "Oslo"}}}},
            {{"subject": "orders.eu", "data": "no json"}},
        ]
    }},
    expected={{"{name}": [{{"id": 1, "city": "Rome"}}]}},
)
def {name}(orders: DataFrame) -> DataFrame:
    large = orders.where("total >= 100")
    return large.select("id", "total", "city", "sequence", "timestamp", functions.to_date("timestamp").alias("day"))
'''

PYTHON_TEST = YAML_TEST.replace("{name}.yaml", "{name}.py")


def create(name: str, folder: Path, *, python: bool = False, stream: str = "ORDERS") -> list[Path]:
    """Write a pipeline and its test, and return the files. Raises `ConfigurationError` when one is there."""
    check_name(name)
    if not IDENTIFIER.fullmatch(name):
        raise ConfigurationError(f"{name!r} cannot be a name in Python and SQL: use letters, digits and _")
    files = {
        folder / f"{name}.{'py' if python else 'yaml'}": PYTHON if python else YAML,
        folder / f"test_{name}.py": PYTHON_TEST if python else YAML_TEST,
    }
    for path in files:
        if path.exists():
            raise ConfigurationError(f"{path} is there already: choose another name, or delete it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, template in files.items():
            path.write_text(template.format(name=name, stream=stream), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be written: {error}") from error
    return list(files)
