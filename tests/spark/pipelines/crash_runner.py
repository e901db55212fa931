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


def definition(kinds):
    """Return a pipeline that writes the same rows to a table of each kind, named by it."""
    return {
        "from": {"orders": {"stream": "ORDERS", "columns": "id BIGINT"}},
        "sql": "SELECT id, sequence, to_date(timestamp) AS day FROM orders",
        "to": [{"table": kind, "kind": kind, "partition_by": "day"} for kind in kinds],
    }


def read(spark, folder):
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(COLUMNS)
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{folder}/*.parquet")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def arm(table, place, batch):
    """Have the process die when this batch reaches this place of this table."""
    write = LakeTable._write

    def dying(self, frame, query, number, partition_by, before_commit, **more):
        mine = self.name == table and number == batch
        last_act = die if mine and place == "before_commit" else before_commit
        result = write(self, frame, query, number, partition_by, last_act, **more)
        if mine and place == "after_commit":
            die()
        return result

    LakeTable._write = dying


def main():
    folder, lake, kinds, table, place, batch = sys.argv[1:7]
    arm(table, place, int(batch))
    spark = jetlake.spark.session("crash", master="local[2]", driver_memory="1g")
    spark.sparkContext.setLogLevel("ERROR")
    reader = lambda session, _given, _url: read(session, folder)  # noqa: E731
    runner = Runner(spark, Lake(Path(lake)), "", once=True, reader=reader)
    (state,) = runner.run([parse(definition(kinds.split(",")), "crash")])
    spark.stop()
    print(state.state, state.error)
    return 0 if state.state == "finished" else 1


if __name__ == "__main__":
    sys.exit(main())
