"""The query of the exactly-once tests, as a program of its own so that it can be killed: copies one stream to another.

Its only argument is a JSON object: `url`, `source`, `target`, `checkpoint`, `master`, `rows` per batch, `guarantee`,
`commit`, and `faults`, a folder. If the folder has a file `tasks`, two tasks fail once each after they have sent some
of their rows; with a file `commit` the first commit fails, with `after-commit` the first one fails when the server has
carried it out; with `wait` a commit waits until that file is gone, and makes a file `waiting` first. A file `slow`
makes every batch of rows wait, so that there is time to kill something; what was sent is counted in the file `sent`.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

import jetlake.spark
from jetlake.spark.source import JetlakeSource
from jetlake.spark.writers import JetlakeStreamWriter

plan = json.loads(sys.argv[1])
FAULTS = plan["faults"]

TASK_FAILURES = 2
PAUSE_S = 0.05


def first_time(folder: str, name: str) -> bool:
    """Tell whether this is the first to ask for this name."""
    try:
        (Path(folder) / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def with_faults(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass rows on, fail in the middle of some tasks."""
    for batch in batches:
        half = batch.num_rows // 2
        yield batch.slice(0, half)
        with (Path(FAULTS) / "sent").open("ab") as sent:
            sent.write(b"." * half)
        if (Path(FAULTS) / "slow").exists():
            time.sleep(PAUSE_S)
        if (Path(FAULTS) / "tasks").exists():
            for number in range(TASK_FAILURES):
                if first_time(FAULTS, f"task-failed-{number}"):
                    raise RuntimeError("a task fails as the test wants it")
        yield batch.slice(half)


class FailingWriter(JetlakeStreamWriter):
    """Fails its first commit, after everything is written."""

    def commit(self, messages, batchId):  # noqa: N803
        if (Path(FAULTS) / "commit").exists() and first_time(FAULTS, "commit-failed"):
            raise RuntimeError("the commit fails as the test wants it")
        while (Path(FAULTS) / "wait").exists():
            (Path(FAULTS) / "waiting").touch()
            time.sleep(PAUSE_S)
        super().commit(messages, batchId)
        if (Path(FAULTS) / "after-commit").exists() and first_time(FAULTS, "failed-after-commit"):
            raise RuntimeError("the driver does not hear of the commit, as the test wants it")


class FailingSource(JetlakeSource):
    """The format, with commits that may fail."""

    @classmethod
    def name(cls):
        return "failing"

    def streamWriter(self, schema, overwrite):  # noqa: ARG002, N802
        return FailingWriter(self._values("write"), overwrite=overwrite)


def main() -> None:
    config = {
        # Half a task's rows at a time, so that some of them are sent before it fails.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        **plan.get("config", {}),
    }
    spark = jetlake.spark.session("exactly-once", master=plan["master"], driver_memory="1g", config=config)
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(FailingSource)
    rows = (
        spark.readStream.format("jetlake")
        .options(
            url=plan["url"],
            stream=plan["source"],
            startingSequence="earliest",
            maxRowsPerTrigger=plan["rows"],
            minPartitions=2,
        )
        .load()
        .selectExpr(f"'{plan['target']}.copy' AS subject", "data")
        .mapInArrow(with_faults, "subject STRING, data BINARY")
    )
    query = (
        rows.writeStream.format("failing")
        .options(
            url=plan["url"],
            stream=plan["target"],
            guarantee=plan["guarantee"],
            commit=plan["commit"],
            checkpointLocation=plan["checkpoint"],
        )
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
