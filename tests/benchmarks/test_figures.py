"""Medians, spreads, ratios and goals."""

import pytest

from benchmarks.figures import Result, Spread
from benchmarks.servers import JETLAKE, REFERENCE
from benchmarks.workloads import CPU, RATE, Goal, Workload


def result_of(own: list[float], reference: list[float], *goals: Goal) -> Result:
    result = Result(Workload("example", "an example", "load", (RATE,), goals))
    for own_value, reference_value in zip(own, reference, strict=True):
        result.add(JETLAKE, {RATE: own_value})
        result.add(REFERENCE, {RATE: reference_value})
    return result


def test_spread_is_the_median_between_its_quartiles():
    assert Spread.of([5.0, 1.0, 4.0, 2.0, 3.0]) == Spread(median=3.0, low=2.0, high=4.0)


def test_spread_of_one_value_is_that_value():
    assert Spread.of([7.0]) == Spread(7.0, 7.0, 7.0)


def test_spread_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one value"):
        Spread.of([])


def test_ratio_is_taken_within_each_repeat():
    # The machine was twice as slow in the second repeat, for both.
    result = result_of([300.0, 150.0, 330.0], [100.0, 50.0, 110.0])

    assert result.ratio(RATE) == Spread(3.0, 3.0, 3.0)


@pytest.mark.parametrize(
    ("goal", "reached"),
    [
        (Goal(RATE, "at least", 3.0), True),
        (Goal(RATE, "at least", 3.5), False),
        (Goal(RATE, "at most", 300.0, "value"), True),
        (Goal(RATE, "at most", 299.0, "value"), False),
    ],
)
def test_goal_is_judged_by_the_median(goal, reached):
    result = result_of([290.0, 300.0, 999.0], [100.0, 100.0, 100.0], goal)

    (verdict,) = result.verdicts()

    assert verdict.is_reached is reached


def test_verdict_says_what_was_wanted_and_whether_it_was_found():
    (verdict,) = result_of([10.0], [100.0], Goal(RATE, "at least", 3.0)).verdicts()

    assert str(verdict) == "not reached: ratio at least 3"


def test_metric_that_was_not_measured_is_an_error():
    with pytest.raises(KeyError):
        result_of([1.0], [1.0]).ratio(CPU)
