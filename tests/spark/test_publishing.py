"""Rows on their way to messages."""

import json
from datetime import UTC, datetime

import pytest

import jetlake
from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.client.raw_streams import Streams
from jetlake.errors import ClientError
from jetlake.spark import signs_of_life
from jetlake.spark.options import parse
from jetlake.spark.publishing import TaskPublished, Upload, as_payload, message_columns, publish
from jetlake.testing import Clock, Recorder

pa = pytest.importorskip("pyarrow", reason="the extra `spark` is not installed")


def rows(**columns):
    return pa.RecordBatch.from_pydict(columns)


def test_structs_maps_and_lists_become_json_and_null_fields_are_left_out():
    kind = pa.struct(
        [
            ("id", pa.int64()),
            ("at", pa.timestamp("us", "UTC")),
            ("tags", pa.list_(pa.string())),
            ("more", pa.map_(pa.string(), pa.float64())),
            ("none", pa.string()),
        ]
    )
    row = {"id": 7, "at": datetime(2026, 1, 31, tzinfo=UTC), "tags": ["a", None], "more": [("k", 1.5)], "none": None}

    texts = as_payload(pa.array([row, None], kind)).to_pylist()

    assert json.loads(texts[0]) == {
        "id": 7,
        "at": "2026-01-31T00:00:00Z",
        "tags": ["a", None],
        "more": {"k": 1.5},
    }
    assert texts[1] is None


def test_only_what_makes_a_message_is_passed_on():
    values = parse({"subject": "s", "msgIdColumn": "key"}, "write")

    batch = message_columns(rows(other=[1, 2], key=["a", "b"], data=[b"x", b"y"], subject=[None, "t"]), values)

    assert batch.to_pydict() == {"data": [b"x", b"y"], "subject": ["s", "t"], "msg_id": ["a", "b"]}


def test_a_task_without_rows_does_not_connect():
    values = parse({"url": "nats://127.0.0.1:1", "subject": "s"}, "write")

    assert publish(iter([rows(data=pa.array([], pa.binary()))]), values, "q-0-0") == TaskPublished(0, 0)


def test_equal_rows_are_kept_and_a_repeated_task_stores_nothing(shore):
    name = shore.create()
    values = parse({"url": shore.url, "stream": name, "subject": f"{name}.a"}, "write")
    batches = [rows(data=[b"x", b"x", b"y"]), rows(data=[b"x", b"z"])]

    first = publish(iter(batches), values, "query-0-0")
    # The same rows in another order, and in other batches.
    again = publish(iter([rows(data=[b"z", b"y", b"x", b"x", b"x"])]), values, "query-0-0")
    other = publish(iter(batches), values, "query-1-0")

    assert (first, again, other) == (TaskPublished(5, 0), TaskPublished(0, 5), TaskPublished(5, 0))
    assert shore.streams.state(name).messages == 10


@pytest.mark.parametrize(
    "window",
    [{}, {"maxInflight": "1"}, {"maxInflight": "63"}, {"maxInflightBytes": "1"}, {"maxInflightBytes": "300"}],
    ids=str,
)
def test_an_upload_is_taken_whole_however_little_may_be_on_its_way(jetlake_shore, window):
    name = jetlake_shore.create()
    values = parse({"url": jetlake_shore.url, "stream": name, "subject": f"{name}.a", **window}, "write")
    batches = [rows(data=[b"%d" % number for number in range(first, first + 100)]) for first in (0, 100)]

    published = publish(iter(batches), values, Upload("u", "query", "run"))

    assert published == TaskPublished(200, 0)
    assert jetlake_shore.streams.state(name).messages == 0
    assert jetlake_shore.streams.commit_uploads(name, "query", 0, {"u": 200})
    assert jetlake_shore.streams.state(name).messages == 200


