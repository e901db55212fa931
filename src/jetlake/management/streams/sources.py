"""Which mirrors and sources are legal, among the streams that are there.

The origin need not exist. If it does, and is a stream of the same account, sizes, loops and direct gets are checked
against it; an external origin belongs to another account or server.

Invariant: no chain of mirrors and sources within an account leads back to where it began, unless its last link is a
source with a filter outside the subjects of the stream that has it. Checking ends, however many ways there are.
"""

import msgspec

from jetlake.management.streams.config import SourceConsumer, StreamConfig, StreamSource
from jetlake.management.streams.context import StreamContext
from jetlake.management.subjects.names import (
    ALL_THE_REST,
    collide,
    hash8,
    is_literal_subject,
    is_name,
    is_subject,
    is_subset,
)
from jetlake.management.subjects.transform import TransformError, check_mapping
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.shared.go_text import quoted

API_PREFIX = "$JS.API"
TRANSFORMS_MAX = 500
"""Each is compared with each, which takes a tenth of a second for this many."""
PREFIX_COMPARISONS_MAX = 200_000
"""Prefixes of external origins times subjects of local ones; as above."""
FOLLOWED_ORIGINS_MAX = 100_000
"""Origins are followed once for each way to them, and the number of ways can grow without bound."""

# What separates the filters of one source in its index name; no subject contains it.
_SEPARATOR = "\f"


def check_sources(config: StreamConfig, context: StreamContext, *, is_pedantic: bool) -> StreamConfig:
    """Check the mirror and the sources; return the configuration with what a mirror inherits."""
    if config.mirror is not None:
        config = _check_mirror(config, config.mirror, context, is_pedantic=is_pedantic)
    if config.sources:
        _check_each_source(config, config.sources, context)
    _check_external_prefixes(config, context)
    if _has_cycle(config, context):
        raise RequestError(ErrorCode.STREAM_INVALID_CONFIG, err="detected cycle")
    return config


def check_filters(config: StreamConfig) -> None:
    """Raise `RequestError` for a filter that is not a subject. This is found last, when the stream is made."""
    if config.mirror is not None and not _is_filter(config.mirror.filter_subject):
        reason = f"subject filter '{config.mirror.filter_subject}' for the mirror invalid subject"
        raise RequestError(ErrorCode.STREAM_CREATE, err=reason)
    for source in config.sources or ():
        if not _is_filter(source.filter_subject):
            reason = f"subject filter '{source.filter_subject}' for the source: invalid subject"
            raise RequestError(ErrorCode.STREAM_CREATE, err=reason)


def index_name(source: StreamSource) -> str:
    """Return what tells one source from another: origin, filters and destinations."""
    transforms = source.subject_transforms or ()
    filters = [transform.src or ALL_THE_REST for transform in transforms] or [source.filter_subject or ALL_THE_REST]
    destinations = [transform.dest or ALL_THE_REST for transform in transforms] or [ALL_THE_REST]
    return f"{_origin_name(source)} {_SEPARATOR.join(filters)} {_SEPARATOR.join(destinations)}"


def _origin_name(source: StreamSource) -> str:
    """Return what tells one origin, and one consumer of it, from another."""
    external = "" if source.external is None else f":{hash8(source.external.api)}"
    consumer = "" if source.consumer is None else f":C={hash8(source.consumer.name)}"
    return f"{source.name}{external}{consumer}"


