"""Which changes a stream accepts.

| field                                 | may                                                |
|---------------------------------------|----------------------------------------------------|
| storage, counters, persist mode       | not change                                         |
| retention                             | change, but not to or from `workqueue`             |
| mirror                                | be removed, which makes the copy a stream          |
| sealed, deny_delete, deny_purge       | become true, and stay so                           |
| allow_msg_ttl, allow_msg_schedules    | become true, and stay so                           |
| consumer_limits                       | change, unless a consumer would exceed them        |
| everything else                       | change                                             |

Invariant: an accepted update of a stream leaves a configuration that `validation` accepts.
"""

import msgspec

from jetlake.management.streams.config import ConsumerLimits, StreamConfig
from jetlake.management.streams.context import ExistingConsumer
from jetlake.management.subjects.names import ALL_THE_REST
from jetlake.management.subjects.transform import TransformError, make_transform
from jetlake.management.wire.error_codes import ErrorCode, RequestError

_CAN_NOT = "stream configuration update can not"


def updated(current: StreamConfig, wanted: StreamConfig) -> StreamConfig:
    """Return the configuration to keep, or raise `RequestError`. Both are validated."""
    assert current.name == wanted.name, "the caller finds the stream by this name"
    _refuse(_changes_of_kind(current, wanted))
    if wanted.mirror is not None and wanted.mirror != current.mirror:
        raise RequestError(ErrorCode.STREAM_MIRROR_NOT_UPDATABLE)
    _refuse(_changes_of_features(current, wanted))
    return _sealed(wanted) if wanted.sealed else wanted


def with_republish(config: StreamConfig) -> StreamConfig:
    """Return the configuration with everything as the destination of an update that names none.

    nats-server does this to updates alone: a new stream without a destination republishes nothing.
    """
    republish = config.republish
    if republish is None or republish.dest:
        return config
    try:
        make_transform(republish.src, ALL_THE_REST)
    except TransformError as error:
        reason = f"stream configuration for republish from '{republish.src}' to '{ALL_THE_REST}': {error}"
        raise RequestError(ErrorCode.STREAM_UPDATE, err=reason) from None
    return msgspec.structs.replace(config, republish=msgspec.structs.replace(republish, dest=ALL_THE_REST))


def check_consumers(current: ConsumerLimits, limits: ConsumerLimits, consumers: tuple[ExistingConsumer, ...]) -> None:
    """Raise `RequestError` when existing consumers exceed limits of which at least one is new."""
    keys = ("inactive_threshold", "max_ack_pending")
    if not any(0 < getattr(limits, key) != getattr(current, key) for key in keys):
        return
    violators = [consumer.name for consumer in consumers if _exceeds(consumer, limits)]
    if violators:
        raise RequestError(ErrorCode.STREAM_UPDATE, err=f"change to limits violates consumers: {', '.join(violators)}")


def _refuse(changes: list[tuple[bool, str]]) -> None:
    for is_made, reason in changes:
        if is_made:
            raise RequestError(ErrorCode.STREAM_INVALID_CONFIG, err=reason)


def _changes_of_kind(current: StreamConfig, wanted: StreamConfig) -> list[tuple[bool, str]]:
    """Return the changes that are reported before that of the mirror, in their order."""
    changes_workqueue = current.retention != wanted.retention and "workqueue" in (current.retention, wanted.retention)
    return [
        (current.storage != wanted.storage, f"{_CAN_NOT} change storage type"),
        (changes_workqueue, f"{_CAN_NOT} change retention policy to/from workqueue"),
        (current.sealed and not wanted.sealed, f"{_CAN_NOT} unseal a sealed stream"),
        (current.deny_delete and not wanted.deny_delete, f"{_CAN_NOT} cancel deny message deletes"),
        (current.deny_purge and not wanted.deny_purge, f"{_CAN_NOT} cancel deny purge"),
    ]


def _changes_of_features(current: StreamConfig, wanted: StreamConfig) -> list[tuple[bool, str]]:
    """Return the changes that are reported after that of the mirror, in their order."""
    return [
        (current.allow_msg_ttl and not wanted.allow_msg_ttl, "message TTL status can not be disabled"),
        (current.allow_msg_counter != wanted.allow_msg_counter, f"{_CAN_NOT} change message counter setting"),
        (current.allow_msg_schedules and not wanted.allow_msg_schedules, "message schedules can not be disabled"),
        (current.persist_mode != wanted.persist_mode, f"{_CAN_NOT} change persist mode"),
    ]


def _sealed(config: StreamConfig) -> StreamConfig:
    """Return the configuration of a stream that nothing changes any more, not even time."""
    return msgspec.structs.replace(
        config, max_age=0, discard="new", deny_delete=True, deny_purge=True, allow_rollup_hdrs=False
    )


def _exceeds(consumer: ExistingConsumer, limits: ConsumerLimits) -> bool:
    return (
        0 < limits.inactive_threshold < consumer.inactive_threshold
        or 0 < limits.max_ack_pending < consumer.max_ack_pending
    )
