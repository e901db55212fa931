"""Large orders into a table and, as alerts, into a stream: a pipeline as a Python function.

Try it with `jetlake pipeline validate examples/pipelines/large_orders.py --offline`.
"""

from pyspark.sql import DataFrame, functions

from jetlake.spark.pipelines import StreamInput, StreamOutput, TableOutput, pipeline


@pipeline(
    inputs={"orders": StreamInput("ORDERS", columns="id BIGINT, total DOUBLE, city STRING")},
    outputs=[
        TableOutput("large_orders", of="large", partition_by=("day",)),
        StreamOutput("ALERTS", subject="alerts.{city}", of="alerts"),
    ],
    sample={
        "orders": [
            {"subject": "orders.eu", "data": {"id": 1, "total": 150, "city": "Rome"}},
            {"subject": "orders.eu", "data": {"id": 2, "total": 20, "city": "Oslo"}},
        ]
    },
    expected={"ALERTS": [{"id": 1, "city": "Rome"}]},
)
def large_orders(orders: DataFrame) -> dict[str, DataFrame]:
    """Orders of a hundred and more."""
    large = orders.where("total >= 100")
    return {
        "large": large.select("id", "total", "city", functions.to_date("timestamp").alias("day")),
        "alerts": large.select("id", "total", "city"),
    }
