"""The matrix of workloads of streams is complete and consistent."""

import pytest

from benchmarks.stream_workloads import STREAM_WORKLOADS, named
from benchmarks.workloads import UNITS


def test_names_are_unique():
    assert len({workload.name for workload in STREAM_WORKLOADS}) == len(STREAM_WORKLOADS)


def test_every_workload_has_a_goal_about_a_metric_of_its_own():
    for workload in STREAM_WORKLOADS:
        assert workload.goals, workload.name
        assert {goal.metric for goal in workload.goals} <= set(workload.metrics), workload.name


def test_every_metric_has_a_unit():
    assert {metric for workload in STREAM_WORKLOADS for metric in workload.metrics} <= set(UNITS)


def test_no_name_means_all_of_them():
    assert named([]) == list(STREAM_WORKLOADS)
    assert [workload.name for workload in named(["atomic"])] == ["atomic"]


def test_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="no workload is called bogus; there are store, "):
        named(["bogus"])
