"""Moments as the API writes them."""

import pytest

from jetlake.iac.times import instant, moment


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
        ("2026-01-31T13:00:00.500+01:00", "2026-01-31T12:00:00.5Z"),
        ("2026-01-31 12:00:00", "2026-01-31T12:00:00Z"),
        ("2026-01-31", "2026-01-31T00:00:00Z"),
        ("2026-01-31T12:00:00.123456789Z", "2026-01-31T12:00:00.123456789Z"),
        ("0001-01-01T00:00:00Z", ""),
    ],
)
def test_one_moment_is_written_in_one_way(text, written):
    assert moment(text) == written


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "2026-13-01", "12:00", "2026-01-31T25:00:00Z", "0001-01-01T00:00:00+05:00"]
)
def test_what_is_no_moment_is_none(text):
    assert moment(text) is None


def test_the_fraction_of_a_second_counts():
    assert instant("2026-01-31T12:00:00.25Z").microsecond == 250_000
