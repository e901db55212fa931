"""What pages show of devices, from the event stream: each aggregate is read from its last snapshot on.

Imported only where the extra `devices` is installed.

Invariant: a page reads the aggregates of what it shows, and never the whole stream.
"""

import asyncio
import json
import time
from datetime import UTC, datetime
from typing import Any, NamedTuple

from jetlake.client.api import Api
from jetlake.devices.aggregate.links import LinksAggregate
from jetlake.devices.aggregate.metadata import MetadataAggregate
from jetlake.devices.aggregate.model import is_live
from jetlake.devices.aggregate.resource import ResourceAggregate
from jetlake.devices.content import shown
from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.devices.store.contract import new_aggregate
from jetlake.devices.store.in_stream import StreamStore
from jetlake.devices.subjects import AggregateKey, Family
from jetlake.devices.twin import DEVICE_HREF, DeviceView
from jetlake.errors import DeviceError

__all__ = ["DeviceRow", "PendingRow", "ResourceRow", "read_device", "read_resource", "row_of"]

VALUE_LETTERS_MAX = 600
"""Of the content of a resource."""

LOAD_S_MAX = 10.0
"""For one aggregate: one that was never given a snapshot is read event by event."""

SECOND_NS = 1_000_000_000
UNKNOWN = "unknown"


class DeviceRow(NamedTuple):
    """One device in a list."""

    device_id: str
    name: str
    types: str
    # online, offline or unknown.
    connection: str
    since: str
    twin: str
    link_count: int
    # Why it cannot be shown, if so.
    problem: str = ""


class ResourceRow(NamedTuple):
    """One resource of a device."""

    href: str
    types: str
    value: str
    content_type: str
    status: str
    changed: str
    version: int
    pending: "tuple[PendingRow, ...]" = ()
    problem: str = ""


class PendingRow(NamedTuple):
    """A command that its device has not confirmed."""

    kind: str
    correlation_id: str
    since: str
    valid_until: str


async def row_of(api: Api, stream: str, device_id: str) -> DeviceRow:
    """Return one device as a row; one whose events cannot be read says so."""
    try:
        return _row(await read_device(api, stream, device_id))
    except DeviceError as error:
        return DeviceRow(device_id, "", "", UNKNOWN, "", "", 0, str(error))


async def read_device(api: Api, stream: str, device_id: str) -> DeviceView:
    """Return links, connection, twin and name of a device. Raises `DeviceError`, `ClientError`."""
    links, metadata, itself = await asyncio.gather(
        _loaded(api, stream, AggregateKey(device_id, Family.LINKS)),
        _loaded(api, stream, AggregateKey(device_id, Family.METADATA)),
        _loaded(api, stream, AggregateKey.of_href(device_id, DEVICE_HREF), DEVICE_HREF),
    )
    view = DeviceView(device_id)
    if isinstance(links, LinksAggregate):
        view.links = links.links
    if isinstance(metadata, MetadataAggregate) and metadata.exists:
        view.metadata = metadata
    if isinstance(itself, ResourceAggregate) and itself.exists:
        view.resources[DEVICE_HREF] = itself
    return view


async def read_resource(api: Api, stream: str, device_id: str, link: Any) -> ResourceRow:
    """Return one resource with the commands that wait for its device."""
    try:
        found = await _loaded(api, stream, AggregateKey.of_href(device_id, link.href), link.href)
    except DeviceError as error:
        return ResourceRow(link.href, ", ".join(link.resource_types), "", "", "", "", 0, (), str(error))
    latest = found.latest
    now_ns = time.time_ns()
    pending = tuple(pending_row(each) for each in found.pendings.values() if is_live(each, now_ns))
    return ResourceRow(
        href=link.href,
        types=", ".join(link.resource_types),
        value="" if latest is None else _cut(shown(latest.content)),
        content_type="" if latest is None else latest.content.content_type,
        status="" if latest is None else events.Status.Name(latest.status),
        changed=timestamp_text(found.timestamp_ns),
        version=found.version,
        pending=pending,
    )


def pending_row(message: Any) -> PendingRow:
    """Return a pending event as a row."""
    return PendingRow(
        kind=type(message).__name__.removesuffix("Pending"),
        correlation_id=message.audit_context.correlation_id,
        since=timestamp_text(message.event_metadata.timestamp),
        valid_until=timestamp_text(message.valid_until),
    )


def timestamp_text(time_ns: int) -> str:
    """Return a time as the API writes it; empty for none."""
    return datetime.fromtimestamp(time_ns / SECOND_NS, UTC).isoformat() if time_ns > 0 else ""


def _row(view: DeviceView) -> DeviceRow:
    current = None if view.metadata is None else view.metadata.current
    connection = None if current is None else current.connection
    return DeviceRow(
        device_id=view.device_id,
        name=view.name,
        types=", ".join(view.types),
        connection=_connection(view),
        since="" if connection is None else timestamp_text(connection.connected_at),
        twin=twin_state(view),
        link_count=len(view.links),
    )


def _connection(view: DeviceView) -> str:
    if view.metadata is None:
        return UNKNOWN
    return "online" if view.is_online(time.time_ns()) else "offline"


def twin_state(view: DeviceView) -> str:
    """Return the state of the twin in words; empty if the device never said."""
    if view.metadata is None or view.metadata.current is None:
        return ""
    state = events.TwinSynchronization.State.Name(view.metadata.current.twin_synchronization.state)
    return "disabled" if not view.metadata.twin_enabled else state.lower().replace("_", " ")


async def _loaded(api: Api, stream: str, key: AggregateKey, href: str = "") -> Any:
    # A store of its own: one that is kept would hold the state of the first look.
    store = StreamStore(api, stream)
    held = store.hold(key, href)
    try:
        async with asyncio.timeout(LOAD_S_MAX):
            await store.load(held)
    except TimeoutError:
        raise DeviceError(
            "UNAVAILABLE", f"{key.pattern} has too many events since its last snapshot to be read in {LOAD_S_MAX:g} s"
        ) from None
    return held.aggregate if held.is_loaded else new_aggregate(key, href)


def _cut(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_LETTERS_MAX else f"{text[: VALUE_LETTERS_MAX - 1]}…"
