"""Which changes a consumer accepts."""

import msgspec
import pytest

from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.consumers.context import ConsumerContext
from jetlake.management.consumers.stream_consumers import Consumer, StreamConsumers
from jetlake.management.consumers.update import paused, updated
from jetlake.management.streams.config import StreamConfig
from jetlake.management.wire.error_codes import RequestError as ApiError
from jetlake.management.wire.times import Timestamp

STREAM = ConsumerContext(stream=StreamConfig(name="S"))
THEN = Timestamp.read("2020-01-01T01:00:00+01:00")


def consumer(config: ConsumerConfig) -> Consumer:
    return Consumer(name="C", config=config, created="")


def refusal(before: dict[str, object], after: dict[str, object], context: ConsumerContext = STREAM) -> str:
    with pytest.raises(ApiError) as raised:
        updated(consumer(ConsumerConfig(**before)), ConsumerConfig(**after), context)
    return f"{raised.value.code.number} {raised.value.description}"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"deliver_policy": "new", "mem_storage": True}, "deliver policy"),
        ({"mem_storage": True, "direct": True}, "storage type"),
        ({"direct": True, "sourcing": True}, "direct"),
        ({"sourcing": True, "opt_start_seq": 1}, "sourcing"),
        ({"opt_start_seq": 1, "opt_start_time": THEN}, "start sequence"),
        ({"opt_start_time": THEN, "ack_policy": "all"}, "start time"),
        ({"ack_policy": "all", "replay_policy": "original"}, "ack policy"),
        ({"replay_policy": "original", "idle_heartbeat": 5}, "replay policy"),
        ({"idle_heartbeat": 5, "flow_control": True}, "heart beats"),
        ({"flow_control": True, "max_waiting": 5}, "flow control"),
        ({"metadata": {"jetlake.key": "subject.2"}}, "metadata jetlake.key"),
        ({"max_waiting": 5}, "max waiting"),
    ],
)
def test_change_that_can_not_be_is_told_first_come(change, what):
    assert refusal({}, change) == f"10012 {what} can not be updated"


def test_moment_in_another_zone_is_no_change():
    before = ConsumerConfig(opt_start_time=THEN)
    after = ConsumerConfig(opt_start_time=Timestamp.read("2020-01-01T00:00:00Z"))

    assert updated(consumer(before), after, STREAM) == after


def test_deliver_subject_changes_while_nobody_listens():
    before, after = {"deliver_subject": "x"}, {"deliver_subject": "y"}
    heard = msgspec.structs.replace(STREAM, has_interest=lambda subject: subject == "x")

    assert updated(consumer(ConsumerConfig(**before)), ConsumerConfig(**after), STREAM).deliver_subject == "y"
    assert refusal(before, after, heard) == "10013 consumer name already in use"
    assert refusal({}, after) == "10012 can not update pull consumer to push based"
    assert refusal(before, {}) == "10012 can not update push consumer to pull based"


def test_everything_else_changes():
    changes = {
        "description": "d",
        "ack_wait": 5,
        "max_deliver": 3,
        "backoff": (1,),
        "filter_subject": "a",
        "max_batch": 7,
    }

    assert updated(consumer(ConsumerConfig()), ConsumerConfig(**changes), STREAM) == ConsumerConfig(**changes)


def test_consumer_that_is_not_durable_keeps_an_end():
    ephemeral = consumer(ConsumerConfig(inactive_threshold=7))
    durable = consumer(ConsumerConfig(inactive_threshold=7, durable_name="C"))

    assert updated(ephemeral, ConsumerConfig(), STREAM).inactive_threshold == 5_000_000_000
    assert updated(durable, ConsumerConfig(), STREAM).inactive_threshold == 0


def test_filters_of_a_work_queue_stay_apart():
    consumers = StreamConsumers()
    for name in "CD":
        consumers.put(Consumer(name=name, config=ConsumerConfig(filter_subject=name), created=""))
    context = ConsumerContext(stream=StreamConfig(name="W", retention="workqueue"), consumers=consumers)

    assert refusal({"filter_subject": "C"}, {"filter_subject": "D"}, context).startswith("10100")
    # As on nats-server: whoever takes everything is asked only when he is new.
    assert updated(consumers["C"], ConsumerConfig(), context).filters == ()


def test_pause_is_kept_in_utc():
    config = paused(ConsumerConfig(), THEN)

    assert config.pause_until == Timestamp.read("2020-01-01T00:00:00Z")
    assert paused(config, None).pause_until is None
    assert updated(consumer(config), ConsumerConfig(pause_until=THEN), STREAM) == config
