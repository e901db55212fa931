"""Which changes a consumer accepts.

| field                                                            | may                                        |
|------------------------------------------------------------------|--------------------------------------------|
| deliver policy and start, ack policy, replay policy              | not change                                 |
| storage, direct, sourcing, heartbeat, flow control, max_waiting  | not change                                 |
| `jetlake.key` in the metadata                                    | not change                                 |
| deliver_subject                                                  | change, if the old one has no subscriber   |
| pause_until                                                      | change by `PAUSE` alone                    |
| everything else                                                  | change                                     |

Invariant: an accepted update leaves a configuration that `validation` accepts.
"""

import msgspec

from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.consumers.context import ConsumerContext
from jetlake.management.consumers.defaults import with_inactive_threshold
from jetlake.management.consumers.options import KEY_KEY, key_of_messages
from jetlake.management.consumers.stream_consumers import Consumer
from jetlake.management.consumers.validation import check_unique
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.management.wire.times import Timestamp


def updated(current: Consumer, wanted: ConsumerConfig, context: ConsumerContext) -> ConsumerConfig:
    """Return the configuration to keep, or raise `RequestError`. Both have their defaults and are legal."""
    if context.stream.retention == "workqueue":
        check_unique(wanted, current.name, context)
    if wanted != current.config:
        _refuse(_changes(current.config, wanted))
        _check_deliver_subject(current.config, wanted, context)
        _refuse([(current.config.max_waiting != wanted.max_waiting, "max waiting")])
    if wanted.inactive_threshold != current.config.inactive_threshold:
        wanted = with_inactive_threshold(wanted, is_durable=current.config.is_durable)
    return wanted if wanted.pause_until is None else paused(wanted, wanted.pause_until)


def paused(config: ConsumerConfig, until: Timestamp | None) -> ConsumerConfig:
    """Return the configuration of a consumer that pauses; None = it does not."""
    return msgspec.structs.replace(config, pause_until=None if until is None else until.in_utc)


def _refuse(changes: list[tuple[bool, str]]) -> None:
    for is_made, what in changes:
        if is_made:
            raise RequestError(ErrorCode.CONSUMER_CREATE, err=f"{what} can not be updated")


def _changes(current: ConsumerConfig, wanted: ConsumerConfig) -> list[tuple[bool, str]]:
    """Return the changes that are never accepted, in the order in which they are reported."""
    return [
        (current.deliver_policy != wanted.deliver_policy, "deliver policy"),
        (current.mem_storage != wanted.mem_storage, "storage type"),
        (current.direct != wanted.direct, "direct"),
        (current.sourcing != wanted.sourcing, "sourcing"),
        (current.opt_start_seq != wanted.opt_start_seq, "start sequence"),
        (_unix_ns(current.opt_start_time) != _unix_ns(wanted.opt_start_time), "start time"),
        (current.ack_policy != wanted.ack_policy, "ack policy"),
        (current.replay_policy != wanted.replay_policy, "replay policy"),
        (current.idle_heartbeat != wanted.idle_heartbeat, "heart beats"),
        (current.flow_control != wanted.flow_control, "flow control"),
        # What is under way has been handed out by the keys of before.
        (key_of_messages(current) != key_of_messages(wanted), f"metadata {KEY_KEY}"),
    ]


def _check_deliver_subject(current: ConsumerConfig, wanted: ConsumerConfig, context: ConsumerContext) -> None:
    if current.deliver_subject == wanted.deliver_subject:
        return
    if current.is_pull:
        raise RequestError(ErrorCode.CONSUMER_CREATE, err="can not update pull consumer to push based")
    if wanted.is_pull:
        raise RequestError(ErrorCode.CONSUMER_CREATE, err="can not update push consumer to pull based")
    if context.has_interest(current.deliver_subject):
        raise RequestError(ErrorCode.CONSUMER_NAME_EXIST)


def _unix_ns(moment: Timestamp | None) -> int | None:
    return None if moment is None else moment.unix_ns