def test_an_upload_under_an_id_that_is_taken_is_refused_and_nothing_of_it_is_stored(jetlake_shore):
    name = jetlake_shore.create()
    values = parse({"url": jetlake_shore.url, "stream": name, "subject": f"{name}.a"}, "write")
    publish(iter([rows(data=[b"1"])]), values, Upload("twice", "query", "run"))

    with pytest.raises(ClientError, match="repeat the task"):
        publish(iter([rows(data=[b"2", b"3"])]), values, Upload("twice", "query", "run"))

    with pytest.raises(ClientError, match="is not here"):
        jetlake_shore.streams.commit_uploads(name, "query", 0, {"twice": 2})


def advance_with(recorder: Recorder, clock: Clock, *, signs: int) -> None:
    """Let 20 s pass, of the 30 s that a server waits, and then wait for so many signs of life."""
    clock.advance("20s")
    before = len(recorder.messages("s.b"))
    if signs:
        # The first one may have been on its way before the clock went on.
        recorder.wait_for("s.b", before + signs)


@pytest.mark.parametrize("signs", [2, 0])
def test_uploads_are_kept_while_a_task_computes_for_long_and_says_so(monkeypatch, signs):
    monkeypatch.setattr(signs_of_life, "INTERVAL_S", 0.05 if signs else 3600.0)
    with (
        jetlake.Server(clock="manual") as server,
        Recorder(server) as recorder,
        RawConnection(ConnectionSettings(url=server.url, name="test")) as connection,
    ):
        streams, clock = Streams(connection), Clock(server)
        streams.ask("STREAM.CREATE.S", {"name": "S", "subjects": ["s.>"]})
        values = parse({"url": server.url, "stream": "S"}, "write")
        publish(iter([rows(data=[b"0"], subject=["s.a"])]), values, Upload("done", "query", "run"))

        def slow_batches():
            for number in range(1, 4):
                yield rows(data=[b"%d" % number], subject=["s.b"])
                for _ in range(3):
                    advance_with(recorder, clock, signs=signs)

        if signs:
            assert publish(slow_batches(), values, Upload("slow", "query", "run")) == TaskPublished(3, 0)
            assert streams.commit_uploads("S", "query", 0, {"done": 1, "slow": 3})
        else:
            with pytest.raises(ClientError, match=r"the upload is unknown: it was given up.*repeat the task"):
                publish(slow_batches(), values, Upload("slow", "query", "run"))
            with pytest.raises(ClientError, match="repeat the batch"):
                streams.commit_uploads("S", "query", 0, {"done": 1})

        assert streams.state("S").messages == (4 if signs else 0)


def test_more_rows_than_may_be_on_their_way_are_all_stored(shore):
    name = shore.create()
    options = {"url": shore.url, "stream": name, "subject": f"{name}.a", "maxInflight": "7", "maxInflightBytes": "1k"}

    published = publish(
        iter([rows(data=[b"%d" % number for number in range(500)])]), parse(options, "write"), "query-0-0"
    )

    assert published == TaskPublished(500, 0)
    assert shore.streams.state(name).messages == 500


def test_what_the_server_refuses_is_an_error_with_its_words(shore):
    name = shore.create(max_msgs=1, discard="new")
    values = parse({"url": shore.url, "stream": name, "subject": f"{name}.a"}, "write")

    with pytest.raises(ClientError, match=f"rows for {name}: .*maximum messages exceeded"):
        publish(iter([rows(data=[b"1", b"2"])]), values, "query-0-0")


@pytest.mark.parametrize(
    ("pattern", "subject", "does"),
    [
        ("a.b", "a.b", True),
        ("a.*", "a.b", True),
        ("a.*", "a.b.c", False),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        (">", "a", True),
        ("a.b.c", "a.b", False),
        ("*.b", "a.c", False),
    ],
)
def test_a_pattern_covers_its_subjects(pattern, subject, does):
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    from jetlake.shared.subjects import matches as covers

    assert covers(pattern, subject) is does
