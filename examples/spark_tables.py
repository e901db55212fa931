"""Streams as tables: a server inside the program, some orders, a question in SQL, and a query that writes a stream.

python examples/spark_tables.py
"""

import asyncio
import json
import tempfile

import jetlake
import jetlake.spark


async def fill(server: jetlake.Server) -> None:
    """Make two streams, and store some orders in the first."""
    connection = await jetlake.connect(server)
    streams = connection.jetstream()
    await streams.add_stream(name="ORDERS", subjects=["orders.>"])
    await streams.add_stream(name="TOTALS", subjects=["totals.>"], duplicate_window=3600)
    for number in range(100):
        order = {"id": number, "city": ("Ulm", "Graz")[number % 2], "amount": number * 1.5}
        await streams.publish(f"orders.{order['city'].lower()}", json.dumps(order).encode())
    await connection.close()


def main() -> None:
    with jetlake.Server(jetstream=True) as server, tempfile.TemporaryDirectory() as checkpoint:
        asyncio.run(fill(server))
        spark = jetlake.spark.session("tables", config={"spark.log.level": "ERROR"})
        jetlake.spark.attach(spark, server.url, duplicateWindow="ignore")
        spark.sql("SELECT subject, count(*) AS orders FROM streams.orders GROUP BY subject").show()

        orders = (
            spark.readStream.format("jetlake")
            .options(url=server.url, stream="ORDERS", startingSequence="earliest")
            .option("valueSchema", "id BIGINT, city STRING, amount DOUBLE")
            .load()
        )
        query = (
            orders.filter("value.amount > 100")
            .selectExpr("concat('totals.', lower(value.city)) AS subject", "value")
            .writeStream.format("jetlake")
            .options(url=server.url, stream="TOTALS", checkpointLocation=checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        print(jetlake.table("TOTALS", server, columns=["subject", "data"]).to_pandas())
        spark.stop()


if __name__ == "__main__":
    main()
