"""Which events and devices a request asks for."""

from typing import Any

from jetlake.devices.ids import check_device_id, check_href
from jetlake.devices.store.contract import EventFilter
from jetlake.devices.subjects import AggregateKey
from jetlake.errors import DeviceError

FILTERS_MAX = 1000
"""Devices and resources in one request; each is a subject that the server compares."""


def event_filter(request: Any) -> EventFilter:
    """Return the filter of a request for events. Raises `DeviceError`.

    Devices and resources are a union; unknown ids are not an error, they just have no events.
    """
    keys = resource_keys(request)
    _check_count(len(request.device_id_filter) + len(keys))
    return EventFilter(
        device_ids=tuple(check_device_id(device_id) for device_id in request.device_id_filter),
        keys=keys,
        after_ns=max(0, getattr(request, "timestamp_filter", 0)),
    )


def resource_keys(request: Any) -> tuple[AggregateKey, ...]:
    """Return the aggregates that a request names, in either form."""
    found = [
        AggregateKey.of_href(check_device_id(each.resource_id.device_id), check_href(each.resource_id.href))
        for each in request.resource_id_filter
    ]
    for text in request.http_resource_id_filter:
        device_id, separator, rest = text.lstrip("/").partition("/")
        if not separator:
            raise DeviceError("INVALID_ARGUMENT", f"the resource {text!r} has no href: write DEVICE/path")
        found.append(AggregateKey.of_href(check_device_id(device_id), check_href(f"/{rest}")))
    return tuple(found)


def _check_count(count: int) -> None:
    if count > FILTERS_MAX:
        raise DeviceError("INVALID_ARGUMENT", f"{count} filters are given, at most {FILTERS_MAX} are possible")
