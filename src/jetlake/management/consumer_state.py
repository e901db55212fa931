"""What the engine tells about a consumer, as a value: how far it has come, and what waits."""

import msgspec


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """How far something has come, by the count of the consumer and by that of the stream."""

    consumer_sequence: int = 0
    stream_sequence: int = 0
    # Unix time of the last change; 0 = never.
    active_ns: int = 0


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """The client that is served alone."""

    id: str
    since_ns: int = 0


class ConsumerState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a consumer."""

    delivered: Position = Position()
    # Everything up to here is acknowledged.
    floor: Position = Position()
    ack_pending: int = 0
    redelivered: int = 0
    # Requests for messages.
    waiting: int = 0
    # Messages that were never delivered.
    pending: int = 0
    push_bound: bool = False
    pinned: Pin | None = None


_STATE = msgspec.json.Decoder(ConsumerState)


def read_consumer_state(state: bytes) -> ConsumerState:
    """Read what the engine says."""
    return _STATE.decode(state)
