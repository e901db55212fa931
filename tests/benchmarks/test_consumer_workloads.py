"""The matrix of workloads of consumers is complete and consistent."""

import pytest

from benchmarks.consumer_workloads import CONSUMER_WORKLOADS, MESSAGES, QUICK_MESSAGES, RARE_EVERY, named
from benchmarks.workloads import UNITS


def test_names_are_unique():
    assert len({workload.name for workload in CONSUMER_WORKLOADS}) == len(CONSUMER_WORKLOADS)


def test_every_workload_has_a_goal_about_a_metric_of_its_own():
    for workload in CONSUMER_WORKLOADS:
        assert workload.goals, workload.name
        assert {goal.metric for goal in workload.goals} <= set(workload.metrics), workload.name


def test_every_metric_has_a_unit():
    assert {metric for workload in CONSUMER_WORKLOADS for metric in workload.metrics} <= set(UNITS)


def test_stream_ends_with_the_rare_message_and_is_read_in_whole_batches():
    for messages in (MESSAGES, QUICK_MESSAGES):
        assert messages % RARE_EVERY == 0
        assert all(messages % workload.load.batch == 0 for workload in CONSUMER_WORKLOADS)


def test_no_name_means_all_of_them():
    assert named([]) == list(CONSUMER_WORKLOADS)
    assert [workload.name for workload in named(["replay"])] == ["replay"]


def test_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="no workload is called bogus; there are fetch-none-1, "):
        named(["bogus"])
