"""Core mode: events are in memory first and on the bus second.

Nothing is persisted, and a bus that fails does not fail the command: that is the mode in which events get lost, and
readers must detect the gap and ask for what is missing. At each snapshot the events before it are dropped.

Invariant: `events` of an aggregate begin with version 0 or with a snapshot, and their versions have no holes.
"""

import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from jetlake.devices.codec import Event, EventCodec
from jetlake.devices.publisher import EventPublisher
from jetlake.devices.store.contract import EventFilter, Held, new_aggregate
from jetlake.devices.subjects import AggregateKey
from jetlake.errors import ClientError, DeviceError

AGGREGATES_MAX = 100_000
"""In core mode everything is in memory: some ten kilobytes for each aggregate."""

_log = logging.getLogger("jetlake.devices")


class MemoryStore:
    """The events of one account since the service started; sessions of the account share it."""

    def __init__(self, codec: EventCodec | None = None) -> None:
        self._codec = codec or EventCodec()
        self._held: dict[AggregateKey, Held] = {}
        self._events: dict[AggregateKey, list[Event]] = {}

    def on_bus(self, publisher: EventPublisher) -> "MemoryStoreOnBus":
        """Return the store as a session uses it: what is stored is published over the session's connection."""
        return MemoryStoreOnBus(self, publisher)

    def hold(self, key: AggregateKey, href: str) -> Held:
        held = self._held.get(key)
        if held is None:
            if len(self._held) >= AGGREGATES_MAX:
                raise DeviceError(
                    "RESOURCE_EXHAUSTED",
                    f"core mode keeps {AGGREGATES_MAX:,} aggregates in memory: use JetStream mode for more",
                )
            held = self._held[key] = Held(new_aggregate(key, href))
            held.is_loaded = True
        return held

    def append(self, held: Held, messages: Sequence[Any]) -> None:
        """Store events, and drop what a snapshot makes superfluous."""
        for message in messages:
            held.aggregate.apply(message)
            encoded = self._codec.encode(message)
            event = self._codec.decode(encoded.payload, subject=encoded.subject)
            kept = self._events.setdefault(encoded.key, [])
            if event.is_snapshot:
                kept.clear()
            kept.append(event)

    async def events(self, wanted: EventFilter) -> AsyncGenerator[Event, None]:
        for key, kept in list(self._events.items()):
            if wanted.wants(key):
                for event in list(kept):
                    if event.timestamp_ns > wanted.after_ns:
                        yield event

    def delete_device(self, device_id: str) -> bool:
        keys = [key for key in self._events if key.device_id == device_id]
        for key in keys:
            del self._events[key]
            held = self._held[key]
            held.aggregate = new_aggregate(key, getattr(held.aggregate, "href", ""))
        return bool(keys)


class MemoryStoreOnBus:
    """A memory store with the bus of one session."""

    def __init__(self, store: MemoryStore, publisher: EventPublisher) -> None:
        self._store = store
        self._publisher = publisher

    def hold(self, key: AggregateKey, href: str) -> Held:
        return self._store.hold(key, href)

    async def load(self, held: Held) -> None:
        """Nothing to do: all there is is at hand."""
        assert held.is_loaded

    async def refresh(self, held: Held) -> bool:
        """Nothing to do: no one else has these events."""
        assert held.is_loaded
        return False

    async def append(self, held: Held, messages: Sequence[Any]) -> list[Any]:
        self._store.append(held, messages)
        for message in messages:
            try:
                await self._publisher.publish(message)
            except ClientError as error:
                # The event is stored and the command succeeded; a reader that missed it finds the gap.
                _log.warning("event %s was not published: %s", type(message).__name__, error)
        return list(messages)

    def events(self, wanted: EventFilter) -> AsyncGenerator[Event, None]:
        return self._store.events(wanted)

    async def delete_device(self, device_id: str) -> bool:
        return self._store.delete_device(device_id)
