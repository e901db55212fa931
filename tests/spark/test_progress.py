"""How queries are doing, as it is told."""

import io
import json
from types import SimpleNamespace

import pytest

from jetlake.spark.progress import QUERIES_MAX, Progress, lag_of


def offset(**places):
    return json.dumps({"streams": {name: {"next": number} for name, number in places.items()}, "v": 1})


def told(query="q", rows=10, end=None, latest=None):
    source = SimpleNamespace(endOffset=end or offset(A=5), latestOffset=latest or offset(A=25))
    return SimpleNamespace(
        id=query, name="orders", numInputRows=rows, processedRowsPerSecond=50.0, batchDuration=200, sources=[source]
    )


def test_batches_add_up_and_the_lag_is_what_is_not_read():
    progress = Progress()
    progress.started("q", "orders")
    progress.progressed(told())
    progress.progressed(told(rows=5))

    [query] = progress.queries()
    assert (query.name, query.rows_total, query.batches_total, query.lag) == ("orders", 15, 2, 20)
    assert (query.rows_per_second, query.batch_s, query.running) == (50.0, 0.2, True)


def test_an_idle_query_is_not_behind_and_an_ended_one_does_not_run():
    progress = Progress()
    progress.progressed(told())
    progress.idle("q")
    assert progress.queries()[0].lag == 0

    progress.ended("q", "it broke")
    assert (progress.queries()[0].running, progress.queries()[0].failure) == (False, "it broke")


@pytest.mark.parametrize(
    ("end", "latest", "lag"),
    [
        (offset(A=5), offset(A=9, B=4), 7),
        (offset(A=9), offset(A=5), 0),
        ("12", "13", None),
        (None, None, None),
        ("{}", "not json", None),
    ],
)
def test_a_lag_is_known_for_our_offsets_only(end, latest, lag):
    assert lag_of(end, latest) == lag


def test_prometheus_gets_every_figure_with_its_query():
    progress = Progress()
    progress.started("q", 'a "name"\n')
    progress.progressed(told())

    text = progress.to_prometheus()

    assert "# TYPE jetlake_spark_rows_total counter" in text
    assert 'jetlake_spark_rows_total{query="a \\"name\\"\\n"} 10' in text
    assert 'jetlake_spark_lag_messages{query="a \\"name\\"\\n"} 20' in text


def test_only_the_newest_queries_are_kept():
    progress = Progress()
    for number in range(QUERIES_MAX + 5):
        progress.started(str(number), "")

    assert len(progress.queries()) == QUERIES_MAX
    assert progress.queries()[0].query == "5"


def test_a_line_per_query_is_shown():
    from rich.console import Console

    progress = Progress()
    progress.progressed(told())
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(progress._table())

    assert "orders" in console.export_text()
