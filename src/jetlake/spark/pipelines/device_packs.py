"""Device events as packs: decoded where they are read, and the columns that the state of devices takes of them.

There are two parts. `changes` has the changes of resources, nine of ten events, with their contents; `events` all
others, with what connections, twins, commands and links need. An event that cannot be read is in one of them by its
subject, with the reason.

Invariant: every message is in one part, in the bucket of its device; the device of one that cannot be read is the one
that its subject names.
"""

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from jetlake.spark.decoders import Decoder, load_decoder
from jetlake.spark.packs import RowPart
from jetlake.spark.pipelines.targets import arrow_type

if TYPE_CHECKING:
    import pyarrow as pa

BUCKETS = 64
"""Of devices, each with its own value in Spark's state: enough for some ten cores, few enough to read all of them in
every batch."""

CHANGES, EVENTS_PART = "changes", "events"

CHANGE_TYPES = ("resourcechanged", "resourcestatesnapshottaken")

INPUTS = ("subject", "sequence", "timestamp", "data")

COMMON_FIELDS = {
    "reason": "STRING",
    "payload": "BINARY",
    "event_type": "STRING",
    "device_id": "STRING",
    "href": "STRING",
    "aggregate_id": "STRING",
    "version": "BIGINT",
    "event_ns": "BIGINT",
    "own_version": "BIGINT",
    "own_ns": "BIGINT",
    "user_id": "STRING",
    "owner": "STRING",
    "origin_id": "STRING",
    "status": "STRING",
}

CHANGE_FIELDS = COMMON_FIELDS | {
    "content": "BINARY",
    "content_type": "STRING",
    "content_format": "INT",
    "content_json": "STRING",
    "etag": "BINARY",
    "resource_types": "ARRAY<STRING>",
    "hub_id": "STRING",
}

EVENT_FIELDS = COMMON_FIELDS | {
    "correlation_id": "STRING",
    "valid_until_ns": "BIGINT",
    "is_online": "BOOLEAN",
    "connection_id": "STRING",
    "connected_at_ns": "BIGINT",
    "online_until_ns": "BIGINT",
    "protocol": "STRING",
    "service_id": "STRING",
    "local_endpoints": "ARRAY<STRING>",
    "twin_state": "STRING",
    "syncing_at_ns": "BIGINT",
    "in_sync_at_ns": "BIGINT",
    "forced_at_ns": "BIGINT",
    "is_twin_enabled": "BOOLEAN",
    "is_canceled": "BOOLEAN",
    "links": "ARRAY<STRUCT<href: STRING, resource_types: ARRAY<STRING>, interfaces: ARRAY<STRING>, title: STRING, "
    "policy: INT, endpoints: ARRAY<STRING>>>",
    "unpublished": "ARRAY<STRING>",
}


class DevicePacker:
    """Packs the events of one generation."""

    inputs = INPUTS

    def __init__(self, decoder: str) -> None:
        self._path = decoder

    def parts(self, batch: "pa.RecordBatch") -> list[RowPart]:
        """Return the changes and the other events of a batch."""
        import pyarrow as pa
        from pyarrow import compute

        decoder = load_decoder(self._path)
        subjects = batch.column("subject")
        is_change: pa.Array = compute.ends_with(subjects, f".{CHANGE_TYPES[0]}")
        for name in CHANGE_TYPES[1:]:
            is_change = compute.or_(is_change, compute.ends_with(subjects, f".{name}"))
        found = []
        for name, mask, fields in (
            (CHANGES, is_change, CHANGE_FIELDS),
            (EVENTS_PART, compute.invert(is_change), EVENT_FIELDS),
        ):
            messages = batch.filter(mask)
            if messages.num_rows:
                found.append(_part(name, messages, decoder, fields))
        return found


def _part(name: str, messages: "pa.RecordBatch", decoder: Decoder, fields: dict[str, str]) -> RowPart:
    import pyarrow as pa
    from pyarrow import compute

    kind = pa.struct([pa.field(field, arrow_type(spelled)) for field, spelled in fields.items()])
    columns = dict(zip(fields, decoder.decode(messages, kind).flatten(), strict=True))
    is_bad = compute.is_valid(columns["reason"])
    subjects = messages.column("subject")
    if compute.any(is_bad).as_py():
        of_subject = compute.list_element(compute.split_pattern(subjects, "."), 1)
        columns["device_id"] = compute.if_else(is_bad, of_subject, columns["device_id"])
    rows = pa.RecordBatch.from_pydict(
        {
            # Nobody asks on which subject an event was that could be read.
            "subject": compute.if_else(is_bad, subjects, pa.scalar(None, pa.string())),
            "sequence": messages.column("sequence"),
            "timestamp": messages.column("timestamp"),
            **columns,
        }
    )
    return RowPart(name, rows, bucket_of(columns["device_id"]))


def bucket_of(devices: "pa.Array") -> "np.ndarray[Any, np.dtype[Any]]":
    """Return the bucket of each device: the same on every machine and for ever, as the state is kept by it."""
    encoded = devices.dictionary_encode()
    buckets = [zlib.crc32(device.encode()) % BUCKETS for device in encoded.dictionary.to_pylist()]
    found: np.ndarray[Any, np.dtype[Any]] = np.array(buckets, np.int32)[encoded.indices.to_numpy(zero_copy_only=False)]
    return found


EVENTS = DevicePacker("jetlake.devices.columns:EVENTS")
EVENTS_2021 = DevicePacker("jetlake.devices.columns:EVENTS_2021")
