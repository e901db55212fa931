"""Which configurations of consumers are legal, by themselves and on their stream.

The checks stand in the order in which nats-server makes them, because a request with two mistakes is told of the
first. `check_config` is asked of every configuration, `check_new` of those that make a new consumer.

Invariant: a configuration that passes is left as it is; defaults are put in before.
"""

import re

from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.consumers.context import ConsumerContext
from jetlake.management.consumers.defaults import FLOW_CONTROL_HEARTBEAT_NS
from jetlake.management.streams.validation import DESCRIPTION_BYTES_MAX, METADATA_BYTES_MAX, invalid
from jetlake.management.subjects.index import ComparisonLimitError, first_subset
from jetlake.management.subjects.names import NAME_BYTES_MAX, is_name, is_subject, is_subset
from jetlake.management.subjects.taken import LookupLimitError
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.shared.go_text import duration_text, quoted

MILLISECOND_NS = 1_000_000
HEARTBEAT_NS_MIN = 100 * MILLISECOND_NS
"""Below a tenth of a second, heartbeats would be most of what is sent."""

GROUP_NAME = re.compile(r"[A-Za-z0-9/_=-]{1,16}")

TOO_MANY_WILDCARDS = "too many filters with wildcards to compare; use fewer, or another consumer"

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_DIGITS_MAX = 19
"""Of the largest whole number that is read; longer ones are not even converted."""


def check_config(config: ConsumerConfig, context: ConsumerContext) -> None:
    """Raise `RequestError` for the first thing that is wrong with a configuration that has its defaults."""
    _check_names(config)
    _check_replicas(config, context)
    _check_waits(config)
    if config.ack_policy == "flow_control":
        _check_flow_control_policy(config)
    if config.backoff and config.max_deliver != -1 and len(config.backoff) > config.max_deliver:
        raise RequestError(ErrorCode.CONSUMER_MAX_DELIVER_BACKOFF)
    if len(config.description.encode()) > DESCRIPTION_BYTES_MAX:
        raise RequestError(ErrorCode.CONSUMER_DESCRIPTION_TOO_LONG, max=DESCRIPTION_BYTES_MAX)
    if config.is_pull:
        _check_pull(config, context)
    else:
        _check_push(config, context)
    _check_limits(config, context)
    _check_direct(config)
    _check_filters(config)
    _check_start(config)
    _check_sampling(config)
    if config.flow_control and config.idle_heartbeat == 0:
        raise RequestError(ErrorCode.CONSUMER_WITH_FLOW_CONTROL_NEEDS_HEARTBEATS)
    if config.durable_name and config.name and config.name != config.durable_name:
        raise RequestError(ErrorCode.CONSUMER_CREATE_DURABLE_AND_NAME_MISMATCH)
    _check_metadata(config)
    _check_priority(config)


def check_new(config: ConsumerConfig, context: ConsumerContext) -> None:
    """Raise `RequestError` unless the stream can have this consumer besides those it has."""
    limits = [limit for limit in (context.stream.max_consumers, context.account.max_consumers) if limit > 0]
    if limits and context.consumers.counted >= min(limits) and not config.is_internal:
        raise RequestError(ErrorCode.MAXIMUM_CONSUMERS_LIMIT)
    if context.stream.retention == "workqueue" and not config.is_internal:
        _check_workqueue(config, context)
    if len(config.durable_name.encode()) > NAME_BYTES_MAX:
        raise RequestError(ErrorCode.CONSUMER_NAME_TOO_LONG, max=NAME_BYTES_MAX)


def check_unique(config: ConsumerConfig, name: str, context: ConsumerContext) -> None:
    """Raise `RequestError` when another consumer of a work queue takes some of the same messages."""
    try:
        is_taken = context.consumers.are_taken(config.filters, name)
    except LookupLimitError:
        raise RequestError(ErrorCode.CONSUMER_CREATE, err=TOO_MANY_WILDCARDS) from None
    if is_taken:
        raise RequestError(ErrorCode.CONSUMER_WORKQUEUE_CONSUMER_NOT_UNIQUE)


def _check_workqueue(config: ConsumerConfig, context: ConsumerContext) -> None:
    """A message of a work queue is for one consumer, which must acknowledge it."""
    if config.ack_policy not in ("explicit", "flow_control"):
        raise RequestError(ErrorCode.CONSUMER_WORKQUEUE_REQUIRES_EXPLICIT_ACK)
    if config.deliver_policy != "all":
        raise RequestError(ErrorCode.CONSUMER_WORKQUEUE_CONSUMER_NOT_DELIVER_ALL)
    if context.consumers.counted == 0:
        return
    if not config.filters:
        raise RequestError(ErrorCode.CONSUMER_WORKQUEUE_MULTIPLE_UNFILTERED)
    check_unique(config, config.durable_name or config.name, context)


