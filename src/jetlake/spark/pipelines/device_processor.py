"""Device events in Spark's own state: one value per bucket of devices, read and written once per batch.

Python reaches Spark's state through a socket, so a value per device would cost a round trip per device and batch. A
bucket holds the states of many devices, and of their aggregates, as one value each; of these only the ones that have
events are decoded. Events come and rows leave as packs, one per table and bucket: Spark makes a Python object of each
value on its way.

This module imports PySpark; import it where a pipeline is about to run.

Invariant: the state of a device is what `device_rows.fold` left of it; that of an aggregate is what its `Quality` has
taken, and its newest change; each is replaced once per batch.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

import msgspec
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from jetlake.spark.packs import unpacked
from jetlake.spark.pipelines import device_history, device_tables
from jetlake.spark.pipelines.device_arrivals import Arrivals
from jetlake.spark.pipelines.device_history import Newest
from jetlake.spark.pipelines.device_packs import CHANGES, EVENTS_PART
from jetlake.spark.pipelines.device_quality import Quality
from jetlake.spark.pipelines.device_rows import fold
from jetlake.spark.pipelines.device_state import LINKS_HREF, METADATA_HREF, DeviceEvent, DeviceState
from jetlake.spark.pipelines.device_targets import AUDIT, BAD, HISTORY, LATE, QUALITY, RESOURCES, audit_rows, bad_rows
from jetlake.spark.pipelines.processes import keep_quiet, no_collection
from jetlake.spark.pipelines.targets import SCHEMA, packs_of, table_of

if TYPE_CHECKING:
    import pandas
    import pyarrow as pa
    from pyspark.sql import DataFrame

EVENT_FIELDS = DeviceEvent.__struct_fields__

States = dict[str, msgspec.Raw]


class KnownAggregate(msgspec.Struct, array_like=True):
    """What is remembered of an aggregate."""

    quality: Quality
    newest: Newest | None = None


_states = msgspec.msgpack.Decoder(States)
_device = msgspec.msgpack.Decoder(DeviceState)
_aggregate = msgspec.msgpack.Decoder(KnownAggregate)
_encode = msgspec.msgpack.Encoder().encode


def rows_of_tables(packs: "DataFrame") -> "DataFrame":
    """Packs of events → packs of rows with the name of the table, through Spark's state."""
    return packs.groupBy("bucket").transformWithStateInPandas(
        statefulProcessor=DeviceProcessor(), outputStructType=SCHEMA, outputMode="Update", timeMode="None"
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
        parts: dict[str, list[bytes]] = {}
        for frame in rows:
            for part, packed in zip(frame["part"], frame["pack"], strict=True):
                parts.setdefault(part, []).append(packed)
        with no_collection():
            found = BucketFold(stored(self._devices), stored(self._aggregates)).add(
                unpacked(parts.get(CHANGES, ())), unpacked(parts.get(EVENTS_PART, ()))
            )
        self._devices.update((_encode(found.devices),))
        self._aggregates.update((_encode(found.aggregates),))
        yield packs_of(found.tables)

    def close(self) -> None:
        """Keep nothing between batches but the state."""


class BucketFold:
    """The states of one bucket while a batch is applied; their contents stay packed until they are used."""

    def __init__(self, devices: States, aggregates: States) -> None:
        self.devices = devices
        self.aggregates = aggregates
        self.tables: dict[str, pa.Table] = {}
        self._opened: dict[str, KnownAggregate] = {}

    def add(self, changes: "pa.Table | None", events: "pa.Table | None") -> "BucketFold":
        """Take the changes and the other events of a batch; `tables` then has the rows that change."""
        from pyarrow import compute

        parts = [each for each in (changes, events) if each is not None]
        self._add_arrivals(parts)
        readable = [each.filter(compute.is_null(each.column("reason"))) for each in parts]
        self.tables[AUDIT] = audit_rows(readable)
        self.tables[BAD] = bad_rows([each.filter(compute.is_valid(each.column("reason"))) for each in parts])
        if changes is not None:
            self._add_changes(readable[0])
        if events is not None:
            self._add_events(readable[-1])
        for name, aggregate in self._opened.items():
            self.aggregates[name] = msgspec.Raw(_encode(aggregate))
        return self

    def _add_arrivals(self, parts: "list[pa.Table]") -> None:
        """Take what the stream says about messages into what is known of their aggregates."""
        rows = []
        for arrivals in Arrivals.of_tables(parts, aggregate_of):
            there = self._aggregate(arrivals.aggregate_id)
            if there is None:
                there = self._opened[arrivals.aggregate_id] = KnownAggregate(arrivals.new_quality())
            arrivals.add_to(there.quality)
            rows.append(there.quality.row(arrivals.aggregate_id))
        self.tables[QUALITY] = table_of(rows, device_tables.TABLES[QUALITY])

    def _add_changes(self, changes: "pa.Table") -> None:
        """Take changes into the history of their resources."""
        from pyarrow import compute

        def known(aggregate_id: str) -> Newest | None:
            there = self._aggregate(aggregate_id)
            return None if there is None else there.newest

        folded = device_history.fold(changes.filter(compute.greater_equal(changes.column("version"), 0)), known)
        for name, newest in folded.newest.items():
            self._opened[name].newest = newest
        self.tables |= {HISTORY: folded.history, LATE: folded.late, RESOURCES: folded.resources}

    def _add_events(self, events: "pa.Table") -> None:
        """Take all other events into the states of their devices."""
        of_device: dict[str, list[DeviceEvent]] = {}
        columns = [values_of(events.column(name)) for name in EVENT_FIELDS]
        told_events = map(DeviceEvent, *columns)
        for device_id, event in zip(values_of(events.column("device_id")), told_events, strict=True):
            of_device.setdefault(device_id, []).append(event)
        rows: dict[str, list[dict[str, Any]]] = {}
        for device_id, told in of_device.items():
            packed = self.devices.get(device_id)
            device = DeviceState() if packed is None else _device.decode(packed)
            for row in fold(device, device_id, told):
                rows.setdefault(row.table, []).append(row.values)
            self.devices[device_id] = msgspec.Raw(_encode(device))
        for table, found in rows.items():
            self.tables[table] = table_of(found, device_tables.TABLES[table])

    def _aggregate(self, name: str) -> KnownAggregate | None:
        if name not in self._opened:
            packed = self.aggregates.get(name)
            if packed is None:
                return None
            self._opened[name] = _aggregate.decode(packed)
        return self._opened[name]


def values_of(column: "pa.ChunkedArray") -> list[Any]:
    """Return the values of a column as `DeviceEvent` has them: lists are tuples, as the state gives them back."""
    import pyarrow as pa

    if not pa.types.is_list(column.type):
        # Some times faster than through Arrow's own objects.
        found: list[Any] = column.to_numpy().tolist()
        return found
    if not len(column.combine_chunks().flatten()):
        return [()] * len(column)
    return [tuple(value) for value in column.to_pylist()]


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


keep_quiet()
