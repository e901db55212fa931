"""Events of governors, in the format of Choria: who entered, left, gave up waiting, or was evicted.

They are published to `choria.lifecycle.event.governor.<component>`, without waiting for a receiver: an event without a
subscriber is lost, and a lease never depends on one.

Invariant: `event_of(event.encoded()) == event`.
"""

import re
import time
import uuid
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from nats.aio.client import Client

PROTOCOL = "io.choria.lifecycle.v1.governor"
SUBJECT_PREFIX = "choria.lifecycle.event.governor"
COMMAND_LINE = "CLI"
"""The component of the command line, as in Choria."""

EventType = Literal["enter", "exit", "timeouts", "eviction"]

_NOT_IN_TOKENS = re.compile(r"[\s.*>]+")


class GovernorEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event. `sequence` is the lease, 0 when there is none."""

    protocol: str = PROTOCOL
    id: str = ""
    identity: str
    component: str
    # Unix time in seconds.
    timestamp: int = 0
    governor: str
    sequence: int = 0
    event_type: EventType

    def __str__(self) -> str:
        slot = f"slot {self.sequence}" if self.sequence else "a slot"
        said = {
            "enter": f"obtained {slot} on {self.governor}",
            "exit": f"vacated {slot} on {self.governor}",
            "timeouts": f"failed to obtain a slot on {self.governor}",
            "eviction": f"evicted from {slot} on {self.governor}",
        }
        return f"[governor] {self.identity}: {said[self.event_type]}"

    @property
    def subject(self) -> str:
        return f"{SUBJECT_PREFIX}.{_NOT_IN_TOKENS.sub('_', self.component) or '_'}"

    def encoded(self) -> bytes:
        return msgspec.json.encode(self)


def event_of(payload: bytes) -> GovernorEvent | None:
    """Return the event a payload is, or None if it is another one."""
    try:
        event = msgspec.json.decode(payload, type=GovernorEvent)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return event if event.protocol == PROTOCOL else None


async def publish(
    connection: "Client", kind: EventType, *, governor: str, identity: str, component: str, sequence: int = 0
) -> None:
    """Publish an event, if the connection is there."""
    from nats.errors import Error

    event = GovernorEvent(
        id=uuid.uuid4().hex,
        identity=identity,
        component=component,
        timestamp=int(time.time()),
        governor=governor,
        sequence=sequence,
        event_type=kind,
    )
    try:
        await connection.publish(event.subject, event.encoded())
    except (Error, OSError):
        # The lease itself tells all that matters.
        return
