"""Defaults, and which configurations are legal by themselves.

The checks stand in the order in which nats-server makes them, because a request with two mistakes is told of the
first. A pedantic request is refused where another one would be adjusted.

Invariant: a configuration that `validated` returns is returned unchanged when it is validated again, with one exception
that nats-server has too: counters with delete markers pass at first, and not once the markers have turned on lifetimes.
"""

import msgspec

from jetlake.management.streams.config import Placement, StreamConfig
from jetlake.management.streams.context import DUPLICATE_WINDOW_DEFAULT_NS, StreamContext
from jetlake.management.streams.sources import check_sources
from jetlake.management.streams.subjects import check_republish, check_subject_transform, with_subjects
from jetlake.management.subjects.names import NAME_BYTES_MAX, is_name
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.shared.go_text import duration_text

DESCRIPTION_BYTES_MAX = 4_096
"""nats-server's own bound, for this and the next."""
METADATA_BYTES_MAX = 131_072
REPLICAS_MAX = 5
"""A majority of more than five would have to agree on every message."""

PERIOD_NS_MIN = 100_000_000
"""Below a tenth of a second, keeping the time would cost more than keeping the messages."""
MARKER_TTL_NS_MIN = 1_000_000_000
"""Lifetimes of messages are whole seconds."""

DEAD_LETTERS_KEY = "jetlake.dead_letters"
"""In the metadata, because clients of NATS can send it and other servers keep it without understanding it."""

_LIMITS = ("max_msgs", "max_msgs_per_subject", "max_bytes", "max_msg_size", "max_consumers")
"""In the order in which a pedantic request is refused for them; -1 means no limit."""


def validated(config: StreamConfig, context: StreamContext, *, is_pedantic: bool = False) -> StreamConfig:
    """Return the configuration with its defaults, or raise `RequestError`."""
    _check_names_and_texts(config)
    config = _with_limits(config, is_pedantic=is_pedantic)
    config = _with_periods(config, context, is_pedantic=is_pedantic)
    if config.deny_purge and config.allow_rollup_hdrs:
        raise invalid("roll-ups require the purge permission")
    _check_counter(config)
    _check_discard(config)
    config = _with_delete_markers(config, is_pedantic=is_pedantic)
    config = _with_schedules(config, is_pedantic=is_pedantic)
    _check_persist_mode(config)
    config = check_sources(config, context, is_pedantic=is_pedantic)
    config = with_subjects(config)
    _check_max_bytes(config, context)
    check_subject_transform(config)
    config = _with_placement(check_republish(config, is_pedantic=is_pedantic))
    _check_dead_letters(config)
    return config


def invalid(reason: str) -> RequestError:
    """Return the error of a configuration that cannot be, for this reason."""
    return RequestError(ErrorCode.STREAM_INVALID_CONFIG, err=reason)


def _check_names_and_texts(config: StreamConfig) -> None:
    if not is_name(config.name):
        raise invalid("stream name is required and can not contain '.', '*', '>', '\\', '/'")
    if len(config.name.encode()) > NAME_BYTES_MAX:
        raise invalid(f"stream name is too long, maximum allowed is {NAME_BYTES_MAX}")
    if len(config.description.encode()) > DESCRIPTION_BYTES_MAX:
        raise invalid(f"stream description is too long, maximum allowed is {DESCRIPTION_BYTES_MAX}")
    metadata = config.metadata or {}
    if sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items()) > METADATA_BYTES_MAX:
        raise invalid(f"stream metadata exceeds maximum size of {METADATA_BYTES_MAX} bytes")


def _with_limits(config: StreamConfig, *, is_pedantic: bool) -> StreamConfig:
    if config.num_replicas > REPLICAS_MAX:
        raise invalid(f"maximum replicas is {REPLICAS_MAX}")
    if config.num_replicas < 0:
        raise RequestError(ErrorCode.REPLICAS_COUNT_CANNOT_BE_NEGATIVE)
    limits = {}
    for key in _LIMITS:
        limit = getattr(config, key)
        if limit < -1 and is_pedantic:
            raise RequestError(ErrorCode.PEDANTIC, err=f"{key} must be set to -1")
        limits[key] = limit if limit > 0 else -1
    return msgspec.structs.replace(config, num_replicas=config.num_replicas or 1, **limits)


def _with_periods(config: StreamConfig, context: StreamContext, *, is_pedantic: bool) -> StreamConfig:
    if config.max_age < 0:
        raise invalid("max age can not be negative")
    if 0 < config.max_age < PERIOD_NS_MIN:
        raise invalid("max age needs to be >= 100ms")
    server_max_ns = context.server.duplicate_window_max_ns
    window_ns = config.duplicate_window
    if window_ns == 0 and config.mirror is None and not config.sources:
        window_ns = _default_window_ns(config.max_age, server_max_ns, is_pedantic=is_pedantic)
    if window_ns < 0:
        raise invalid("duplicates window can not be negative")
    if 0 < config.max_age < window_ns:
        raise invalid("duplicates window can not be larger then max age")
    if 0 < window_ns < PERIOD_NS_MIN:
        raise invalid("duplicates window needs to be >= 100ms")
    if 0 < server_max_ns < window_ns:
        raise invalid(f"duplicates window can not be larger then server limit of {duration_text(server_max_ns)}")
    return msgspec.structs.replace(config, duplicate_window=window_ns)


