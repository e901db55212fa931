"""Times as NATS and Go write them."""

import pytest

from jetlake.client.timestamps import ZERO_TIME, read_time, write_time


@pytest.mark.parametrize(
    ("text", "unix_ns"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000_000),
        ("2021-07-11T08:22:52.906612419Z", 1625991772906612419),
        ("2021-07-11T10:22:52.9+02:00", 1625991772900000000),
        ("2021-07-11T03:52:52-0430", 1625991772000000000),
        (ZERO_TIME, 0),
        (" 1970-01-01t00:00:00.000000001z ", 1),
    ],
)
def test_a_time_is_read(text, unix_ns):
    assert read_time(text) == unix_ns


@pytest.mark.parametrize(
    "text", ["", "now", "2021-07-11", "2021-02-30T00:00:00Z", "2021-01-01T25:00:00Z", "2021-01-01T00:00:00"]
)
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ValueError, match="is not a"):
        read_time(text)


def test_trailing_zeros_are_not_written():
    assert write_time(1_500_000_000) == "1970-01-01T00:00:01.5Z"
    assert write_time(2_000_000_000) == "1970-01-01T00:00:02Z"
    assert write_time(0) == ZERO_TIME
