"""`UserSession`: everything one user may do, over one connection of that user.

The server decides what a user may do: commands are published, and events are read, with the user's own connection.

```python
session = await open_session(api, Settings(jetstream=True))
response = await session.execute("NotifyResourceChanged", request)
```

Invariant: a command's events are all decided on the state that the store confirms; if another writer was faster, the
command is decided again, at most `conflict_retries_max` times. A command without events, or one that is refused, is
decided on a state that was read or compared with the store after the command came.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

from jetlake.client.api import Api
from jetlake.devices.aggregate.model import Caller
from jetlake.devices.aggregate.resource import CommandKind
from jetlake.devices.codec import Event, EventCodec
from jetlake.devices.failures import as_device_error
from jetlake.devices.generations import TYPE_OF_MESSAGE
from jetlake.devices.ids import check_device_id, check_href
from jetlake.devices.live_twin import LiveTwin
from jetlake.devices.protos import api_pb2
from jetlake.devices.settings import Settings
from jetlake.devices.store.contract import EventFilter, EventStore, Held, VersionConflictError
from jetlake.devices.subjects import AggregateKey, Family
from jetlake.devices.twin import Twin
from jetlake.errors import ClientError, DeviceError

CONFLICT_WAIT_S = 0.01
"""Before a command is decided again; more each time, and by chance, so that two writers do not meet again."""

BATCH_MAX = 1000
"""Notifications in one request."""

DELETED_DEVICES_MAX = 1000
"""Devices deleted by one request."""

MESSAGE_BYTES_SPARE = 8 * 1024
"""Of the largest message: envelope, headers, and what compression can add."""

Decision = Callable[[Any, Caller], list[Any]]

_RESPONSE_FIELDS = {
    field.message_type.name.lower(): field.name
    for field in api_pb2.GetEventsResponse.DESCRIPTOR.fields
    if field.message_type is not None
}

_RESOURCE_COMMANDS = {
    "UpdateResource": CommandKind.UPDATE,
    "RetrieveResource": CommandKind.RETRIEVE,
    "CreateResource": CommandKind.CREATE,
    "DeleteResource": CommandKind.DELETE,
}
_CONFIRMATIONS = {
    "ConfirmResourceUpdate": CommandKind.UPDATE,
    "ConfirmResourceRetrieve": CommandKind.RETRIEVE,
    "ConfirmResourceCreate": CommandKind.CREATE,
    "ConfirmResourceDelete": CommandKind.DELETE,
}


class UserSession:
    """The commands and the events of one user."""

    def __init__(
        self,
        api: Api,
        store: EventStore,
        settings: Settings,
        *,
        user_id: str = "",
        owner: str = "",
        hub_id: str = "",
        codec: EventCodec | None = None,
        live_twin: LiveTwin | None = None,
    ) -> None:
        self.api = api
        self.store = store
        self.settings = settings
        self.user_id = user_id
        self.owner = owner
        self.hub_id = hub_id
        self.codec = codec or EventCodec()
        # Only in JetStream mode; in core mode everything is at hand in any case.
        self._live_twin = live_twin

    async def close(self) -> None:
        """End what runs in the background."""
        if self._live_twin is not None:
            await self._live_twin.close()

    async def twin(self) -> Twin:
        """Return what is known of the user's devices, with everything that is stored now. Raises `DeviceError`."""
        if self._live_twin is not None:
            return await self._live_twin.current()
        twin = Twin()
        async for event in self.store.events(EventFilter()):
            await twin.apply(event)
        return twin

    async def execute(self, name: str, command: Any, *, peer: str = "") -> Any:
        """Execute a command by its name and return its answer. Raises `DeviceError`."""
        if name in _RESOURCE_COMMANDS:
            return await self._command(_RESOURCE_COMMANDS[name], command, peer)
        if name in _CONFIRMATIONS:
            kind = _CONFIRMATIONS[name]
            return _response(
                await self._resource(command, lambda found, caller: found.confirm(kind, command, caller), peer)
            )
        match name:
            case "NotifyResourceChanged":
                return _response(await self._notify(command, peer))
            case "BatchNotifyResourceChanged":
                return _response(await self._notify_all(command, peer))
            case "PublishResourceLinks":
                return _response(
                    await self._device(
                        Family.LINKS, command, lambda found, caller: found.publish(command, caller), peer
                    )
                )
            case "UnpublishResourceLinks":
                return _response(await self._unpublish(command, peer))
            case "CancelPendingCommands":
                return _response(
                    await self._resource(command, lambda found, caller: found.cancel(command, caller), peer)
                )
            case "UpdateDeviceMetadata" | "ConfirmDeviceMetadataUpdate" | "CancelPendingMetadataUpdates":
                return await self._metadata(name, command, peer)
            case "DeleteDevices":
                return await self._delete(command)
            case _:
                raise DeviceError("UNIMPLEMENTED", f"there is no command {name}")

    def events(self, wanted: EventFilter) -> AsyncGenerator[Event, None]:
        """Yield stored events."""
        return self.store.events(wanted)

    async def _command(self, kind: CommandKind, command: Any, peer: str) -> Any:
        if not command.wait_for_confirmation:
            stored = await self._resource(command, lambda found, caller: found.command(kind, command, caller), peer)
            return _response(stored, command.correlation_id)
        if command.wait_for_confirmation < 0:
            raise DeviceError("INVALID_ARGUMENT", "wait_for_confirmation is negative: give nanoseconds, or 0")
        from jetlake.devices.confirmation import Confirmation

        key = self._key_of(command.resource_id)
        async with Confirmation(self.api, self.codec, key, kind, command.correlation_id) as confirmation:
            stored = await self._resource(command, lambda found, caller: found.command(kind, command, caller), peer)
            made = _response(stored, command.correlation_id)
            confirmed = await confirmation.wait(command.wait_for_confirmation / 1_000_000_000)
            made.confirmation.CopyFrom(as_response(confirmed))
            return made

    async def _notify(self, command: Any, peer: str) -> list[Any]:
        return await self._resource(command, lambda found, caller: found.notify(command, caller), peer)

    async def _notify_all(self, command: Any, peer: str) -> list[Any]:
        if not 0 < len(command.batch) <= BATCH_MAX:
            raise DeviceError(
                "INVALID_ARGUMENT", f"a batch has 1 to {BATCH_MAX} notifications, not {len(command.batch)}"
            )
        stored: list[Any] = []
        for each in command.batch:
            stored += await self._notify(each, peer)
        return stored

    async def _unpublish(self, command: Any, peer: str) -> list[Any]:
        """End the resources first and their links last: a command that is cut off is whole when it is sent again."""
        ended = api_pb2.UnpublishResourceLinksRequest()
        ended.CopyFrom(command)
        ended.hrefs[:] = await self._links_to_end(command, peer)
        if not ended.hrefs:
            return []
        changed: list[Any] = []
        for href in ended.hrefs:
            key = AggregateKey.of_href(command.device_id, href)
            changed += await self._decide(key, href, command, lambda found, caller: found.removed(caller), peer)
        unpublished = await self._device(
            Family.LINKS, command, lambda found, caller: found.unpublish(ended, caller), peer
        )
        return [*unpublished, *changed]

    async def _links_to_end(self, command: Any, peer: str) -> list[str]:
        found: list[str] = []

        def look(links: Any, caller: Caller) -> list[Any]:
            found[:] = [href for message in links.unpublish(command, caller) for href in message.hrefs]
            return []

        await self._device(Family.LINKS, command, look, peer)
        return found

    async def _metadata(self, name: str, command: Any, peer: str) -> Any:
        def decide(found: Any, caller: Caller) -> list[Any]:
            match name:
                case "UpdateDeviceMetadata":
                    decided = found.update(command, caller)
                case "ConfirmDeviceMetadataUpdate":
                    decided = found.confirm(command, caller)
                case _:
                    decided = found.cancel(command, caller)
            return list(decided)

        stored = await self._device(Family.METADATA, command, decide, peer)
        return _response(stored, getattr(command, "correlation_id", ""))

    async def _delete(self, command: Any) -> Any:
        if not 0 < len(command.device_id_filter) <= DELETED_DEVICES_MAX:
            raise DeviceError("INVALID_ARGUMENT", f"name 1 to {DELETED_DEVICES_MAX} devices to delete")
        deleted = [
            device_id
            for device_id in dict.fromkeys(command.device_id_filter)
            if await self.store.delete_device(check_device_id(device_id))
        ]
        return api_pb2.DeleteDevicesResponse(device_ids=deleted)

    def _key_of(self, resource: Any) -> AggregateKey:
        return AggregateKey.of_href(check_device_id(resource.device_id), check_href(resource.href))

    async def _resource(self, command: Any, decision: Decision, peer: str) -> list[Any]:
        key = self._key_of(command.resource_id)
        if key.family is not Family.RESOURCES:
            raise DeviceError("INVALID_ARGUMENT", f"{command.resource_id.href} is reserved: it is not a resource")
        return await self._decide(key, command.resource_id.href, command, decision, peer)

    async def _device(self, family: Family, command: Any, decision: Decision, peer: str) -> list[Any]:
        key = AggregateKey(check_device_id(command.device_id), family)
        return await self._decide(key, "", command, decision, peer)

    async def _decide(self, key: AggregateKey, href: str, command: Any, decision: Decision, peer: str) -> list[Any]:
        held = self.store.hold(key, href)
        async with held.lock:
            for attempt in range(self.settings.conflict_retries_max + 1):
                try:
                    caller = self._caller(peer)
                    messages = await self._decided(held, decision, caller)
                    if not messages:
                        return []
                    aggregate = held.aggregate
                    messages = [*self._snapshot(aggregate, caller), *messages]
                    return await self.store.append(held, aggregate.stamped(messages, command, caller))
                except VersionConflictError:
                    await asyncio.sleep(random.uniform(0, CONFLICT_WAIT_S * (attempt + 1)))
                except ClientError as error:
                    raise as_device_error(error) from error
        raise DeviceError(
            "ABORTED",
            f"{key.pattern} was changed by others {self.settings.conflict_retries_max + 1} times in a row: "
            "send the command again",
        )

    async def _decided(self, held: Held, decision: Decision, caller: Caller) -> list[Any]:
        """Return the events of a command. Only storing an event shows that an aggregate at hand is old: ask without."""
        was_at_hand = held.is_loaded
        await self.store.load(held)
        try:
            messages = decision(held.aggregate, caller)
        except DeviceError:
            if not was_at_hand or not await self.store.refresh(held):
                raise
        else:
            if messages or not was_at_hand or not await self.store.refresh(held):
                return messages
        return decision(held.aggregate, caller)

    def _snapshot(self, aggregate: Any, caller: Caller) -> list[Any]:
        """Return a snapshot if it is time for one and it fits into a message; without it, loading takes longer."""
        if aggregate.events_since_snapshot < self.settings.snapshot_threshold:
            return []
        made = aggregate.snapshot(caller)
        return [made] if made.ByteSize() + MESSAGE_BYTES_SPARE <= self.api.connection.max_payload else []

    def _caller(self, peer: str) -> Caller:
        return Caller(
            user_id=self.user_id,
            owner=self.owner,
            peer=peer,
            now_ns=time.time_ns(),
            time_to_live_ns=self.settings.time_to_live_ns,
            hub_id=self.hub_id,
        )


def as_response(message: Any) -> Any:
    """Return an event as the API has it."""
    made = api_pb2.GetEventsResponse()
    getattr(made, _RESPONSE_FIELDS[TYPE_OF_MESSAGE[type(message)]]).CopyFrom(message)
    return made


def event_of(response: Any) -> Any:
    """Return the event in an answer of the API."""
    return getattr(response, response.WhichOneof("type"))


def _response(messages: list[Any], correlation_id: str = "") -> Any:
    made = api_pb2.CommandResponse(correlation_id=correlation_id)
    for message in messages:
        made.events.append(as_response(message))
        made.valid_until = getattr(message, "valid_until", 0)
    return made
