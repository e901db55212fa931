"""Defaults, and configurations that are legal by themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.management.streams.config import Placement, StreamConfig, StreamSource
from jetlake.management.streams.context import ServerLimits, StreamAccountLimits, StreamContext
from jetlake.management.streams.validation import validated
from jetlake.management.wire.error_codes import RequestError as ApiError

ALONE = StreamContext()


def refusal(config: StreamConfig, context: StreamContext = ALONE, *, is_pedantic: bool = False) -> str:
    with pytest.raises(ApiError) as raised:
        validated(config, context, is_pedantic=is_pedantic)
    return f"{raised.value.code.number} {raised.value.description}"


def test_defaults():
    config = validated(StreamConfig(name="S"), ALONE)

    assert config == StreamConfig(
        name="S",
        subjects=("S",),
        max_consumers=-1,
        max_msgs=-1,
        max_bytes=-1,
        max_msgs_per_subject=-1,
        max_msg_size=-1,
        num_replicas=1,
        duplicate_window=120_000_000_000,
    )


@pytest.mark.parametrize("key", ["max_msgs", "max_msgs_per_subject", "max_bytes", "max_msg_size", "max_consumers"])
def test_limit_below_minus_one_is_none_unless_the_request_is_pedantic(key):
    config = StreamConfig(name="S", **{key: -2})

    assert getattr(validated(config, ALONE), key) == -1
    assert refusal(config, is_pedantic=True) == f"10157 pedantic mode: {key} must be set to -1"


@pytest.mark.parametrize(
    ("max_age_ns", "server_max_ns", "window_ns"),
    [(0, 0, 120), (60, 0, 60), (0, 30, 30), (60, 30, 30), (10, 30, 10), (600, 600, 120)],
)
def test_window_for_duplicates_fits_the_age_and_the_server(max_age_ns, server_max_ns, window_ns):
    second_ns = 1_000_000_000
    context = StreamContext(server=ServerLimits(duplicate_window_max_ns=server_max_ns * second_ns))

    config = validated(StreamConfig(name="S", max_age=max_age_ns * second_ns), context)

    assert config.duplicate_window == window_ns * second_ns


def test_copy_has_no_window_for_duplicates():
    assert validated(StreamConfig(name="S", mirror=StreamSource(name="A")), ALONE).duplicate_window == 0
    assert validated(StreamConfig(name="S", sources=(StreamSource(name="A"),)), ALONE).duplicate_window == 0


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (StreamConfig(), "10052 stream name is required and can not contain '.', '*', '>', '\\', '/'"),
        (StreamConfig(name="S" * 256), "10052 stream name is too long, maximum allowed is 255"),
        (StreamConfig(name="S", num_replicas=-1), "10133 replicas count cannot be negative"),
        (StreamConfig(name="S", num_replicas=6), "10052 maximum replicas is 5"),
        (StreamConfig(name="S", max_age=1), "10052 max age needs to be >= 100ms"),
        (StreamConfig(name="S", duplicate_window=-1), "10052 duplicates window can not be negative"),
        (
            StreamConfig(name="S", deny_purge=True, allow_rollup_hdrs=True),
            "10052 roll-ups require the purge permission",
        ),
        (
            StreamConfig(name="S", allow_msg_counter=True, discard="new"),
            "10052 counter stream cannot use discard new",
        ),
        (
            StreamConfig(name="S", discard_new_per_subject=True, discard="new"),
            "10052 discard new per subject requires max msgs per subject > 0",
        ),
        (
            StreamConfig(name="S", persist_mode="async", storage="memory"),
            "10052 async persist mode is only supported on file storage",
        ),
        (
            StreamConfig(name="S", placement=Placement(preferred="x")),
            "10052 preferred server not permitted in placement",
        ),
    ],
)
def test_configuration_that_cannot_be_is_refused(config, expected):
    assert refusal(config) == expected


def test_delete_markers_turn_on_what_they_need_unless_the_request_is_pedantic():
    config = StreamConfig(name="S", subject_delete_marker_ttl=1_000_000_000, deny_purge=True)

    adjusted = validated(config, ALONE)

    assert (adjusted.allow_msg_ttl, adjusted.allow_rollup_hdrs, adjusted.deny_purge) == (True, True, False)
    assert refusal(config, is_pedantic=True) == (
        "10052 subject delete marker cannot be set if message TTLs are disabled"
    )


def test_schedules_turn_on_roll_ups():
    config = validated(StreamConfig(name="S", allow_msg_schedules=True, deny_purge=True), ALONE)

    assert (config.allow_rollup_hdrs, config.deny_purge) == (True, False)


def test_account_may_demand_a_bound_and_bound_it():
    demanding = StreamContext(account=StreamAccountLimits(max_bytes_required=True, storage_max_stream_bytes=100))

    assert refusal(StreamConfig(name="S"), demanding).startswith("10113 ")
    assert refusal(StreamConfig(name="S", max_bytes=101), demanding).startswith("10122 ")
    assert validated(StreamConfig(name="S", max_bytes=100), demanding).max_bytes == 100


def test_empty_placement_is_none():
    assert validated(StreamConfig(name="S", placement=Placement()), ALONE).placement is None


@given(
    config=st.builds(
        StreamConfig,
        name=st.just("S"),
        retention=st.sampled_from(["limits", "interest"]),
        discard=st.sampled_from(["old", "new"]),
        max_msgs=st.integers(-3, 3),
        max_age=st.sampled_from([0, 1, 200_000_000]),
        duplicate_window=st.sampled_from([0, 1, 150_000_000, 250_000_000]),
        subject_delete_marker_ttl=st.sampled_from([0, 1, 1_000_000_000]),
        allow_msg_schedules=st.booleans(),
        deny_purge=st.booleans(),
        mirror=st.sampled_from([None, StreamSource(name="A")]),
        subjects=st.sampled_from([None, (), ("a",), ("a", "a")]),
    ),
    is_pedantic=st.booleans(),
)
def test_what_was_validated_stays_as_it_is(config, is_pedantic):
    try:
        once = validated(config, ALONE, is_pedantic=is_pedantic)
    except ApiError:
        return

    assert validated(once, ALONE, is_pedantic=is_pedantic) == once


@pytest.mark.parametrize("name", ["", "a.b", "a b", "a/b", "*", "x" * 256])
def test_dead_letters_go_to_a_stream_that_can_be(name):
    config = StreamConfig(name="S", metadata={"jetlake.dead_letters": name})

    assert refusal(config) == (
        f'10052 metadata jetlake.dead_letters can not be "{name}": it is not a name for a stream; set it to the name '
        "of the stream that takes what could not be delivered"
    )


def test_dead_letters_go_to_another_stream():
    config = StreamConfig(name="S", metadata={"jetlake.dead_letters": "S"})

    assert refusal(config) == (
        '10052 metadata jetlake.dead_letters can not be "S": a stream can not take its own dead letters; set it to '
        "the name of another stream"
    )
    assert validated(StreamConfig(name="S", metadata={"jetlake.dead_letters": "DEAD", "jetlake.x": ""}), ALONE)
