"""`Aggregate`: state that is the sum of its events, and the rules all aggregates share.

An aggregate decides and does not store: `decide` methods return events, `stamped` gives them versions and times, and
`apply` is called with each event once it is stored.

Invariants: versions are 0, 1, 2 and so on without holes; timestamps of one aggregate strictly grow, so that "after this
time" never leaves out an event. A snapshot has a version of its own and changes no state.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.devices.settings import TIME_TO_LIVE_NS_MIN
from jetlake.devices.subjects import AggregateKey
from jetlake.errors import DeviceError

PENDING_COMMANDS_MAX = 1000
"""Unconfirmed commands of one aggregate: a snapshot carries all of them and must fit into one message."""


class Caller(NamedTuple):
    """Who sends a command, and when it is decided."""

    user_id: str = ""
    owner: str = ""
    # Where the caller connects from; stands in for a connection id that a command does not give.
    peer: str = ""
    now_ns: int = 0
    time_to_live_ns: int = 0
    hub_id: str = ""


class Aggregate(ABC):
    """State of one aggregate; subclasses decide."""

    def __init__(self, key: AggregateKey) -> None:
        self.key = key
        self.version = -1
        # Of its last event in the stream; 0 if there is none, and in core mode.
        self.sequence = 0
        self.timestamp_ns = 0
        self.events_since_snapshot = 0

    @property
    def exists(self) -> bool:
        return self.version >= 0

    def apply(self, message: Any) -> None:
        """Take an event that is stored into the state. The versions must follow each other; a snapshot may begin."""
        metadata = message.event_metadata
        is_snapshot = type(message).__name__.endswith("SnapshotTaken")
        if metadata.version != self.version + 1 and not (is_snapshot and not self.exists):
            raise DeviceError(
                "DATA_LOSS",
                f"events of {self.key.pattern} are missing between versions {self.version} and {metadata.version}",
            )
        self.version = metadata.version
        self.timestamp_ns = max(self.timestamp_ns, metadata.timestamp)
        self.events_since_snapshot = 0 if is_snapshot else self.events_since_snapshot + 1
        self._apply(message, is_snapshot=is_snapshot)

    def stamped(self, messages: Sequence[Any], command: Any, caller: Caller) -> list[Any]:
        """Give decided events their versions, their time and who caused them."""
        metadata = getattr(command, "command_metadata", None)
        for number, message in enumerate(messages, 1):
            message.event_metadata.version = self.version + number
            message.event_metadata.timestamp = max(caller.now_ns + number - 1, self.timestamp_ns + number)
            message.event_metadata.connection_id = (metadata.connection_id if metadata else "") or caller.peer
            message.event_metadata.sequence = metadata.sequence if metadata else 0
            message.event_metadata.hub_id = caller.hub_id
        return list(messages)

    @abstractmethod
    def snapshot(self, caller: Caller) -> Any:
        """Return the state as an event."""

    @abstractmethod
    def _apply(self, message: Any, *, is_snapshot: bool) -> None:
        """Change the state as an event says that is stored now."""


def audit(caller: Caller, correlation_id: str = "") -> events.AuditContext:
    """Return who caused an event."""
    return events.AuditContext(user_id=caller.user_id, owner=caller.owner, correlation_id=correlation_id)


def valid_until_ns(time_to_live_ns: int, caller: Caller) -> int:
    """Return when a command ends to be valid; 0 for never. Raises `DeviceError`."""
    wanted = time_to_live_ns or caller.time_to_live_ns
    if wanted == 0:
        return 0
    if wanted < TIME_TO_LIVE_NS_MIN:
        raise invalid(f"a time to live of {wanted:,} ns is too short: give at least 100 ms, or 0 for ever")
    return caller.now_ns + wanted


def is_live(pending: Any, now_ns: int) -> bool:
    """Tell whether a pending command is still valid."""
    return not pending.valid_until or pending.valid_until > now_ns


def check_correlation(correlation_id: str, pendings: dict[str, Any], caller: Caller) -> None:
    """Refuse a command that could not be distinguished from another one. Raises `DeviceError`."""
    if not correlation_id:
        raise invalid("the correlation id is empty: give one, such as a UUID, so that the confirmation can name it")
    pending = pendings.get(correlation_id)
    if pending is not None and is_live(pending, caller.now_ns):
        raise invalid(f"a command with the correlation id {correlation_id!r} is pending already: use another id")
    if len(pendings) >= PENDING_COMMANDS_MAX and all(is_live(each, caller.now_ns) for each in pendings.values()):
        raise DeviceError(
            "RESOURCE_EXHAUSTED",
            f"{PENDING_COMMANDS_MAX} commands are pending: cancel some, or wait until the device confirms them",
        )


def add_pending(pendings: dict[str, Any], message: Any) -> None:
    """Add a pending command; one too many takes the place of those whose time was over when it was decided.

    It goes by the time of the event, so that every reader of the events forgets the same commands.
    """
    if len(pendings) >= PENDING_COMMANDS_MAX:
        for name in [name for name, each in pendings.items() if not is_live(each, message.event_metadata.timestamp)]:
            del pendings[name]
    pendings[message.audit_context.correlation_id] = message


def check_command(command: Any) -> None:
    """Refuse a command without command metadata. Raises `DeviceError`."""
    if not command.HasField("command_metadata"):
        raise invalid("command_metadata is missing: give connection_id and sequence")


def chosen(pendings: dict[str, Any], wanted: Sequence[str]) -> list[str]:
    """Return the correlation ids to cancel, all of them if none are named. Raises `DeviceError` if there are none."""
    found = [each for each in pendings if not wanted or each in wanted]
    if not found:
        named = f" with the correlation id {', '.join(wanted)}" if wanted else ""
        raise DeviceError("NOT_FOUND", f"no command{named} is pending")
    return found


def invalid(description: str) -> DeviceError:
    """Return the error for a command that can never work."""
    return DeviceError("INVALID_ARGUMENT", description)
