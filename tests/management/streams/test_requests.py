"""Create and update, from bytes to decisions. The rules themselves are compared with nats-server elsewhere."""

import pytest

from jetlake.management.streams.account_streams import AccountStreams
from jetlake.management.streams.context import ExistingConsumer, ServerLimits, StreamAccountLimits, StreamContext
from jetlake.management.streams.requests import create, update
from jetlake.management.wire.error_codes import ErrorCode
from jetlake.management.wire.error_codes import RequestError as ApiError

NOTHING = StreamContext()


def existing(*bodies: bytes, **surroundings: object) -> StreamContext:
    streams = AccountStreams(create(f"S{number}", body, NOTHING).config for number, body in enumerate(bodies))
    return StreamContext(streams=streams, **surroundings)


def refusal(decide: object, name: str, body: bytes, context: StreamContext = NOTHING) -> ErrorCode:
    assert callable(decide)
    with pytest.raises(ApiError) as raised:
        decide(name, body, context)
    return raised.value.code


def test_new_stream_is_decided():
    decision = create("S", b'{"name":"S","subjects":["a.*"]}', NOTHING)

    assert not decision.is_unchanged
    assert decision.config.subjects == ("a.*",)
    assert decision.config.metadata == {"_nats.req.level": "0"}


def test_same_stream_again_is_no_change_and_another_one_is_refused():
    context = existing(b'{"name":"S0","max_msgs":-5}')

    assert create("S0", b'{"name":"S0","metadata":{"_nats.ver":"x"}}', context).is_unchanged
    assert refusal(create, "S0", b'{"name":"S0","max_msgs":5}', context) is ErrorCode.STREAM_NAME_EXIST


@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        ("S", b"", ErrorCode.STREAM_MISMATCH),
        ("S", b'{"name":"T"}', ErrorCode.STREAM_MISMATCH),
        ("a/b", b'{"name":"a/b"}', ErrorCode.STREAM_NAME_CONTAINS_PATH_SEPARATORS),
        ("S", b'{"name":"S","sealed":true}', ErrorCode.STREAM_INVALID_CONFIG),
        ("S", b'{"name":"S","mirror_direct":true}', ErrorCode.STREAM_INVALID_CONFIG),
        ("S", b'{"name":"S","num_replicas":3}', ErrorCode.STREAM_REPLICAS_NOT_SUPPORTED),
        ("S", b'{"name":"S","sources":[{"name":"A","filter_subject":"a b"}]}', ErrorCode.STREAM_CREATE),
    ],
)
def test_new_stream_is_refused(name, body, expected):
    assert refusal(create, name, body) is expected


def test_subjects_of_another_stream_are_refused():
    context = existing(b'{"name":"S0","subjects":["a.*"]}', b'{"name":"S1"}')

    assert refusal(create, "T", b'{"name":"T","subjects":["a.b"]}', context) is ErrorCode.STREAM_SUBJECT_OVERLAP
    assert refusal(update, "S1", b'{"name":"S1","subjects":["a.b"]}', context) is ErrorCode.STREAM_SUBJECT_OVERLAP
    assert update("S0", b'{"name":"S0","subjects":["a.b"]}', context).config.subjects == ("a.b",)


def test_account_bounds_streams_consumers_and_bytes():
    account = StreamAccountLimits(max_streams=2, max_consumers=3, max_storage=100)
    context = existing(b'{"name":"S0","max_bytes":60}', account=account)
    full = existing(b'{"name":"S0"}', b'{"name":"S1"}', account=account)

    assert refusal(create, "T", b'{"name":"T"}', full) is ErrorCode.MAXIMUM_STREAMS_LIMIT
    assert refusal(create, "T", b'{"name":"T","max_consumers":4}', context) is ErrorCode.MAXIMUM_CONSUMERS_LIMIT
    assert refusal(create, "T", b'{"name":"T","max_bytes":41}', context) is ErrorCode.STORAGE_RESOURCES_EXCEEDED
    assert refusal(update, "S0", b'{"name":"S0","max_bytes":101}', context) is ErrorCode.STORAGE_RESOURCES_EXCEEDED
    assert update("S0", b'{"name":"S0","max_bytes":100}', context).config.max_bytes == 100


def test_server_bounds_what_all_accounts_reserve():
    context = StreamContext(server=ServerLimits(max_memory=100, reserved_memory=100))

    assert refusal(create, "S", b'{"name":"S","storage":"memory"}', context) is ErrorCode.MEMORY_RESOURCES_EXCEEDED
    assert create("S", b'{"name":"S"}', context).config.storage == "file"


def test_update_asks_for_the_configuration_then_the_name_then_the_stream():
    assert refusal(update, "S", b'{"name":"T","max_age":-1}') is ErrorCode.STREAM_INVALID_CONFIG
    assert refusal(update, "S", b'{"name":"T"}') is ErrorCode.STREAM_MISMATCH
    assert refusal(update, "S", b'{"name":"S"}') is ErrorCode.STREAM_NOT_FOUND


def test_update_asks_the_consumers():
    context = existing(b'{"name":"S0"}', consumers=(ExistingConsumer(name="c", max_ack_pending=9),))
    body = b'{"name":"S0","consumer_limits":{"max_ack_pending":8}}'

    assert refusal(update, "S0", body, context) is ErrorCode.STREAM_UPDATE


def test_server_that_is_not_strict_tells_what_it_ignored():
    decision = create("S", b'{"name":"S","bogus":1}', NOTHING, is_strict=False)

    assert decision.unknown_keys == ("bogus",)


def test_moment_that_cannot_be_written_is_refused():
    context = existing(b'{"name":"S0"}')
    source = b'"sources":[{"name":"A","opt_start_time":"2020-01-01T00:00:00+24:00"}]'

    assert refusal(create, "T", b'{"name":"T",' + source + b"}") is ErrorCode.STREAM_CREATE
    assert refusal(update, "S0", b'{"name":"S0",' + source + b"}", context) is ErrorCode.STREAM_UPDATE
