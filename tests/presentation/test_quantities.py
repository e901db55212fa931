"""Sizes and lengths of time as people write them."""

import pytest

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


def test_shown_sizes_and_rates_are_short():
    assert [shown_size(size) for size in (0, 1023, 1536, 10 << 30)] == ["0 B", "1023 B", "1.5 KiB", "10.0 GiB"]
    assert [shown_rate(rate) for rate in (0, 1.5, 12345)] == ["0/s", "1.5/s", "12,345/s"]