def _check_names(config: ConsumerConfig) -> None:
    for name, what in ((config.name, "consumer name"), (config.durable_name, "consumer durable name")):
        if name and not is_name(name):
            raise invalid(f"{what} can not contain '.', '*', '>', '\\', '/'")


def _check_replicas(config: ConsumerConfig, context: ConsumerContext) -> None:
    replicas = config.num_replicas
    if replicas > 0 and replicas > context.stream.num_replicas:
        raise RequestError(ErrorCode.CONSUMER_REPLICAS_EXCEEDS_STREAM)
    if replicas < 0:
        raise RequestError(ErrorCode.REPLICAS_COUNT_CANNOT_BE_NEGATIVE)
    if context.stream.retention != "limits" and replicas not in (0, context.stream.num_replicas):
        raise RequestError(ErrorCode.CONSUMER_REPLICAS_SHOULD_MATCH_STREAM)


def _check_waits(config: ConsumerConfig) -> None:
    if any(wait < 0 for wait in config.backoff or ()):
        raise RequestError(ErrorCode.CONSUMER_BACK_OFF_NEGATIVE)
    if config.ack_wait < 0:
        raise RequestError(ErrorCode.CONSUMER_ACK_WAIT_NEGATIVE)


def _check_flow_control_policy(config: ConsumerConfig) -> None:
    """What answers to flow control acknowledge is acknowledged for good: nothing is ever delivered twice."""
    if config.is_pull:
        raise RequestError(ErrorCode.CONSUMER_ACK_FLOW_CONTROL_REQUIRES_PUSH)
    if not config.flow_control:
        raise RequestError(ErrorCode.CONSUMER_ACK_FLOW_CONTROL_REQUIRES_FLOW_CONTROL)
    if config.idle_heartbeat != FLOW_CONTROL_HEARTBEAT_NS:
        raise invalid("flow control ack policy heartbeat needs to be 1s")
    if config.max_ack_pending <= 0:
        raise RequestError(ErrorCode.CONSUMER_ACK_FLOW_CONTROL_REQUIRES_MAX_ACK_PENDING)
    if config.ack_wait != 0 or config.backoff:
        raise RequestError(ErrorCode.CONSUMER_ACK_FLOW_CONTROL_REQUIRES_NO_ACK_WAIT)
    if config.max_deliver > 0:
        raise RequestError(ErrorCode.CONSUMER_ACK_FLOW_CONTROL_REQUIRES_NO_MAX_DELIVER)


def _check_push(config: ConsumerConfig, context: ConsumerContext) -> None:
    subject = config.deliver_subject
    if not {"*", ">"}.isdisjoint(subject.split(".")):
        raise RequestError(ErrorCode.CONSUMER_DELIVER_TO_WILDCARDS)
    if not is_subject(subject):
        raise RequestError(ErrorCode.CONSUMER_INVALID_DELIVER_SUBJECT)
    if any(is_subset(subject, taken) for taken in context.stream.subjects or ()):
        raise RequestError(ErrorCode.CONSUMER_DELIVER_CYCLE)
    if config.max_waiting != 0:
        raise RequestError(ErrorCode.CONSUMER_PUSH_MAX_WAITING)
    if config.max_ack_pending > 0 and config.ack_policy == "none":
        raise RequestError(ErrorCode.CONSUMER_MAX_PENDING_ACK_POLICY_REQUIRED)
    if 0 < config.idle_heartbeat < HEARTBEAT_NS_MIN:
        raise RequestError(ErrorCode.CONSUMER_SMALL_HEARTBEAT)


def _check_pull(config: ConsumerConfig, context: ConsumerContext) -> None:
    if config.ack_policy == "none" and context.stream.retention == "workqueue":
        raise RequestError(ErrorCode.CONSUMER_PULL_REQUIRES_ACK)
    if config.rate_limit_bps > 0:
        raise RequestError(ErrorCode.CONSUMER_PULL_WITH_RATE_LIMIT)
    if config.idle_heartbeat > 0:
        raise RequestError(ErrorCode.CONSUMER_HEARTBEAT_REQUIRES_PUSH)
    if config.flow_control:
        raise RequestError(ErrorCode.CONSUMER_FLOW_CONTROL_REQUIRES_PUSH)
    if 0 < config.max_expires < MILLISECOND_NS:
        raise RequestError(ErrorCode.CONSUMER_MAX_REQUEST_EXPIRES_TOO_SMALL)
    if 0 < context.server.max_request_batch < config.max_batch:
        raise RequestError(ErrorCode.CONSUMER_MAX_REQUEST_BATCH_EXCEEDED, limit=context.server.max_request_batch)


def _check_limits(config: ConsumerConfig, context: ConsumerContext) -> None:
    of_stream = context.stream.consumer_limits
    for limit in (context.server.max_ack_pending, context.account.max_ack_pending, of_stream.max_ack_pending):
        if 0 < limit < config.max_ack_pending:
            raise RequestError(ErrorCode.CONSUMER_MAX_PENDING_ACK_EXCESS, limit=limit)
    if 0 < of_stream.inactive_threshold < config.inactive_threshold:
        limit_text = duration_text(of_stream.inactive_threshold)
        raise RequestError(ErrorCode.CONSUMER_INACTIVE_THRESHOLD_EXCESS, limit=limit_text)


