"""The content of one resource, and the commands its device has not confirmed yet.

A notification is the only command that may come first; the others need a resource that is known. A notification that
says nothing new becomes no event.

Invariant: a correlation id names at most one live pending command of a resource, of whichever kind.
"""

from enum import Enum
from typing import Any

from jetlake.devices import content as contents
from jetlake.devices.aggregate.model import (
    Aggregate,
    Caller,
    add_pending,
    audit,
    check_command,
    check_correlation,
    chosen,
    invalid,
    valid_until_ns,
)
from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.errors import DeviceError

_ENDING = (events.OK, events.ACCEPTED)


class CommandKind(Enum):
    """What a command wants of a device: its pending event, its confirmation, and its list in a snapshot."""

    CREATE = ("resource_create_pendings", events.ResourceCreatePending, events.ResourceCreated)
    RETRIEVE = ("resource_retrieve_pendings", events.ResourceRetrievePending, events.ResourceRetrieved)
    UPDATE = ("resource_update_pendings", events.ResourceUpdatePending, events.ResourceUpdated)
    DELETE = ("resource_delete_pendings", events.ResourceDeletePending, events.ResourceDeleted)

    @property
    def snapshot_field(self) -> str:
        return str(self.value[0])

    @property
    def pending(self) -> Any:
        return self.value[1]

    @property
    def confirmed(self) -> Any:
        return self.value[2]

    @property
    def confirmed_type(self) -> str:
        """The event type of the confirmation."""
        return str(self.confirmed.DESCRIPTOR.name).lower()


KIND_OF_PENDING: dict[Any, CommandKind] = {kind.pending: kind for kind in CommandKind}
KIND_OF_CONFIRMED: dict[Any, CommandKind] = {kind.confirmed: kind for kind in CommandKind}


