"""Numbers, sizes and durations as the tools of 2019 and 2020 wrote and read them."""

import pytest

from jetlake.cli.preview import texts

DAY_NS = 86_400 * 10**9


@pytest.mark.parametrize(
    ("count", "by_thousands", "by_1024"),
    [
        (0, "0 B", "0 B"),
        (76, "76 B", "76 B"),
        (1_234, "1.2 kB", "1.2 KiB"),
        (12_092, "12 kB", "12 KiB"),
        (161_000_076, "161 MB", "154 MiB"),
        (10 * 2**30, "11 GB", "10 GiB"),
        (2**40, "1.1 TB", "1.0 TiB"),
    ],
)
def test_a_size_has_one_decimal_below_ten(count, by_thousands, by_1024):
    assert texts.size_text(count) == by_thousands
    assert texts.size_text(count, by_1024=True) == by_1024


@pytest.mark.parametrize(
    ("text", "duration_ns"),
    [("", 0), ("-1", 0), ("1m", 60 * 10**9), ("1w", 7 * DAY_NS), ("1d", DAY_NS), ("1h30m", 5_400 * 10**9)],
)
def test_a_duration_is_read(text, duration_ns):
    assert texts.read_duration_ns(text) == duration_ns


@pytest.mark.parametrize("text", ["1", "w", "1x", "-5s", "1w2"])
def test_what_is_no_duration_says_what_one_is(text):
    with pytest.raises(ValueError, match="is not a duration: write a number with"):
        texts.read_duration_ns(text)


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [(0, "unlimited"), (DAY_NS, "1d0h0m0s"), (3_661 * 10**9, "1h1m1s"), (90 * 10**9, "1m30s"), (30 * 10**9, "30.00s")],
)
def test_a_duration_is_written(duration_ns, text):
    assert texts.duration_text(duration_ns) == text


@pytest.mark.parametrize("text", ["foo, bar, baz.*", "foo\tbar\tbaz.*", "foo bar baz.*"])
def test_a_list_is_split_on_commas_else_tabs_else_blanks(text):
    assert texts.split_list(text) == ["foo", "bar", "baz.*"]


def test_a_limit_that_is_none_is_unlimited():
    assert [texts.limit_text(limit) for limit in (-1, 0, 1_000)] == ["unlimited", "unlimited", "1,000"]


def test_go_writes_hours_and_not_days():
    assert [texts.go_duration_text(ns * 10**9) for ns in (86_400, 90, 5)] == ["24h0m0s", "1m30s", "5s"]