def _check_mirror(
    config: StreamConfig, mirror: StreamSource, context: StreamContext, *, is_pedantic: bool
) -> StreamConfig:
    for is_wrong, code in (
        (config.first_seq > 0, ErrorCode.MIRROR_WITH_FIRST_SEQUENCE),
        (bool(config.subjects), ErrorCode.MIRROR_WITH_SUBJECTS),
        (bool(config.sources), ErrorCode.MIRROR_WITH_SOURCES),
        (config.allow_msg_counter, ErrorCode.MIRROR_WITH_COUNTERS),
        (config.allow_atomic, ErrorCode.MIRROR_WITH_ATOMIC_PUBLISH),
        (config.allow_batched, ErrorCode.MIRROR_WITH_BATCH_PUBLISH),
        (config.allow_msg_schedules, ErrorCode.MIRROR_WITH_MESSAGE_SCHEDULES),
        (not _is_consumer(mirror), ErrorCode.MIRROR_DURABLE_CONSUMER_CONFIG_INVALID),
        (
            bool(mirror.filter_subject and mirror.subject_transforms),
            ErrorCode.MIRROR_MULTIPLE_FILTERS_NOT_ALLOWED,
        ),
    ):
        if is_wrong:
            raise RequestError(code)
    if config.subject_delete_marker_ttl:
        raise RequestError(ErrorCode.STREAM_INVALID_CONFIG, err="subject delete markers forbidden on mirrors")
    _check_mirror_transforms(mirror)
    if mirror.external is not None:
        return config
    if not is_name(mirror.name):
        raise RequestError(ErrorCode.MIRROR_INVALID_STREAM_NAME)
    origin = context.streams.get(mirror.name)
    if origin is None:
        return config
    if 0 < config.max_msg_size < origin.max_msg_size:
        raise RequestError(ErrorCode.MIRROR_MAX_MESSAGE_SIZE_TOO_BIG)
    if is_pedantic and config.mirror_direct != origin.allow_direct:
        raise RequestError(ErrorCode.PEDANTIC, err="origin stream has direct get set, mirror has it disabled")
    return msgspec.structs.replace(config, mirror_direct=origin.allow_direct)


def _check_mirror_transforms(mirror: StreamSource) -> None:
    transforms = mirror.subject_transforms or ()
    _check_count(len(transforms), TRANSFORMS_MAX, "subject transforms")
    for index, transform in enumerate(transforms):
        if not _is_filter(transform.src):
            raise RequestError(ErrorCode.MIRROR_INVALID_SUBJECT_FILTER, err=f"invalid subject {transform.src}")
        try:
            check_mapping(transform.src, transform.dest)
        except TransformError as error:
            raise RequestError(ErrorCode.MIRROR_INVALID_TRANSFORM_DESTINATION, err=error) from None
        if any(collide(transform.src, other.src) for at, other in enumerate(transforms) if at != index):
            raise RequestError(ErrorCode.MIRROR_OVERLAPPING_SUBJECT_FILTERS)


def _check_each_source(config: StreamConfig, sources: tuple[StreamSource, ...], context: StreamContext) -> None:
    if config.allow_msg_schedules:
        raise RequestError(ErrorCode.SOURCE_WITH_MESSAGE_SCHEDULES)
    index_names: set[str] = set()
    consumers: set[str] = set()
    for source in sources:
        # A source that is `null` in the request has no name either.
        if source is None or not is_name(source.name):
            raise RequestError(ErrorCode.SOURCE_INVALID_STREAM_NAME)
        name = index_name(source)
        if name in index_names:
            raise RequestError(ErrorCode.SOURCE_DUPLICATE_DETECTED)
        index_names.add(name)
        _check_source_transforms(source)
        if not _is_consumer(source):
            raise RequestError(ErrorCode.SOURCE_DURABLE_CONSUMER_CONFIG_INVALID)
        if source.consumer is not None and _origin_name(source) in consumers:
            raise RequestError(ErrorCode.SOURCE_DURABLE_CONSUMER_DUPLICATE_DETECTED)
        consumers.add(_origin_name(source))
        origin = None if source.external is not None else context.streams.get(source.name)
        if origin is not None and 0 < config.max_msg_size < origin.max_msg_size:
            raise RequestError(ErrorCode.SOURCE_MAX_MESSAGE_SIZE_TOO_BIG)


