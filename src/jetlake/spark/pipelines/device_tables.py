"""The columns and keys of the tables of devices, and their types in Arrow.

Invariant: what leaves the state for a table has these columns, in this order.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

CHANGES = {
    "device_id": "STRING",
    "href": "STRING",
    "aggregate_id": "STRING",
    "version": "BIGINT",
    "event_ns": "BIGINT",
    "changed_at": "TIMESTAMP",
    "status": "STRING",
    "value": "STRING",
    "user_id": "STRING",
    "origin_id": "STRING",
    "sequence": "BIGINT",
    "stored_at": "TIMESTAMP",
    "day": "DATE",
    "previous_value": "STRING",
    "previous_at": "TIMESTAMP",
    "seconds_since_previous": "DOUBLE",
}

RESOURCES = {
    "device_id": "STRING",
    "href": "STRING",
    "aggregate_id": "STRING",
    "version": "BIGINT",
    "event_ns": "BIGINT",
    "changed_at": "TIMESTAMP",
    "status": "STRING",
    "is_removed": "BOOLEAN",
    "value": "STRING",
    "content": "BINARY",
    "content_type": "STRING",
    "content_format": "INT",
    "etag": "BINARY",
    "resource_types": "ARRAY<STRING>",
    "user_id": "STRING",
    "owner": "STRING",
    "hub_id": "STRING",
    "origin_id": "STRING",
    "sequence": "BIGINT",
    "stored_at": "TIMESTAMP",
}

TABLES = {
    "sessions": {
        "device_id": "STRING",
        "connection_id": "STRING",
        "started_at": "TIMESTAMP",
        "ended_at": "TIMESTAMP",
        "ended_by": "STRING",
        "is_open": "BOOLEAN",
        "seconds": "DOUBLE",
        "online_until": "TIMESTAMP",
        "protocol": "STRING",
        "service_id": "STRING",
        "local_endpoints": "ARRAY<STRING>",
        "revision": "BIGINT",
    },
    "twins": {
        "device_id": "STRING",
        "connection_id": "STRING",
        "started_at": "TIMESTAMP",
        "state": "STRING",
        "is_enabled": "BOOLEAN",
        "is_open": "BOOLEAN",
        "syncing_at": "TIMESTAMP",
        "in_sync_at": "TIMESTAMP",
        "sync_seconds": "DOUBLE",
        "seconds_to_in_sync": "DOUBLE",
        "forced_syncs": "BIGINT",
        "out_of_sync_seconds": "DOUBLE",
        "syncing_seconds": "DOUBLE",
        "in_sync_seconds": "DOUBLE",
        "changed_at": "TIMESTAMP",
        "revision": "BIGINT",
    },
    "commands": {
        "device_id": "STRING",
        "href": "STRING",
        "aggregate_id": "STRING",
        "correlation_id": "STRING",
        "kind": "STRING",
        "requested_at": "TIMESTAMP",
        "valid_until": "TIMESTAMP",
        "finished_at": "TIMESTAMP",
        "latency_ms": "DOUBLE",
        "outcome": "STRING",
        "status": "STRING",
        "is_late": "BOOLEAN",
        "requester": "STRING",
        "owner": "STRING",
        "responder": "STRING",
        "known_ends": "BIGINT",
        "revision": "BIGINT",
    },
    "pending": {
        "device_id": "STRING",
        "href": "STRING",
        "open": "BIGINT",
        "oldest_requested_at": "TIMESTAMP",
        "next_valid_until": "TIMESTAMP",
        "valid_until": "ARRAY<TIMESTAMP>",
        "revision": "BIGINT",
    },
    "links": {
        "device_id": "STRING",
        "href": "STRING",
        "resource_types": "ARRAY<STRING>",
        "interfaces": "ARRAY<STRING>",
        "title": "STRING",
        "policy": "INT",
        "endpoints": "ARRAY<STRING>",
        "first_published_at": "TIMESTAMP",
        "last_changed_at": "TIMESTAMP",
        "unpublished_at": "TIMESTAMP",
        "is_published": "BOOLEAN",
        "revision": "BIGINT",
    },
    "bus_quality": {
        "device_id": "STRING",
        "aggregate_id": "STRING",
        "href": "STRING",
        "epochs": "BIGINT",
        "events": "BIGINT",
        "last_version": "BIGINT",
        "missing": "BIGINT",
        "duplicates": "BIGINT",
        "reordered": "BIGINT",
        "undecodable": "BIGINT",
        "lateness_ms_mean": "DOUBLE",
        "lateness_ms_max": "BIGINT",
        "first_stored_at": "TIMESTAMP",
        "last_stored_at": "TIMESTAMP",
        "last_sequence": "BIGINT",
    },
}
"""The tables whose rows are folded from events one by one."""

AUDIT = {
    "sequence": "BIGINT",
    "stored_at": "TIMESTAMP",
    "event_type": "STRING",
    "device_id": "STRING",
    "href": "STRING",
    "aggregate_id": "STRING",
    "version": "BIGINT",
    "event_ns": "BIGINT",
    "happened_at": "TIMESTAMP",
    "user_id": "STRING",
    "owner": "STRING",
    "origin_id": "STRING",
    "correlation_id": "STRING",
    "day": "DATE",
}
"""A row per message; one that the bus has twice is there twice, with another sequence."""

BAD = {
    "input": "STRING",
    "reason": "STRING",
    "subject": "STRING",
    "sequence": "BIGINT",
    "timestamp": "TIMESTAMP",
    "data": "BINARY",
    "day": "DATE",
}
"""As the tables of bad rows of all pipelines."""

KEYS = {
    "sessions": ("device_id", "connection_id", "started_at"),
    "twins": ("device_id", "connection_id", "started_at"),
    "commands": ("aggregate_id", "correlation_id"),
    "pending": ("device_id", "href"),
    "links": ("device_id", "href"),
    "bus_quality": ("aggregate_id",),
}

ORDERS = {"commands": ("known_ends", "revision"), "bus_quality": ("last_sequence",)}
"""What is the newest row of a key; of the others it is `revision`."""


def arrow_schema(columns: Mapping[str, str]) -> "pa.Schema":
    """Return columns that Spark spells as those of Arrow."""
    import pyarrow as pa

    return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in columns.items()])


def arranged(columns: Mapping[str, Any], wanted: Mapping[str, str]) -> "pa.Table":
    """Return columns of Arrow in the order and with the types of a table."""
    import pyarrow as pa

    schema = arrow_schema(wanted)
    return pa.table([columns[field.name].cast(field.type) for field in schema], schema=schema)


def table_of(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> "pa.Table":
    """Return rows as a table; times in them are microseconds since 1970."""
    import pyarrow as pa

    schema = arrow_schema(columns)
    if not rows:
        return schema.empty_table()
    in_columns = zip(*map(itemgetter(*columns), rows), strict=True)
    arrays = [
        pa.array(values, arrow_type(kind.replace("TIMESTAMP", "BIGINT"))).cast(field.type)
        for values, field, kind in zip(in_columns, schema, columns.values(), strict=True)
    ]
    return pa.table(arrays, schema=schema)


@cache
def arrow_type(kind: str) -> "pa.DataType":
    """Return a type that Spark spells as Spark itself makes it in Arrow; workers have no Spark to ask."""
    import pyarrow as pa

    plain = {
        "STRING": pa.string(),
        "BINARY": pa.binary(),
        "BIGINT": pa.int64(),
        "INT": pa.int32(),
        "DOUBLE": pa.float64(),
        "BOOLEAN": pa.bool_(),
        "TIMESTAMP": pa.timestamp("us", "UTC"),
        "DATE": pa.date32(),
    }
    if kind in plain:
        return plain[kind]
    outer, _, inner = kind.removesuffix(">").partition("<")
    if outer == "ARRAY":
        return pa.list_(pa.field("element", arrow_type(inner)))
    assert outer == "STRUCT", f"{kind} is not among the types of these tables"
    fields = [field.split(": ") for field in inner.split(", ")]
    return pa.struct([pa.field(name, arrow_type(spelled)) for name, spelled in fields])
