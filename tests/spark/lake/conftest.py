"""What the tests of tables share: frames with rows, and both kinds of table."""

import datetime

import pytest


@pytest.fixture(params=["parquet", "delta"])
def kind(request):
    """Both kinds of table; Delta is left out where its package is not installed."""
    if request.param == "delta":
        pytest.importorskip("deltalake", reason="the package deltalake is not installed")
    return request.param


@pytest.fixture(scope="session")
def rows_of(spark):
    """Make a frame: rows numbered from `first`, over two days."""

    def make(first, count=10):
        day = datetime.date(2026, 1, 31)
        rows = [(n, f"s.{n % 3}", day + datetime.timedelta(days=n % 2)) for n in range(first, first + count)]
        return spark.createDataFrame(rows, "sequence BIGINT, subject STRING, day DATE")

    return make