def _check_source_transforms(source: StreamSource) -> None:
    transforms = source.subject_transforms or ()
    if source.filter_subject and transforms:
        raise RequestError(ErrorCode.SOURCE_MULTIPLE_FILTERS_NOT_ALLOWED)
    _check_count(len(transforms), TRANSFORMS_MAX, "subject transforms")
    for transform in transforms:
        if not _is_filter(transform.src):
            raise RequestError(ErrorCode.SOURCE_INVALID_SUBJECT_FILTER, err=f"invalid subject {transform.src}")
        try:
            check_mapping(transform.src, transform.dest)
        except TransformError as error:
            raise RequestError(ErrorCode.SOURCE_INVALID_TRANSFORM_DESTINATION, err=error) from None
    for index, transform in enumerate(transforms):
        if any(is_subset(transform.src, other.src) for at, other in enumerate(transforms) if at != index):
            raise RequestError(ErrorCode.SOURCE_OVERLAPPING_SUBJECT_FILTERS)


def _check_count(count: int, most: int, what: str) -> None:
    if count > most:
        raise RequestError(ErrorCode.STREAM_INVALID_CONFIG, err=f"too many {what}, maximum allowed is {most}")


def _is_filter(subject: str) -> bool:
    return not subject or is_subject(subject)


def _is_consumer(source: StreamSource) -> bool:
    """Return whether the consumer of a source, if one is named, can be one: it says itself where to start."""
    if source.consumer is None:
        return True
    if source.opt_start_seq or source.opt_start_time is not None or source.filter_subject:
        return False
    return _is_complete(source.consumer)


def _is_complete(consumer: SourceConsumer) -> bool:
    return is_name(consumer.name) and is_literal_subject(consumer.deliver_subject)


def _check_external_prefixes(config: StreamConfig, context: StreamContext) -> None:
    sources = _all_sources(config)
    externals = [source.external for source in sources if source.external is not None]
    origins = [context.streams.get(source.name) for source in sources if source.external is None]
    origin_subjects = [subject for origin in origins if origin is not None for subject in origin.subjects or ()]
    deliver_prefixes = [external.deliver for external in externals if external.deliver]
    comparisons = len(deliver_prefixes) * len(origin_subjects)
    _check_count(comparisons, PREFIX_COMPARISONS_MAX, "external prefixes for these subjects")
    for prefix in deliver_prefixes:
        if not is_literal_subject(prefix):
            raise RequestError(ErrorCode.STREAM_INVALID_EXTERNAL_DELIVERY_SUBJECT, prefix=prefix)
        for subject in origin_subjects:
            if collide(subject, f"{prefix}.{subject}"):
                raise RequestError(ErrorCode.STREAM_EXTERNAL_DELIVER_PREFIX_OVERLAPS, prefix=prefix, subject=subject)
    for prefix in [external.api for external in externals if external.api]:
        if not is_literal_subject(prefix):
            reason = f"stream external api prefix {quoted(prefix)} must be a valid subject without wildcards"
            raise RequestError(ErrorCode.STREAM_INVALID_CONFIG, err=reason)
        if collide(prefix, API_PREFIX):
            raise RequestError(ErrorCode.STREAM_EXTERNAL_API_OVERLAP, prefix=prefix, subject=API_PREFIX)


def _has_cycle(config: StreamConfig, context: StreamContext) -> bool:
    """Return whether following local origins from here leads to a stream that was followed before.

    As on nats-server, two ways to one origin may count as a cycle, too, when one of them is longer.
    """
    visited: set[str] = set()
    waiting = [config]
    for stream in waiting:
        visited.add(stream.name)
        for source in (*(stream.sources or ()), *(() if stream.mirror is None else (stream.mirror,))):
            if source.external is not None:
                continue
            if source.name in visited:
                if source is stream.mirror or _takes_any(source.filter_subject, stream.subjects or ()):
                    return True
            elif source.name in context.streams:
                waiting.append(context.streams[source.name])
        if len(waiting) > FOLLOWED_ORIGINS_MAX:
            return True
    return False


def _takes_any(filter_subject: str, subjects: tuple[str, ...]) -> bool:
    return not filter_subject or any(collide(filter_subject, subject) for subject in subjects)


def _all_sources(config: StreamConfig) -> tuple[StreamSource, ...]:
    mirror = () if config.mirror is None else (config.mirror,)
    return mirror + (config.sources or ())
