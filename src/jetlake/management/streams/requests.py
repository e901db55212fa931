"""Create and update, from the bytes of the request to the configuration to keep.

Everything here is decided without the engine. What it returns is what the engine is asked to make, and what an answer
shows once `required_level.with_server_versions` has been applied.

Invariant: `create` and `update` return or raise `RequestError`, whatever the bytes.
"""

import msgspec

from jetlake.management.streams.config import STREAM_CONFIG_REQUEST, StreamConfig, StreamConfigRequest
from jetlake.management.streams.context import StreamContext
from jetlake.management.streams.required_level import with_required_level
from jetlake.management.streams.sources import check_filters
from jetlake.management.streams.subjects import check_others
from jetlake.management.streams.update import check_consumers, updated, with_republish
from jetlake.management.streams.validation import invalid, validated
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.management.wire.json_dialect import read_request


class StreamDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What a request leads to: a configuration to keep, or one that is there already."""

    config: StreamConfig
    is_unchanged: bool = False
    # What a server that is not strict has ignored, and logs.
    unknown_keys: tuple[str, ...] = ()


def create(name: str, body: bytes, context: StreamContext, *, is_strict: bool = True) -> StreamDecision:
    """Decide a request to create the stream that the API's subject names."""
    request = read_request(STREAM_CONFIG_REQUEST, body, is_strict=is_strict)
    wanted: StreamConfigRequest = request.value
    if wanted.name != name:
        raise RequestError(ErrorCode.STREAM_MISMATCH)
    if {"/", "\\"} & set(name):
        raise RequestError(ErrorCode.STREAM_NAME_CONTAINS_PATH_SEPARATORS)
    if wanted.sealed:
        raise invalid("stream configuration for create can not be sealed")
    if wanted.mirror_direct and wanted.mirror is None:
        raise invalid("stream has no mirror but does have mirror direct")
    existing = context.streams.get(name)
    if not context.account.has_tier_of_streams:
        raise RequestError(ErrorCode.NO_LIMITS)
    if existing is None and 0 < context.account.max_streams <= len(context.streams):
        raise RequestError(ErrorCode.MAXIMUM_STREAMS_LIMIT)
    _check_max_consumers(wanted, context)
    if wanted.storage == "memory":
        # Asked before anything else, and of a stream that is there already once more.
        _check_room(wanted, context, added_bytes=wanted.max_bytes)
    config = validated(with_required_level(wanted.config), context, is_pedantic=wanted.pedantic)
    check_replicas(config)
    if existing is not None:
        if existing != config:
            raise RequestError(ErrorCode.STREAM_NAME_EXIST)
        return StreamDecision(config=config, is_unchanged=True, unknown_keys=request.unknown_keys)
    # A stream without a bound needs room for something, too.
    _check_room(config, context, added_bytes=max(config.max_bytes, 1))
    check_filters(config)
    check_others(config, context.streams)
    check_written(config)
    return StreamDecision(config=config, unknown_keys=request.unknown_keys)


def update(name: str, body: bytes, context: StreamContext, *, is_strict: bool = True) -> StreamDecision:
    """Decide a request to update the stream that the API's subject names."""
    request = read_request(STREAM_CONFIG_REQUEST, body, is_strict=is_strict)
    wanted: StreamConfigRequest = request.value
    config = validated(with_required_level(wanted.config), context, is_pedantic=wanted.pedantic)
    if config.name != name:
        raise RequestError(ErrorCode.STREAM_MISMATCH)
    current = context.streams.get(name)
    if current is None:
        raise RequestError(ErrorCode.STREAM_NOT_FOUND)
    # What the first validation has adjusted must be legal, too; a new stream is not asked for that.
    config = validated(config, context, is_pedantic=wanted.pedantic)
    check_replicas(config)
    config = updated(current, config)
    _check_max_consumers(config, context)
    _check_room(config, context, added_bytes=max(config.max_bytes, 0) - max(current.max_bytes, 0))
    check_consumers(current.consumer_limits, config.consumer_limits, context.consumers)
    check_others(config, context.streams)
    config = with_republish(config)
    if not _can_be_written(config):
        reason = "json: error calling MarshalJSON for type *time.Time: timezone hour outside of range [0,23]"
        raise RequestError(ErrorCode.STREAM_UPDATE, err=reason)
    return StreamDecision(config=config, is_unchanged=config == current, unknown_keys=request.unknown_keys)


def check_limits(config: StreamConfig, context: StreamContext) -> None:
    """Raise `RequestError` unless the account may have one more stream like this."""
    if not context.account.has_tier_of_streams:
        raise RequestError(ErrorCode.NO_LIMITS)
    if 0 < context.account.max_streams <= len(context.streams):
        raise RequestError(ErrorCode.MAXIMUM_STREAMS_LIMIT)
    _check_max_consumers(config, context)
    # A stream without a bound needs room for something, too.
    _check_room(config, context, added_bytes=max(config.max_bytes, 1))


def check_written(config: StreamConfig) -> None:
    """Raise `RequestError` for a definition that could not be kept."""
    if not _can_be_written(config):
        raise RequestError(ErrorCode.STREAM_CREATE, err="error creating store for stream")


def check_replicas(config: StreamConfig) -> None:
    """Raise `RequestError` for a stream that needs more than one server."""
    if config.num_replicas > 1:
        raise RequestError(ErrorCode.STREAM_REPLICAS_NOT_SUPPORTED)


def _check_max_consumers(config: StreamConfig, context: StreamContext) -> None:
    if 0 < context.account.max_consumers < config.max_consumers:
        raise RequestError(ErrorCode.MAXIMUM_CONSUMERS_LIMIT)


def _check_room(config: StreamConfig, context: StreamContext, *, added_bytes: int) -> None:
    """Raise `RequestError` unless what the stream may grow to can be reserved."""
    if added_bytes <= 0:
        return
    account, server, streams = context.account, context.server, context.streams
    if config.storage == "memory":
        code = ErrorCode.MEMORY_RESOURCES_EXCEEDED
        rooms = ((account.max_memory, streams.reserved_bytes("memory")), (server.max_memory, server.reserved_memory))
    else:
        code = ErrorCode.STORAGE_RESOURCES_EXCEEDED
        rooms = ((account.max_storage, streams.reserved_bytes("file")), (server.max_storage, server.reserved_storage))
    for most, reserved in rooms:
        if most >= 0 and reserved + added_bytes > most:
            raise RequestError(code)


def _can_be_written(config: StreamConfig) -> bool:
    """A zone of a day or more can be read and not be written: such a definition cannot be kept."""
    sources = (*(config.sources or ()), *(() if config.mirror is None else (config.mirror,)))
    moments = [source.opt_start_time for source in sources if source.opt_start_time is not None]
    return all(moment.is_writable for moment in moments)
