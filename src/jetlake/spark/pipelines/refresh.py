"""A pipeline from tables only: its outputs are recomputed whenever one of its tables has changed.

It looks to the runner like a query of Spark. Readers of an output see all old rows or all new rows, never a part of
either.
"""

import json
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines.model import Pipeline, TableOutput

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

NOTE = "versions.json"


class Refresh:
    """See the module. `pause_s` is None to look once."""

    def __init__(
        self, pipeline: Pipeline, spark: "SparkSession", lake: Lake, folder: Path, pause_s: float | None
    ) -> None:
        self.name = pipeline.name
        self.id = pipeline.name
        self._pipeline = pipeline
        self._spark = spark
        self._lake = lake
        self._folder = folder
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._busy = False
        self._error: BaseException | None = None
        self.on_batch: Callable[[str, int, int, int], None] | None = None
        """Called with name, number, rows and milliseconds of every refresh."""

        self._thread = threading.Thread(target=self._run, name=f"refresh-{self.name}", daemon=True)

    def begin(self) -> None:
        """Begin to look."""
        self._thread.start()

    @property
    def isActive(self) -> bool:  # noqa: N802  # as a query of Spark says it
        return self._thread.is_alive()

    @property
    def status(self) -> dict[str, Any]:
        return {"isTriggerActive": self._busy, "message": "Working" if self._busy else "Waiting"}

    def exception(self) -> BaseException | None:
        return self._error

    def stop(self) -> None:
        """End after the work at hand."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while True:
                self._busy = True
                self._look()
                self._busy = False
                if self._pause_s is None or self._stop.wait(self._pause_s):
                    return
        except Exception as error:  # noqa: BLE001  # the runner asks for it
            self._error = error
        finally:
            self._busy = False

    def _look(self) -> None:
        snapshots = {
            name: (table := self._lake.existing(given.table), table.snapshot())
            for name, given in self._pipeline.tables.items()
        }
        versions = {name: snapshot.version for name, (_, snapshot) in snapshots.items()}
        note = self._folder / NOTE
        if note.exists() and json.loads(note.read_text()) == versions:
            return
        began = time.monotonic()
        frames = self._pipeline.transform(
            {name: table.read(self._spark, snapshot) for name, (table, snapshot) in snapshots.items()}
        )
        rows, number = 0, 0
        for output in self._pipeline.outputs:
            assert isinstance(output, TableOutput), "streams were refused when the flow was planned"
            table = self._lake.table(output.table)
            number = (table.last_batch(self.id) or 0) + 1
            frame = self._pipeline.rows_of(output, frames)
            rows += table.replace(frame, self.id, number, list(output.partition_by)).rows
        self._folder.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps(versions))
        if self.on_batch is not None:
            self.on_batch(self.name, number, rows, int((time.monotonic() - began) * 1000))
