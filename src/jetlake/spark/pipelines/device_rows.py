"""Device events in Spark's own state: `transformWithState` keeps one state per device, and rows for tables come out.

Events go to the state and rows come from it as JSON in one column. Spark turns each row into a Python object with an
object per column on its way; for forty columns that costs more than everything that is done with them.

Invariant: the state of a device is what `device_state.fold` left of it, and is replaced once per batch.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from jetlake.spark.pipelines.device_state import DeviceEvent, DeviceState, fold

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import TimerValues

OUTPUT = "target STRING, row STRING"
BAD = "bad"

_event_decoder = msgspec.json.Decoder(DeviceEvent)
_state_decoder = msgspec.msgpack.Decoder(DeviceState)
_state_encoder = msgspec.msgpack.Encoder()


class DeviceProcessor(StatefulProcessor):
    """Takes the events of one device at a time."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("device", "state BINARY")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: "TimerValues") -> Iterator[Row]:  # noqa: ARG002, N802, N803
        """Return the rows that change; what could not be read has no device and passes through."""
        (device_id,) = key
        if not device_id:
            yield from (Row(target=BAD, row=row.event) for row in rows)
            return
        stored = self._state.get()
        state = DeviceState() if stored is None else _state_decoder.decode(stored[0])
        events = [_event_decoder.decode(row.event) for row in rows]
        for changed in fold(state, device_id, events):
            yield Row(target=changed.table, row=msgspec.json.encode(changed.values).decode())
        self._state.update((_state_encoder.encode(state),))

    def close(self) -> None:
        """Nothing is held."""
