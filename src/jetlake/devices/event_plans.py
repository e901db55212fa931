"""Which fields of which event are read into columns, and their numbers, taken from the message definitions.

Invariant: no number is written here; all of them come from the descriptors, so a definition and its plan cannot differ.
"""

from functools import cache
from typing import Any, NamedTuple

from jetlake.devices.generations import MESSAGES, Generation
from jetlake.devices.protos import envelope_pb2
from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.devices.subjects import FAMILY_OF_TYPE, Family
from jetlake.devices.wire import BYTES, VARINT

SINGLE = (
    "resource_id",
    "content",
    "status",
    "audit_context",
    "event_metadata",
    "etag",
    "valid_until",
    "connection",
    "twin_synchronization",
    "twin_enabled",
    "canceled",
)
"""Fields of events that columns are made of."""

TOLD = ("latest_resource_change", "device_metadata_updated")
"""Fields of snapshots: the event that tells the state."""

REPEATED = ("resource_types",)


class EventScanPlan(NamedTuple):
    """How the messages of one type are scanned."""

    # By name.
    numbers: dict[str, int]
    # By number, as `wire.scan` takes them.
    wanted: dict[int, int]
    repeated: tuple[int, ...]


def plan_of(descriptor: Any, single: tuple[str, ...], repeated: tuple[str, ...] = ()) -> EventScanPlan:
    """Return the plan for those of these fields that a message has."""
    fields = descriptor.fields_by_name
    chosen = {name: fields[name] for name in single if name in fields and not fields[name].is_repeated}
    several = {name: fields[name].number for name in repeated if name in fields and fields[name].is_repeated}
    return EventScanPlan(
        {name: field.number for name, field in chosen.items()} | several,
        {field.number: _form(field) for field in chosen.values()},
        tuple(several.values()),
    )


def _form(field: Any) -> int:
    in_bytes = (field.TYPE_STRING, field.TYPE_BYTES, field.TYPE_MESSAGE)
    return BYTES if field.type in in_bytes else VARINT


@cache
def event_plan(generation: Generation, event_type: str) -> EventScanPlan | None:
    """Return how events of a type are scanned; None for those that are read one by one.

    Links come once per device. The metadata of 2021 has another form, and is not worth a plan of its own.
    """
    family = FAMILY_OF_TYPE.get(event_type)
    if family is None or family is Family.LINKS:
        return None
    if family is Family.METADATA and generation is not Generation.Y2025:
        return None
    descriptor = MESSAGES[generation][event_type].DESCRIPTOR
    if is_snapshot(event_type):
        return plan_of(descriptor, ("resource_id", *TOLD))
    return plan_of(descriptor, SINGLE, REPEATED)


@cache
def told_plan(generation: Generation, event_type: str) -> EventScanPlan:
    """Return how the event inside a snapshot is scanned that tells its state."""
    told = "resourcechanged" if FAMILY_OF_TYPE[event_type] is Family.RESOURCES else "devicemetadataupdated"
    descriptor = MESSAGES[generation][told].DESCRIPTOR
    return plan_of(descriptor, tuple(name for name in SINGLE if name != "resource_id"), REPEATED)


@cache
def own_metadata_plan(generation: Generation, event_type: str) -> EventScanPlan:
    """Return how the metadata of a snapshot itself is found, beside that of the event which it tells."""
    return plan_of(MESSAGES[generation][event_type].DESCRIPTOR, ("event_metadata",))


def is_snapshot(event_type: str) -> bool:
    return event_type.endswith("snapshottaken")


ENVELOPE = plan_of(envelope_pb2.Event.DESCRIPTOR, ("version", "event_type", "group_id", "aggregate_id", "data"))

# The parts have the same numbers in both generations; what 2021 lacks is not there.
RESOURCE_ID = plan_of(events.ResourceId.DESCRIPTOR, ("href",))
CONTENT = plan_of(events.Content.DESCRIPTOR, ("data", "content_type", "coap_content_format"))
AUDIT = plan_of(events.AuditContext.DESCRIPTOR, ("user_id", "correlation_id", "owner"))
METADATA = plan_of(events.EventMetadata.DESCRIPTOR, ("version", "timestamp", "connection_id", "sequence", "hub_id"))
CONNECTION = plan_of(
    events.Connection.DESCRIPTOR,
    ("status", "id", "connected_at", "protocol", "service_id"),
    ("local_endpoints",),
)
TWIN = plan_of(events.TwinSynchronization.DESCRIPTOR, ("state", "syncing_at", "in_sync_at", "force_synchronization_at"))
