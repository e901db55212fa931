"""A stream as a table of the pipeline, a view over it, and a sink into another stream."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

URL = os.environ.get("NATS_URL", "nats://127.0.0.1:4222")

dp.create_sink("totals_stream", "jetlake", {"url": URL, "stream": "TOTALS", "duplicateWindow": "ignore"})


@dp.table
def orders() -> DataFrame:
    """Every message of the stream ORDERS."""
    spark = SparkSession.active()
    return (
        spark.readStream.format("jetlake")
        .options(url=URL, stream="ORDERS", startingSequence="earliest")
        .schema("subject STRING, sequence BIGINT, data BINARY")
        .load()
    )


@dp.materialized_view
def orders_by_subject() -> DataFrame:
    """How many there are on each subject."""
    return SparkSession.active().read.table("orders").groupBy("subject").count()


@dp.append_flow(target="totals_stream")
def totals() -> DataFrame:
    """The same messages on subjects of the stream TOTALS."""
    rows = SparkSession.active().readStream.table("orders")
    return rows.selectExpr("concat('totals.', subject) AS subject", "data")
