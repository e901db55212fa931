"""Which sequences are read, and how they are split."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.client.raw_streams import RemoteStreamState, Streams
from jetlake.errors import ClientError, ConfigurationError
from jetlake.spark.offsets import Offset, StreamPosition
from jetlake.spark.options import parse
from jetlake.spark.planning import TASK_ROWS_MIN, Planner


def state(name="A", first=1, last=100, **other):
    fields = {
        "created": "t",
        "messages": last - first + 1,
        "size_bytes": (last - first + 1) * 100,
        "retention": "limits",
        "allow_direct": True,
        "sealed": False,
        "duplicate_window_ns": 0,
        "subjects": (),
    }
    return RemoteStreamState(name=name, first_sequence=first, last_sequence=last, **{**fields, **other})


def planner(streams=None, **options):
    return Planner(streams, parse({"transport": "consumer", **options}, "read"))


@given(st.integers(1, 10**9), st.integers(0, 10**9), st.integers(1, 64))
def test_ranges_of_a_split_touch_each_other_and_are_the_whole(start, count, parts):
    ranges = planner().split(state(last=2 * 10**9), start, start + count, parts)

    assert bool(ranges) == (count > 0)
    if ranges:
        assert (ranges[0].start, ranges[-1].end) == (start, start + count)
        assert all(one.end == other.start for one, other in itertools.pairwise(ranges))
        assert sum(one.rows for one in ranges) == count


def test_a_few_rows_are_one_task_and_many_are_several():
    plan = planner(minPartitions="8", maxRowsPerPartition="100000")

    assert plan.parts(10) == 1
    assert plan.parts(TASK_ROWS_MIN * 3) == 3
    assert plan.parts(TASK_ROWS_MIN * 100) == 8
    assert plan.parts(10_000_000) == 100


def test_rows_are_promised_only_where_nothing_is_missing():
    [whole] = planner().split(state(), 1, 101, 1)
    [deleted] = planner().split(state(messages=99), 1, 101, 1)
    [selected] = planner(subjects="a").split(state(), 1, 101, 1)
    [expired] = planner().split(state(first=50), 1, 101, 1)

    assert (whole.rows, deleted.rows, selected.rows, expired.rows) == (100, -1, -1, -1)


def test_streams_share_a_batch_by_what_they_have_waiting(fake_connection):
    start = Offset({"A": StreamPosition("t", 1), "B": StreamPosition("t", 1), "C": StreamPosition("t", 11)})
    states = {"A": state("A", last=300), "B": state("B", last=100), "C": state("C", last=10)}

    end = planner(fake_connection).admit(start, states, 100, None)

    assert {name: place.next for name, place in end.streams.items()} == {"A": 76, "B": 26, "C": 11}


def test_bytes_bound_a_batch_by_the_average_size_and_one_message_always_goes(fake_connection):
    start = Offset({"A": StreamPosition("t", 1)})

    by_size = planner(fake_connection).admit(start, {"A": state()}, 1000, 1000)
    too_large = planner(fake_connection).admit(start, {"A": state()}, 1000, 1)
    all_fits = planner(fake_connection).admit(start, {"A": state()}, 1000, 10_000)
    everything = planner(fake_connection).admit(start, {"A": state()}, None, None)

    assert [one.streams["A"].next for one in (by_size, too_large, all_fits, everything)] == [11, 2, 101, 101]


@pytest.mark.parametrize(
    ("place", "says", "behind"),
    [
        (StreamPosition("other", 5), "created again", StreamPosition("t", 40)),
        (StreamPosition("t", 5), "no longer has the messages 5 to 39", StreamPosition("t", 40)),
        (StreamPosition("t", 200), "ends before 200", StreamPosition("t", 101)),
    ],
)
def test_what_is_lost_is_an_error_unless_allowed(place, says, behind):
    with pytest.raises(ClientError, match=says):
        planner().check(state(first=40), place)

    assert planner(failOnDataLoss="false").check(state(first=40), place) == behind


def test_a_place_that_is_there_is_kept():
    assert planner().check(state(first=40), StreamPosition("t", 40)) == StreamPosition("t", 40)
    assert planner().check(state(first=101, last=100), StreamPosition("t", 101)) == StreamPosition("t", 101)


def test_how_rows_come_depends_on_the_server_and_the_stream(shore):
    with RawConnection(ConnectionSettings(url=shore.url)) as connection:
        streams = Streams(connection)
        limits, queue = shore.create(), shore.create(retention="workqueue")
        closed = shore.create(retention="interest", allow_direct=False)

        def source(name, transport):
            plan = Planner(streams, parse({"transport": transport}, "read"))
            return plan.source(plan.state(name))

        chosen = [source(limits, "auto"), source(limits, "nats"), source(queue, "nats"), source(limits, "direct_get")]
        first = "scan" if shore.kind == "jetlake" else "consumer"
        assert chosen == [first, "consumer", "direct_get", "direct_get"]
        with pytest.raises(ConfigurationError, match="set allow_direct on the stream"):
            source(closed, "nats")
        if shore.kind != "jetlake":
            with pytest.raises(ConfigurationError, match="needs a Jetlake server"):
                source(limits, "scan")


@pytest.fixture(scope="module")
def fake_connection(jetlake_shore):
    """A connection that has something to ask, for plans that ask nothing."""
    return jetlake_shore.streams
