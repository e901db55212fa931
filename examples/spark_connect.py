"""The format `jetlake` over Spark Connect: the client needs no Java, the server of Connect has the package.

    pip install 'pyspark[connect]'
    python examples/spark_connect.py nats://127.0.0.1:4222 ORDERS [sc://host:15002]

Without an address of a Connect server one is started on this machine.
"""

import sys

from pyspark.sql import SparkSession

from jetlake.spark.sessions import prepare_environment


def main() -> None:
    url, stream = sys.argv[1:3]
    remote = sys.argv[3] if len(sys.argv) > 3 else "local[2]"
    prepare_environment()
    spark = SparkSession.builder.remote(remote).getOrCreate()
    rows = spark.read.format("jetlake").options(url=url, stream=stream).load()
    for row in rows.groupBy("subject").count().orderBy("subject").collect():
        print(row["subject"], row["count"])
    spark.stop()


if __name__ == "__main__":
    main()
