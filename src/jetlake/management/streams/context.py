"""The context of a decision about a stream: the other streams, and the limits.

Limits are in bytes unless they count something; -1 means no limit.
"""

import msgspec

from jetlake.management.streams.account_streams import AccountStreams

MINUTE_NS = 60_000_000_000
DUPLICATE_WINDOW_DEFAULT_NS = 2 * MINUTE_NS
"""Long enough for a publisher to notice a lost acknowledgement and to try again."""


SINGLE_REPLICA_TIER = "R1"
"""The tier of streams without replicas."""


class StreamAccountLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one account may use, as in its `jetstream` block."""

    max_memory: int = -1
    max_storage: int = -1
    max_streams: int = -1
    max_consumers: int = -1
    max_ack_pending: int = -1
    memory_max_stream_bytes: int = -1
    storage_max_stream_bytes: int = -1
    max_bytes_required: bool = False
    # The limits of each tier, by name; empty = the account has none, and its limits hold for all streams.
    tiers: "tuple[tuple[str, StreamAccountLimits], ...]" = ()

    @property
    def has_tier_of_streams(self) -> bool:
        """Tell whether streams without replicas, all that one server has, may be stored at all."""
        return not self.tiers or any(name == SINGLE_REPLICA_TIER for name, _ in self.tiers)


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What all accounts may use together, and what their streams have reserved of it."""

    max_memory: int = -1
    max_storage: int = -1
    reserved_memory: int = 0
    reserved_storage: int = 0
    # 0 = none, as below.
    duplicate_window_max_ns: int = 0
    # Of one consumer, and of one request for messages.
    max_ack_pending: int = 0
    max_request_batch: int = 0


class ExistingConsumer(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer of the stream being updated."""

    name: str
    inactive_threshold: int = 0
    max_ack_pending: int = 0


class StreamContext(msgspec.Struct, frozen=True, kw_only=True):
    """The context of one request. `streams` holds those of the account, as they are stored."""

    streams: AccountStreams = msgspec.field(default_factory=AccountStreams)
    account: StreamAccountLimits = StreamAccountLimits()
    server: ServerLimits = ServerLimits()
    consumers: tuple[ExistingConsumer, ...] = ()
