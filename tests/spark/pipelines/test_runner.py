"""Pipelines as queries: every row once, bad ones aside, state kept, restarts exact, others told."""

import threading
import time

import pytest

from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines import archive, logs
from jetlake.spark.pipelines.definition import parse
from jetlake.spark.pipelines.model import Pipeline, StreamInput, TableOutput
from jetlake.spark.pipelines.runner import Runner
from jetlake.spark.pipelines.state import PipelineFiles

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(240)]

WAIT_S_MAX = 60.0

ORDERS = {"orders": {"stream": "ORDERS", "columns": "id BIGINT, total DOUBLE", "expect": {"no id": "id IS NOT NULL"}}}


def wait_for(condition):
    deadline = time.monotonic() + WAIT_S_MAX
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def test_rows_go_to_all_outputs_and_bad_ones_aside_in_one_query(stream, run_once, rows_in):
    pipeline = parse(
        {
            "from": ORDERS,
            "steps": [
                {"name": "large", "sql": "SELECT id, sequence FROM orders WHERE total > 100"},
                {"name": "small", "sql": "SELECT id, sequence FROM orders WHERE total <= 100"},
            ],
            "to": [{"table": "large", "from": "large"}, {"table": "small", "from": "small"}],
        },
        "split",
    )
    stream.publish({"id": 1, "total": 500}, {"id": 2, "total": 5}, b"no json", {"total": 1})
    stream.publish({"id": 3, "total": 101})

    (state,) = run_once(pipeline)

    assert rows_in("large", "id") == [(1,), (3,)]
    assert rows_in("small", "id") == [(2,)]
    assert rows_in("split_bad", "sequence", "reason", "data") == [
        (3, "the payload is not JSON", b"no json"),
        (4, "no id", b'{"total": 1}'),
    ]
    assert (state.state, [query.name for query in state.queries]) == ("finished", ["split"])
    assert state.queries[0].batch == 1


def test_a_second_run_goes_on_where_the_first_ended(stream, run_once, rows_in):
    pipeline = archive.build("archive", archive.Parameters(stream="ORDERS"))
    stream.publish({"id": 1}, {"id": 2})
    run_once(pipeline)
    stream.publish({"id": 3}, seconds=86400)
    run_once(pipeline)
    run_once(pipeline)

    rows = rows_in("archive", "sequence", "subject", "CAST(day AS STRING)")
    assert rows == [(1, "orders.eu", "2026-01-31"), (2, "orders.eu", "2026-01-31"), (3, "orders.eu", "2026-02-01")]


def test_a_batch_that_was_committed_and_not_noted_is_not_added_again(spark, lake, stream, run_once, rows_in):
    pipeline = archive.build("archive", archive.Parameters(stream="ORDERS"))
    stream.publish({"id": 1})
    stream.publish({"id": 2})
    run_once(pipeline)
    # As if the process had died after the table's commit and before Spark's.
    commits = PipelineFiles(lake.folder, "archive").checkpoint("archive") / "commits"
    for path in [commits / "1", commits / ".1.crc"]:
        path.unlink(missing_ok=True)
    stream.publish({"id": 3})
    run_once(pipeline)

    assert rows_in("archive", "sequence") == [(1,), (2,), (3,)]


def test_many_pipelines_run_in_one_session_and_their_views_do_not_meet(stream, run_once, rows_in):
    def selecting(name, condition):
        sql = f"SELECT id, sequence FROM orders WHERE {condition}"
        return parse({"from": ORDERS, "sql": sql, "to": name}, name)

    stream.publish({"id": 1}, {"id": 2}, {"id": 3})
    states = run_once(selecting("odd", "id % 2 = 1"), selecting("even", "id % 2 = 0"))

    assert [state.state for state in states] == ["finished", "finished"]
    assert rows_in("odd", "id") == [(1,), (3,)]
    assert rows_in("even", "id") == [(2,)]


def test_windows_are_counted_once_when_they_are_over(stream, run_once, rows_in):
    pipeline = parse(
        {
            "from": {"orders": {**ORDERS["orders"], "watermark": "10 seconds"}},
            "sql": "SELECT window(timestamp, '1 minute').start AS start, count(*) AS orders FROM orders "
            "GROUP BY window(timestamp, '1 minute')",
            "to": "per_minute",
        },
        "counting",
    )
    stream.publish({"id": 1}, {"id": 2}, b"bad")
    stream.publish({"id": 3}, seconds=30)
    stream.publish({"id": 4}, seconds=60)
    (first,) = run_once(pipeline)
    stream.publish({"id": 5}, seconds=120)
    run_once(pipeline)

    assert sorted(query.name for query in first.queries) == ["counting", "counting.per_minute"]
    assert rows_in("per_minute", "CAST(start AS STRING)", "orders", order="start") == [
        ("2026-01-31 12:00:00", 3),
        ("2026-01-31 12:01:00", 1),
    ]
    assert rows_in("counting_bad", "sequence") == [(3,)]


def test_log_lines_are_counted_and_a_burst_is_found(stream, run_once, rows_in):
    pipeline = logs.build("logs", logs.Parameters(history=4, threshold=4.0))
    for lines in (10, 11, 9, 10, 90):
        stream.publish(*[b"ERROR it broke"] * lines, subject="logs.web1.app", seconds=60)
    stream.publish(b"INFO all is well", subject="logs.web1.app", seconds=120)
    run_once(pipeline)

    assert len(rows_in("log_lines", "sequence")) == 131
    assert rows_in("log_rates", "lines", "level", order="window_start") == [
        (10, "error"),
        (11, "error"),
        (9, "error"),
        (10, "error"),
        (90, "error"),
        # A window is told while it fills.
        (1, "info"),
    ]
    assert rows_in("log_anomalies", "kind", "source", "lines", order="window_start") == [("burst", "web1", 90)]


