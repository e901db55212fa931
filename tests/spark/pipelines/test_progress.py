"""What is made of the numbers that Spark tells."""

import json

import pytest

from jetlake.spark.pipelines.progress import finite, lag_of


def offset(**streams):
    return json.dumps({"streams": {name: {"created": "x", "next": next_} for name, next_ in streams.items()}, "v": 1})


@pytest.mark.parametrize(
    ("offsets", "lag"),
    [
        ([(offset(A=5), offset(A=9))], 4),
        ([(offset(A=5, B=1), offset(A=6, B=3))], 3),
        ([(offset(A=5), offset(A=5)), (offset(B=1), offset(B=2))], 1),
        ([("7", "9")], None),
        ([(None, offset(A=1))], None),
        ([], None),
    ],
)
def test_lag_is_what_is_stored_and_not_yet_read(offsets, lag):
    assert lag_of(offsets) == lag


def test_rates_that_are_no_numbers_are_zero():
    assert [finite(value) for value in (None, float("nan"), float("inf"), 2.5)] == [0.0, 0.0, 0.0, 2.5]
