"""Which subjects, transforms and republishing are legal for one stream.

A stream must not take what the server says to its clients, or its own answers, unless it never acknowledges: each
acknowledgement would be stored and acknowledged again.
"""

import msgspec

from jetlake.management.streams.account_streams import AccountStreams
from jetlake.management.streams.config import StreamConfig, StreamRepublish
from jetlake.management.subjects import taken as taken_subjects
from jetlake.management.subjects.index import ComparisonLimitError, first_overlap
from jetlake.management.subjects.names import ALL_THE_REST, collide, is_subject, is_subset
from jetlake.management.subjects.transform import TransformError, check_mapping, make_transform
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.shared.go_text import quoted

COMPARED_SUBJECTS_MAX = 200
"""Up to here each subject is compared with each, in a few milliseconds and in exactly nats-server's order."""

_API_SUBJECTS = ("$JS.>", "$JSC.>", "$NRG.>")
_EVENT_SUBJECTS = "$JS.EVENT.>"
_SYSTEM_SUBJECTS = "$SYS.>"
_ACCOUNT_SUBJECTS = "$SYS.ACCOUNT.>"
_BEGINNINGS_OF_RESERVED = "$*>"
"""What subjects begin with that can overlap with the reserved ones: most do not, and there may be tens of thousands."""

_TOO_MANY_WILDCARDS = "subjects have too many wildcards to be compared"


def with_subjects(config: StreamConfig) -> StreamConfig:
    """Return the configuration with its name as its subject, if it has no other way to get messages."""
    if not config.subjects:
        if config.mirror is None and not config.sources:
            return msgspec.structs.replace(config, subjects=(config.name,))
        return config
    if len(config.subjects) > COMPARED_SUBJECTS_MAX:
        _check_many_subjects(config.subjects, config)
        return config
    for index, subject in enumerate(config.subjects):
        _check_subject(subject, config)
        for later in config.subjects[index + 1 :]:
            if collide(subject, later):
                raise _overlap(subject, later)
    return config


def check_others(config: StreamConfig, streams: AccountStreams) -> None:
    """Raise `RequestError` when some message would be stored by another stream too."""
    try:
        is_taken = streams.overlaps(config)
    except taken_subjects.LookupLimitError:
        raise _invalid(_TOO_MANY_WILDCARDS) from None
    if is_taken:
        raise RequestError(ErrorCode.STREAM_SUBJECT_OVERLAP)


def check_subject_transform(config: StreamConfig) -> None:
    """Raise `RequestError` unless the stream's own transform is legal."""
    transform = config.subject_transform
    if transform is None:
        return
    if transform.src and not is_subject(transform.src):
        raise RequestError(ErrorCode.STREAM_TRANSFORM_INVALID_SOURCE, err=f"invalid subject {transform.src}")
    try:
        check_mapping(transform.src, transform.dest)
    except TransformError as error:
        raise RequestError(ErrorCode.STREAM_TRANSFORM_INVALID_DESTINATION, err=error) from None


def check_republish(config: StreamConfig, *, is_pedantic: bool) -> StreamConfig:
    """Return the configuration with what it republishes spelled out, or raise `RequestError`."""
    republish = config.republish
    if republish is None:
        return config
    if not republish.src:
        if is_pedantic:
            raise RequestError(ErrorCode.PEDANTIC, err="republish source can not be empty")
        republish = msgspec.structs.replace(republish, src=ALL_THE_REST)
    republish = _after_transform(config, republish, is_pedantic=is_pedantic)
    if any(collide(republish.dest, subject) for subject in config.subjects or ()):
        raise _invalid("stream configuration for republish destination forms a cycle")
    try:
        if republish.dest:
            make_transform(republish.src, republish.dest)
    except TransformError:
        between = f"from '{republish.src}' to '{republish.dest}'"
        raise _invalid(f"stream configuration for republish with transform {between} not valid") from None
    return msgspec.structs.replace(config, republish=republish)


def _after_transform(config: StreamConfig, republish: StreamRepublish, *, is_pedantic: bool) -> StreamRepublish:
    """Everything to everything would be a cycle, but not when the transform moves every subject of the stream."""
    transform = config.subject_transform
    if transform is None or (republish.src, republish.dest) != (ALL_THE_REST, ALL_THE_REST):
        return republish
    if config.subjects != (transform.src,):
        return republish
    if is_pedantic:
        raise RequestError(ErrorCode.PEDANTIC, err="implicit republish based on subject transform")
    return msgspec.structs.replace(republish, src=transform.dest, dest=transform.dest)


def _check_many_subjects(subjects: tuple[str, ...], config: StreamConfig) -> None:
    """Check subjects too many to be compared each with each. Invalid subjects are reported before overlaps."""
    for subject in subjects:
        _check_subject(subject, config)
    pair = _first_overlap(subjects)
    if pair is not None:
        raise _overlap(subjects[pair[0]], subjects[pair[1]])


def _first_overlap(subjects: tuple[str, ...]) -> tuple[int, int] | None:
    try:
        return first_overlap(subjects)
    except ComparisonLimitError:
        raise _invalid(_TOO_MANY_WILDCARDS) from None


def _check_subject(subject: str, config: StreamConfig) -> None:
    if not is_subject(subject):
        raise _invalid("invalid subject")
    if subject == ALL_THE_REST and not config.no_ack:
        raise _invalid("capturing all subjects requires no-ack to be true")
    if subject == ALL_THE_REST and config.num_replicas != 1:
        raise _invalid("capturing all subjects requires replicas of 1")
    if config.no_ack or subject[0] not in _BEGINNINGS_OF_RESERVED:
        return
    is_event = is_subset(subject, _EVENT_SUBJECTS)
    if not is_event and any(collide(subject, reserved) for reserved in _API_SUBJECTS):
        raise _invalid("subjects that overlap with jetstream api require no-ack to be true")
    if collide(subject, _SYSTEM_SUBJECTS) and not is_subset(subject, _ACCOUNT_SUBJECTS):
        raise _invalid("subjects that overlap with system api require no-ack to be true")


def _overlap(first: str, second: str) -> RequestError:
    return _invalid(f"subject {quoted(first)} overlaps with {quoted(second)}")


def _invalid(reason: str) -> RequestError:
    return RequestError(ErrorCode.STREAM_INVALID_CONFIG, err=reason)
