"""The text format of Prometheus."""

import math

import pytest

from jetlake.monitoring.prometheus import MetricFamily, Sample, histogram, render, single


def test_a_family_has_help_type_and_samples():
    text = render([MetricFamily("x_total", "counter", "What it\nis \\.", [Sample(1, {"a": "b"}), Sample(2.5)])])

    assert text == '# HELP x_total What it\\nis \\\\.\n# TYPE x_total counter\nx_total{a="b"} 1\nx_total 2.5\n'


def test_labels_cannot_break_out_of_their_quotes():
    text = render([MetricFamily("x", "gauge", "", [Sample(1, {"a": 'q"uote\\back\nline'})])])

    assert text.splitlines()[-1] == 'x{a="q\\"uote\\\\back\\nline"} 1'


def test_a_histogram_counts_upwards():
    family = histogram("x_seconds", "Syncs.", [(0.001, 2), (0.01, 0), (math.inf, 3)], 1.5, {"stream": "S"})

    assert render([family]).splitlines()[2:] == [
        'x_seconds_bucket{stream="S",le="0.001"} 2',
        'x_seconds_bucket{stream="S",le="0.01"} 2',
        'x_seconds_bucket{stream="S",le="+Inf"} 5',
        'x_seconds_sum{stream="S"} 1.5',
        'x_seconds_count{stream="S"} 5',
    ]


def test_mistakes_of_ours_are_found():
    with pytest.raises(AssertionError, match="comes twice"):
        render([single("x", "gauge", "", 1), single("x", "gauge", "", 2)])
    with pytest.raises(AssertionError):
        render([single("no name", "gauge", "", 1)])
    with pytest.raises(AssertionError, match="infinite"):
        histogram("x", "", [(1.0, 1)], 0)
    with pytest.raises(AssertionError, match="ascend"):
        histogram("x", "", [(1.0, 1), (0.5, 1), (math.inf, 0)], 0)
