"""The context of a decision about a consumer: its stream, the other consumers, the limits."""

from collections.abc import Callable

import msgspec

from jetlake.management.consumers.stream_consumers import StreamConsumers
from jetlake.management.streams.config import StreamConfig
from jetlake.management.streams.context import ServerLimits, StreamAccountLimits


def _nobody_listens(_subject: str) -> bool:
    return False


class ConsumerContext(msgspec.Struct, frozen=True, kw_only=True):
    """The context of one request. `consumers` holds those of the stream, as they are stored."""

    stream: StreamConfig
    consumers: StreamConsumers = msgspec.field(default_factory=StreamConsumers)
    account: StreamAccountLimits = StreamAccountLimits()
    server: ServerLimits = ServerLimits()
    # Whether a subject has a subscriber.
    has_interest: Callable[[str], bool] = _nobody_listens
