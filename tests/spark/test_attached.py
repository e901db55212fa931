"""Streams as tables of a database: every operation of a table, always fresh."""

import pytest

import jetlake.spark
from jetlake.errors import ConfigurationError
from jetlake.spark.naming import by_table

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

WAIT_S_MAX = 60


@pytest.fixture
def tables(spark, shore):
    """Two streams as tables, the first one with ten messages."""
    one, two = shore.create(), shore.create()
    shore.fill(one, 10)
    jetlake.spark.attach(spark, shore.url, streams=[one, two])
    return shore, one, two


def test_every_operation_of_a_table_works(spark, tables, tmp_path):
    shore, one, two = tables
    first, second = f"streams.{one.lower()}", f"streams.{two.lower()}"

    # SELECT, spark.table, DESCRIBE, SHOW TABLES.
    assert spark.sql(f"SELECT count(*) FROM {first} WHERE sequence > 4").first()[0] == 6
    assert spark.table(first).agg({"sequence": "max"}).first()[0] == 10
    assert spark.sql(f"DESCRIBE {first}").first().col_name == "stream"
    assert one.lower() in {row.tableName for row in spark.sql("SHOW TABLES IN streams").collect()}

    # INSERT with some columns, INSERT … SELECT of all, writeTo, insertInto.
    spark.sql(f"INSERT INTO {second} (subject, data) VALUES ('{two}.a', CAST('x' AS BINARY))")
    spark.sql(
        f"INSERT INTO {second} SELECT stream, '{two}.b', sequence, timestamp, time_ns, headers, data FROM {first}"
    )
    assert spark.table(second).count() == 11
    spark.table(first).selectExpr(
        "stream", f"'{two}.c' AS subject", "sequence", "timestamp", "time_ns", "headers", "data"
    ).writeTo(second).append()
    assert spark.table(second).count() == 21

    # readStream.table, toTable.
    rows = (
        spark.readStream.option("startingSequence", "earliest")
        .table(first)
        .selectExpr("stream", f"'{two}.d' AS subject", "sequence", "timestamp", "time_ns", "headers", "data")
    )
    query = rows.writeStream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).toTable(second)
    assert query.awaitTermination(WAIT_S_MAX)
    counts = spark.sql(f"SELECT subject, count(*) n FROM {second} GROUP BY subject ORDER BY subject").collect()
    assert [(row.subject, row.n) for row in counts] == [
        (f"{two}.a", 1),
        (f"{two}.b", 10),
        (f"{two}.c", 10),
        (f"{two}.d", 10),
    ]
    assert shore.streams.state(two).messages == 31


def test_tables_and_views_over_them_are_always_fresh(spark, tables):
    shore, one, _ = tables
    table = f"streams.{one.lower()}"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW fresh AS SELECT sequence FROM {table}")
    assert spark.table(table).count() == 10
    assert spark.sql("SELECT count(*) FROM fresh").first()[0] == 10

    shore.fill(one, 5)

    assert spark.table(table).count() == 15
    assert spark.sql("SELECT count(*) FROM fresh").first()[0] == 15


def test_three_filters_of_a_table_do_not_disturb_each_other(spark, tables):
    _, one, _ = tables
    table = f"streams.{one.lower()}"

    row = spark.sql(
        f"SELECT (SELECT count(*) FROM {table} WHERE sequence > 7) a,"
        f" (SELECT count(*) FROM {table} WHERE sequence <= 5) b, (SELECT count(*) FROM {table}) c"
    ).first()

    assert (row.a, row.b, row.c) == (3, 5, 10)


def test_attaching_everything_leaves_buckets_out_and_again_adds_what_is_new(spark, fresh_shore):
    fresh_shore.create("ORDERS")
    fresh_shore.create("KV_settings", subjects=["$KV.settings.>"])

    assert jetlake.spark.attach(spark, fresh_shore.url, "again") == {"orders": "ORDERS"}
    fresh_shore.create("New-One", subjects=["new.>"])
    assert jetlake.spark.attach(spark, fresh_shore.url, "again") == {"new_one": "New-One", "orders": "ORDERS"}
    assert spark.table("again.new_one").count() == 0


def test_a_table_of_somebody_else_is_left_alone(spark, jetlake_shore, tmp_path):
    jetlake_shore.create("TAKEN")
    spark.sql("CREATE DATABASE IF NOT EXISTS others")
    spark.sql(f"CREATE TABLE others.taken USING parquet LOCATION '{tmp_path}/taken' AS SELECT 1 AS kept")
    try:
        with pytest.raises(ConfigurationError, match=r"others\.taken is a table already"):
            jetlake.spark.attach(spark, jetlake_shore.url, "others", streams=["TAKEN"])
        assert spark.table("others.taken").first().kept == 1
    finally:
        spark.sql("DROP DATABASE others CASCADE")


def test_options_of_either_side_go_to_the_tables_and_unknown_ones_are_refused(spark, jetlake_shore):
    name = jetlake_shore.create()
    jetlake_shore.fill(name, 8)
    options = {"decode": "json", "startingSequence": "5", "duplicateWindow": "ignore"}

    jetlake.spark.attach(spark, jetlake_shore.url, "chosen", streams=[name], **options)

    rows = spark.sql(f"SELECT variant_get(value, '$.n', 'int') n FROM chosen.{name.lower()} ORDER BY n").collect()
    assert [row.n for row in rows] == [4, 5, 6, 7]
    with pytest.raises(ConfigurationError, match="did you mean decode"):
        jetlake.spark.attach(spark, jetlake_shore.url, "chosen", streams=[name], decod="json")


def test_streams_that_would_share_a_table_are_refused():
    with pytest.raises(ConfigurationError, match="Orders and orders would both be the table orders"):
        by_table(["Orders", "orders"])
