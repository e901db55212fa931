"""What a store of events can do, and the aggregates that are kept at hand.

Invariant: while a task holds an aggregate's lock, no other task of this process decides for it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from typing import Any, NamedTuple, Protocol

from jetlake.devices.aggregate.links import LinksAggregate
from jetlake.devices.aggregate.metadata import MetadataAggregate
from jetlake.devices.aggregate.model import Aggregate
from jetlake.devices.aggregate.resource import ResourceAggregate
from jetlake.devices.codec import Event
from jetlake.devices.ids import aggregate_id
from jetlake.devices.subjects import AggregateKey, Family, pattern

AGGREGATES_AT_HAND_MAX = 20_000
"""Aggregates whose state is kept between commands: some ten kilobytes each, and 2000 devices with ten resources."""


class VersionConflictError(Exception):
    """Another writer stored an event of the aggregate first: load it and decide again."""


class Held:
    """A cached aggregate, and the lock to hold while deciding for it."""

    def __init__(self, aggregate: Aggregate) -> None:
        self.aggregate = aggregate
        self.lock = asyncio.Lock()
        # Its events were read once.
        self.is_loaded = False


class EventFilter(NamedTuple):
    """Which events are wanted: the union of devices and of aggregates; all if both are empty."""

    device_ids: tuple[str, ...] = ()
    keys: tuple[AggregateKey, ...] = ()
    # Events at this time or before are left out.
    after_ns: int = 0

    @property
    def patterns(self) -> list[str]:
        """Subjects that do not overlap, as a consumer wants them; empty means all."""
        devices = dict.fromkeys(self.device_ids)
        own = [pattern(device_id) for device_id in devices]
        return own + list(dict.fromkeys(key.pattern for key in self.keys if key.device_id not in devices))

    def wants(self, key: AggregateKey) -> bool:
        """Tell whether an aggregate's events are wanted."""
        return not (self.device_ids or self.keys) or key.device_id in self.device_ids or key in self.keys


class EventStore(Protocol):
    """Events of aggregates, in order of their versions."""

    def hold(self, key: AggregateKey, href: str) -> Held:
        """Return an aggregate at hand; it may not be loaded yet."""

    async def load(self, held: Held) -> None:
        """Load an aggregate that is not at hand. The caller has its lock."""

    async def refresh(self, held: Held) -> bool:
        """Bring an aggregate at hand up to date; tell whether it was old. The caller has its lock."""

    async def append(self, held: Held, messages: Sequence[Any]) -> list[Any]:
        """Store events and apply them; the caller has its lock.

        Raises `VersionConflictError` if the aggregate has changed.
        """

    def events(self, wanted: EventFilter) -> AsyncGenerator[Event, None]:
        """Yield stored events: in order within an aggregate."""

    async def delete_device(self, device_id: str) -> bool:
        """Remove all events of a device; tell whether there were some."""


class AggregateCache:
    """The aggregates that were used last."""

    def __init__(self) -> None:
        self._held: OrderedDict[AggregateKey, Held] = OrderedDict()

    def hold(self, key: AggregateKey, href: str) -> Held:
        held = self._held.get(key)
        if held is None:
            self._make_room()
            held = self._held[key] = Held(new_aggregate(key, href))
        self._held.move_to_end(key)
        return held

    def forget(self, held: Held) -> None:
        """Reset an aggregate to one without events: what is known of it may be wrong."""
        held.aggregate = new_aggregate(held.aggregate.key, getattr(held.aggregate, "href", ""))
        held.is_loaded = False

    def forget_device(self, device_id: str) -> None:
        """Forget a device's aggregates, except those that a command is changing: the stream refuses its events."""
        for key, held in self._held.items():
            if key.device_id == device_id and not held.lock.locked():
                self.forget(held)

    def _make_room(self) -> None:
        """Remove the aggregate that was used longest ago, of those that no command uses: there may be none."""
        if len(self._held) < AGGREGATES_AT_HAND_MAX:
            return
        for key, held in self._held.items():
            if not held.lock.locked():
                del self._held[key]
                return


def new_aggregate(key: AggregateKey, href: str) -> Aggregate:
    """Return an aggregate without events."""
    match key.family:
        case Family.LINKS:
            return LinksAggregate(key)
        case Family.METADATA:
            return MetadataAggregate(key)
        case Family.RESOURCES:
            assert not href or key.resource_id == aggregate_id(key.device_id, href)
            return ResourceAggregate(key, href)
