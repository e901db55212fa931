"""The columns and keys of the tables that the state of devices gives.

Invariant: every column of a table is a field of the JSON that `device_processor` makes of its rows.
"""

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
"""The tables that come from the state."""

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
