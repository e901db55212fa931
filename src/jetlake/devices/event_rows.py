"""An event as a row: the columns that tables of devices are made of, one event at a time.

This is what `columns` gives for a whole batch, written the plain way. It is used for the few events that cannot be
read together with others, and it says what the fast way must give.

Invariant: a row has every column of `COLUMNS`, and none of them is None but `reason`, `payload` and `content_json`.
"""

import json
from functools import lru_cache
from typing import Any

from jetlake.devices.codec import Event, EventCodec, malformed
from jetlake.devices.content import shown
from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.devices.subjects import Family
from jetlake.errors import DeviceError

COLUMNS = {
    # Why the event cannot be read, and then its bytes; all other columns are empty.
    "reason": "STRING",
    "payload": "BINARY",
    "event_type": "STRING",
    "device_id": "STRING",
    "aggregate_id": "STRING",
    "href": "STRING",
    # Of the state the event tells; a snapshot tells that of an earlier event. -1 if it tells none.
    "version": "BIGINT",
    "event_ns": "BIGINT",
    # Of the event itself, also if it is a snapshot.
    "own_version": "BIGINT",
    "own_ns": "BIGINT",
    "user_id": "STRING",
    "correlation_id": "STRING",
    "owner": "STRING",
    # The connection through which the event was caused.
    "origin_id": "STRING",
    "origin_sequence": "BIGINT",
    "hub_id": "STRING",
    "status": "STRING",
    "content": "BINARY",
    "content_type": "STRING",
    "content_format": "INT",
    "content_json": "STRING",
    "etag": "BINARY",
    "resource_types": "ARRAY<STRING>",
    "valid_until_ns": "BIGINT",
    "is_online": "BOOLEAN",
    "connection_id": "STRING",
    "connected_at_ns": "BIGINT",
    # Devices of 2021 are online until then, unless they say so again; 0 means until they say otherwise.
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
"""Every column and its type in Spark's words."""

VERSION_MAX = (1 << 63) - 1
"""A column has signed numbers."""

CONTENTS_REMEMBERED_MAX = 65_536
"""Values of resources kept as JSON: sensors say the same few things over and over."""

_EMPTY: dict[str, Any] = {
    "STRING": "",
    "BINARY": b"",
    "BIGINT": 0,
    "INT": 0,
    "BOOLEAN": False,
}

STATUS_NAMES = tuple(events.Status.keys())
PROTOCOL_NAMES = tuple(events.Connection.Protocol.keys())
TWIN_STATE_NAMES = tuple(events.TwinSynchronization.State.keys())


def empty_row() -> dict[str, Any]:
    """Return a row that says nothing."""
    row = {name: _EMPTY.get(kind, ()) for name, kind in COLUMNS.items()}
    return row | {"reason": None, "payload": None, "content_json": None, "version": -1, "own_version": -1}


def row_of(codec: EventCodec, payload: bytes | None, subject: str = "") -> dict[str, Any]:
    """Return the row of a message; one with a reason if it is not an event."""
    row = empty_row()
    try:
        event = codec.decode(payload or b"", subject=subject)
        if event.version > VERSION_MAX:
            raise malformed(f"version {event.version} does not fit into a signed number of 64 bits")
        _fill(row, event)
    except DeviceError as error:
        return empty_row() | {"reason": str(error), "payload": payload or b""}
    return row


@lru_cache(maxsize=CONTENTS_REMEMBERED_MAX)
def content_json(data: bytes, content_type: str, content_format: int) -> str | None:
    """Return what content says as JSON; bytes that cannot be read as base64, None if there are none."""
    if not data:
        return None
    value = shown(events.Content(data=data, content_type=content_type, coap_content_format=content_format))
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _fill(row: dict[str, Any], event: Event) -> None:
    key, message = event.key, event.current()
    row |= {"event_type": event.event_type, "device_id": key.device_id, "aggregate_id": key.aggregate_id}
    row["own_version"] = event.version
    if message is None:
        # A type of the future takes a version and tells nothing.
        return
    row["version"], row["event_ns"] = event.version, message.event_metadata.timestamp
    row["own_ns"] = message.event_metadata.timestamp
    told = message
    if event.is_snapshot and key.family is not Family.LINKS:
        part = "latest_resource_change" if key.family is Family.RESOURCES else "device_metadata_updated"
        told = getattr(message, part) if message.HasField(part) else None
        if told is None:
            row["version"], row["event_ns"] = -1, 0
        else:
            row["version"], row["event_ns"] = told.event_metadata.version, told.event_metadata.timestamp
    if key.family is Family.RESOURCES:
        row["href"] = message.resource_id.href
    if told is None:
        return
    if row["version"] > VERSION_MAX:
        raise malformed(f"version {row['version']} does not fit into a signed number of 64 bits")
    _fill_common(row, told)
    match key.family:
        case Family.RESOURCES:
            _fill_resource(row, told)
        case Family.METADATA:
            _fill_metadata(row, told)
            row["online_until_ns"] = _online_until_ns(event.message)
        case Family.LINKS:
            _fill_links(row, told)


def _fill_common(row: dict[str, Any], message: Any) -> None:
    audit, metadata = message.audit_context, message.event_metadata
    row |= {"user_id": audit.user_id, "correlation_id": audit.correlation_id, "owner": audit.owner}
    row |= {
        "origin_id": metadata.connection_id,
        "origin_sequence": _signed(metadata.sequence),
        "hub_id": metadata.hub_id,
    }
    row["valid_until_ns"] = getattr(message, "valid_until", 0)


def _fill_resource(row: dict[str, Any], message: Any) -> None:
    names = message.DESCRIPTOR.fields_by_name
    if "status" in names:
        row["status"] = name_of(STATUS_NAMES, message.status)
    if "content" in names:
        content = message.content
        row |= {
            "content": content.data,
            "content_type": content.content_type,
            "content_format": content.coap_content_format,
            "content_json": content_json(content.data, content.content_type, content.coap_content_format),
        }
    if "etag" in names and not names["etag"].is_repeated:
        row["etag"] = message.etag
    row["resource_types"] = list(message.resource_types)


def _fill_metadata(row: dict[str, Any], message: Any) -> None:
    if not isinstance(message, events.DeviceMetadataUpdated):
        return
    connection, twin = message.connection, message.twin_synchronization
    row |= {
        "is_online": connection.status == events.Connection.ONLINE,
        "connection_id": connection.id,
        "connected_at_ns": connection.connected_at,
        "protocol": name_of(PROTOCOL_NAMES, connection.protocol),
        "service_id": connection.service_id,
        "local_endpoints": list(connection.local_endpoints),
        "twin_state": name_of(TWIN_STATE_NAMES, twin.state),
        "syncing_at_ns": twin.syncing_at,
        "in_sync_at_ns": twin.in_sync_at,
        "forced_at_ns": twin.force_synchronization_at,
        "is_twin_enabled": message.twin_enabled,
        "is_canceled": message.canceled,
    }


def _online_until_ns(message: Any) -> int:
    """Return when a device of 2021 ceases to be online unless it says so again."""
    told = getattr(message, "device_metadata_updated", message)
    status = getattr(told, "status", None)
    return 0 if status is None else int(status.valid_until)


def _fill_links(row: dict[str, Any], message: Any) -> None:
    if isinstance(message, events.ResourceLinksUnpublished):
        row["unpublished"] = list(message.hrefs)
        return
    is_snapshot = isinstance(message, events.ResourceLinksSnapshotTaken)
    links = message.resources.values() if is_snapshot else message.resources
    row["links"] = [
        {
            "href": link.href,
            "resource_types": list(link.resource_types),
            "interfaces": list(link.interfaces),
            "title": link.title,
            "policy": link.policy.bit_flags,
            "endpoints": [each.endpoint for each in link.endpoint_informations],
        }
        for link in sorted(links, key=lambda link: link.href)
    ]


def name_of(names: tuple[str, ...], number: int) -> str:
    """Return the name of an enumeration's number; one of the future is its own name."""
    return names[number] if 0 <= number < len(names) else str(number)


def _signed(number: int) -> int:
    return number if number <= VERSION_MAX else number - (1 << 64)