class ResourceAggregate(Aggregate):
    """One resource of one device."""

    def __init__(self, key: Any, href: str = "") -> None:
        super().__init__(key)
        self.href = href
        self.latest: events.ResourceChanged | None = None
        # Of all four kinds, by correlation id.
        self.pendings: dict[str, Any] = {}

    @property
    def resource_types(self) -> list[str]:
        return [] if self.latest is None else list(self.latest.resource_types)

    def notify(self, command: Any, caller: Caller) -> list[Any]:
        """Decide what new content becomes; nothing if it is old or says what is known."""
        check_command(command)
        if not command.HasField("content"):
            raise invalid("the content is missing: give the representation of the resource")
        changed = events.ResourceChanged(
            resource_id=self._resource_id(),
            content=command.content,
            status=command.status or events.OK,
            audit_context=audit(caller),
            etag=command.etag,
            resource_types=command.resource_types or self.resource_types,
        )
        connection_id = command.command_metadata.connection_id or caller.peer
        if self._is_stale(connection_id, command.command_metadata.sequence) or self._is_known(changed):
            return []
        return [changed]

    def removed(self, caller: Caller) -> list[Any]:
        """Decide what the end of the resource's link becomes."""
        if not self.exists or (self.latest is not None and self.latest.status == events.NOT_FOUND):
            return []
        return [
            events.ResourceChanged(
                resource_id=self._resource_id(),
                content=events.Content(coap_content_format=contents.NO_FORMAT),
                status=events.NOT_FOUND,
                audit_context=audit(caller),
                resource_types=self.resource_types,
            )
        ]

    def command(self, kind: CommandKind, command: Any, caller: Caller) -> list[Any]:
        """Decide what a command to the device becomes: an event that waits for its confirmation."""
        check_command(command)
        if self.latest is None or self.latest.status == events.NOT_FOUND:
            raise DeviceError(
                "NOT_FOUND",
                f"resource {self.href} of device {self.key.device_id} is not known: nothing was ever notified",
            )
        check_correlation(command.correlation_id, self.pendings, caller)
        fields: dict[str, Any] = {}
        if kind in (CommandKind.UPDATE, CommandKind.CREATE):
            if not command.HasField("content"):
                raise invalid(f"the content is missing: say what to {kind.name.lower()}")
            fields["content"] = contents.converted(command.content, contents.type_of(self.latest.content))
        if kind is not CommandKind.CREATE:
            fields["resource_interface"] = command.resource_interface
        if kind is CommandKind.RETRIEVE:
            fields["etag"] = command.etag
        return [
            kind.pending(
                resource_id=self._resource_id(),
                audit_context=audit(caller, command.correlation_id),
                valid_until=valid_until_ns(command.time_to_live, caller),
                resource_types=self.resource_types,
                **fields,
            )
        ]

    def confirm(self, kind: CommandKind, command: Any, caller: Caller) -> list[Any]:
        """Decide what the answer of the device becomes. It may come after the command's time is over."""
        check_command(command)
        pending = self.pendings.get(command.correlation_id)
        if pending is None or KIND_OF_PENDING[type(pending)] is not kind:
            raise invalid(f"no {kind.name.lower()} with the correlation id {command.correlation_id!r} is pending")
        fields: dict[str, Any] = {"etag": command.etag} if kind is CommandKind.RETRIEVE else {}
        return [
            kind.confirmed(
                resource_id=self._resource_id(),
                status=command.status or events.OK,
                content=command.content,
                audit_context=audit(caller, command.correlation_id),
                resource_types=self.resource_types,
                **fields,
            )
        ]

    def cancel(self, command: Any, caller: Caller) -> list[Any]:
        """Decide what the cancellation of pending commands becomes: an event for each."""
        check_command(command)
        return [
            KIND_OF_PENDING[type(self.pendings[correlation_id])].confirmed(
                resource_id=self._resource_id(),
                status=events.CANCELED,
                audit_context=audit(caller, correlation_id),
                resource_types=self.resource_types,
            )
            for correlation_id in chosen(self.pendings, command.correlation_id_filter)
        ]

    def snapshot(self, caller: Caller) -> Any:
        made = events.ResourceStateSnapshotTaken(
            resource_id=self._resource_id(), audit_context=audit(caller), resource_types=self.resource_types
        )
        if self.latest is not None:
            made.latest_resource_change.CopyFrom(self.latest)
        for pending in self.pendings.values():
            getattr(made, KIND_OF_PENDING[type(pending)].snapshot_field).append(pending)
        return made

    def _resource_id(self) -> events.ResourceId:
        return events.ResourceId(device_id=self.key.device_id, href=self.href)

    def _is_stale(self, connection_id: str, sequence: int) -> bool:
        """Tell whether a notification is a repetition; one with sequence 0 is not."""
        if self.latest is None or not sequence:
            return False
        known = self.latest.event_metadata
        return bool(known.connection_id == connection_id and sequence <= known.sequence)

    def _is_known(self, changed: events.ResourceChanged) -> bool:
        """Tell whether a notification says what is known; a new etag alone is not a change."""
        known = self.latest
        return known is not None and (
            known.status == changed.status
            and known.content == changed.content
            and known.audit_context.user_id == changed.audit_context.user_id
            and known.resource_types == changed.resource_types
        )

    def _apply(self, message: Any, *, is_snapshot: bool) -> None:
        self.href = self.href or message.resource_id.href
        if is_snapshot:
            self.latest = message.latest_resource_change if message.HasField("latest_resource_change") else None
            self.pendings = {
                pending.audit_context.correlation_id: pending
                for kind in CommandKind
                for pending in getattr(message, kind.snapshot_field)
            }
        elif isinstance(message, events.ResourceChanged):
            self.latest = message
        elif type(message) in KIND_OF_PENDING:
            add_pending(self.pendings, message)
        elif type(message) in KIND_OF_CONFIRMED:
            self.pendings.pop(message.audit_context.correlation_id, None)
            if KIND_OF_CONFIRMED[type(message)] is CommandKind.DELETE and message.status in _ENDING:
                # Nobody will answer what was asked of a resource that is gone.
                self.pendings.clear()
