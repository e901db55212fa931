"""Events as columns: a batch of messages in, one Arrow array out, without a Python loop over the events.

`EVENTS` is a decoder for the format `jetlake` of Spark; its fields are those of `event_rows.COLUMNS`:

```python
spark.read.format("jetlake").option("stream", "EVENTS").option("decoder", "jetlake.devices.columns:EVENTS").load()
```

A batch goes through these steps: the envelopes are scanned, the blocks inside are decompressed, the events are scanned
type by type, and then the parts that all types share. An event that is odd anywhere is read again by the codec, which
says what is wrong with it, or nothing. Fields that nobody asks for are not looked at.

Invariant: the columns of an event are those that `event_rows.row_of` gives for it.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from jetlake.devices.codec import EventCodec
from jetlake.devices.event_rows import COLUMNS, content_json, row_of
from jetlake.devices.event_scan import ENUMERATIONS, EventScan
from jetlake.devices.generations import Generation
from jetlake.devices.ids import metadata_id
from jetlake.devices.protos.events_2025_pb2 import Connection
from jetlake.devices.subjects import FAMILY_OF_TYPE, ROOT, Family
from jetlake.devices.wire import Numbers, gathered

if TYPE_CHECKING:
    import pyarrow as pa

_INTEGERS = frozenset(
    (
        *("version", "event_ns", "own_version", "own_ns", "origin_sequence", "valid_until_ns"),
        *("connected_at_ns", "syncing_at_ns", "in_sync_at_ns", "forced_at_ns", "online_until_ns"),
    )
)
_FLAGS = frozenset(("is_twin_enabled", "is_canceled"))
_BYTES = frozenset(("content", "etag"))
_TEXTS = frozenset(
    (
        *("device_id", "aggregate_id", "href", "user_id", "correlation_id", "owner", "origin_id", "hub_id"),
        *("content_type", "connection_id", "service_id"),
    )
)
_LISTS = frozenset(("resource_types", "local_endpoints"))


class EventDecoder:
    """Decodes the events of one generation."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self.fields = ", ".join(f"{name}: {kind}" for name, kind in COLUMNS.items())
        """The fields of the column `value`, as Spark spells them."""

        self._codec = EventCodec(generation)

    def decode(self, batch: "pa.RecordBatch", kind: "pa.StructType") -> "pa.Array":
        """Return the events of a batch with the columns `data` and `subject` as the fields of this type."""
        import pyarrow as pa

        payloads, subjects = batch.column("data"), batch.column("subject")
        reading = _Reading(payloads, self.generation)
        reading.check_subjects(subjects)
        columns = [reading.column(child.name).cast(child.type) for child in kind]
        odd = np.flatnonzero(reading.scan.odd)
        if odd.size:
            rows = [row_of(self._codec, payloads[row].as_py(), subjects[row].as_py()) for row in odd.tolist()]
            columns = _with_rows(columns, kind, odd, rows)
        return pa.StructArray.from_arrays(columns, fields=list(kind))


EVENTS = EventDecoder(Generation.Y2025)
EVENTS_2021 = EventDecoder(Generation.Y2021)


