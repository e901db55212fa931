"""What is known of each device: its links, its resources, whether it is online, which commands wait for it.

```python
twin = Twin()
async for event in read_events(api, "EVENTS", to_end=True):
    await twin.apply(event)
twin.device("D1").is_online
```
"""

from collections.abc import Iterator
from typing import Any

from jetlake.devices.aggregate.links import LinksAggregate
from jetlake.devices.aggregate.metadata import MetadataAggregate
from jetlake.devices.aggregate.model import is_live
from jetlake.devices.aggregate.resource import ResourceAggregate
from jetlake.devices.codec import Event
from jetlake.devices.content import value_of
from jetlake.devices.projection import EventOutcome, Projection, Refetch
from jetlake.devices.protos import events_2021_pb2 as events_2021
from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.devices.subjects import AggregateKey, Family
from jetlake.errors import DeviceError

DEVICE_HREF = "/oic/d"
"""The resource in which a device says what it is."""


class DeviceView:
    """One device, as far as its events tell."""

    def __init__(self, device_id: str) -> None:
        self.device_id = device_id
        self.links: dict[str, events.Resource] = {}
        self.metadata: MetadataAggregate | None = None
        # By href.
        self.resources: dict[str, ResourceAggregate] = {}
        # Devices of 2021 are online until then, unless they say so again; 0: until they say otherwise.
        self.online_until_ns = 0

    def is_online(self, now_ns: int = 0) -> bool:
        """Tell whether the device is online at a time."""
        is_over = bool(self.online_until_ns and now_ns and self.online_until_ns < now_ns)
        return self.metadata is not None and self.metadata.is_online and not is_over

    @property
    def name(self) -> str:
        """The device's own name."""
        value = self._about_itself()
        return str(value.get("n", "")) if isinstance(value, dict) else ""

    @property
    def types(self) -> list[str]:
        link = self.links.get(DEVICE_HREF)
        return list(link.resource_types) if link is not None else []

    def pending_commands(self, now_ns: int) -> list[Any]:
        """Return the commands that wait for the device and are still valid, oldest first."""
        aggregates: list[Any] = [*self.resources.values(), *([self.metadata] if self.metadata is not None else [])]
        found = [pending for each in aggregates for pending in each.pendings.values() if is_live(pending, now_ns)]
        return sorted(found, key=lambda pending: int(pending.event_metadata.timestamp))

    def _about_itself(self) -> Any:
        resource = self.resources.get(DEVICE_HREF)
        if resource is None or resource.latest is None:
            return None
        try:
            return value_of(resource.latest.content)
        except DeviceError:
            return None


class Twin:
    """All devices whose events were seen."""

    def __init__(self, refetch: Refetch | None = None) -> None:
        self.projection = Projection(refetch)
        self._online_until_ns: dict[str, int] = {}

    async def apply(self, event: Event) -> EventOutcome:
        """Take an event into what is known."""
        outcome = await self.projection.apply(event)
        if isinstance(event.message, events_2021.DeviceMetadataUpdated) and outcome is not EventOutcome.IGNORED:
            self._online_until_ns[event.key.device_id] = event.message.status.valid_until
        return outcome

    def forget(self, device_id: str) -> None:
        """Drop a device."""
        self.projection.forget(device_id)
        self._online_until_ns.pop(device_id, None)

    def device(self, device_id: str) -> DeviceView:
        """Return what is known of a device; nothing but its id if there were no events of it."""
        return next(self._views([device_id]), DeviceView(device_id))

    def devices(self, device_ids: list[str] | None = None) -> list[DeviceView]:
        """Return all devices, or those that are named and known, sorted by id."""
        return list(self._views(device_ids))

    def _views(self, device_ids: list[str] | None) -> Iterator[DeviceView]:
        wanted = None if device_ids is None else set(device_ids)
        views: dict[str, DeviceView] = {}
        for key, aggregate in self.projection.aggregates.items():
            if wanted is None or key.device_id in wanted:
                view = views.setdefault(key.device_id, DeviceView(key.device_id))
                _put(view, key, aggregate)
        for device_id in sorted(views):
            views[device_id].online_until_ns = self._online_until_ns.get(device_id, 0)
            yield views[device_id]


def _put(view: DeviceView, key: AggregateKey, aggregate: Any) -> None:
    match key.family:
        case Family.LINKS:
            assert isinstance(aggregate, LinksAggregate)
            view.links = aggregate.links
        case Family.METADATA:
            view.metadata = aggregate
        case Family.RESOURCES:
            view.resources[aggregate.href] = aggregate
