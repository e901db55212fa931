"""The fold inside Spark's state: one value per bucket of nodes, read and written once per batch.

Python reaches Spark's state through a socket, so a value per node would cost a round trip per node and batch. A bucket
holds some hundred nodes as one value; Spark keeps it with the batch it belongs to, and gives it back after a crash.
Events come and rows leave as packs.

This module imports PySpark; import it where a pipeline is about to run.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from jetlake.spark.packs import unpacked
from jetlake.spark.pipelines.fleet.folding import FleetEvent, Fold
from jetlake.spark.pipelines.fleet.nodes import FleetNode
from jetlake.spark.pipelines.fleet.tables import tables_of
from jetlake.spark.pipelines.processes import keep_quiet, no_collection
from jetlake.spark.pipelines.targets import SCHEMA, packs_of

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame

STATE_COLUMNS = "nodes BINARY"

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, FleetNode]).decode


def changes(packs: "DataFrame", lateness_s: int) -> "DataFrame":
    """Packs of events → packs of rows that changed, through Spark's state."""
    return packs.groupBy("bucket").transformWithStateInPandas(
        statefulProcessor=FleetProcessor(lateness_s),
        outputStructType=SCHEMA,
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
        with no_collection():
            fold = Fold({} if there is None else _decode(bytes(there[0])), self._lateness_s)
            fold.add_events(events_of([packed for frame in rows for packed in frame["pack"]]))
            found = fold.changes()
        self._state.update((_encode(fold.nodes),))
        yield packs_of(tables_of(found))

    def close(self) -> None:
        """Keep nothing between batches but the state."""


def events_of(packs: list[bytes]) -> Iterator[FleetEvent]:
    """Return the events of a bucket in the order of their time."""
    events = unpacked(packs)
    if events is None:
        return iter(())
    order = np.lexsort((events.column("sequence").to_numpy(), events.column("at_s").to_numpy()))
    # Some times faster than through Arrow's own objects.
    columns = [events.column(name).to_numpy()[order].tolist() for name in FleetEvent._fields]
    return map(FleetEvent._make, zip(*columns, strict=True))


keep_quiet()
