"""Which consumers are legal. That the order is nats-server's is shown by `test_consumers_against_nats_server`."""

import msgspec
import pytest

from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.consumers.context import ConsumerContext
from jetlake.management.consumers.defaults import with_defaults
from jetlake.management.consumers.stream_consumers import Consumer, StreamConsumers
from jetlake.management.consumers.validation import check_config, check_new, check_unique
from jetlake.management.streams.config import ConsumerLimits, StreamConfig
from jetlake.management.streams.context import ServerLimits, StreamAccountLimits
from jetlake.management.wire.error_codes import RequestError as ApiError
from jetlake.management.wire.times import Timestamp
from tests.effort import assert_linear

SECOND = 1_000_000_000
STREAM = ConsumerContext(stream=StreamConfig(name="S", subjects=("s.>",), num_replicas=1))
WORK = ConsumerContext(stream=StreamConfig(name="W", retention="workqueue", num_replicas=1))
PUSH = {"deliver_subject": "x"}
MANY = "9" * 20
OUT_OF_RANGE = "10095 failed to parse consumer sampling configuration: strconv.Atoi: parsing "
OUT_OF_RANGE += f'"{MANY}": value out of range'
THEN = Timestamp.read("2020-01-01T00:00:00Z")


def refusal_of(check, config: ConsumerConfig, *arguments: object) -> str:
    with pytest.raises(ApiError) as raised:
        check(config, *arguments)
    return f"{raised.value.code.number} {raised.value.description}"


def having(*consumers: ConsumerConfig) -> StreamConsumers:
    having = StreamConsumers()
    for config in consumers:
        having.put(Consumer(name=config.name, config=config, created=""))
    return having


