"""Devices, links, resources, metadata and pending commands, as the twin knows them."""

import time
from collections.abc import Iterator
from typing import Any

from jetlake.devices.protos import api_pb2
from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.devices.service.filters import event_filter
from jetlake.devices.store.contract import EventFilter
from jetlake.devices.subjects import AggregateKey
from jetlake.devices.twin import DeviceView, Twin

_PENDING_FIELDS = {
    field.message_type.name: field.name
    for field in api_pb2.PendingCommand.DESCRIPTOR.fields
    if field.message_type is not None
}

_Status = api_pb2.GetDevicesRequest.Status


def devices(twin: Twin, request: Any) -> Iterator[Any]:
    """Yield the devices a request asks for."""
    now_ns = time.time_ns()
    for view in twin.devices(list(request.device_id_filter) or None):
        status = _Status.ONLINE if view.is_online(now_ns) else _Status.OFFLINE
        if request.status_filter and status not in request.status_filter:
            continue
        if request.type_filter and not set(request.type_filter) & set(view.types):
            continue
        made = api_pb2.Device(
            id=view.device_id,
            name=view.name,
            types=view.types,
            resource_count=len(view.resources),
            pending_command_count=len(view.pending_commands(now_ns)),
        )
        if view.metadata is not None and view.metadata.current is not None:
            made.metadata.CopyFrom(view.metadata.current)
        yield made


def resource_links(twin: Twin, request: Any) -> Iterator[Any]:
    """Yield the links of each device as one message."""
    wanted = event_filter(request)
    for view in _views(twin, wanted):
        links = [
            link
            for href, link in sorted(view.links.items())
            if _wants_resource(wanted, view, href) and _has_type(request, link.resource_types)
        ]
        if links:
            yield events.ResourceLinksPublished(device_id=view.device_id, resources=links)


def resources(twin: Twin, request: Any) -> Iterator[Any]:
    """Yield the content of each resource; what is gone is left out."""
    wanted = event_filter(request)
    for view in _views(twin, wanted):
        for href, resource in sorted(view.resources.items()):
            latest = resource.latest
            if latest is None or latest.status == events.NOT_FOUND or not _wants_resource(wanted, view, href):
                continue
            link = view.links.get(href)
            types = list(latest.resource_types) or (list(link.resource_types) if link is not None else [])
            if _has_type(request, types):
                yield api_pb2.ResourceState(data=latest, types=types)


def devices_metadata(twin: Twin, request: Any) -> Iterator[Any]:
    """Yield connection and twin state of each device."""
    for view in _views(twin, event_filter(request)):
        if view.metadata is not None and view.metadata.current is not None:
            yield view.metadata.current


def pending_commands(twin: Twin, request: Any) -> Iterator[Any]:
    """Yield the commands that wait for their devices and are still valid."""
    wanted = event_filter(request)
    for view in _views(twin, wanted):
        for pending in view.pending_commands(time.time_ns()):
            href = pending.resource_id.href if hasattr(pending, "resource_id") else ""
            if href and not _wants_resource(wanted, view, href):
                continue
            if not href and wanted.keys and view.device_id not in wanted.device_ids:
                continue
            made = api_pb2.PendingCommand()
            getattr(made, _PENDING_FIELDS[type(pending).__name__]).CopyFrom(pending)
            yield made


def _views(twin: Twin, wanted: EventFilter) -> list[DeviceView]:
    named = {*wanted.device_ids, *(key.device_id for key in wanted.keys)}
    return twin.devices(sorted(named) if named else None)


def _wants_resource(wanted: EventFilter, view: DeviceView, href: str) -> bool:
    return wanted.wants(AggregateKey.of_href(view.device_id, href))


def _has_type(request: Any, types: Any) -> bool:
    return not request.type_filter or bool(set(request.type_filter) & set(types))
