"""Mirrors and sources among existing streams."""

import pytest

from jetlake.management.streams.account_streams import AccountStreams
from jetlake.management.streams.config import (
    ExternalStream,
    SourceConsumer,
    StreamConfig,
    StreamSource,
    SubjectTransform,
)
from jetlake.management.streams.context import StreamContext
from jetlake.management.streams.sources import check_filters, check_sources, index_name
from jetlake.management.wire.error_codes import ErrorCode
from jetlake.management.wire.error_codes import RequestError as ApiError


def context(*streams: StreamConfig) -> StreamContext:
    return StreamContext(streams=AccountStreams(streams))


def check(config: StreamConfig, *streams: StreamConfig, is_pedantic: bool = False) -> StreamConfig:
    return check_sources(config, context(*streams), is_pedantic=is_pedantic)


def refusal(config: StreamConfig, *streams: StreamConfig, is_pedantic: bool = False) -> ErrorCode:
    with pytest.raises(ApiError) as raised:
        check(config, *streams, is_pedantic=is_pedantic)
    return raised.value.code


def mirror_of(name: str, **options: object) -> StreamConfig:
    return StreamConfig(name="M", mirror=StreamSource(name=name, **options))


def sourced_from(*sources: StreamSource, **options: object) -> StreamConfig:
    return StreamConfig(name="T", sources=sources, **options)


def test_origin_need_not_exist():
    assert check(mirror_of("A")) == mirror_of("A")


def test_mirror_inherits_direct_gets_unless_the_request_is_pedantic():
    origin = StreamConfig(name="A", allow_direct=True)

    assert check(mirror_of("A"), origin).mirror_direct
    assert refusal(mirror_of("A"), origin, is_pedantic=True) is ErrorCode.PEDANTIC


def test_copy_must_hold_the_messages_of_a_local_origin():
    origin = StreamConfig(name="A", max_msg_size=100)
    small_mirror = StreamConfig(name="M", mirror=StreamSource(name="A"), max_msg_size=99)

    assert refusal(small_mirror, origin) is ErrorCode.MIRROR_MAX_MESSAGE_SIZE_TOO_BIG
    assert refusal(sourced_from(StreamSource(name="A"), max_msg_size=99), origin) is (
        ErrorCode.SOURCE_MAX_MESSAGE_SIZE_TOO_BIG
    )


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ((StreamSource(name="a.b"),), ErrorCode.SOURCE_INVALID_STREAM_NAME),
        ((None,), ErrorCode.SOURCE_INVALID_STREAM_NAME),
        ((StreamSource(name="A"), StreamSource(name="A", filter_subject=">")), ErrorCode.SOURCE_DUPLICATE_DETECTED),
        (
            (StreamSource(name="A", filter_subject="a", subject_transforms=(SubjectTransform(src="b"),)),),
            ErrorCode.SOURCE_MULTIPLE_FILTERS_NOT_ALLOWED,
        ),
        (
            (StreamSource(name="A", consumer=SourceConsumer(name="c", deliver_subject="x.*")),),
            ErrorCode.SOURCE_DURABLE_CONSUMER_CONFIG_INVALID,
        ),
        (
            (StreamSource(name="A", external=ExternalStream(api="$JS.API")),),
            ErrorCode.STREAM_EXTERNAL_API_OVERLAP,
        ),
    ],
)
def test_source_that_cannot_be_is_refused(sources, expected):
    assert refusal(sourced_from(*sources)) is expected


def test_number_of_transforms_has_a_bound():
    many = tuple(SubjectTransform(src=f"a.{number}", dest="b") for number in range(501))

    assert refusal(sourced_from(StreamSource(name="A", subject_transforms=many))) is ErrorCode.STREAM_INVALID_CONFIG
    check(sourced_from(StreamSource(name="A", subject_transforms=many[:500])))


def test_external_prefix_must_not_deliver_into_a_local_origin():
    origin = StreamConfig(name="A", subjects=("a.>",))
    external = StreamSource(name="B", external=ExternalStream(api="x", deliver="a"))

    assert refusal(sourced_from(StreamSource(name="A"), external), origin) is (
        ErrorCode.STREAM_EXTERNAL_DELIVER_PREFIX_OVERLAPS
    )


def test_cycle_is_found_through_other_streams():
    middle = StreamConfig(name="A", subjects=("a",), sources=(StreamSource(name="B", filter_subject="z"),))
    last = StreamConfig(name="B", subjects=("b",), sources=(StreamSource(name="T"),))

    assert refusal(sourced_from(StreamSource(name="A")), middle, last) is ErrorCode.STREAM_INVALID_CONFIG


def test_last_link_that_takes_nothing_of_its_own_subjects_closes_no_cycle():
    middle = StreamConfig(name="A", subjects=("a",), sources=(StreamSource(name="T", filter_subject="z"),))

    assert check(sourced_from(StreamSource(name="A")), middle).name == "T"


def test_longer_way_to_an_origin_counts_as_a_cycle():
    near = StreamConfig(name="A", subjects=("a",))
    far = StreamConfig(name="B", subjects=("b",), sources=(StreamSource(name="A"),))

    assert refusal(sourced_from(StreamSource(name="A"), StreamSource(name="B")), near, far) is (
        ErrorCode.STREAM_INVALID_CONFIG
    )


def test_check_for_cycles_ends_when_the_ways_are_beyond_counting():
    layers = [[f"L{depth}{side}" for side in "ab"] for depth in range(40)]
    streams = [
        StreamConfig(name=name, sources=tuple(StreamSource(name=origin) for origin in layers[depth + 1]))
        for depth, layer in enumerate(layers[:-1])
        for name in layer
    ]

    assert refusal(sourced_from(*(StreamSource(name=name) for name in layers[0])), *streams) is (
        ErrorCode.STREAM_INVALID_CONFIG
    )


def test_external_link_closes_no_cycle():
    check(sourced_from(StreamSource(name="T", external=ExternalStream(api="x"))))


def test_filter_that_is_no_subject_is_found_when_the_stream_is_made():
    with pytest.raises(ApiError, match="subject filter 'a b' for the source: invalid subject"):
        check_filters(sourced_from(StreamSource(name="A", filter_subject="a b")))


def test_index_name_tells_sources_apart():
    source = StreamSource(
        name="O",
        external=ExternalStream(api="$JS.hub.API"),
        subject_transforms=(SubjectTransform(src="o.1", dest="tr.one"), SubjectTransform(src="o.4")),
    )

    assert index_name(StreamSource(name="O")) == "O > >"
    assert index_name(source) == "O:bTMUkJQk o.1\fo.4 tr.one\f>"