@pytest.mark.parametrize(
    ("config", "refusal"),
    [
        ({"name": "a.b"}, "10052 consumer name can not contain '.', '*', '>', '\\', '/'"),
        ({"durable_name": "a b"}, "10052 consumer durable name can not contain '.', '*', '>', '\\', '/'"),
        ({"num_replicas": 3}, "10126 consumer config replica count exceeds parent stream"),
        ({"num_replicas": -1}, "10133 replicas count cannot be negative"),
        ({"backoff": (-1,)}, "10184 consumer backoff needs to be positive"),
        ({"ack_wait": -1}, "10183 consumer ack wait needs to be positive"),
        ({"ack_policy": "flow_control"}, "10218 flow control ack policy requires a push based consumer"),
        (
            {**PUSH, "ack_policy": "flow_control", "max_ack_pending": -1},
            "10220 flow control ack policy requires max ack pending",
        ),
        (
            {**PUSH, "ack_policy": "flow_control", "ack_wait": 5},
            "10221 flow control ack policy requires unset ack wait",
        ),
        (
            {**PUSH, "ack_policy": "flow_control", "max_deliver": 5},
            "10222 flow control ack policy requires unset max deliver",
        ),
        ({"backoff": (1, 2), "max_deliver": 1}, "10116 max deliver is required to be > length of backoff values"),
        ({"description": "é" * 2_049}, "10107 consumer description is too long, maximum allowed is 4096"),
        ({"deliver_subject": "x.*"}, "10079 consumer deliver subject has wildcards"),
        ({"deliver_subject": "x..y"}, "10112 invalid push consumer deliver subject"),
        ({"deliver_subject": "s.x"}, "10081 consumer deliver subject forms a cycle"),
        ({**PUSH, "max_waiting": 1}, "10080 consumer in push mode can not set max waiting"),
        ({**PUSH, "max_ack_pending": 1}, "10082 consumer requires ack policy for max ack pending"),
        ({**PUSH, "idle_heartbeat": 1}, "10083 consumer idle heartbeat needs to be >= 100ms"),
        ({"rate_limit_bps": 1}, "10086 consumer in pull mode can not have rate limit set"),
        ({"idle_heartbeat": SECOND}, "10088 consumer idle heartbeat requires a push based consumer"),
        ({"flow_control": True}, "10089 consumer flow control requires a push based consumer"),
        ({"max_expires": 1}, "10115 consumer max request expires needs to be >= 1ms"),
        ({"direct": True}, "10090 consumer direct requires a push based consumer"),
        ({**PUSH, "direct": True, "durable_name": "C"}, "10091 consumer direct requires an ephemeral consumer"),
        (
            {"filter_subject": "a", "filter_subjects": ("b",)},
            "10136 consumer cannot have both FilterSubject and FilterSubjects specified",
        ),
        ({"filter_subject": "a b"}, "10052 invalid subject"),
        ({"filter_subjects": ("a", "")}, "10139 consumer filter in FilterSubjects cannot be empty"),
        ({"filter_subjects": ("a", "b c")}, "10052 invalid subject"),
        ({"filter_subjects": ("a.*", "a.b")}, "10138 consumer subject filters cannot overlap"),
        ({"filter_subjects": ("a.b", "a.*", "x y")}, "10138 consumer subject filters cannot overlap"),
        ({"filter_subjects": ("x y", "a.b", "a.*")}, "10052 invalid subject"),
        (
            {"opt_start_seq": 5},
            "10094 consumer delivery policy is deliver all, but optional start sequence is also set",
        ),
        (
            {"deliver_policy": "last_per_subject", "opt_start_time": THEN},
            "10094 consumer delivery policy is deliver last per subject, but optional start time is also set",
        ),
        (
            {"deliver_policy": "last_per_subject"},
            "10094 consumer delivery policy is deliver last per subject, but optional filter subject is not set",
        ),
        (
            {"deliver_policy": "by_start_sequence"},
            "10094 consumer delivery policy is deliver by start sequence, but optional start sequence is not set",
        ),
        (
            {"deliver_policy": "by_start_time", "opt_start_time": THEN, "opt_start_seq": 1},
            "10094 consumer delivery policy is deliver by start time, but optional start start sequence is also set",
        ),
        (
            {"sample_freq": "x%"},
            '10095 failed to parse consumer sampling configuration: strconv.Atoi: parsing "x": invalid syntax',
        ),
        (
            {"sample_freq": MANY},
            OUT_OF_RANGE,
        ),
        ({"sample_freq": "-1"}, "10095 failed to parse consumer sampling configuration: <nil>"),
        ({**PUSH, "flow_control": True}, "10108 consumer with flow control also needs heartbeats"),
        (
            {"durable_name": "C", "name": "D"},
            "10132 Consumer Durable and Name have to be equal if both are provided",
        ),
        ({"metadata": {"k": "v" * 131_072}}, "10135 consumer metadata exceeds maximum size of 128KB"),
        ({"priority_groups": ("g",)}, "10196 consumer can not have priority groups when policy is none"),
        ({"priority_timeout": 1}, "10197 PinnedTTL cannot be set when PriorityPolicy is none"),
        (
            {**PUSH, "priority_policy": "overflow", "priority_groups": ("g",)},
            "10178 priority groups can not be used with push consumers",
        ),
        ({"priority_policy": "overflow"}, "10159 Setting PriorityPolicy requires at least one PriorityGroup to be set"),
        (
            {"priority_policy": "overflow", "priority_groups": ("",)},
            "10161 Group name cannot be an empty string",
        ),
        (
            {"priority_policy": "overflow", "priority_groups": ("x" * 17,)},
            "10162 Valid priority group name must match A-Z, a-z, 0-9, -_/=)+ and may not exceed 16 characters",
        ),
    ],
)
def test_what_is_wrong_is_told(config, refusal):
    wanted = with_defaults(ConsumerConfig(**config), STREAM)

    assert refusal_of(check_config, wanted, STREAM) == refusal


def test_pedantic_flow_control_is_spelled_out():
    config = ConsumerConfig(**PUSH, ack_policy="flow_control", max_ack_pending=5, max_deliver=-1)

    assert refusal_of(check_config, config, STREAM) == "10219 flow control ack policy requires flow control"
    config = msgspec.structs.replace(config, flow_control=True, idle_heartbeat=2 * SECOND)
    assert refusal_of(check_config, config, STREAM) == "10052 flow control ack policy heartbeat needs to be 1s"
    check_config(msgspec.structs.replace(config, idle_heartbeat=SECOND), STREAM)


