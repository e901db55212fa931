"""Timestamps as the API writes them."""

import pytest

from jetlake.iac.times import canonical_timestamp, parse_timestamp


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
def test_one_timestamp_is_written_in_one_way(text, written):
    assert canonical_timestamp(text) == written


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "2026-13-01", "12:00", "2026-01-31T25:00:00Z", "0001-01-01T00:00:00+05:00"]
)
def test_anything_else_is_none(text):
    assert canonical_timestamp(text) is None


def test_the_fraction_of_a_second_counts():
    assert parse_timestamp("2026-01-31T12:00:00.25Z").microsecond == 250_000