def _check_direct(config: ConsumerConfig) -> None:
    if not config.direct:
        return
    if config.is_pull:
        raise RequestError(ErrorCode.CONSUMER_DIRECT_REQUIRES_PUSH)
    if config.is_durable:
        raise RequestError(ErrorCode.CONSUMER_DIRECT_REQUIRES_EPHEMERAL)


def _check_filters(config: ConsumerConfig) -> None:
    if config.filter_subject and config.filter_subjects:
        raise RequestError(ErrorCode.CONSUMER_DUPLICATE_FILTER_SUBJECTS)
    if config.filter_subject and not is_subject(config.filter_subject):
        raise invalid("invalid subject")
    filters = config.filter_subjects or ()
    if "" in filters:
        raise RequestError(ErrorCode.CONSUMER_EMPTY_FILTER)
    first_illegal = next((position for position, each in enumerate(filters) if not is_subject(each)), len(filters))
    try:
        first_inner = first_subset(filters)
    except ComparisonLimitError:
        raise RequestError(ErrorCode.CONSUMER_CREATE, err=TOO_MANY_WILDCARDS) from None
    if first_inner is not None and first_inner < first_illegal:
        raise RequestError(ErrorCode.CONSUMER_OVERLAPPING_SUBJECT_FILTERS)
    if first_illegal < len(filters):
        raise invalid("invalid subject")


def _check_start(config: ConsumerConfig) -> None:
    """Raise `RequestError` unless the beginning is given exactly where the policy needs it."""
    policy = config.deliver_policy
    shown = policy.replace("_", " ")
    has_sequence, has_time = config.opt_start_seq > 0, config.opt_start_time is not None
    if policy == "by_start_sequence":
        missing = "" if has_sequence else "start sequence"
        surplus = "time" if has_time else ""
    elif policy == "by_start_time":
        missing = "" if has_time else "start time"
        surplus = "start sequence" if has_sequence else ""
    else:
        surplus = "sequence" if has_sequence else "time" if has_time else ""
        missing = "filter subject" if policy == "last_per_subject" and not surplus and not config.filters else ""
    if missing:
        reason = f"consumer delivery policy is deliver {shown}, but optional {missing} is not set"
        raise RequestError(ErrorCode.CONSUMER_INVALID_POLICY, err=reason)
    if surplus:
        reason = f"consumer delivery policy is deliver {shown}, but optional start {surplus} is also set"
        raise RequestError(ErrorCode.CONSUMER_INVALID_POLICY, err=reason)


def _check_sampling(config: ConsumerConfig) -> None:
    if not config.sample_freq:
        return
    share = config.sample_freq.removesuffix("%")
    problem = f"strconv.Atoi: parsing {quoted(share)}: "
    if _WHOLE_NUMBER.fullmatch(share) is None:
        raise RequestError(ErrorCode.CONSUMER_INVALID_SAMPLING, err=f"{problem}invalid syntax")
    digits = share.lstrip("+-").lstrip("0") or "0"
    number = -int(digits[: _DIGITS_MAX + 1]) if share.startswith("-") else int(digits[: _DIGITS_MAX + 1])
    if not -(2**63) <= number < 2**63:
        raise RequestError(ErrorCode.CONSUMER_INVALID_SAMPLING, err=f"{problem}value out of range")
    if number < 0:
        raise RequestError(ErrorCode.CONSUMER_INVALID_SAMPLING, err="<nil>")


def _check_metadata(config: ConsumerConfig) -> None:
    metadata = config.metadata or {}
    if sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items()) > METADATA_BYTES_MAX:
        raise RequestError(ErrorCode.CONSUMER_METADATA_LENGTH, limit=f"{METADATA_BYTES_MAX // 1024}KB")


def _check_priority(config: ConsumerConfig) -> None:
    if not config.priority_policy:
        if config.priority_groups:
            raise RequestError(ErrorCode.CONSUMER_PRIORITY_GROUP_WITH_POLICY_NONE)
        if config.priority_timeout > 0:
            raise RequestError(ErrorCode.CONSUMER_PINNED_TTL_WITHOUT_PRIORITY_POLICY_NONE)
        return
    if not config.is_pull:
        raise RequestError(ErrorCode.CONSUMER_PUSH_WITH_PRIORITY_GROUP)
    if not config.priority_groups:
        raise RequestError(ErrorCode.CONSUMER_PRIORITY_POLICY_WITHOUT_GROUP)
    for group in config.priority_groups:
        if not group:
            raise RequestError(ErrorCode.CONSUMER_EMPTY_GROUP_NAME)
        if GROUP_NAME.fullmatch(group) is None:
            raise RequestError(ErrorCode.CONSUMER_INVALID_GROUP_NAME)
