"""Device events in Spark's own state: one value per bucket of devices, read and written once per batch.

Python reaches Spark's state through a socket, so a value per device would cost a round trip per device and batch. A
bucket holds the states of many devices as one value; of these only the ones that have events are decoded. Rows leave as
lines of JSON, one text per table and bucket: Spark makes a Python object of each value on its way.

This module imports PySpark; import it where a pipeline is about to run.

Invariant: the state of a device is what `device_rows.fold` left of it, that of an aggregate what its `Quality` has
taken, and both are replaced once per batch.
"""

import io
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

import msgspec
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from jetlake.spark.pipelines.device_arrivals import Arrivals
from jetlake.spark.pipelines.device_quality import Quality
from jetlake.spark.pipelines.device_rows import fold
from jetlake.spark.pipelines.device_state import LINKS_HREF, METADATA_HREF, DeviceEvent, DeviceState

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame

OUTPUT = "target STRING, lines STRING"
BAD, AUDIT, QUALITY = "bad", "audit", "bus_quality"
"""Tables whose rows come from events as they are, and that of the quality of the bus."""

PREPARING_PROCESS = "pyspark.sql.streaming.transform_with_state_driver_worker"
"""A program of Spark that imports this module when it reads the processor."""

States = dict[str, msgspec.Raw]

_states = msgspec.msgpack.Decoder(States)
_event = msgspec.json.Decoder(DeviceEvent)
_device = msgspec.msgpack.Decoder(DeviceState)
_quality = msgspec.msgpack.Decoder(Quality)
_pack = msgspec.msgpack.Encoder().encode
_line = msgspec.json.Encoder().encode


def rows_of_tables(events: "DataFrame") -> "DataFrame":
    """Events → rows of tables as lines of JSON, with the name of the table, through Spark's state."""
    return events.groupBy("bucket").transformWithStateInPandas(
        statefulProcessor=DeviceProcessor(), outputStructType=OUTPUT, outputMode="Update", timeMode="None"
    )


class DeviceProcessor(StatefulProcessor):
    """Takes the events of one bucket of devices at a time."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the states."""
        self._devices = handle.getValueState("devices", "devices BINARY")
        self._aggregates = handle.getValueState("aggregates", "aggregates BINARY")

    def handleInputRows(  # noqa: N802  # Spark's name
        self,
        key: Any,  # noqa: ARG002  # of the bucket, which the state is kept by
        rows: "Iterator[pandas.DataFrame]",
        timerValues: Any,  # noqa: ARG002, N803
    ) -> "Iterator[pandas.DataFrame]":
        """Take the events of one bucket and batch, and give the rows that change."""
        import pandas

        pieces = list(rows)
        frame = pieces[0] if len(pieces) == 1 else pandas.concat(pieces, ignore_index=True)
        lines: dict[str, list[bytes]] = {}
        take_events(frame, self._devices, lines)
        take_arrivals(frame, self._aggregates, lines)
        if lines:
            texts = [b"\n".join(each).decode() for each in lines.values()]
            yield pandas.DataFrame({"target": list(lines), "lines": texts})

    def close(self) -> None:
        """Keep nothing between batches but the state."""


def take_events(frame: "pandas.DataFrame", state: Any, lines: dict[str, list[bytes]]) -> None:
    """Take events into the states of their devices; changes of resources have none, and are not told here."""
    told = frame[frame["event"].notna()]
    of_device: dict[str, list[DeviceEvent]] = {}
    for device_id, event, is_bad in zip(told["device_id"], told["event"], told["is_bad"], strict=True):
        line = event.encode()
        if is_bad:
            lines.setdefault(BAD, []).append(line)
            continue
        decoded = _event.decode(line)
        of_device.setdefault(device_id, []).append(decoded)
        if not decoded.is_snapshot:
            # It tells what other events have told.
            lines.setdefault(AUDIT, []).append(line)
    if not of_device:
        return
    states = stored(state)
    for device_id, events in of_device.items():
        packed = states.get(device_id)
        device = DeviceState() if packed is None else _device.decode(packed)
        for row in fold(device, device_id, events):
            lines.setdefault(row.table, []).append(_line(row.values))
        states[device_id] = msgspec.Raw(_pack(device))
    state.update((_pack(states),))


def take_arrivals(frame: "pandas.DataFrame", state: Any, lines: dict[str, list[bytes]]) -> None:
    """Take what the stream says about messages into what is known of their aggregates."""
    is_bad = frame["is_bad"]
    if is_bad.any():
        # They have their subject in its place.
        frame.loc[is_bad, "aggregate_id"] = [aggregate_of(subject) for subject in frame.loc[is_bad, "aggregate_id"]]
    states = stored(state)
    made = []
    for arrivals in Arrivals.of_frame(frame):
        packed = states.get(arrivals.aggregate_id)
        quality = arrivals.new_quality() if packed is None else _quality.decode(packed)
        arrivals.add_to(quality)
        states[arrivals.aggregate_id] = msgspec.Raw(_pack(quality))
        made.append(_line(quality.row(arrivals.aggregate_id)))
    lines[QUALITY] = made
    state.update((_pack(states),))


def aggregate_of(subject: str) -> str:
    """Return the id of the aggregate that a subject belongs to."""
    _, device_id, family, *rest = subject.split(".")
    if family == "resources":
        return rest[0]
    return str(uuid5(NAMESPACE_URL, device_id + (METADATA_HREF if family == "metadata" else LINKS_HREF)))


def stored(state: Any) -> States:
    """Return what a state holds, each value still packed."""
    there = state.get()
    return {} if there is None else _states.decode(bytes(there[0]))


def keep_quiet() -> None:
    """Have the process that prepares the state for the first batch say nothing: Spark prints what it does there."""
    main = sys.modules.get("__main__")
    if getattr(getattr(main, "__spec__", None), "name", "") == PREPARING_PROCESS:
        sys.stdout = io.StringIO()


keep_quiet()
