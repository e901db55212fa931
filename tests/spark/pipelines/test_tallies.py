"""Sums that grow batch by batch, without Spark."""

import datetime

import pyarrow
import pytest

from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines.model import Derived, TableOutput, check_table
from jetlake.spark.pipelines.tallies import added

OUTPUT = TableOutput("rates", key=("day", "level"), sums=("lines",))
DAY = datetime.date(2026, 1, 31)


def rates(**lines):
    return pyarrow.table(
        {"day": [DAY] * len(lines), "level": list(lines), "lines": pyarrow.array(lines.values(), pyarrow.int64())}
    )


def test_a_batch_is_added_to_what_is_there():
    totals = added(rates(error=2, info=5), rates(info=10, debug=1), OUTPUT, is_there=False)

    assert totals == rates(error=2, info=15)


def test_a_batch_that_is_there_already_is_not_added_again():
    totals = added(rates(error=2, info=5), rates(info=15, error=2), OUTPUT, is_there=True)

    assert totals == rates(error=2, info=15)


def test_the_first_batch_is_what_it_is():
    assert added(rates(info=5), None, OUTPUT, is_there=False) == rates(info=5)


def test_sums_and_what_follows_a_table_with_a_key_need_a_key():
    with pytest.raises(ConfigurationError, match="sums are kept by key"):
        check_table("here", TableOutput("rates", sums=("lines",)))
    with pytest.raises(ConfigurationError, match="needs a key too"):
        check_table("here", TableOutput("rates", key=("day",), derived=(Derived("more", lambda new, _: new),)))
