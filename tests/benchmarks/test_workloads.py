"""The matrix of workloads is complete and consistent."""

import pytest

from benchmarks.workloads import WORKLOADS, named


def test_names_are_unique():
    assert len({workload.name for workload in WORKLOADS}) == len(WORKLOADS)


def test_every_goal_is_about_a_metric_of_its_workload():
    for workload in WORKLOADS:
        assert {goal.metric for goal in workload.goals} <= set(workload.metrics), workload.name


def test_no_name_means_all_of_them():
    assert named([]) == list(WORKLOADS)
    assert [workload.name for workload in named(["paced"])] == ["paced"]


def test_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="no workload is called bogus; there are publish-16, "):
        named(["bogus"])
