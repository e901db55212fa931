"""From the subject and the bytes of a request to the configuration to keep."""

import re

import msgspec
import pytest

from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.consumers.context import ConsumerContext
from jetlake.management.consumers.requests import (
    ConsumerSubject,
    CreateRequest,
    decide,
    for_copying,
    named,
    new_name,
)
from jetlake.management.consumers.stream_consumers import Consumer, StreamConsumers
from jetlake.management.streams.config import StreamConfig
from jetlake.management.wire.error_codes import RequestError as ApiError
from jetlake.management.wire.times import Timestamp

STREAM = ConsumerContext(stream=StreamConfig(name="S", num_replicas=1))
PULL = ConsumerConfig(ack_policy="explicit", name="C")


def refusal_of(function, *arguments: object) -> str:
    with pytest.raises(ApiError) as raised:
        function(*arguments)
    return f"{raised.value.code.number} {raised.value.description}"


def asked(**config: object) -> CreateRequest:
    return CreateRequest(stream_name="S", config=ConsumerConfig(**config))


def on(name: str = "", **options: object) -> ConsumerSubject:
    return ConsumerSubject(stream="S", name=name, **options)


@pytest.mark.parametrize(
    ("subject", "request_", "refusal"),
    [
        (on("C"), CreateRequest(stream_name="T"), "10056 stream name in subject does not match request"),
        (on("a/b"), asked(), "10127 Consumer name can not contain path separators"),
        (on(), asked(name="a\\b"), "10127 Consumer name can not contain path separators"),
        (on("C", is_durable=True), asked(), "10018 consumer expected to be durable but a durable name was not set"),
        (
            on("C", is_durable=True),
            asked(durable_name="D"),
            "10017 consumer name in subject does not match durable name in request",
        ),
        (on("C"), asked(durable_name="D"), "10017 consumer name in subject does not match durable name in request"),
        (
            on(),
            asked(durable_name="D"),
            "10020 consumer expected to be ephemeral but a durable name was set in request",
        ),
        (
            on("C", filter="a"),
            asked(filter_subjects=("a",)),
            "10137 consumer with multiple subject filters cannot use subject based API",
        ),
        (
            on("C", filter="a"),
            asked(filter_subject="b"),
            "10131 Consumer create request did not match filtered subject from create subject",
        ),
        (on("C"), asked(num_replicas=2), "10074 replicas > 1 not supported in non-clustered mode"),
    ],
)
def test_subject_and_request_must_agree(subject, request_, refusal):
    assert refusal_of(named, subject, request_) == refusal


def test_name_in_the_subject_counts():
    assert named(on("C"), asked(name="D")).name == "C"
    assert named(on(), asked(name="D")).name == "D"
    assert named(on("C", is_durable=True), asked(durable_name="C")).name == "C"
    assert named(on("C", filter="a"), asked(filter_subject="a")).name == "C"


def test_new_consumer_gets_its_defaults_and_its_level():
    decision = decide(PULL, CreateRequest(), STREAM)

    assert (decision.name, decision.current, decision.is_unchanged) == ("C", None, False)
    assert decision.config.max_ack_pending == 1_000
    assert decision.config.inactive_threshold == 5_000_000_000
    assert decision.config.metadata == {"_nats.req.level": "0"}


def test_name_is_made_up_where_there_is_none():
    names = {decide(ConsumerConfig(), CreateRequest(), STREAM).name for _ in range(100)}

    assert len(names) == 100
    assert all(re.fullmatch("[0-9A-Za-z]{8}", name) for name in (*names, new_name()))


def having(config: ConsumerConfig) -> ConsumerContext:
    """Return the surroundings in which this consumer has been made."""
    decision = decide(config, CreateRequest(), STREAM)
    consumers = StreamConsumers()
    consumers.put(Consumer(name=decision.name, config=decision.config, created=""))
    return msgspec.structs.replace(STREAM, consumers=consumers)


def test_action_says_whether_the_consumer_may_be_there():
    durable = msgspec.structs.replace(PULL, durable_name="C")
    context = having(durable)
    create, update = CreateRequest(action="create"), CreateRequest(action="update")

    assert decide(durable, create, context).is_unchanged
    assert decide(durable, CreateRequest(), context).is_unchanged
    other = msgspec.structs.replace(durable, description="other")
    assert refusal_of(decide, other, create, context) == "10148 consumer already exists"
    assert not decide(other, update, context).is_unchanged
    assert refusal_of(decide, other, update, STREAM) == "10149 consumer does not exist"