def test_a_table_joins_the_rows_of_a_stream_as_it_is_when_they_come(spark, lake, stream, run_once, rows_in):
    cities = lake.table("cities")
    cities.append(spark.createDataFrame([(1, "Rome")], "id BIGINT, city STRING"), "test", 0)
    pipeline = parse(
        {
            "from": {**ORDERS, "cities": {"table": "cities"}},
            "sql": "SELECT id, city, sequence FROM orders LEFT JOIN cities USING (id)",
            "to": "with_city",
        },
        "joining",
    )
    stream.publish({"id": 1}, {"id": 2})
    run_once(pipeline)
    cities.append(spark.createDataFrame([(2, "Oslo")], "id BIGINT, city STRING"), "test", 1)
    stream.publish({"id": 2})
    run_once(pipeline)

    assert rows_in("with_city", "id", "city") == [(1, "Rome"), (2, None), (2, "Oslo")]


def test_a_pipeline_from_tables_is_worked_out_anew_when_they_change(spark, lake, run_once, rows_in):
    source = lake.table("orders")
    source.append(spark.createDataFrame([(1, 5.0), (1, 7.0)], "id BIGINT, total DOUBLE"), "test", 0)
    pipeline = parse(
        {
            "from": {"orders": {"table": "orders"}},
            "sql": "SELECT id, sum(total) AS total FROM orders GROUP BY id",
            "to": "totals",
        },
        "summing",
    )
    run_once(pipeline)
    version = lake.table("totals").snapshot().version
    run_once(pipeline)
    unchanged = lake.table("totals").snapshot().version
    source.append(spark.createDataFrame([(2, 1.0)], "id BIGINT, total DOUBLE"), "test", 1)
    run_once(pipeline)

    assert unchanged == version
    assert rows_in("totals", "id", "total", order="id") == [(1, 12.0), (2, 1.0)]


def test_a_runner_tells_others_and_ends_when_asked(spark, lake, stream, rows_in):
    pipeline = parse({"from": ORDERS, "sql": "SELECT id, sequence FROM orders", "to": "ids", "trigger": "100ms"}, "ids")
    files = PipelineFiles(lake.folder, "ids")
    runner = Runner(spark, lake, "", reader=stream.read)
    outcome = []
    stream.publish({"id": 1})

    thread = threading.Thread(target=lambda: outcome.extend(runner.run([pipeline])))
    thread.start()
    wait_for(lambda: (state := files.status()) is not None and state.queries and state.queries[0].rows == 1)
    running = files.status()
    with pytest.raises(ConfigurationError, match="pipeline ids is running already by process"):
        Runner(spark, lake, "", reader=stream.read).run([pipeline])
    stream.publish({"id": 2})
    wait_for(lambda: files.status().queries[0].rows == 2)
    files.ask_to_stop()
    thread.join(WAIT_S_MAX)

    assert running.state == "running"
    assert [state.state for state in outcome] == ["stopped"]
    assert files.status().state == "stopped"
    assert rows_in("ids", "id") == [(1,), (2,)]
    assert [line["rows"] for line in files.progress()][:2] == [1, 1]


def test_a_query_that_fails_is_started_again_and_goes_on(spark, lake, stream, rows_in, monkeypatch):
    fails = iter([True, False, False, False])
    monkeypatch.setattr("jetlake.spark.pipelines.runner.RESTART_S_FIRST", 0.1)

    def transform(frames):
        if not frames["messages"].isStreaming and next(fails, False):
            raise ConfigurationError("the first time goes wrong")
        return {"out": frames["messages"]}

    pipeline = Pipeline("flaky", {"messages": StreamInput("ORDERS")}, transform, (TableOutput("out"),), trigger="100ms")
    files = PipelineFiles(lake.folder, "flaky")
    runner = Runner(spark, lake, "", reader=stream.read)
    outcome = []
    stream.publish({"id": 1})

    thread = threading.Thread(target=lambda: outcome.extend(runner.run([pipeline])))
    thread.start()
    wait_for(lambda: lake.table("out").exists() and lake.table("out").snapshot().rows == 1)
    runner.request_stop()
    thread.join(WAIT_S_MAX)

    assert outcome[0].state == "stopped"
    assert outcome[0].queries[0].restarts == 1
    assert rows_in("out", "sequence") == [(1,)]
    assert files.status().state == "stopped"


def test_one_pipeline_that_fails_for_good_leaves_the_others_alone(spark, lake, stream, rows_in):
    good = parse({"from": ORDERS, "sql": "SELECT id, sequence FROM orders", "to": "ids"}, "ids")
    bad = parse({"from": ORDERS, "sql": "SELECT idd FROM orders", "to": "wrong"}, "wrong")
    stream.publish({"id": 1})

    states = Runner(spark, lake, "", once=True, reader=stream.read).run([bad, good])

    assert [state.state for state in states] == ["failed", "finished"]
    assert states[0].error == "step wrong: there is no column idd; did you mean id?"
    assert rows_in("ids", "id") == [(1,)]


def test_a_value_that_cannot_be_cast_does_not_stop_the_rows_behind_it(stream, run_once, rows_in):
    sql = "SELECT CAST(CAST(data AS STRING) AS INT) AS number, sequence FROM messages"
    pipeline = parse({"from": {"messages": "ORDERS"}, "sql": sql, "to": "numbers"}, "numbers")
    stream.publish(b"1", b"two", b"3")
    run_once(pipeline)

    assert rows_in("numbers", "number") == [(1,), (None,), (3,)]
