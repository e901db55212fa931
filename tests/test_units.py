"""Durations and sizes as people write them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jetlake.shared.durations import duration_ns
from jetlake.units import size_bytes, write_duration, write_size

SECOND_NS = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("1h30m", 5400), ("1d", 86400), ("2w", 1209600), ("1y", 31536000), ("1M", 2592000), ("1.5m", 90)],
)
def test_durations_have_units(text, seconds):
    assert duration_ns(text) == seconds * SECOND_NS


@pytest.mark.parametrize("text", ["", "30", "s", "1 day", "1x", "-", "0.1ns", "1h 30m", "1e3s"])
def test_what_is_no_duration_is_none(text):
    assert duration_ns(text) is None


@pytest.mark.parametrize(
    ("text", "size"),
    [("10GiB", 10 * 1024**3), ("1KB", 1024), ("2m", 2 * 1024**2), ("512", 512), ("1.5MiB", 1572864), ("-1", -1)],
)
def test_sizes_have_units(text, size):
    assert size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "10XB", "1.5", "1.3KiB", "ten", "10 GiBs"])
def test_what_is_no_size_is_none(text):
    assert size_bytes(text) is None


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=2**63))
def test_what_is_written_is_read_again(number):
    assert duration_ns(write_duration(number)) == number
    assert size_bytes(str(write_size(number))) == number