def test_limits_are_told_with_their_numbers():
    limits = ConsumerLimits(max_ack_pending=10, inactive_threshold=90 * SECOND)
    context = ConsumerContext(
        stream=StreamConfig(name="S", consumer_limits=limits),
        account=StreamAccountLimits(max_ack_pending=20),
        server=ServerLimits(max_ack_pending=30, max_request_batch=5),
    )

    for pending, limit in ((31, 30), (21, 20), (11, 10)):
        text = f"10121 consumer max ack pending exceeds system limit of {limit}"
        assert refusal_of(check_config, ConsumerConfig(max_ack_pending=pending), context) == text
    text = "10125 consumer max request batch exceeds server limit of 5"
    assert refusal_of(check_config, ConsumerConfig(max_batch=6), context) == text
    text = "10153 consumer inactive threshold exceeds system limit of 1m30s"
    assert refusal_of(check_config, ConsumerConfig(inactive_threshold=91 * SECOND), context) == text


def test_work_queue_is_for_consumers_that_acknowledge_each_message_once():
    pull = ConsumerConfig(ack_policy="explicit")

    text = "10084 consumer in pull mode requires explicit ack policy on workqueue stream"
    assert refusal_of(check_config, ConsumerConfig(), WORK) == text
    assert (
        refusal_of(check_new, ConsumerConfig(ack_policy="all"), WORK) == "10098 workqueue stream requires explicit ack"
    )
    text = "10101 consumer must be deliver all on workqueue stream"
    assert refusal_of(check_new, ConsumerConfig(ack_policy="explicit", deliver_policy="new"), WORK) == text
    check_new(pull, WORK)
    check_new(ConsumerConfig(direct=True), WORK)

    taken = msgspec.structs.replace(
        WORK, consumers=having(ConsumerConfig(name="A", filter_subject="a.*"), ConsumerConfig(name="I", sourcing=True))
    )
    text = "10099 multiple non-filtered consumers not allowed on workqueue stream"
    assert refusal_of(check_new, pull, taken) == text
    filtered = msgspec.structs.replace(pull, name="B", filter_subject="a.b")
    text = "10100 filtered consumer not unique on workqueue stream"
    assert refusal_of(check_new, filtered, taken) == text
    check_new(msgspec.structs.replace(filtered, filter_subject="b"), taken)
    check_unique(filtered, "A", taken)


@pytest.mark.parametrize(("of_stream", "of_account"), [(2, -1), (-1, 2), (2, 5), (5, 2)])
def test_consumers_are_limited_by_the_stream_and_by_the_account(of_stream, of_account):
    context = ConsumerContext(
        stream=StreamConfig(name="S", max_consumers=of_stream),
        account=StreamAccountLimits(max_consumers=of_account),
        consumers=having(ConsumerConfig(name="A"), ConsumerConfig(name="I", direct=True)),
    )

    check_new(ConsumerConfig(), context)
    context.consumers.put(Consumer(name="B", config=ConsumerConfig(), created=""))
    assert refusal_of(check_new, ConsumerConfig(), context) == "10026 maximum consumers limit reached"
    check_new(ConsumerConfig(sourcing=True), context)


def test_durable_name_fits_a_folder():
    check_new(ConsumerConfig(durable_name="N" * 255), STREAM)
    text = "10102 consumer name is too long, maximum allowed is 255"
    assert refusal_of(check_new, ConsumerConfig(durable_name="é" * 128), STREAM) == text


def test_effort_of_checking_filters_grows_with_their_number():
    def check_of(count):
        filters = tuple(f"device.{number}.*" for number in range(count))
        return lambda: check_config(ConsumerConfig(filter_subjects=filters, max_deliver=-1), STREAM)

    check_of(50_000)()

    assert_linear(check_of, 1_000)
