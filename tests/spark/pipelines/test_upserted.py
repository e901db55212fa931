"""Outputs with a key: the newest row of every key, results while they fill, several tables from one state."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines.model import Derived, Pipeline, StreamInput, TableOutput

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

ORDERS = StreamInput("ORDERS", columns="id BIGINT, state STRING, version BIGINT")


def windows(frames):
    from pyspark.sql import functions

    counted = frames["orders"].withWatermark("timestamp", "1 minute").groupBy(functions.window("timestamp", "1 minute"))
    rows = counted.agg(functions.count("*").alias("orders"), functions.max("id").alias("highest"))
    return {"counts": rows.selectExpr("window.start AS start", "orders", "highest")}


def test_a_table_holds_the_newest_row_of_every_key_whatever_comes_late(stream, run_once, rows_in):
    pipeline = Pipeline(
        "orders",
        inputs={"orders": ORDERS},
        transform=lambda frames: {"now": frames["orders"].select("id", "state", "version", "sequence")},
        outputs=(TableOutput("now", key=("id",), order_by=("version", "sequence")), TableOutput("history", of="now")),
    )
    stream.publish({"id": 1, "state": "new", "version": 1}, {"id": 2, "state": "paid", "version": 2})
    stream.publish({"id": 2, "state": "new", "version": 1}, {"id": 1, "state": "sent", "version": 3}, b"no json")
    stream.publish({"id": 1, "state": "paid", "version": 2})

    run_once(pipeline)

    assert rows_in("now", "id", "state", order="id") == [(1, "sent"), (2, "paid")]
    assert rows_in("history", "sequence") == [(1,), (2,), (3,), (4,), (6,)]
    assert rows_in("orders_bad", "sequence") == [(5,)]


def test_windows_are_in_the_table_while_they_fill_and_share_one_query(stream, run_once, rows_in):
    pipeline = Pipeline(
        "orders",
        inputs={"orders": ORDERS},
        transform=windows,
        outputs=(
            TableOutput("counts", of="counts", key=("start",), order_by=("orders",)),
            TableOutput("largest", of="counts", key=("start",), pick=lambda rows: rows.select("start", "highest")),
        ),
    )
    stream.publish({"id": 1}, {"id": 7})
    (first,) = run_once(pipeline)
    at_once = rows_in("counts", "orders", order="start")
    stream.publish({"id": 9}, seconds=10)
    stream.publish({"id": 3}, seconds=60)
    run_once(pipeline)

    assert "orders.counts" in [query.name for query in first.queries]
    assert len(first.queries) == 2
    assert at_once == [(2,)]
    assert rows_in("counts", "orders", order="start") == [(3,), (1,)]
    assert rows_in("largest", "highest", order="start") == [(9,), (3,)]


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (TableOutput("t", order_by=("at",)), "order_by says which row of a key is the newest"),
        (TableOutput("t", key=("id",), derived=(Derived("u", lambda new, _: new),)), "needs a key too"),
    ],
)
def test_what_a_key_cannot_have_is_refused(output, message):
    pipeline = Pipeline("p", {"orders": ORDERS}, lambda frames: frames, (output,))

    with pytest.raises(ConfigurationError, match=message):
        pipeline.check()