def _default_window_ns(max_age_ns: int, server_max_ns: int, *, is_pedantic: bool) -> int:
    window_ns = DUPLICATE_WINDOW_DEFAULT_NS
    if 0 < server_max_ns < window_ns:
        if is_pedantic:
            raise RequestError(ErrorCode.PEDANTIC, err="duplicate window limits are higher than current limits")
        window_ns = server_max_ns
    if 0 < max_age_ns < window_ns:
        if is_pedantic:
            raise RequestError(ErrorCode.PEDANTIC, err="duplicate window cannot be bigger than max age")
        window_ns = max_age_ns
    return window_ns


def _check_counter(config: StreamConfig) -> None:
    if not config.allow_msg_counter:
        return
    if config.discard == "new":
        raise invalid("counter stream cannot use discard new")
    if config.allow_msg_ttl:
        raise invalid("counter stream cannot use message TTLs")
    if config.allow_msg_schedules:
        raise invalid("counter stream cannot use message schedules")
    if config.retention != "limits":
        raise invalid("counter stream can only use limits retention")


def _check_discard(config: StreamConfig) -> None:
    if not config.discard_new_per_subject:
        return
    if config.discard != "new":
        raise invalid("discard new per subject requires discard new policy to be set")
    if config.max_msgs_per_subject <= 0:
        raise invalid("discard new per subject requires max msgs per subject > 0")


def _with_delete_markers(config: StreamConfig, *, is_pedantic: bool) -> StreamConfig:
    """Delete markers expire, and replace what they mark: they need lifetimes and roll-ups."""
    ttl_ns = config.subject_delete_marker_ttl
    if ttl_ns == 0:
        return config
    if ttl_ns < 0:
        raise invalid("subject delete marker TTL must not be negative")
    if ttl_ns < MARKER_TTL_NS_MIN:
        raise invalid("subject delete marker TTL must be at least 1 second")
    if is_pedantic and not config.allow_msg_ttl:
        raise invalid("subject delete marker cannot be set if message TTLs are disabled")
    if is_pedantic and not config.allow_rollup_hdrs:
        raise invalid("subject delete marker cannot be set if roll-ups are disabled")
    return msgspec.structs.replace(config, allow_msg_ttl=True, allow_rollup_hdrs=True, deny_purge=False)


def _with_schedules(config: StreamConfig, *, is_pedantic: bool) -> StreamConfig:
    """A schedule replaces the one before it on its subject: it needs roll-ups."""
    if not config.allow_msg_schedules:
        return config
    if config.discard == "new":
        raise invalid("message scheduling cannot use discard new")
    if is_pedantic and not config.allow_rollup_hdrs:
        raise invalid("message scheduling cannot be set if roll-ups are disabled")
    return msgspec.structs.replace(config, allow_rollup_hdrs=True, deny_purge=False)


def _check_persist_mode(config: StreamConfig) -> None:
    if config.persist_mode != "async":
        return
    if config.storage != "file":
        raise invalid("async persist mode is only supported on file storage")
    if config.num_replicas > 1:
        raise invalid("async persist mode is not supported on replicated streams")
    if config.allow_atomic:
        raise invalid("async persist mode is not supported with atomic batch publish")


def _check_max_bytes(config: StreamConfig, context: StreamContext) -> None:
    limits = context.account
    if limits.max_bytes_required and config.max_bytes <= 0:
        raise RequestError(ErrorCode.STREAM_MAX_BYTES_REQUIRED)
    most = limits.memory_max_stream_bytes if config.storage == "memory" else limits.storage_max_stream_bytes
    if 0 < most < config.max_bytes:
        raise RequestError(ErrorCode.STREAM_MAX_STREAM_BYTES_EXCEEDED)


def _with_placement(config: StreamConfig) -> StreamConfig:
    if config.placement is not None and config.placement.preferred:
        raise invalid("preferred server not permitted in placement")
    return msgspec.structs.replace(config, placement=None) if config.placement == Placement() else config


def _check_dead_letters(config: StreamConfig) -> None:
    """Our own option: the stream that takes what could not be delivered."""
    name = (config.metadata or {}).get(DEAD_LETTERS_KEY)
    if name is None:
        return
    if not is_name(name) or len(name.encode()) > NAME_BYTES_MAX:
        reason = (
            "it is not a name for a stream; set it to the name of the stream that takes what could not be delivered"
        )
    elif name == config.name:
        reason = "a stream can not take its own dead letters; set it to the name of another stream"
    else:
        return
    raise invalid(f'metadata {DEAD_LETTERS_KEY} can not be "{name}": {reason}')
