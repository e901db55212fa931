"""Commands to test with, short."""

from __future__ import annotations

from typing import Any

from jetlake.devices import content
from jetlake.devices.protos import api_pb2
from jetlake.devices.protos import events_2025_pb2 as events
from tests.devices.samples import D1

HREF = "/light/1"


def metadata(sequence: int = 0, connection: str = "c1") -> Any:
    return events.CommandMetadata(connection_id=connection, sequence=sequence)


def resource(href: str = HREF, device: str = D1) -> Any:
    return events.ResourceId(device_id=device, href=href)


def notify(
    value: Any, sequence: int = 0, *, href: str = HREF, device: str = D1, connection: str = "c1", **more: Any
) -> Any:
    return api_pb2.NotifyResourceChangedRequest(
        resource_id=resource(href, device),
        content=content.of_value(value),
        command_metadata=metadata(sequence, connection),
        **more,
    )


def command(correlation_id: str, value: Any = None, *, href: str = HREF, device: str = D1, **more: Any) -> Any:
    made = api_pb2.ResourceCommandRequest(
        resource_id=resource(href, device), correlation_id=correlation_id, command_metadata=metadata(), **more
    )
    if value is not None:
        made.content.CopyFrom(content.of_value(value, content.JSON))
    return made


def confirm(
    correlation_id: str, status: int = events.OK, *, href: str = HREF, device: str = D1, value: Any = None
) -> Any:
    made = api_pb2.ResourceConfirmRequest(
        resource_id=resource(href, device), correlation_id=correlation_id, status=status, command_metadata=metadata()
    )
    if value is not None:
        made.content.CopyFrom(content.of_value(value))
    return made


def publish_links(*hrefs: str, device: str = D1, **fields: Any) -> Any:
    return api_pb2.PublishResourceLinksRequest(
        device_id=device,
        resources=[events.Resource(href=href, resource_types=["x.light"], **fields) for href in hrefs],
        command_metadata=metadata(),
    )


def unpublish_links(*hrefs: str, device: str = D1) -> Any:
    return api_pb2.UnpublishResourceLinksRequest(device_id=device, hrefs=hrefs, command_metadata=metadata())


def online(connection: str = "c1", device: str = D1, **fields: Any) -> Any:
    return api_pb2.UpdateDeviceMetadataRequest(
        device_id=device,
        connection=events.Connection(status=events.Connection.ONLINE, id=connection, **fields),
        command_metadata=metadata(0, connection),
    )


def offline(connection: str = "c1", device: str = D1) -> Any:
    return api_pb2.UpdateDeviceMetadataRequest(
        device_id=device,
        connection=events.Connection(status=events.Connection.OFFLINE, id=connection),
        command_metadata=metadata(0, connection),
    )


def twin(correlation_id: str = "t1", *, device: str = D1, **fields: Any) -> Any:
    return api_pb2.UpdateDeviceMetadataRequest(
        device_id=device, correlation_id=correlation_id, command_metadata=metadata(), **fields
    )


def synchronize(sequence: int, connection: str = "c1", device: str = D1, **fields: Any) -> Any:
    return api_pb2.UpdateDeviceMetadataRequest(
        device_id=device,
        twin_synchronization=events.TwinSynchronization(**fields),
        command_metadata=metadata(sequence, connection),
    )


def confirm_twin(correlation_id: str = "t1", status: int = events.OK, device: str = D1) -> Any:
    return api_pb2.ConfirmDeviceMetadataUpdateRequest(
        device_id=device, correlation_id=correlation_id, status=status, command_metadata=metadata()
    )
