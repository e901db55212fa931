"""Connection and twin of one device.

A device that connects says so and needs no confirmation. Keeping the twin, and synchronising it again, are commands
which the device's side confirms.

| twin state  | comes from                                                             |
|-------------|------------------------------------------------------------------------|
| OUT_OF_SYNC | a new connection, the end of one, or a forced synchronisation          |
| SYNCING     | a command of the same connection with a higher sequence                |
| IN_SYNC     | the same                                                               |
| DISABLED    | a confirmed `twin_enabled: false`                                      |

Invariant: a snapshot carries the pending updates, so none is forgotten.
"""

from typing import Any

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

_CONFIRMING = (events.OK, events.ACCEPTED)
_ONLINE = events.Connection.ONLINE
_OFFLINE = events.Connection.OFFLINE
_Twin = events.TwinSynchronization


class MetadataAggregate(Aggregate):
    """`metadata` of one device."""

    def __init__(self, key: Any) -> None:
        super().__init__(key)
        # The last event that said how things are; None before the first.
        self.current: events.DeviceMetadataUpdated | None = None
        self.pendings: dict[str, events.DeviceMetadataUpdatePending] = {}

    @property
    def is_online(self) -> bool:
        return self.current is not None and self.current.connection.status == _ONLINE

    @property
    def twin_enabled(self) -> bool:
        return self.current is None or self.current.twin_enabled

    def update(self, command: Any, caller: Caller) -> list[Any]:
        """Decide what a change of connection, of synchronisation or of the twin becomes."""
        check_command(command)
        match command.WhichOneof("update"):
            case "connection":
                return self._changed(self._connected(command, caller), caller, command.correlation_id)
            case "twin_synchronization":
                return self._changed(self._synchronized(command), caller, command.correlation_id)
            case ("twin_enabled" | "twin_force_synchronization") as field:
                return self._pending(field, command, caller)
            case _:
                raise invalid("nothing is updated: give connection, twin_synchronization or twin_enabled")

    def confirm(self, command: Any, caller: Caller) -> list[Any]:
        """Decide what the confirmation of a pending update becomes."""
        check_command(command)
        pending = self.pendings.get(command.correlation_id)
        if pending is None:
            raise invalid(f"no metadata update with the correlation id {command.correlation_id!r} is pending")
        new = self._copy()
        if command.status in _CONFIRMING:
            if pending.WhichOneof("update_pending") == "twin_enabled":
                new.twin_enabled = pending.twin_enabled
                _restart(new)
            elif pending.twin_force_synchronization:
                _restart(new)
                new.twin_synchronization.force_synchronization_at = caller.now_ns
        new.audit_context.CopyFrom(audit(caller, command.correlation_id))
        return [new]

    def cancel(self, command: Any, caller: Caller) -> list[Any]:
        """Decide what the cancellation of pending updates becomes: an event for each."""
        check_command(command)
        found = []
        for correlation_id in chosen(self.pendings, command.correlation_id_filter):
            new = self._copy()
            new.canceled = True
            new.audit_context.CopyFrom(audit(caller, correlation_id))
            found.append(new)
        return found

    def snapshot(self, caller: Caller) -> Any:  # noqa: ARG002
        made = events.DeviceMetadataSnapshotTaken(
            device_id=self.key.device_id, update_pendings=list(self.pendings.values())
        )
        if self.current is not None:
            made.device_metadata_updated.CopyFrom(self.current)
        return made

    def _connected(self, command: Any, caller: Caller) -> Any:
        wanted = events.Connection()
        wanted.CopyFrom(command.connection)
        wanted.id = wanted.id or command.command_metadata.connection_id or caller.peer
        new = self._copy()
        if wanted.status == _OFFLINE:
            if self.current is None:
                raise DeviceError("NOT_FOUND", f"device {self.key.device_id} has never been online")
            if wanted.id != self.current.connection.id:
                raise DeviceError(
                    "FAILED_PRECONDITION",
                    f"connection {wanted.id!r} of device {self.key.device_id} is not the current one: "
                    "another connection took its place",
                )
            if self.is_online:
                new.connection.status = _OFFLINE
                _restart(new)
            return new
        if not wanted.id:
            raise invalid("the connection has no id: give connection.id, or command_metadata.connection_id")
        is_new = not self.is_online or wanted.id != new.connection.id
        # The time of a connection never goes back, whatever the clocks of the gateways say.
        wanted.connected_at = max(wanted.connected_at or caller.now_ns, new.connection.connected_at)
        new.connection.CopyFrom(wanted)
        if is_new:
            _restart(new)
        return new

    def _synchronized(self, command: Any) -> Any:
        wanted = command.twin_synchronization
        new = self._copy()
        if not self.is_online:
            raise DeviceError("FAILED_PRECONDITION", f"device {self.key.device_id} is offline: nothing is synchronised")
        if not new.twin_enabled:
            raise DeviceError("FAILED_PRECONDITION", f"the twin of device {self.key.device_id} is disabled")
        if wanted.state not in (_Twin.SYNCING, _Twin.IN_SYNC):
            raise invalid("a command can only say SYNCING or IN_SYNC; the other states follow from connections")
        if (wanted.state == _Twin.SYNCING and wanted.syncing_at <= 0) or (
            wanted.state == _Twin.IN_SYNC and wanted.in_sync_at <= 0
        ):
            raise invalid("the time is missing: SYNCING needs syncing_at, IN_SYNC needs in_sync_at")
        metadata = command.command_metadata
        known = new.twin_synchronization.command_metadata
        if metadata.connection_id != new.connection.id:
            raise invalid(f"connection {metadata.connection_id!r} is not the current one, {new.connection.id!r}")
        if known.connection_id == metadata.connection_id and metadata.sequence <= known.sequence:
            raise invalid(f"sequence {metadata.sequence} is not higher than the last one, {known.sequence}")
        twin = new.twin_synchronization
        twin.state = wanted.state
        twin.syncing_at = wanted.syncing_at or twin.syncing_at
        twin.in_sync_at = wanted.in_sync_at if wanted.state == _Twin.IN_SYNC else 0
        twin.command_metadata.CopyFrom(metadata)
        return new

    def _pending(self, field: str, command: Any, caller: Caller) -> list[Any]:
        if not self.exists:
            raise DeviceError("NOT_FOUND", f"device {self.key.device_id} is not known")
        check_correlation(command.correlation_id, self.pendings, caller)
        made = events.DeviceMetadataUpdatePending(
            device_id=self.key.device_id,
            audit_context=audit(caller, command.correlation_id),
            valid_until=valid_until_ns(command.time_to_live, caller),
        )
        setattr(made, field, getattr(command, field))
        return [made]

    def _changed(self, new: Any, caller: Caller, correlation_id: str) -> list[Any]:
        """Return an event unless everything is as before."""
        new.audit_context.CopyFrom(audit(caller, correlation_id))
        return [] if self.current is not None and _compared(new) == _compared(self.current) else [new]

    def _copy(self) -> Any:
        """Return the current state as a start for the next event. A twin is kept unless a command says otherwise."""
        new = events.DeviceMetadataUpdated(device_id=self.key.device_id, twin_enabled=True)
        if self.current is not None:
            new.CopyFrom(self.current)
            new.canceled = False
            new.ClearField("event_metadata")
        return new

    def _apply(self, message: Any, *, is_snapshot: bool) -> None:
        if is_snapshot:
            self.current = message.device_metadata_updated if message.HasField("device_metadata_updated") else None
            self.pendings = {each.audit_context.correlation_id: each for each in message.update_pendings}
        elif isinstance(message, events.DeviceMetadataUpdatePending):
            add_pending(self.pendings, message)
        elif isinstance(message, events.DeviceMetadataUpdated):
            self.pendings.pop(message.audit_context.correlation_id, None)
            self.current = message


def _restart(new: Any) -> None:
    """Begin synchronisation from the start."""
    force_at = new.twin_synchronization.force_synchronization_at
    new.twin_synchronization.Clear()
    new.twin_synchronization.state = _Twin.OUT_OF_SYNC if new.twin_enabled else _Twin.DISABLED
    new.twin_synchronization.force_synchronization_at = force_at


def _compared(message: Any) -> bytes:
    """Return the part of an event that makes a change."""
    copy = events.DeviceMetadataUpdated()
    copy.CopyFrom(message)
    for field in ("event_metadata", "open_telemetry_carrier"):
        copy.ClearField(field)
    copy.audit_context.owner = ""
    copy.connection.connected_at = 0
    copy.connection.service_id = ""
    copy.twin_synchronization.command_metadata.sequence = 0
    return copy.SerializeToString(deterministic=True)
