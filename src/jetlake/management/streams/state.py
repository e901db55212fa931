"""What the engine tells about a stream, as a value: how many messages, which ones, and what is missing.

Sequences that never had a message or lost it are counted; they are listed only when asked for.
"""

import msgspec


class StateQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked about a stream. The answer is quick unless it asks for lists."""

    deleted: bool = False
    # The subjects to count; None = none.
    subjects: str | None = None
    subjects_max: int = 0


class OriginState(msgspec.Struct, frozen=True, kw_only=True):
    """How it stands with a mirrored stream or a source."""

    # Messages that are still to come.
    lag: int = 0
    # Since the last contact; -1 = never.
    active_ns: int = -1
    # The last one that was taken of a source.
    sequence: int = 0
    # Code, error code and description.
    error: tuple[int, int, str] | None = None


class StreamState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a stream; times are unix nanoseconds, 0 = none."""

    messages: int = 0
    bytes: int = 0
    first_sequence: int = 0
    first_time_ns: int = 0
    last_sequence: int = 0
    last_time_ns: int = 0
    subjects: int = 0
    deleted_count: int = 0
    deleted: list[int] | None = None
    # Ranges of sequences whose messages were damaged.
    lost: list[tuple[int, int]] = []
    lost_bytes: int = 0
    # In the order of the subjects, and no more than asked for.
    subject_counts: list[tuple[str, int]] | None = None
    # How many there are in all, where that is more than are listed.
    subject_counts_total: int | None = None
    # In the order of the configuration.
    origins: list[OriginState] = []


_STATE = msgspec.json.Decoder(StreamState)
QUICK_QUERY = msgspec.json.encode(StateQuery())


def read_state(state: bytes) -> StreamState:
    """Read what the engine says."""
    return _STATE.decode(state)
