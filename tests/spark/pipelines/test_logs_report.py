"""What `show logs` says about the lines that were counted."""

import datetime

import pytest

from jetlake.spark.pipelines.logs_report import facts

pa = pytest.importorskip("pyarrow", reason="the extra `arrow` is not installed")

MORNING = datetime.datetime(2026, 1, 31, 9, 30, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (datetime.timedelta(hours=2), "2026-01-31 09:30 to 11:30 UTC"),
        (datetime.timedelta(hours=15), "2026-01-31 09:30 to 2026-02-01 00:30 UTC"),
        (datetime.timedelta(days=3), "2026-01-31 09:30 to 2026-02-03 09:30 UTC"),
    ],
)
def test_end_of_the_range_has_a_day_where_it_is_another_one(length, text):
    rates = pa.table(
        {
            "window_start": [MORNING],
            "window_end": [MORNING + length],
            "source": ["web"],
            "level": ["info"],
            "lines": [3],
        }
    )

    lines = facts(rates, None, None).facts[0]

    assert (lines.label, lines.note) == ("lines", text)
