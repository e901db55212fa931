"""Sizes and lengths of time as people write them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jetlake.presentation.quantities import SECOND, read_duration, read_size, shown_duration, shown_rate, shown_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("-1", -1), ("512", 512), ("1k", 1024), ("10MB", 10 << 20), ("1.5GiB", 3 << 29), ("2 TiB", 2 << 40)],
)
def test_sizes_are_powers_of_1024(text, size):
    assert read_size(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("500ms", 0.5), ("30s", 30), ("1h30m", 5400), ("1d", 86400), ("1w", 604800), ("1y", 31536000)],
)
def test_times_have_units(text, seconds):
    assert read_duration(text) == seconds * SECOND


@pytest.mark.parametrize("text", ["", "x", "10", "1 s", "1q", "s", "1d1"])
def test_what_is_no_time_is_refused_with_examples(text):
    with pytest.raises(ValueError, match="is not a time: write 30s"):
        read_duration(text)


def test_time_that_is_too_long_or_negative_is_refused():
    with pytest.raises(ValueError, match="is too long"):
        read_duration("300y")
    with pytest.raises(ValueError, match="is not a time"):
        read_duration("-5s")
    assert read_duration("-1") == -1


@pytest.mark.parametrize("text", ["", "x", "1XB", "GiB"])
def test_what_is_no_size_is_refused_with_examples(text):
    with pytest.raises(ValueError, match="is not a size: write 512"):
        read_size(text)


@pytest.mark.parametrize("text", ["1ns", "5ms", "1.5s", "30s", "1m30s", "1h", "2h5m", "1d", "6d23h", "1y", "1y1d"])
def test_shown_times_can_be_read_again(text):
    assert shown_duration(read_duration(text)) == text


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (999, "999ns"),
        (999.6, "1µs"),
        (999_999, "1ms"),
        (999_999_999, "1s"),
        (59_960_000_000, "1m"),
        (59_999_999_999, "1m"),
        (59_940_000_000, "59.9s"),
        (61_500_000_000, "1m1s"),
        (3_599_999_999_999, "59m59s"),
        (-999_999, "-1ms"),
        (0.2, "0s"),
    ],
)
def test_time_is_rounded_before_its_unit_is_chosen(time_ns, text):
    assert shown_duration(time_ns) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (1023.6, "1.0 KiB"),
        (1048575, "1.0 MiB"),
        (1048524, "1023.9 KiB"),
        ((1 << 40) - 1, "1.0 TiB"),
        (-1048575, "-1.0 MiB"),
    ],
)
def test_size_is_rounded_before_its_unit_is_chosen(size, text):
    assert shown_size(size) == text


@given(st.integers(min_value=0, max_value=2**63 - 1))
@example(999_999_999)
@example(59_999_999_999)
def test_shown_times_are_read_and_close(time_ns):
    assert read_duration(shown_duration(time_ns)) == pytest.approx(time_ns, rel=0.05)


@given(st.integers(min_value=0, max_value=2**63 - 1))
@example(1048575)
@example(1331)
def test_shown_sizes_are_read_and_close(size):
    assert read_size(shown_size(size)) == pytest.approx(size, rel=0.05)


def test_part_of_a_byte_is_no_size():
    with pytest.raises(ValueError, match="is not a size"):
        read_size("1.5")


def test_shown_sizes_and_rates_are_short():
    assert [shown_size(size) for size in (0, 1023, 1536, 10 << 30)] == ["0 B", "1023 B", "1.5 KiB", "10.0 GiB"]
    assert [shown_rate(rate) for rate in (0, 1.5, 12345)] == ["0/s", "1.5/s", "12,345/s"]