class _Reading:
    """One batch whose events were scanned, and the columns made of them."""

    def __init__(self, payloads: "pa.Array", generation: Generation) -> None:
        import pyarrow as pa

        self.scan = EventScan(payloads)
        self._count = len(payloads)
        self._types = self._texts("event_type")
        encoded = self._types.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        names = encoded.dictionary.to_pylist()
        for code, event_type in enumerate(names):
            self.scan.read_events(np.flatnonzero((codes == code) & ~self.scan.odd), generation, event_type)
        self.scan.read_parts()
        families = pa.array([str(FAMILY_OF_TYPE.get(name, Family.RESOURCES)) for name in names], pa.string())
        self._family = families.take(encoded.indices)

    def check_subjects(self, subjects: "pa.Array") -> None:
        """Count events as odd that are not on the subject which belongs to their envelope."""
        from pyarrow import compute

        device, aggregate = self._texts("device_id"), self._texts("aggregate_id")
        plain = compute.binary_join_element_wise(ROOT, device, self._family, self._types, ".")
        of_resource = compute.binary_join_element_wise(ROOT, device, self._family, aggregate, self._types, ".")
        expected = compute.if_else(compute.equal(self._family, str(Family.RESOURCES)), of_resource, plain)
        self.scan.odd |= ~_mask(compute.equal(expected, subjects))
        # The subject of metadata does not have the aggregate's id; there are few of them.
        rows = np.flatnonzero(_mask(compute.equal(self._family, str(Family.METADATA))) & ~self.scan.odd)
        ids = zip(device.take(rows).to_pylist(), aggregate.take(rows).to_pylist(), strict=True)
        wrong = [metadata_id(device_id) != aggregate_id for device_id, aggregate_id in ids]
        self.scan.odd[rows[np.array(wrong, bool)]] = True

    def column(self, name: str) -> "pa.Array":
        """Return one column; of events that are odd it may hold anything."""
        import pyarrow as pa

        if name in _INTEGERS:
            return pa.array(self.scan.number(name).astype(np.int64))
        if name in _FLAGS:
            return pa.array(self.scan.number(name) != 0)
        if name in _TEXTS:
            return self._texts(name)
        if name in _BYTES:
            return _binary(self.scan.data, *self.scan.piece(name))
        if name in _LISTS:
            return self._lists(name)
        if name in ENUMERATIONS:
            return pa.array([*ENUMERATIONS[name], ""]).take(pa.array(self.scan.code(name)))
        return self._other(name)

    def _other(self, name: str) -> "pa.Array":
        import pyarrow as pa

        match name:
            case "event_type":
                return self._types
            case "content_format":
                return pa.array(self.scan.number(name).astype(np.int64).astype(np.int32))
            case "content_json":
                return self._content_json()
            case "is_online":
                return pa.array(self.scan.number(name) == Connection.ONLINE)
            case "links" | "unpublished":
                # Only events that are read one by one have them.
                nothing = pa.array([], pa.null())
                return pa.ListArray.from_arrays(pa.array(np.zeros(self._count + 1, np.int32)), nothing)
            case _:
                return pa.nulls(self._count)

    def _texts(self, name: str) -> "pa.Array":
        offset, length = self.scan.piece(name)
        found, wrong = _utf8(self.scan.data, offset, length)
        self.scan.odd[wrong] = True
        return found

    def _lists(self, name: str) -> "pa.Array":
        import pyarrow as pa

        rows, offset, length = self.scan.repeated(name)
        values, wrong = _utf8(self.scan.data, offset, length)
        self.scan.odd[rows[wrong]] = True
        ends = np.zeros(self._count + 1, np.int32)
        np.cumsum(np.bincount(rows, minlength=self._count), out=ends[1:])
        return pa.ListArray.from_arrays(pa.array(ends), values)

    def _content_json(self) -> "pa.Array":
        """Return contents as JSON; each that occurs several times is decoded once."""
        import pyarrow as pa

        content, content_type = self.column("content"), self._texts("content_type")
        parts = pa.table({"content": content, "type": content_type, "format": self.column("content_format")})
        keyed = parts.append_column("row", pa.array(np.arange(self._count)))
        distinct = keyed.group_by(["content", "type", "format"], use_threads=False).aggregate([("row", "list")])
        texts = [
            content_json(data, kind, number)
            for data, kind, number in zip(
                distinct["content"].to_pylist(),
                distinct["type"].to_pylist(),
                distinct["format"].to_pylist(),
                strict=True,
            )
        ]
        rows = distinct["row_list"].combine_chunks()
        places = np.empty(self._count, np.int64)
        sizes = rows.value_lengths().to_numpy(zero_copy_only=False)
        places[rows.flatten().to_numpy(zero_copy_only=False)] = np.repeat(np.arange(len(texts)), sizes)
        return pa.array(texts, pa.string()).take(pa.array(places))


def _with_rows(
    columns: "list[pa.Array]", kind: "pa.StructType", odd: Numbers, rows: list[dict[str, Any]]
) -> "list[pa.Array]":
    """Return the columns with events that were read one by one in their places."""
    import pyarrow as pa

    places = np.arange(len(columns[0]))
    places[odd] = len(columns[0]) + np.arange(len(odd))
    order = pa.array(places)
    return [
        pa.concat_arrays([column, pa.array([row[child.name] for row in rows], child.type)]).take(order)
        for column, child in zip(columns, kind, strict=True)
    ]


def _utf8(data: Numbers, offset: Numbers, length: Numbers) -> tuple["pa.Array", list[int]]:
    """Return pieces as text, and the indices of those that are not text and are left empty."""
    import pyarrow as pa

    found = _binary(data, offset, length)
    try:
        return found.cast(pa.string()), []
    except pa.ArrowInvalid:
        wrong = [index for index, piece in enumerate(found.to_pylist()) if not _is_text(piece)]
        length = length.copy()
        length[wrong] = 0
        return _binary(data, offset, length).cast(pa.string()), wrong


def _is_text(piece: bytes) -> bool:
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True


def _binary(data: Numbers, offset: Numbers, length: Numbers) -> "pa.Array":
    import pyarrow as pa

    ends, body = gathered(data, offset, length)
    return pa.Array.from_buffers(pa.binary(), len(length), [None, pa.py_buffer(ends), pa.py_buffer(body)])


def _mask(values: "pa.Array") -> Numbers:
    found: Numbers = values.fill_null(False).to_numpy(zero_copy_only=False)
    return found
