"""The pipeline `archive`, on small frames."""

import datetime

import pytest

from jetlake.spark.columns import MESSAGE
from jetlake.spark.pipelines import archive
from jetlake.spark.pipelines.trial import try_out


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_every_column_is_kept_and_the_day_is_that_of_storing(spark):
    pipeline = archive.build("archive", archive.Parameters(stream="ORDERS"))
    rows = [
        {"data": b"\xff", "headers": {"A": ["1", "2"]}, "timestamp": "2026-01-31T23:59:59Z"},
        {"data": "x", "timestamp": "2026-02-01T01:00:00+01:00"},
    ]

    trial = try_out(pipeline, spark, {"messages": rows})

    first, second = trial.outputs["archive"]
    assert tuple(first) == (*MESSAGE, "day")
    assert (first["day"], second["day"]) == (datetime.date(2026, 1, 31), datetime.date(2026, 2, 1))
    assert (bytes(first["data"]), first["headers"]) == (b"\xff", {"A": ["1", "2"]})
    assert trial.bad == []


def test_without_a_stream_every_stream_is_taken():
    everything = archive.build("archive", archive.Parameters()).inputs["messages"]
    some = archive.build("archive", archive.Parameters(stream="A", subjects="a.>, b.*")).inputs["messages"]

    assert (everything.stream, everything.pattern) == ("", ".*")
    assert (some.stream, some.pattern, some.subjects) == ("A", "", ("a.>", "b.*"))
