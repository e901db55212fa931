"""Log lines: parsing, rates and what is unusual, on small frames."""

import datetime

import pytest

from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines import logs, messages
from jetlake.spark.pipelines.model import StreamInput
from jetlake.spark.pipelines.trial import message_frame, try_out

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

NOON = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
RATES = (
    "window_start TIMESTAMP, window_end TIMESTAMP, source STRING, level STRING, lines BIGINT, "
    "lines_per_second DOUBLE, day DATE"
)


def parsed(spark, rows):
    return logs.parse_lines(message_frame(spark, rows, StreamInput("LOGS"), "test")).collect()


def test_source_level_and_message_are_found(spark):
    cases = [
        ("logs.web1", "2026-01-31T10:00:00Z ERROR no such file", "web1", "error", None),
        ("logs.web1.warn", "disk is nearly full", "web1", "warning", None),
        ("logs.web1", '{"level":"WARNING","msg":"hot","host":"db3"}', "db3", "warning", "hot"),
        ("logs.web1", 'ts=5 level=debug msg="x"', "web1", "debug", None),
        ("logs.web1", "terror in the dark", "web1", "unknown", None),
        ("logs", "INFO started", "unknown", "info", None),
        ("logs.web1", "fatal: out of memory", "web1", "critical", None),
    ]

    rows = parsed(spark, [{"subject": subject, "data": data} for subject, data, *_ in cases])

    for row, (_, data, source, level, message) in zip(rows, cases, strict=True):
        assert (row.source, row.level, row.message) == (source, level, message or data)
        assert row[messages.BAD] is None


def test_the_time_that_a_line_claims_is_read(spark):
    cases = {
        "2026-01-31T10:00:00Z ERROR x": "2026-01-31T10:00:00.000",
        "2026-01-31 10:00:00.5 x": "2026-01-31T10:00:00.500",
        '{"time":"2026-01-31T12:00:00+02:00"}': "2026-01-31T10:00:00.000",
        '{"ts":1769853600.25}': "2026-01-31T10:00:00.250",
        "2026-99-99T10:00:00Z x": None,
        "nothing": None,
    }
    frame = logs.parse_lines(message_frame(spark, [{"data": data} for data in cases], StreamInput("LOGS"), "test"))

    rows = frame.selectExpr("date_format(logged_at, \"yyyy-MM-dd'T'HH:mm:ss.SSS\") AS text").collect()
    assert [row.text for row in rows] == list(cases.values())


def test_empty_lines_and_bytes_that_are_no_text_are_set_aside(spark):
    rows = parsed(spark, [{"data": "  "}, {"data": b"\xff\xff"}, {"data": "x"}])

    assert [row[messages.BAD] for row in rows] == [logs.EMPTY, messages.NOT_TEXT, None]


def test_lines_are_counted_per_window_source_and_level(spark):
    rows = [
        {"subject": f"logs.{source}", "data": f"{level} x", "timestamp": NOON + datetime.timedelta(seconds=second)}
        for second, source, level in [
            (0, "a", "INFO"),
            (30, "a", "INFO"),
            (59, "a", "ERROR"),
            (60, "a", "INFO"),
            (61, "b", "INFO"),
        ]
    ]
    lines = logs.parse_lines(message_frame(spark, rows, StreamInput("LOGS"), "test"))

    counted = logs.rates(lines, "1 minute").orderBy("window_start", "source", "level").collect()
    assert [(row.source, row.level, row.lines) for row in counted] == [
        ("a", "error", 1),
        ("a", "info", 2),
        ("a", "info", 1),
        ("b", "info", 1),
    ]
    assert counted[1].lines_per_second == pytest.approx(2 / 60)
    assert counted[0].day == datetime.date(2026, 1, 31)


def rate_frame(spark, counts, source="a", first=0):
    rows = []
    for number, lines in enumerate(counts, first):
        start = NOON + datetime.timedelta(minutes=number)
        if lines is not None:
            rows.append(
                (start, start + datetime.timedelta(minutes=1), source, "error", lines, lines / 60, start.date())
            )
    return spark.createDataFrame(rows, RATES)


def unusual(new, everything, history=10, threshold=4.0):
    found = logs.anomalies(new, everything, window_s=60, history=history, threshold=threshold)
    return [(row.kind, row.lines, round(row.usual_lines, 2)) for row in found.orderBy("window_start").collect()]


def test_a_burst_and_a_drop_are_found(spark):
    steady = [100, 102, 98, 101, 99, 100, 103, 97, 100, 100]
    new = rate_frame(spark, [400, 100], first=10)
    quiet = rate_frame(spark, [2, 100], first=10)
    history = rate_frame(spark, steady)

    assert unusual(new, history.unionByName(new)) == [("burst", 400, 100.0)]
    assert unusual(quiet, history.unionByName(quiet)) == [("drop", 2, 100.0)]


def test_a_window_that_is_not_over_may_be_a_burst_and_is_no_drop_yet(spark):
    history = rate_frame(spark, [100] * 10)
    quiet, loud = rate_frame(spark, [2], first=10), rate_frame(spark, [400], first=10)
    next_one = rate_frame(spark, [1], first=11)

    assert unusual(loud, history.unionByName(loud)) == [("burst", 400, 100.0)]
    assert unusual(quiet, history.unionByName(quiet)) == []
    assert unusual(next_one, history.unionByName(quiet).unionByName(next_one)) == [("drop", 2, 100.0)]


def test_windows_without_lines_count_as_none(spark):
    history = rate_frame(spark, [1, None, None, None, 1, None, None, None, None, None])
    new = rate_frame(spark, [40], first=10)

    assert unusual(new, history.unionByName(new)) == [("burst", 40, 0.2)]


def test_small_numbers_and_sources_that_are_new_are_left_in_peace(spark):
    few = rate_frame(spark, [1, 0, 2, 1, 0, 1, 2, 1, 0, 1])
    three = rate_frame(spark, [3], first=10)
    stranger = rate_frame(spark, [500], source="b", first=10)

    assert unusual(three, few.unionByName(three)) == []
    assert unusual(stranger, few.unionByName(stranger)) == []


def test_the_same_windows_again_give_the_same(spark):
    everything = rate_frame(spark, [10] * 10 + [90, 10, 95])
    new = rate_frame(spark, [90, 10, 95], first=10)

    first = unusual(new, everything)
    again = unusual(new, everything.where("window_start < '2026-01-31 12:10'"))
    assert first == again
    assert first[0][0] == "burst"


def test_no_new_windows_give_nothing(spark):
    nothing = rate_frame(spark, [])

    assert unusual(nothing, rate_frame(spark, [1, 2])) == []


def test_the_whole_pipeline_on_a_few_lines(spark):
    pipeline = logs.build("logs", logs.Parameters())
    trial = try_out(pipeline, spark, {"messages": [{"subject": "logs.a", "data": "ERROR x"}, {"data": ""}]})

    assert [row["level"] for row in trial.outputs["log_lines"]] == ["error"]
    assert [row["lines"] for row in trial.outputs["log_rates"]] == [1]
    assert trial.outputs["log_anomalies"] == []
    assert [row["reason"] for row in trial.bad] == [logs.EMPTY]


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(ConfigurationError, match="'often' is not a duration; write it like 5 seconds"):
        logs.build("logs", logs.Parameters(window="often"))
    with pytest.raises(ConfigurationError, match="at least 2 windows"):
        logs.build("logs", logs.Parameters(history=1))
