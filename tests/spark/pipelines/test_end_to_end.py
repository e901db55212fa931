"""Pipelines from streams of a server into tables and streams, on both servers."""

import pytest

from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines import archive, logs
from jetlake.spark.pipelines.definition import parse
from jetlake.spark.pipelines.runner import Runner

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(240)]


def run(spark, lake, shore, *pipelines):
    states = Runner(spark, lake, shore.url, once=True).run(pipelines)
    assert [state.error for state in states] == [""] * len(states)
    return states


@pytest.fixture
def lake(tmp_path):
    return Lake(tmp_path / "lake")


def test_a_stream_is_archived_with_every_column_and_goes_on(spark, lake, shore):
    name = shore.create()
    shore.publish(f"{name}.a", b"one", {"Colour": "red"})
    shore.publish(f"{name}.b", b"\xff\x00")
    pipeline = archive.build("archive", archive.Parameters(stream=name))
    (state,) = run(spark, lake, shore, pipeline)
    shore.publish(f"{name}.c", b"three")
    run(spark, lake, shore, pipeline)

    frame = lake.existing("archive").read(spark)
    rows = [
        tuple(row)
        for row in frame.orderBy("sequence").select("stream", "subject", "sequence", "headers", "data").collect()
    ]
    assert rows == [
        (name, f"{name}.a", 1, {"Colour": ["red"]}, b"one"),
        (name, f"{name}.b", 2, {}, b"\xff\x00"),
        (name, f"{name}.c", 3, {}, b"three"),
    ]
    assert frame.where("day = to_date(timestamp)").count() == 3
    assert state.queries[0].lag == 0


def test_streams_that_match_a_pattern_are_archived_together(spark, lake, shore):
    names = [shore.create(f"{shore.kind.replace('-', '_').upper()}_SHELF_{number}") for number in (1, 2)]
    for name in names:
        shore.publish(f"{name}.a", name.encode())
    run(spark, lake, shore, archive.build("archive", archive.Parameters(pattern=r".*_SHELF_\d")))

    frame = lake.existing("archive").read(spark)
    assert sorted(row.stream for row in frame.select("stream").collect()) == names


def test_log_lines_become_rates_per_source_and_level(spark, lake, shore):
    name = shore.create(subjects=["logs.>"])
    for number in range(6):
        shore.publish("logs.web1", b"ERROR it broke" if number % 2 else b"INFO it works")
    shore.publish("logs.web2", b"")
    pipeline = logs.build("logs", logs.Parameters(stream=name, window="1 hour"))
    run(spark, lake, shore, pipeline)

    def rates():
        rows = lake.existing("log_rates").read(spark).groupBy("source", "level").sum("lines").collect()
        return sorted(tuple(row) for row in rows)

    # The window is not over, and its lines are counted.
    assert rates() == [("web1", "error", 3), ("web1", "info", 3)]
    shore.publish("logs.web1", b"INFO still there")
    (state,) = run(spark, lake, shore, pipeline)
    shore.streams.ask(f"STREAM.DELETE.{name}")
    assert rates() == [("web1", "error", 3), ("web1", "info", 4)]
    assert lake.existing("log_lines").snapshot().rows == 7
    assert lake.existing("logs_bad").snapshot().rows == 1
    assert state.written == {"log_lines": 1, "log_rates": 1, "log_anomalies": 0}


def test_rows_become_messages_of_another_stream_once(spark, lake, shore):
    source, target = shore.create(), shore.create(duplicate_window=3_600_000_000_000)
    pipeline = parse(
        {
            "from": {"orders": {"stream": source, "columns": "id BIGINT, city STRING"}},
            "sql": "SELECT id, city FROM orders WHERE id > 1",
            "to": [{"stream": target, "subject": f"{target}.{{city}}"}, "kept"],
        },
        "alerts",
    )
    for number, city in ((1, "Rome"), (2, "New York"), (3, "Oslo")):
        shore.publish(f"{source}.x", f'{{"id": {number}, "city": "{city}"}}'.encode())
    run(spark, lake, shore, pipeline)
    run(spark, lake, shore, pipeline)

    frame = spark.read.format("jetlake").option("url", shore.url).option("stream", target).load()
    rows = [(row.subject, bytes(row.data)) for row in frame.orderBy("subject").collect()]
    assert rows == [
        (f"{target}.New York".replace(" ", "_"), b'{"id":2,"city":"New York"}'),
        (f"{target}.Oslo", b'{"id":3,"city":"Oslo"}'),
    ]
    assert lake.existing("kept").snapshot().rows == 2
