"""Which path and method is which request: the paths of the original's HTTP gateway.

| method and path below `/api/v1`                                | request                          |
|----------------------------------------------------------------|----------------------------------|
| GET `/events`, `/devices/D/events`, `/devices/D/resources/H/events` | GetEvents                   |
| GET `/devices`, `/devices/D`                                   | GetDevices                       |
| DELETE `/devices`, `/devices/D`                                | DeleteDevices                    |
| GET `/resource-links`, `/devices/D/resource-links`             | GetResourceLinks                 |
| GET `/resources`, `/devices/D/resources`                       | GetResources                     |
| GET `/devices-metadata`, `/devices/D/metadata`                 | GetDevicesMetadata               |
| GET `/pending-commands`, below a device, below a resource      | GetPendingCommands               |
| GET `/devices/D/resources/H`, with `?twin=false` from the device | GetResources, RetrieveResource |
| PUT `/devices/D/resources/H`                                   | UpdateResource, and its confirmation |
| POST, DELETE `/devices/D/resource-links/H`                     | CreateResource, DeleteResource   |
| PUT `/devices/D/metadata`                                      | UpdateDeviceMetadata             |
| DELETE `/devices/D/resources/H/pending-commands`               | CancelPendingCommands            |
| DELETE `/devices/D/pending-metadata-updates`, and `/CORRELATION` | CancelPendingMetadataUpdates   |
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from uuid import uuid4

from jetlake.devices import content as contents
from jetlake.devices.protos import api_pb2
from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.devices.service.json_form import from_json
from jetlake.errors import DeviceError
from jetlake.shared.durations import duration_ns

ROOT = "/api/v1"

CONFIRMATION_NS = 10_000_000_000
"""How long an answer waits for the device; a call says otherwise with `timeToLive`."""


class HttpCall(NamedTuple):
    """One HTTP request without its transport."""

    path: Mapping[str, str]
    # Names in lower case: the original does not care about case either.
    query: Mapping[str, list[str]]
    content_type: str
    body: bytes
    # Of the body, if it is JSON.
    json: Any

    @property
    def href(self) -> str:
        return "/" + self.path["href"].lstrip("/")

    @property
    def resource(self) -> events.ResourceId:
        return events.ResourceId(device_id=self.path["device"], href=self.href)

    def values(self, *names: str) -> list[str]:
        return [value for name in names for value in self.query.get(name.lower(), [])]

    def value(self, *names: str) -> str:
        return next(iter(self.values(*names)), "")


class GatewayRoute(NamedTuple):
    """A path, and the request it stands for."""

    method: str
    path: str
    name: str
    build: Callable[[HttpCall], Any]


def _timestamp(call: HttpCall) -> int:
    text = call.value("timestampFilter") or "0"
    try:
        return int(text)
    except ValueError as error:
        raise DeviceError(
            "INVALID_ARGUMENT",
            f"timestampFilter is {text!r}: give Unix time in nanoseconds, such as 1625130000000000000",
        ) from error


def _events(call: HttpCall) -> Any:
    request = api_pb2.GetEventsRequest(timestamp_filter=_timestamp(call))
    _fill_filters(request, call)
    return request


def _state(call: HttpCall) -> Any:
    request = api_pb2.GetStateRequest(type_filter=call.values("typeFilter", "type"))
    _fill_filters(request, call)
    return request


def _fill_filters(request: Any, call: HttpCall) -> None:
    if "href" in call.path:
        request.resource_id_filter.add(resource_id=call.resource)
    elif "device" in call.path:
        request.device_id_filter.append(call.path["device"])
    else:
        request.device_id_filter.extend(call.values("deviceIdFilter", "deviceId"))
    request.http_resource_id_filter.extend(call.values("resourceIdFilter", "resourceId", "httpResourceIdFilter"))


def _devices(call: HttpCall) -> Any:
    names = api_pb2.GetDevicesRequest.Status
    try:
        statuses: list[Any] = [names.Value(text.upper()) for text in call.values("statusFilter", "status")]
    except ValueError as error:
        raise DeviceError("INVALID_ARGUMENT", f"statusFilter must be ONLINE or OFFLINE: {error}") from error
    ids = [call.path["device"]] if "device" in call.path else call.values("deviceIdFilter", "deviceId")
    types = call.values("typeFilter", "type")
    return api_pb2.GetDevicesRequest(device_id_filter=ids, status_filter=statuses, type_filter=types)


def _delete_devices(call: HttpCall) -> Any:
    ids = [call.path["device"]] if "device" in call.path else call.values("deviceIdFilter", "deviceId")
    return api_pb2.DeleteDevicesRequest(device_id_filter=ids)


def _time_to_live_ns(call: HttpCall) -> int:
    text = call.value("timeToLive")
    if not text:
        return 0
    found = int(text) if text.isdigit() else duration_ns(text)
    if found is None:
        raise DeviceError("INVALID_ARGUMENT", f"timeToLive is {text!r}: write 10s, or nanoseconds")
    return found


def _command(call: HttpCall, *, has_content: bool) -> Any:
    time_to_live_ns = _time_to_live_ns(call)
    request = api_pb2.ResourceCommandRequest(
        resource_id=call.resource,
        correlation_id=call.value("correlationId") or str(uuid4()),
        resource_interface=call.value("resourceInterface", "interface"),
        time_to_live=time_to_live_ns,
        wait_for_confirmation=time_to_live_ns or CONFIRMATION_NS,
        command_metadata=events.CommandMetadata(),
    )
    if has_content:
        request.content.CopyFrom(_content(call))
    return request


def _content(call: HttpCall) -> events.Content:
    kind = call.content_type or contents.JSON
    if not call.body:
        raise DeviceError("INVALID_ARGUMENT", "the body is empty: send the content of the resource")
    number = contents.FORMATS.get(kind, contents.NO_FORMAT)
    made = events.Content(data=call.body, content_type=kind, coap_content_format=number)
    if kind == contents.JSON:
        contents.value_of(made)
    return made


def _metadata(call: HttpCall) -> Any:
    request = from_json(call.json, api_pb2.UpdateDeviceMetadataRequest())
    request.device_id = call.path["device"]
    request.correlation_id = request.correlation_id or call.value("correlationId") or str(uuid4())
    request.time_to_live = request.time_to_live or _time_to_live_ns(call)
    request.command_metadata.SetInParent()
    return request


def _cancel(call: HttpCall) -> Any:
    return api_pb2.CancelPendingCommandsRequest(
        resource_id=call.resource,
        correlation_id_filter=call.values("correlationIdFilter", "correlationId"),
        command_metadata=events.CommandMetadata(),
    )


def _cancel_metadata(call: HttpCall) -> Any:
    named = [call.path["correlation"]] if "correlation" in call.path else call.values("correlationIdFilter")
    return api_pb2.CancelPendingMetadataUpdatesRequest(
        device_id=call.path["device"], correlation_id_filter=named, command_metadata=events.CommandMetadata()
    )


_DEVICE = ROOT + "/devices/{device}"
_RESOURCE = _DEVICE + "/resources/{href:.+}"
_LINK = _DEVICE + "/resource-links/{href:.+}"

# The first that fits is taken, so the longer ones come first.
ROUTES = (
    GatewayRoute("GET", f"{ROOT}/events", "GetEvents", _events),
    GatewayRoute("GET", f"{_DEVICE}/events", "GetEvents", _events),
    GatewayRoute("GET", f"{_RESOURCE}/events", "GetEvents", _events),
    GatewayRoute("GET", f"{ROOT}/devices", "GetDevices", _devices),
    GatewayRoute("DELETE", f"{ROOT}/devices", "DeleteDevices", _delete_devices),
    GatewayRoute("GET", f"{ROOT}/resource-links", "GetResourceLinks", _state),
    GatewayRoute("GET", f"{_DEVICE}/resource-links", "GetResourceLinks", _state),
    GatewayRoute("GET", f"{ROOT}/resources", "GetResources", _state),
    GatewayRoute("GET", f"{_DEVICE}/resources", "GetResources", _state),
    GatewayRoute("GET", f"{ROOT}/devices-metadata", "GetDevicesMetadata", _state),
    GatewayRoute("GET", f"{_DEVICE}/metadata", "GetDevicesMetadata", _state),
    GatewayRoute("PUT", f"{_DEVICE}/metadata", "UpdateDeviceMetadata", _metadata),
    GatewayRoute("GET", f"{ROOT}/pending-commands", "GetPendingCommands", _state),
    GatewayRoute("GET", f"{_DEVICE}/pending-commands", "GetPendingCommands", _state),
    GatewayRoute("GET", f"{_RESOURCE}/pending-commands", "GetPendingCommands", _state),
    GatewayRoute("DELETE", f"{_RESOURCE}/pending-commands", "CancelPendingCommands", _cancel),
    GatewayRoute("DELETE", f"{_DEVICE}/pending-metadata-updates", "CancelPendingMetadataUpdates", _cancel_metadata),
    GatewayRoute(
        "DELETE",
        f"{_DEVICE}/pending-metadata-updates/{{correlation}}",
        "CancelPendingMetadataUpdates",
        _cancel_metadata,
    ),
    GatewayRoute("POST", _LINK, "CreateResource", lambda call: _command(call, has_content=True)),
    GatewayRoute("DELETE", _LINK, "DeleteResource", lambda call: _command(call, has_content=False)),
    GatewayRoute("PUT", _RESOURCE, "UpdateResource", lambda call: _command(call, has_content=True)),
    GatewayRoute("GET", _DEVICE, "GetDevices", _devices),
    GatewayRoute("DELETE", _DEVICE, "DeleteDevices", _delete_devices),
)

RESOURCE_PATH = _RESOURCE
WEBSOCKET_PATH = f"{ROOT}/ws/events"


def resource_request(call: HttpCall) -> tuple[str, Any]:
    """Return what reading one resource means: from the twin, or with `twin=false` from the device itself."""
    if (call.value("twin") or call.value("shadow")).lower() == "false":
        return "RetrieveResource", _command(call, has_content=False)
    return "GetResources", _state(call)
