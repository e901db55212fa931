"""The process that the tests of `devices` kill: the pipeline until everything is read, or until a table has a batch.

Not a test. Arguments: server, folder of the lake, the table and the batch after whose commit to die, rows of a batch.
"""

import os
import signal
import sys

import jetlake.spark
from jetlake.spark.lake.folder import Lake
from jetlake.spark.lake.table import LakeTable
from jetlake.spark.pipelines.runner import Runner
from tests.spark.pipelines.test_devices import pipeline


def arm(table, batch):
    """Have the process die when this batch of this table is committed."""
    for name in ("append", "upsert"):
        write = getattr(LakeTable, name)

        def dying(self, frame, query, number, *arguments, write=write, **more):
            result = write(self, frame, query, number, *arguments, **more)
            if self.name == table and number == batch:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        setattr(LakeTable, name, dying)


def main():
    url, lake, table, batch, rows_per_trigger = sys.argv[1:6]
    arm(table, int(batch))
    spark = jetlake.spark.session("crash", master="local[2]", driver_memory="1g")
    spark.sparkContext.setLogLevel("ERROR")
    (state,) = Runner(spark, Lake(lake), url, once=True).run([pipeline(int(rows_per_trigger))])
    spark.stop()
    print(state.state, state.error)
    return 0 if state.state == "finished" else 1


if __name__ == "__main__":
    sys.exit(main())
