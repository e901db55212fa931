"""What an account's streams are together, kept up to date by every change."""

from hypothesis import given
from hypothesis import strategies as st

from jetlake.management.streams.account_streams import AccountStreams
from jetlake.management.streams.config import StreamConfig

CONFIGS = st.builds(
    StreamConfig,
    name=st.sampled_from("ABCD"),
    subjects=st.none() | st.lists(st.sampled_from(["a", "a.*", "b.>"]), max_size=2, unique=True).map(tuple),
    storage=st.sampled_from(["file", "memory"]),
    max_bytes=st.integers(-1, 10),
)


@given(st.lists(CONFIGS | st.sampled_from("ABCD")))
def test_what_is_kept_is_what_would_be_computed(changes):
    streams, expected = AccountStreams(), {}
    for change in changes:
        if isinstance(change, StreamConfig):
            streams.put(change)
            expected[change.name] = change
        elif expected.pop(change, None) is not None:
            streams.remove(change)

    assert dict(streams) == expected
    assert streams.names == sorted(expected)
    for storage in ("file", "memory"):
        reserved = sum(max(config.max_bytes, 0) for config in expected.values() if config.storage == storage)
        assert streams.reserved_bytes(storage) == reserved
    assert streams.names_meeting("b.c") == sorted(
        name for name, config in expected.items() if "b.>" in (config.subjects or ())
    )


def test_stream_does_not_overlap_with_itself():
    streams = AccountStreams([StreamConfig(name="S", subjects=("a.*",))])

    assert not streams.overlaps(StreamConfig(name="S", subjects=("a.>",)))
    assert streams.overlaps(StreamConfig(name="T", subjects=("a.>",)))
