"""The defaults of a consumer, and the errors that a pedantic request gets instead of being adjusted.

Nothing is refused here unless the request is pedantic: whether a configuration is legal is asked afterwards, by
`validation`.

Invariant: defaults put into a configuration that has them already change nothing.
"""

import msgspec

from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.consumers.context import ConsumerContext
from jetlake.management.wire.error_codes import ErrorCode, RequestError

MAX_WAITING_DEFAULT = 512
"""Requests for messages that may wait at one consumer."""

SECOND_NS = 1_000_000_000
ACK_WAIT_DEFAULT_NS = 30 * SECOND_NS
MAX_ACK_PENDING_DEFAULT = 1_000
"""Unacknowledged messages: enough for a busy client, few enough to be remembered."""

PRIORITY_TIMEOUT_DEFAULT_NS = 120 * SECOND_NS
"""How long a pinned client may be silent."""

INACTIVE_THRESHOLD_DEFAULT_NS = 5 * SECOND_NS
"""How long a consumer that is not durable stays without being used."""

FLOW_CONTROL_HEARTBEAT_NS = SECOND_NS
"""The one heartbeat with which flow control can acknowledge: servers that copy a stream rely on it."""

_ACK_POLICIES_WITH_WAIT = ("explicit", "all")
_LEAST = {
    "max_deliver": -1,
    "max_waiting": 0,
    "max_ack_pending": -1,
    "max_batch": 0,
    "max_expires": 0,
    "max_bytes": 0,
    "idle_heartbeat": 0,
    "inactive_threshold": 0,
    "priority_timeout": 0,
}
"""The least values, in the order in which a pedantic request is refused for a smaller one; -1 means no limit."""


def with_defaults(config: ConsumerConfig, context: ConsumerContext, *, is_pedantic: bool = False) -> ConsumerConfig:
    """Return the configuration with its defaults; a pedantic one may be refused with `RequestError`."""
    config = _with_least_values(config, is_pedantic=is_pedantic)
    config = _with_waits(config, is_pedantic=is_pedantic)
    config = _with_limits_of_stream(config, context, is_pedantic=is_pedantic)
    config = _with_limits_of_server(config, context, is_pedantic=is_pedantic)
    if config.priority_policy == "pinned_client" and config.priority_timeout == 0:
        config = msgspec.structs.replace(config, priority_timeout=PRIORITY_TIMEOUT_DEFAULT_NS)
    if config.ack_policy == "flow_control" and not is_pedantic:
        config = msgspec.structs.replace(config, flow_control=True, idle_heartbeat=FLOW_CONTROL_HEARTBEAT_NS)
    return config


def with_inactive_threshold(config: ConsumerConfig, *, is_durable: bool) -> ConsumerConfig:
    """Return the configuration with the threshold for unused consumers; a durable one has none by default."""
    if is_durable or config.inactive_threshold > 0:
        return config
    return msgspec.structs.replace(config, inactive_threshold=INACTIVE_THRESHOLD_DEFAULT_NS)


def _with_least_values(config: ConsumerConfig, *, is_pedantic: bool) -> ConsumerConfig:
    values = {}
    for key, least in _LEAST.items():
        value = getattr(config, key)
        if value < least and is_pedantic:
            raise _pedantic(f"{key} must be set to -1" if least < 0 else f"{key} must not be negative")
        values[key] = max(value, least)
    values["max_deliver"] = values["max_deliver"] or -1
    return msgspec.structs.replace(config, **values)


def _with_waits(config: ConsumerConfig, *, is_pedantic: bool) -> ConsumerConfig:
    max_waiting = config.max_waiting or (MAX_WAITING_DEFAULT if config.is_pull else 0)
    ack_wait = config.ack_wait or (ACK_WAIT_DEFAULT_NS if config.ack_policy in _ACK_POLICIES_WITH_WAIT else 0)
    if config.backoff:
        if is_pedantic and ack_wait != config.backoff[0]:
            raise _pedantic("first backoff value has to equal batch AckWait")
        ack_wait = config.backoff[0]
    return msgspec.structs.replace(config, max_waiting=max_waiting, ack_wait=ack_wait)


def _with_limits_of_stream(config: ConsumerConfig, context: ConsumerContext, *, is_pedantic: bool) -> ConsumerConfig:
    limits = context.stream.consumer_limits
    for key in ("max_ack_pending", "inactive_threshold"):
        limit = getattr(limits, key)
        if getattr(config, key) == 0:
            if is_pedantic and limit > 0:
                raise _pedantic(f"{key} must be set if it's configured in stream limits")
            config = msgspec.structs.replace(config, **{key: limit})
    return config


def _with_limits_of_server(config: ConsumerConfig, context: ConsumerContext, *, is_pedantic: bool) -> ConsumerConfig:
    if config.max_ack_pending == 0 and config.ack_policy != "none":
        limits = (MAX_ACK_PENDING_DEFAULT, context.server.max_ack_pending, context.account.max_ack_pending)
        config = msgspec.structs.replace(config, max_ack_pending=min(limit for limit in limits if limit > 0))
    if config.is_pull and config.max_batch == 0 and context.server.max_request_batch > 0:
        if is_pedantic:
            raise _pedantic("max_request_batch must be set if it's JetStream limits are set")
        config = msgspec.structs.replace(config, max_batch=context.server.max_request_batch)
    return config


def _pedantic(reason: str) -> RequestError:
    return RequestError(ErrorCode.PEDANTIC, err=reason)
