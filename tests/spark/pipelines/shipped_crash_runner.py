"""The process that tests of shipped pipelines kill: one of them until everything is read, or until a commit.

Not a test. One argument, JSON: `server`, `lake`, `pipeline`, `settings`, `rows_per_trigger`, and where to die: `table`,
`batch`, `place` (`before_commit` or `after_commit`).
"""

import dataclasses
import json
import os
import signal
import sys

import jetlake.spark
from jetlake.spark.lake.folder import Lake
from jetlake.spark.lake.table import LakeTable
from jetlake.spark.pipelines.catalog import Catalog
from jetlake.spark.pipelines.model import StreamInput
from jetlake.spark.pipelines.runner import Runner


def small_batches(name, rows_per_trigger, settings=None):
    """Return a shipped pipeline that reads a few messages at a time."""
    made = Catalog().find(name, settings or {})
    inputs = {
        name: dataclasses.replace(given, options={**given.options, "maxRowsPerTrigger": str(rows_per_trigger)})
        for name, given in made.inputs.items()
        if isinstance(given, StreamInput)
    }
    return dataclasses.replace(made, inputs=inputs)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def arm(table, batch, place):
    """Have the process die when this batch of this table, or a later one, is written, or is committed."""

    def dying(write):
        def until_then(self, rows, query, number, *arguments, before_commit=None, **more):
            # The queries of a pipeline run side by side: in a run before, this one may have got further.
            mine = self.name == table and number >= batch
            last_act = die if mine and place == "before_commit" else before_commit
            result = write(self, rows, query, number, *arguments, before_commit=last_act, **more)
            if mine and place == "after_commit":
                die()
            return result

        return until_then

    for name in ("append", "upsert", "write_rows"):
        setattr(LakeTable, name, dying(getattr(LakeTable, name)))


def main():
    wanted = json.loads(sys.argv[1])
    arm(wanted["table"], wanted["batch"], wanted["place"])
    spark = jetlake.spark.session("crash", master="local[2]", driver_memory="1g")
    spark.sparkContext.setLogLevel("ERROR")
    pipeline = small_batches(wanted["pipeline"], wanted["rows_per_trigger"], wanted["settings"])
    (state,) = Runner(spark, Lake(wanted["lake"]), wanted["server"], once=True).run([pipeline])
    spark.stop()
    print(state.state, state.error)
    return 0 if state.state == "finished" else 1


if __name__ == "__main__":
    sys.exit(main())
