"""What a consumer has that its request does not say."""

import msgspec
import pytest

from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.consumers.context import ConsumerContext
from jetlake.management.consumers.defaults import with_defaults, with_inactive_threshold
from jetlake.management.streams.config import ConsumerLimits, StreamConfig
from jetlake.management.streams.context import ServerLimits, StreamAccountLimits
from jetlake.management.wire.error_codes import RequestError as ApiError

SECOND = 1_000_000_000
STREAM = ConsumerContext(stream=StreamConfig(name="S"))
LIMITED = ConsumerContext(
    stream=StreamConfig(name="S", consumer_limits=ConsumerLimits(max_ack_pending=5, inactive_threshold=6))
)


def refusal(config: ConsumerConfig, context: ConsumerContext = STREAM) -> str:
    with pytest.raises(ApiError) as raised:
        with_defaults(config, context, is_pedantic=True)
    return f"{raised.value.code.number} {raised.value.description}"


def test_pull_consumer_with_acknowledgements():
    assert with_defaults(ConsumerConfig(ack_policy="explicit"), STREAM) == ConsumerConfig(
        ack_policy="explicit", ack_wait=30 * SECOND, max_deliver=-1, max_waiting=512, max_ack_pending=1_000
    )


def test_push_consumer_without_acknowledgements():
    assert with_defaults(ConsumerConfig(deliver_subject="x"), STREAM) == ConsumerConfig(
        deliver_subject="x", max_deliver=-1
    )


def test_flow_control_as_acknowledgement_brings_heartbeats():
    config = with_defaults(ConsumerConfig(deliver_subject="x", ack_policy="flow_control"), STREAM)

    assert (config.flow_control, config.idle_heartbeat, config.ack_wait) == (True, SECOND, 0)


@pytest.mark.parametrize(
    ("key", "default", "text"),
    [
        ("max_deliver", -1, "max_deliver must be set to -1"),
        ("max_waiting", 512, "max_waiting must not be negative"),
        ("max_ack_pending", -1, "max_ack_pending must be set to -1"),
        ("max_batch", 0, "max_batch must not be negative"),
        ("max_expires", 0, "max_expires must not be negative"),
        ("max_bytes", 0, "max_bytes must not be negative"),
        ("idle_heartbeat", 0, "idle_heartbeat must not be negative"),
        ("inactive_threshold", 0, "inactive_threshold must not be negative"),
        ("priority_timeout", 0, "priority_timeout must not be negative"),
    ],
)
def test_number_that_is_too_low_is_the_default_unless_the_request_is_pedantic(key, default, text):
    config = ConsumerConfig(**{key: -2})

    assert getattr(with_defaults(config, STREAM), key) == default
    assert refusal(config) == f"10157 pedantic mode: {text}"


def test_wait_is_the_first_of_several():
    config = ConsumerConfig(ack_policy="all", ack_wait=9, backoff=(7, 8))

    assert with_defaults(config, STREAM).ack_wait == 7
    assert refusal(config) == "10157 pedantic mode: first backoff value has to equal batch AckWait"


def test_limits_of_the_stream_are_defaults():
    config = with_defaults(ConsumerConfig(), LIMITED)

    assert (config.max_ack_pending, config.inactive_threshold) == (5, 6)
    assert "max_ack_pending must be set if it's configured" in refusal(ConsumerConfig(), LIMITED)
    assert "inactive_threshold must be set if it's" in refusal(ConsumerConfig(max_ack_pending=1), LIMITED)


def test_limits_of_server_and_account_are_defaults():
    context = msgspec.structs.replace(
        STREAM,
        server=ServerLimits(max_ack_pending=40, max_request_batch=7),
        account=StreamAccountLimits(max_ack_pending=30),
    )

    config = with_defaults(ConsumerConfig(ack_policy="explicit"), context)

    assert (config.max_ack_pending, config.max_batch) == (30, 7)
    assert "max_request_batch must be set" in refusal(ConsumerConfig(), context)
    assert with_defaults(ConsumerConfig(deliver_subject="x"), context).max_batch == 0


def test_pinned_client_may_be_silent_for_two_minutes():
    config = ConsumerConfig(priority_policy="pinned_client", priority_groups=("g",))

    assert with_defaults(config, STREAM).priority_timeout == 120 * SECOND


def test_defaults_are_put_in_once():
    config = with_defaults(ConsumerConfig(ack_policy="explicit", backoff=(5, 6)), LIMITED)

    assert with_defaults(config, LIMITED) == config


def test_only_what_is_not_durable_ends_by_itself():
    assert with_inactive_threshold(ConsumerConfig(), is_durable=False).inactive_threshold == 5 * SECOND
    assert with_inactive_threshold(ConsumerConfig(inactive_threshold=7), is_durable=False).inactive_threshold == 7
    assert with_inactive_threshold(ConsumerConfig(), is_durable=True).inactive_threshold == 0
