"""What a batch writes: several outputs that share a table, and each row in it once."""

import pytest

from jetlake.spark.pipelines.definition import parse
from jetlake.spark.pipelines.state import PipelineFiles

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

ORDERS = {"orders": {"stream": "ORDERS", "columns": "id BIGINT, total DOUBLE", "expect": {"no id": "id IS NOT NULL"}}}


def forget_the_end_of(batch, lake, name):
    """Have Spark run a batch again, as if the process had died after the commits of the tables and before Spark's."""
    commits = PipelineFiles(lake.folder, name).checkpoint(name) / "commits"
    for path in (commits / str(batch), commits / f".{batch}.crc"):
        path.unlink(missing_ok=True)


def test_a_table_that_several_outputs_add_to_has_the_rows_of_each_once(lake, stream, run_once, rows_in):
    pipeline = parse(
        {
            "from": ORDERS,
            "steps": [
                {"name": "large", "sql": "SELECT id, sequence FROM orders WHERE total > 100"},
                {"name": "small", "sql": "SELECT id, sequence FROM orders WHERE total <= 100"},
            ],
            "to": [{"table": "all", "from": "large"}, {"table": "all", "from": "small"}],
        },
        "both",
    )
    stream.publish({"id": 1, "total": 500}, {"id": 2, "total": 5})
    stream.publish({"id": 3, "total": 50}, {"id": 4, "total": 101})
    (first,) = run_once(pipeline)
    forget_the_end_of(1, lake, "both")

    run_once(pipeline)

    assert rows_in("all", "id") == [(1,), (2,), (3,), (4,)]
    assert first.written["all"] == 4


def test_an_output_adds_to_the_table_of_bad_rows_in_a_batch_that_sets_rows_aside(lake, stream, run_once, rows_in):
    pipeline = parse(
        {
            "from": ORDERS,
            "sql": "SELECT sequence, 'too large' AS reason, to_date(timestamp) AS day FROM orders WHERE total > 100",
            "to": "checked_bad",
        },
        "checked",
    )
    stream.publish({"id": 1, "total": 500}, b"no json")
    run_once(pipeline)
    forget_the_end_of(0, lake, "checked")

    run_once(pipeline)

    assert rows_in("checked_bad", "sequence", "reason") == [(1, "too large"), (2, "the payload is not JSON")]
