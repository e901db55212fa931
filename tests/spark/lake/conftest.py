"""What the tests of tables share: frames with rows."""

import datetime

import pytest


@pytest.fixture(scope="session")
def rows_of(spark):
    """Make a frame: rows numbered from `first`, over two days."""

    def make(first, count=10):
        day = datetime.date(2026, 1, 31)
        rows = [(n, f"s.{n % 3}", day + datetime.timedelta(days=n % 2)) for n in range(first, first + count)]
        return spark.createDataFrame(rows, "sequence BIGINT, subject STRING, day DATE")

    return make
