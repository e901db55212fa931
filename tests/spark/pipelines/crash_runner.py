"""The process that the crash test kills: one pipeline over a folder of messages, until everything is read.

Not a test. Arguments: folder of the stream, folder of the lake, and where to die: the table, `before_commit` or
`after_commit`, and the number of the batch; or no table at all.
"""

import os
import signal
import sys
from pathlib import Path

import jetlake.spark
from jetlake.spark.columns import COLUMNS
from jetlake.spark.lake.folder import Lake
from jetlake.spark.lake.table import LakeTable
from jetlake.spark.pipelines.definition import parse
from jetlake.spark.pipelines.runner import Runner


def definition():
    """Return a pipeline that writes the same rows to a table that they are added to, and to one that they replace."""
    return {
        "from": {"orders": {"stream": "ORDERS", "columns": "id BIGINT"}},
        "sql": "SELECT id, sequence, to_date(timestamp) AS day FROM orders",
        "to": [
            {"table": "added", "partition_by": "day"},
            {"table": "upserted", "key": "id", "order_by": "sequence"},
        ],
    }


def read(spark, folder):
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(COLUMNS)
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{folder}/*.parquet")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def arm(table, place, batch):
    """Have the process die when this batch reaches this place of this table."""

    def dying(write):
        def until_then(self, frame, query, number, *arguments, before_commit=None, **more):
            mine = self.name == table and number == batch
            last_act = die if mine and place == "before_commit" else before_commit
            result = write(self, frame, query, number, *arguments, before_commit=last_act, **more)
            if mine and place == "after_commit":
                die()
            return result

        return until_then

    LakeTable.append = dying(LakeTable.append)
    LakeTable.upsert = dying(LakeTable.upsert)


def main():
    folder, lake, table, place, batch = sys.argv[1:6]
    arm(table, place, int(batch))
    spark = jetlake.spark.session("crash", master="local[2]", driver_memory="1g")
    spark.sparkContext.setLogLevel("ERROR")
    reader = lambda session, _given, _url: read(session, folder)  # noqa: E731
    runner = Runner(spark, Lake(Path(lake)), "", once=True, reader=reader)
    (state,) = runner.run([parse(definition(), "crash")])
    spark.stop()
    print(state.state, state.error)
    return 0 if state.state == "finished" else 1


if __name__ == "__main__":
    sys.exit(main())
