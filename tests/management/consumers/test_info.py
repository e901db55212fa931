"""The description of a consumer."""

import json

import pytest

from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.consumers.info import describe_consumer, pause_remaining_ns
from jetlake.management.consumers.state import ConsumerState, Pin, SequencePair, read_consumer_state
from jetlake.management.consumers.stream_consumers import Consumer
from jetlake.management.wire.times import Timestamp

NOW_NS = 1_700_000_000_000_000_000
NOW = "2023-11-14T22:13:20Z"


def described(state: ConsumerState, *, shows_versions: bool = False, **config: object) -> dict[str, object]:
    consumer = Consumer(name="C", config=ConsumerConfig(**config), created="then")
    return describe_consumer("S", consumer, state, NOW_NS, shows_versions=shows_versions)


def test_state_is_shown_in_order_and_what_is_not_is_left_out():
    state = ConsumerState(
        delivered=SequencePair(consumer_sequence=5, stream_sequence=7, active_ns=NOW_NS),
        floor=SequencePair(consumer_sequence=4, stream_sequence=6),
        ack_pending=1,
        redelivered=2,
        waiting=3,
        pending=4,
    )

    description = described(state)

    assert list(description)[4:] == [
        *("delivered", "ack_floor", "num_ack_pending", "num_redelivered", "num_waiting", "num_pending", "ts")
    ]
    assert description["delivered"] == {"consumer_seq": 5, "stream_seq": 7, "last_active": NOW}
    assert description["ack_floor"] == {"consumer_seq": 4, "stream_seq": 6}
    assert [description[f"num_{key}"] for key in ("ack_pending", "redelivered", "waiting", "pending")] == [1, 2, 3, 4]


def test_what_is_delivered_once_is_never_redelivered():
    assert described(ConsumerState(redelivered=3), max_deliver=1)["num_redelivered"] == 0


def test_pause_is_shown_while_it_lasts():
    until = Timestamp(text="", unix_ns=NOW_NS + 5)

    description = described(ConsumerState(push_bound=True), pause_until=until, priority_groups=("g", "h"))

    assert list(description)[-5:] == ["push_bound", "paused", "pause_remaining", "ts", "priority_groups"]
    assert (description["paused"], description["pause_remaining"]) == (True, 5)
    assert "paused" not in described(ConsumerState(), pause_until=Timestamp(text="", unix_ns=NOW_NS))


@pytest.mark.parametrize(("until_ns", "remaining_ns"), [(NOW_NS - 1, 0), (NOW_NS + 7, 7), (NOW_NS + 2**64, 2**63 - 1)])
def test_remaining_time_is_a_duration(until_ns, remaining_ns):
    config = ConsumerConfig(pause_until=Timestamp(text="", unix_ns=until_ns))

    assert pause_remaining_ns(config, NOW_NS) == remaining_ns
    assert pause_remaining_ns(ConsumerConfig(), NOW_NS) == 0


def test_first_group_is_shown_with_its_pinned_client():
    groups = ("g", "h")

    assert described(ConsumerState(), priority_groups=groups)["priority_groups"] == [
        {"group": "g", "pinned_ts": "0001-01-01T00:00:00Z"}
    ]
    pinned = ConsumerState(pinned=Pin(id="x", since_ns=NOW_NS))
    assert described(pinned, priority_groups=groups)["priority_groups"] == [
        {"group": "g", "pinned_client_id": "x", "pinned_ts": NOW}
    ]


def test_versions_are_shown_where_they_are_wanted():
    shown = described(ConsumerState(), shows_versions=True, metadata={"_nats.req.level": "0"})["config"]["metadata"]

    assert sorted(shown) == ["_nats.level", "_nats.req.level", "_nats.ver"]


def test_state_is_read_as_the_engine_writes_it():
    written = {
        "delivered": {"consumer_sequence": 1, "stream_sequence": 2, "active_ns": 3},
        "floor": {"consumer_sequence": 4, "stream_sequence": 5, "active_ns": 0},
        "ack_pending": 6,
        "redelivered": 7,
        "waiting": 8,
        "pending": 9,
        "push_bound": True,
        "pinned": {"id": "x", "since_ns": 10},
    }

    state = read_consumer_state(json.dumps(written).encode())

    assert (state.delivered.active_ns, state.floor.stream_sequence, state.pending) == (3, 5, 9)
    assert state.pinned == Pin(id="x", since_ns=10)
    assert read_consumer_state(json.dumps({**written, "pinned": None}).encode()).pinned is None