def test_same_request_for_one_that_is_not_durable_is_another_one():
    # As on nats-server: the end it was given is not in the request.
    assert refusal_of(decide, PULL, CreateRequest(action="create"), having(PULL)) == "10148 consumer already exists"
    assert decide(PULL, CreateRequest(), having(PULL)).is_unchanged


def test_pause_is_not_changed_by_an_update():
    until = Timestamp.read("2100-01-01T00:00:00Z")
    context = having(msgspec.structs.replace(PULL, pause_until=until))

    decision = decide(msgspec.structs.replace(PULL, description="x"), CreateRequest(), context)

    assert decision.config.pause_until == until
    assert (decision.config.metadata or {})["_nats.req.level"] == "1"


@pytest.mark.parametrize(
    ("config", "level"),
    [
        ({}, "0"),
        ({"pause_until": Timestamp.read("0001-01-01T00:00:00Z")}, "0"),
        ({"pause_until": Timestamp.read("2000-01-01T00:00:00Z")}, "1"),
        ({"priority_policy": "overflow", "priority_groups": ("g",)}, "1"),
        ({"ack_policy": "flow_control", "deliver_subject": "x"}, "4"),
    ],
)
def test_level_is_what_the_features_need(config, level):
    metadata = {"_nats.req.level": "9", "_nats.ver": "x", "_nats.level": "y", "a": "b"}

    decision = decide(ConsumerConfig(**config, metadata=metadata), CreateRequest(), STREAM)

    assert decision.config.metadata == {"_nats.req.level": level, "a": "b"}


def test_options_of_ours_are_checked():
    config = msgspec.structs.replace(PULL, metadata={"jetlake.key": "nowhere"})

    assert refusal_of(decide, config, CreateRequest(), STREAM).startswith("10012 metadata jetlake.key can not be")
    assert refusal_of(decide, config, CreateRequest(), having(PULL)).startswith("10012 metadata jetlake.key can not be")


def test_name_that_is_too_long_for_a_folder_is_refused_where_there_is_one():
    config = msgspec.structs.replace(PULL, name="N" * 256)
    memory = msgspec.structs.replace(STREAM, stream=StreamConfig(name="S", storage="memory"))

    assert refusal_of(decide, config, CreateRequest(), STREAM) == "10012 error creating store for consumer"
    assert decide(config, CreateRequest(), memory)
    assert decide(msgspec.structs.replace(config, mem_storage=True), CreateRequest(), STREAM)


def test_copy_of_a_stream_gets_a_consumer_of_its_own():
    config = ConsumerConfig(name="JS_MIRROR_x", direct=True, sourcing=True, ack_wait=5, max_deliver=1)

    copied = for_copying(config, STREAM)

    assert re.fullmatch("JS_MIRROR_x-[0-9A-Za-z]{8}", copied.name)
    assert copied == msgspec.structs.replace(config, name=copied.name)
    assert for_copying(PULL, STREAM) == PULL
    assert for_copying(msgspec.structs.replace(config, name=""), STREAM).name == ""


@pytest.mark.parametrize("retention", ["workqueue", "interest"])
def test_copy_acknowledges_where_that_frees_messages(retention):
    context = msgspec.structs.replace(STREAM, stream=StreamConfig(name="S", retention=retention))
    config = ConsumerConfig(
        name="JS_SRC_x", direct=True, sourcing=True, ack_wait=5, max_deliver=1, inactive_threshold=7
    )

    copied = for_copying(config, context)

    assert copied == ConsumerConfig(name="JS_SRC_x", durable_name="JS_SRC_x", sourcing=True, ack_policy="flow_control")


def test_consumer_of_a_copy_keeps_where_it_began():
    durable = ConsumerConfig(name="C", durable_name="C", deliver_subject="x", sourcing=True, ack_policy="flow_control")
    began = msgspec.structs.replace(durable, deliver_policy="by_start_sequence", opt_start_seq=7)

    assert decide(durable, CreateRequest(), having(began)).is_unchanged
