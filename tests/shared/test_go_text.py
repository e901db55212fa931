"""Texts as Go writes them; the expected ones were printed by nats-server or by Go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.shared.go_text import duration_text, quoted, time_text, uptime_text

SECOND_NS = 1_000_000_000


@pytest.mark.parametrize(
    ("unix_ns", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_700_000_000 * SECOND_NS, "2023-11-14T22:13:20Z"),
        (1_700_000_000 * SECOND_NS + 63_586_081 * 10, "2023-11-14T22:13:20.63586081Z"),
        (1_700_000_000 * SECOND_NS + 1, "2023-11-14T22:13:20.000000001Z"),
    ],
)
def test_times_have_nanoseconds_without_trailing_zeros(unix_ns, text):
    assert time_text(unix_ns) == text


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (1, "1ns"),
        (673_000, "673µs"),
        (673_500, "673.5µs"),
        (1_163_930, "1.16393ms"),
        (999_999_999, "999.999999ms"),
        (SECOND_NS, "1s"),
        (90 * SECOND_NS, "1m30s"),
        (3_600 * SECOND_NS, "1h0m0s"),
        (3_723 * SECOND_NS + 500_000_000, "1h2m3.5s"),
        (100 * 3_600 * SECOND_NS, "100h0m0s"),
    ],
)
def test_durations_use_the_largest_unit_that_fits(duration_ns, text):
    assert duration_text(duration_ns) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0s"),
        (0, "0s"),
        (59, "59s"),
        (60, "1m0s"),
        (3_723, "1h2m3s"),
        (86_400, "1d0h0m0s"),
        (366 * 86_400 + 5, "1y1d0h0m5s"),
    ],
)
def test_uptimes_have_days_and_years(seconds, text):
    assert uptime_text(seconds * SECOND_NS + 999_999_999 * (seconds >= 0)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", '"x"'),
        ('x"y\x01é', '"x\\"y\\x01é"'),
        ("\\\a\b\f\n\r\t\v", '"\\\\\\a\\b\\f\\n\\r\\t\\v"'),
        ("\u2028\U000e0001", '"\\u2028\\U000e0001"'),
    ],
)
def test_quotes_escape_what_cannot_be_printed(text, expected):
    assert quoted(text) == expected


@given(st.text())
def test_a_quoted_text_is_one_printable_line(text):
    assert quoted(text).isprintable()
