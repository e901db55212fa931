"""What the engine tells about a consumer, as a value: how far it has come, and what waits."""

import msgspec


class SequencePair(msgspec.Struct, frozen=True, kw_only=True):
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

    delivered: SequencePair = SequencePair()
    # Everything up to here is acknowledged.
    floor: SequencePair = SequencePair()
    ack_pending: int = 0
    redelivered: int = 0
    # Requests for messages.
    waiting: int = 0
    # Messages that were never delivered.
    pending: int = 0
    push_bound: bool = False
    pinned: Pin | None = None


class PendingMessages(msgspec.Struct, frozen=True, kw_only=True):
    """What comes next, and the messages that wait for their acknowledgement: the first ones, if there are many."""

    next_stream_sequence: int = 1
    next_consumer_sequence: int = 1
    # Sequence, since when it waits, how often it was delivered.
    pending: list[tuple[int, int, int]] = []

    @property
    def times_ns(self) -> dict[int, int]:
        """When each was delivered."""
        return {sequence: time_ns for sequence, time_ns, _ in self.pending}

    @property
    def redeliveries(self) -> dict[int, int]:
        """How often each came again, of those that did."""
        return {sequence: count - 1 for sequence, _, count in self.pending if count > 1}


_STATE = msgspec.json.Decoder(ConsumerState)
_PENDING = msgspec.json.Decoder(PendingMessages)


def read_consumer_state(state: bytes) -> ConsumerState:
    """Read what the engine says."""
    return _STATE.decode(state)


def read_pending(pending: bytes) -> PendingMessages:
    """Read what the engine says about single messages."""
    return _PENDING.decode(pending)
