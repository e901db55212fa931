"""What a bucket is like, and the stream that it is."""

import msgspec
import pytest

from jetlake.errors import ConfigurationError
from jetlake.kv import BucketConfig, Origin, Republish
from jetlake.kv.config import HISTORY_MAX, changed_stream


def test_the_stream_of_a_bucket_is_the_one_of_the_specification():
    assert BucketConfig(bucket="CONFIGURATION", history=5, compression=True, key_ttl=False).stream() == {
        "name": "KV_CONFIGURATION",
        "subjects": ["$KV.CONFIGURATION.>"],
        "retention": "limits",
        "max_consumers": -1,
        "max_msgs_per_subject": 5,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_age": 0,
        "max_msg_size": -1,
        "storage": "file",
        "discard": "new",
        "num_replicas": 1,
        "duplicate_window": 120_000_000_000,
        "allow_rollup_hdrs": True,
        "deny_delete": True,
        "allow_direct": True,
        "compression": "s2",
    }


@pytest.mark.parametrize(("ttl_s", "window_s"), [(0, 120), (30, 30), (120, 120), (3600, 120)])
def test_ids_are_not_remembered_longer_than_values(ttl_s, window_s):
    assert BucketConfig(bucket="B", ttl_s=ttl_s).stream()["duplicate_window"] == window_s * 10**9


def test_a_source_gets_the_keys_of_its_own_bucket():
    stream = BucketConfig(bucket="ALL", sources=(Origin(bucket="A"), Origin(bucket="C", keys=("x.*.y",)))).stream()

    assert stream["subjects"] == ["$KV.ALL.>"]
    assert stream["sources"] == [
        {"name": "KV_A", "subject_transforms": [{"src": "$KV.A.>", "dest": "$KV.ALL.>"}]},
        {"name": "KV_C", "subject_transforms": [{"src": "$KV.C.x.*.y", "dest": "$KV.ALL.x.{{wildcard(1)}}.y"}]},
    ]


def test_a_mirror_has_no_subjects_of_its_own():
    stream = BucketConfig(bucket="M", mirror=Origin(bucket="A", api_prefix="$JS.hub.API")).stream()

    assert "subjects" not in stream
    assert stream["mirror"] == {"name": "KV_A", "external": {"api": "$JS.hub.API", "deliver": ""}}
    assert stream["mirror_direct"] is True


@pytest.mark.parametrize(
    "config",
    [
        BucketConfig(bucket="B"),
        BucketConfig(
            bucket="B",
            description="notes",
            history=64,
            ttl_s=60.5,
            max_value_bytes=10,
            max_bytes=1000,
            storage="memory",
            replicas=3,
            compression=True,
            limit_marker_ttl_s=5,
            allow_direct=False,
            republish=Republish(destination="out.>", headers_only=True),
            placement={"cluster": "c1", "tags": ["ssd"]},
            metadata={"team": "a"},
        ),
        BucketConfig(bucket="B", mirror=Origin(bucket="A")),
        BucketConfig(bucket="B", sources=(Origin(bucket="A"), Origin(bucket="C", keys=("x.>",)))),
    ],
)
def test_a_configuration_is_read_back_from_its_stream(config):
    assert BucketConfig.of(config.stream()) == config


@pytest.mark.parametrize(
    ("kept", "history"), [(5, 5), (64, 64), (100, HISTORY_MAX), (-1, HISTORY_MAX), (0, HISTORY_MAX)]
)
def test_a_stream_that_keeps_more_revisions_than_a_bucket_may_is_read_as_the_most(kept, history):
    assert BucketConfig.of({"name": "KV_B", "max_msgs_per_subject": kept}).history == history


FOREIGN = {
    "name": "KV_B",
    "subjects": ["$KV.B.>"],
    "discard": "old",
    "num_replicas": 1,
    "max_msgs": 1000,
    "max_msgs_per_subject": -1,
    "duplicate_window": 5_000_000_000,
    "allow_direct": True,
    "subject_transform": {"src": "a", "dest": "b"},
    "metadata": {"_nats.level": "1", "team": "a"},
    "sources": [
        {
            "name": "KV_A",
            "opt_start_seq": 500,
            "subject_transforms": [{"src": "$KV.A.x.>", "dest": "$KV.B.y.>"}],
        },
        {"name": "KV_C", "opt_start_seq": 7},
    ],
}
"""The stream of a bucket that another client has made, with what a `BucketConfig` cannot say."""


@pytest.mark.parametrize(
    ("fields", "changes"),
    [
        ({}, {}),
        ({"description": "hello"}, {"description": "hello"}),
        ({"history": 7}, {"max_msgs_per_subject": 7}),
        ({"metadata": {"team": "b"}}, {"metadata": {"_nats.level": "1", "team": "b"}}),
        ({"metadata": {}}, {"metadata": {"_nats.level": "1"}}),
        # The window stays the one that was chosen, as far as it may.
        ({"ttl_s": 3600}, {"max_age": 3_600_000_000_000}),
        ({"ttl_s": 2}, {"max_age": 2_000_000_000, "duplicate_window": 2_000_000_000}),
    ],
)
def test_a_change_leaves_everything_else_of_the_stream_as_it_is(fields, changes):
    wanted = msgspec.structs.replace(BucketConfig.of(FOREIGN), **fields)

    assert changed_stream(FOREIGN, wanted) == FOREIGN | changes


def test_a_source_that_stays_keeps_what_a_bucket_cannot_say_of_it():
    kept = BucketConfig.of(FOREIGN).sources[1]
    wanted = msgspec.structs.replace(BucketConfig.of(FOREIGN), sources=(Origin(bucket="D"), kept))

    changed = changed_stream(FOREIGN, wanted)

    assert changed == FOREIGN | {"sources": [wanted.stream()["sources"][0], FOREIGN["sources"][1]]}


def test_a_mirror_stays_as_another_client_has_made_it():
    mirror = {"name": "KV_M", "mirror": {"name": "KV_A", "opt_start_seq": 9}, "max_msgs_per_subject": -1}

    changed = changed_stream(mirror, msgspec.structs.replace(BucketConfig.of(mirror), description="copy"))

    assert changed == mirror | {"description": "copy"}


def test_what_a_bucket_is_no_longer_is_removed_from_its_stream():
    stream = BucketConfig(bucket="B", description="old", republish=Republish(destination="out.>")).stream()

    changed = changed_stream(stream | {"max_msgs": 9}, BucketConfig(bucket="B"))

    assert changed == BucketConfig(bucket="B").stream() | {"max_msgs": 9}


def test_the_window_for_duplicates_follows_the_ttl_if_no_other_one_was_chosen():
    stream = BucketConfig(bucket="B", ttl_s=30).stream()

    assert changed_stream(stream, BucketConfig(bucket="B"))["duplicate_window"] == 120_000_000_000


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"bucket": "a.b"}, "invalid bucket name"),
        ({"history": 0}, "1 to 64"),
        ({"history": HISTORY_MAX + 1}, "1 to 64"),
        ({"replicas": 6}, "1 to 5"),
        ({"ttl_s": -1}, "negative"),
        ({"limit_marker_ttl_s": 0.5}, "at least 1"),
        ({"mirror": Origin(bucket="A"), "sources": (Origin(bucket="C"),)}, "choose one"),
        ({"sources": (Origin(bucket="A", keys=("a..b",)),)}, "invalid key pattern"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(fields, reason):
    with pytest.raises(ConfigurationError, match=reason):
        BucketConfig(**{"bucket": "B", **fields})
