"""The description of a stream. Its bytes are compared with nats-server's elsewhere; here is what that cannot show."""

from jetlake.management.catalog.streams import Stream
from jetlake.management.streams.config import StreamConfig, StreamSource
from jetlake.management.streams.info import LOST_MAX, count_subjects, describe
from jetlake.management.streams.state import OriginState, StreamState, read_state

STREAM = Stream(config=StreamConfig(name="S"), created="then")


def test_damaged_messages_are_listed_up_to_a_bound():
    state = StreamState(last_sequence=10, lost=[(2, 4), (8, 10**12)], lost_bytes=99)

    lost = describe(STREAM, state, 0)["state"]["lost"]

    assert lost["msgs"][:5] == [2, 3, 4, 8, 9]
    assert len(lost["msgs"]) == LOST_MAX
    assert lost["bytes"] == 99


def test_page_of_subjects_counts_those_that_are_not_on_it():
    state = StreamState(subject_counts=[("a", 1), ("b", 2), ("c", 3)], subject_counts_total=7)

    assert count_subjects(state, 1) == ({"total": 7, "offset": 1, "limit": 100_000}, {"b": 2, "c": 3})
    assert count_subjects(state, 9)[1] == {}


def test_keys_stand_in_the_order_of_nats_server():
    described = describe(STREAM, StreamState(), 0, domain="hub", leader="probe")

    assert list(described) == ["config", "created", "state", "domain", "cluster", "ts"]


def test_origins_are_described_as_the_engine_knows_them():
    sources = (StreamSource(name="A"), StreamSource(name="B", filter_subject="b.>"), StreamSource(name="C"))
    stream = Stream(config=StreamConfig(name="S", sources=sources), created="then")
    state = read_state(
        b'{"origins":[{"lag":3,"active_ns":5,"sequence":7},'
        b'{"lag":0,"active_ns":-1,"sequence":0,"error":[404,10059,"stream not found"]}]}'
    )

    described = describe(stream, state, 0)["sources"]

    assert described == [
        {"name": "A", "lag": 3, "seq": 7, "active": 5},
        {
            "name": "B",
            "lag": 0,
            "active": -1,
            "error": {"code": 404, "err_code": 10059, "description": "stream not found"},
            "filter_subject": "b.>",
        },
        # The engine has not heard of it yet.
        {"name": "C", "lag": 0, "active": -1},
    ]
    assert list(described[1]) == ["name", "lag", "active", "error", "filter_subject"]


def test_mirror_is_described_without_a_sequence():
    stream = Stream(config=StreamConfig(name="S", mirror=StreamSource(name="O")), created="then")
    state = StreamState(origins=[OriginState(lag=2, active_ns=1)])

    assert describe(stream, state, 0)["mirror"] == {"name": "O", "lag": 2, "active": 1}
