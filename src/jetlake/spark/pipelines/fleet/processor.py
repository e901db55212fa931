"""The fold inside Spark's state: one value per bucket of nodes, read and written once per batch.

Python reaches Spark's state through a socket, so a value per node would cost a round trip per node and batch. A bucket
holds some hundred nodes as one value; Spark keeps it with the batch it belongs to, and gives it back after a crash.

This module imports PySpark; import it where a pipeline is about to run.
"""

import io
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from jetlake.spark.pipelines.fleet.folding import Change, Event, Fold
from jetlake.spark.pipelines.fleet.nodes import Node

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame

STATE_COLUMNS = "nodes BINARY"

CHANGE_COLUMNS = (
    "kind INT, key STRING, name STRING, text STRING, text_2 STRING, text_3 STRING, time_1 BIGINT, time_2 BIGINT, "
    "time_3 BIGINT, number_1 BIGINT, number_2 BIGINT, number_3 BIGINT, number_4 BIGINT, flag BOOLEAN, payload BINARY"
)
"""Of a row that changed, as `folding.Change` has them."""

PREPARING_PROCESS = "pyspark.sql.streaming.transform_with_state_driver_worker"
"""A program of Spark that imports this module when it reads the processor."""

WHOLE = ("time_1", "time_2", "time_3", "number_1", "number_2", "number_3", "number_4")

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, Node]).decode


def changes(events: "DataFrame", lateness_s: int) -> "DataFrame":
    """Events → rows that changed, through Spark's state."""
    return events.groupBy("bucket").transformWithStateInPandas(
        statefulProcessor=FleetProcessor(lateness_s),
        outputStructType=CHANGE_COLUMNS,
        outputMode="Update",
        timeMode="None",
    )


class FleetProcessor(StatefulProcessor):
    """Folds the events of a bucket into its nodes."""

    def __init__(self, lateness_s: int) -> None:
        self._lateness_s = lateness_s
        self._state: Any = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state."""
        self._state = handle.getValueState("nodes", STATE_COLUMNS)

    def handleInputRows(  # noqa: N802  # Spark's name
        self,
        key: Any,  # noqa: ARG002  # of the bucket, which the state is kept by
        rows: "Iterator[pandas.DataFrame]",
        timerValues: Any,  # noqa: ARG002, N803
    ) -> "Iterator[pandas.DataFrame]":
        """Take the events of one bucket and batch, and give the rows that changed."""
        there = self._state.get()
        fold = Fold({} if there is None else _decode(bytes(there[0])), self._lateness_s)
        fold.take(events_of(rows))
        found = fold.changes()
        self._state.update((_encode(fold.nodes),))
        if found:
            yield frame_of(found)

    def close(self) -> None:
        """Keep nothing between batches but the state."""


def events_of(rows: "Iterator[pandas.DataFrame]") -> Iterator[Event]:
    """Return the events of a bucket in the order of their time."""
    import pandas

    pieces = list(rows)
    frame = pieces[0] if len(pieces) == 1 else pandas.concat(pieces, ignore_index=True)
    frame = frame.sort_values(["at_s", "sequence"], kind="stable")
    columns = [frame[name].tolist() for name in Event._fields]
    return map(Event._make, zip(*columns, strict=True))


def frame_of(found: list[Change]) -> "pandas.DataFrame":
    """Return the rows as Spark takes them: numbers that may be missing are no floats."""
    import pandas

    columns: dict[str, Any] = dict(zip(Change._fields, zip(*found, strict=True), strict=True))
    for name in WHOLE:
        columns[name] = pandas.array(columns[name], dtype="Int64")
    columns["flag"] = pandas.array(columns["flag"], dtype="boolean")
    return pandas.DataFrame(columns)


def keep_quiet() -> None:
    """Have the process that prepares the state for the first batch say nothing: Spark prints what it does there."""
    main = sys.modules.get("__main__")
    if getattr(getattr(main, "__spec__", None), "name", "") == PREPARING_PROCESS:
        sys.stdout = io.StringIO()


keep_quiet()
