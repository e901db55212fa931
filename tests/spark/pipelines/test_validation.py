"""What `validate` finds, and in which words."""

from pathlib import Path

import pytest

from jetlake.spark.pipelines.catalog import Catalog
from jetlake.spark.pipelines.definition import parse
from jetlake.spark.pipelines.validation import validate

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

ORDERS = {"orders": {"stream": "ORDERS", "columns": "id BIGINT, total DOUBLE, city STRING"}}


def problems(spark, lake, sql="SELECT id FROM orders", to="out", streams=("ORDERS",), **more):
    pipeline = parse({"from": ORDERS, "sql": sql, "to": to, **more}, "check")
    return validate(pipeline, spark, lake, streams).problems


def test_a_good_pipeline_has_no_problems_and_shows_its_columns_and_rows(spark, lake):
    pipeline = parse(
        {
            "from": ORDERS,
            "sql": "SELECT id, to_date(timestamp) AS day FROM orders WHERE total > 100",
            "to": {"table": "out", "partition_by": "day"},
            "sample": {"orders": [{"data": {"id": 1, "total": 150}}, {"data": {"id": 2, "total": 1}}, {"data": "x"}]},
            "expected": {"out": [{"id": 1, "day": "2026-01-31"}]},
        },
        "check",
    )

    verdict = validate(pipeline, spark, lake, ["ORDERS"])

    assert verdict.problems == []
    assert verdict.columns == {"out": "struct<id:bigint,day:date>"}
    assert [row["id"] for row in verdict.trial.outputs["out"]] == [1]
    assert [row["reason"] for row in verdict.trial.bad] == ["the payload is not JSON"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"streams": ["ORDERS2", "X"]}, "input orders: there is no stream ORDERS; did you mean ORDERS2?"),
        ({"sql": "SELECT totl FROM orders"}, "step check: there is no column totl; did you mean total?"),
        ({"sql": "SELECT id FROM order"}, "step check: there is no input or step order; did you mean orders?"),
        ({"sql": "SELECT nofun(id) FROM orders"}, "step check: there is no function nofun"),
        ({"sql": "SELEC id FROM orders"}, "step check: this is not SQL: something is wrong at 'SELEC'"),
        ({"to": {"table": "out", "partition_by": "dai"}}, "table out: there is no column dai to partition by"),
        ({"to": {"table": "out", "partition_by": "total"}, "sql": "SELECT * FROM orders"}, "column total is double"),
        ({"sql": "SELECT city, count(*) AS n FROM orders GROUP BY city"}, "give the input a `watermark`"),
        ({"sql": "SELECT id FROM orders ORDER BY id"}, "output out: "),
        ({"to": {"table": "out", "key": "id"}}, "nothing says which is the newest; give `order_by`"),
        ({"to": {"stream": "ALERTS", "subject": "a.{cty}"}}, "output ALERTS: there is no such stream"),
        (
            {"to": {"stream": "ORDERS", "subject": "a.{cty}"}, "sql": "SELECT city FROM orders"},
            "the subject a.{cty} takes cty, which is not a column; did you mean city?",
        ),
        (
            {"sample": {"orders": [{"data": {"id": 1}}]}, "expected": {"out": [{"id": 2}]}},
            "output out: the sample gives no row {'id': 2}; left are {'id': 1}",
        ),
        ({"sample": {"orders": [{"payload": 1}]}}, "a message has no payload"),
    ],
)
def test_what_is_wrong_is_named_with_what_to_do(spark, lake, given, problem):
    found = problems(spark, lake, **given)

    assert any(problem in text for text in found), found


def test_everything_that_is_wrong_is_told(spark, lake):
    found = problems(spark, lake, sql="SELECT totl FROM orders", streams=["OTHER"])

    assert len(found) == 2


def test_columns_that_do_not_fit_the_table_are_found(spark, lake):
    lake.table("out").append(spark.createDataFrame([("a",)], "id STRING"), "q", 0)

    (found,) = problems(spark, lake)
    assert found.startswith("table out: column id is string and would become bigint; columns are only added")


def test_a_table_that_is_not_there_is_named(spark, lake):
    pipeline = parse({"from": {"t": {"table": "missing"}}, "sql": "SELECT * FROM t", "to": "out"}, "check")

    verdict = validate(pipeline, spark, lake, None)

    assert "there is no table missing" in verdict.problems[0]


def test_windows_with_a_watermark_are_good(spark, lake):
    pipeline = parse(
        {
            "from": {"orders": {**ORDERS["orders"], "watermark": "1 minute"}},
            "sql": "SELECT window(timestamp, '1 minute').start AS start, count(*) AS n FROM orders "
            "GROUP BY window(timestamp, '1 minute')",
            "to": "out",
        },
        "check",
    )

    assert validate(pipeline, spark, lake, ["ORDERS"]).problems == []


@pytest.mark.parametrize("name", ["sales.yaml", "large_orders.py", "archive_orders.yaml"])
def test_the_examples_are_good(spark, lake, name):
    path = Path(__file__).resolve().parents[3] / "examples" / "pipelines" / name

    verdict = validate(Catalog().find(str(path)), spark, lake, None)

    assert verdict.problems == []


@pytest.mark.parametrize(
    ("source", "key", "is_good"),
    [
        ({"stream": "ORDERS"}, "id", True),
        ({"pattern": ".*"}, "id", False),
        ({"pattern": ".*"}, ["stream", "id"], True),
    ],
)
def test_a_key_needs_no_order_if_the_sequence_of_one_stream_is_there(spark, lake, source, key, is_good):
    source = {"orders": {**source, "columns": "id BIGINT"}}
    given = {"from": source, "sql": "SELECT stream, id, sequence FROM orders", "to": {"table": "out", "key": key}}

    found = validate(parse(given, "check"), spark, lake, ["ORDERS"]).problems

    assert bool(found) is not is_good
    assert all("nothing says which is the newest" in problem for problem in found)
