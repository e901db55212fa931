"""`Entry`: one revision of one key, and how the messages of a stream represent it.

Invariant: an entry whose operation is not PUT has no value.
"""

from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from jetlake.client.channel import header_value
from jetlake.client.ordered import MessagePosition, position_of
from jetlake.client.timestamps import datetime_of

__all__ = ["Entry", "Operation", "operation_of"]

T = TypeVar("T")


class Operation(StrEnum):
    """What happened to a key."""

    PUT = "PUT"
    # Deleted; the values before it are still in the history.
    DELETE = "DEL"
    # Deleted together with its history.
    PURGE = "PURGE"


OPERATION_HEADER = "KV-Operation"
MARKER_HEADER = "Nats-Marker-Reason"
ROLLUP_HEADER = "Nats-Rollup"
ROLLUP_SUBJECT = "sub"
TTL_HEADER = "Nats-TTL"

OPERATION_BYTES = OPERATION_HEADER.encode()
MARKER_BYTES = MARKER_HEADER.encode()
"""Headers without these are those of a value, which loops over many entries look at first."""

_MARKER_OPERATIONS = {b"MaxAge": Operation.PURGE, b"Purge": Operation.PURGE, b"Remove": Operation.DELETE}
"""What a marker that the server has placed says."""


class Entry(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One revision of one key.

    Where it stands is read when it is asked for: most readers of a hundred thousand entries want their keys and values.
    Without the garbage collector's attention they are made in half the time; an entry is part of no circle.
    """

    bucket: str
    key: str
    # None if the key was deleted, and in a watch without values.
    value: T | None
    operation: Operation
    # Bytes of the value as it is stored; None where it was not read.
    size_bytes: int | None
    # As it was delivered, or as it was read.
    position: MessagePosition | bytes

    @property
    def revision(self) -> int:
        """The sequence of its message in the stream."""
        return self._position.sequence

    @property
    def created_ns(self) -> int:
        """When the server stored it, in nanoseconds since 1970."""
        return self._position.created_ns

    @property
    def delta(self) -> int:
        """How many entries of the same reading come behind it; 0 = the last one."""
        return self._position.pending

    @property
    def _position(self) -> MessagePosition:
        return position_of(self.position) if isinstance(self.position, bytes) else self.position

    def __repr__(self) -> str:
        return (
            f"Entry(bucket={self.bucket!r}, key={self.key!r}, value={self.value!r}, revision={self.revision}, "
            f"operation={self.operation.value}, created={self.created.isoformat()})"
        )

    @property
    def created(self) -> datetime:
        """When the server stored it, in UTC."""
        return datetime_of(self.created_ns)

    @property
    def is_deleted(self) -> bool:
        return self.operation is not Operation.PUT


def operation_of(headers: bytes) -> Operation:
    """Return what the headers of a message say happened."""
    if OPERATION_BYTES not in headers and MARKER_BYTES not in headers:
        return Operation.PUT
    word = header_value(headers, OPERATION_BYTES)
    if word is not None:
        if word in (b"", b"PUT"):
            return Operation.PUT
        # By the specification every other word means that the value is gone.
        return Operation.PURGE if word == b"PURGE" else Operation.DELETE
    reason = header_value(headers, MARKER_BYTES)
    return Operation.PUT if reason is None else _MARKER_OPERATIONS.get(reason, Operation.PURGE)
