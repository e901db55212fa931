"""Moments in requests."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.management.wire.times import Timestamp, TimestampError


@pytest.mark.parametrize(
    ("text", "written", "unix_ns"),
    [
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", 0),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", -62_135_596_800_000_000_000),
        ("0000-03-01T00:00:00Z", "0000-03-01T00:00:00Z", -62_162_035_200_000_000_000),
        ("2020-02-29T1:02:03,120-00:00", "2020-02-29T01:02:03.12Z", 1_582_938_123_120_000_000),
        ("2020-01-01T05:30:00.1234567899+05:30", "2020-01-01T05:30:00.123456789+05:30", 1_577_836_800_123_456_789),
    ],
)
def test_moment_keeps_its_zone_and_nine_digits(text, written, unix_ns):
    moment = Timestamp.read(text)

    assert (moment.text, moment.unix_ns) == (written, unix_ns)
    assert Timestamp.read(moment.text) == moment


@given(moment=st.datetimes(timezones=st.just(datetime.UTC)))
def test_any_moment_is_the_number_python_makes_of_it(moment):
    read = Timestamp.read(moment.isoformat())

    since = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    assert read.unix_ns == (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"'),
        ("2020-1-1", 'parsing time "2020-1-1" as "2006-01-02T15:04:05Z07:00": cannot parse "1-1" as "01"'),
        ("2020-13-01T00:00:00Z", 'parsing time "2020-13-01T00:00:00Z": month out of range'),
        ("2021-02-29T00:00:00Z", 'parsing time "2021-02-29T00:00:00Z": day out of range'),
        ("2020-01-01T24:00:00Z", 'parsing time "2020-01-01T24:00:00Z": hour out of range'),
        ("2020-01-01T00:00:00+25:00", 'parsing time "2020-01-01T00:00:00+25:00": time zone offset hour out of range'),
        ("2020-01-01T00:00:00Z!", 'parsing time "2020-01-01T00:00:00Z!": extra text: "!"'),
        ('é"', 'parsing time "\\xc3\\xa9\\"" as "2006-01-02T15:04:05Z07:00": cannot parse "\\xc3\\xa9\\"" as "2006"'),
    ],
)
def test_complaint_says_where_a_text_stops_being_a_moment(text, problem):
    with pytest.raises(TimestampError) as raised:
        Timestamp.read(text)

    assert str(raised.value) == problem


@given(text=st.text(alphabet="0123456789-T:Z.,+"))
def test_any_text_is_a_moment_or_refused(text):
    try:
        shown = Timestamp.read(text).text
    except TimestampError as error:
        shown = str(error)

    assert shown.startswith("parsing time ") or shown[4] == "-"


def test_zone_of_a_day_can_be_read_and_not_be_written():
    assert not Timestamp.read("2020-01-01T00:00:00+23:60").is_writable
    assert Timestamp.read("2020-01-01T00:00:00-23:59").is_writable


@pytest.mark.parametrize(
    ("text", "in_utc"),
    [
        ("2030-01-01T00:00:00Z", "2030-01-01T00:00:00Z"),
        ("2030-01-01T00:00:00.5+05:30", "2029-12-31T18:30:00.5Z"),
        ("2020-02-29T23:59:59-23:59", "2020-03-01T23:58:59Z"),
        ("0001-01-01T01:00:00+01:00", "0001-01-01T00:00:00Z"),
        ("0000-03-01T00:00:00+00:01", "0000-02-29T23:59:00Z"),
        ("9999-12-31T23:59:59.000000001-01:00", "9999-12-31T23:59:59.000000001-01:00"),
        ("0000-01-01T00:00:00+01:00", "0000-01-01T00:00:00+01:00"),
    ],
)
def test_moment_can_be_written_as_in_utc(text, in_utc):
    moment = Timestamp.read(text)

    assert moment.in_utc == Timestamp(text=in_utc, unix_ns=moment.unix_ns)
    assert moment.is_zero == (in_utc == "0001-01-01T00:00:00Z")


@given(st.datetimes(), st.integers(-23 * 60, 23 * 60))
def test_moment_in_utc_is_the_same_moment(date_and_time, zone_minutes):
    sign, (hours, minutes) = "-" if zone_minutes < 0 else "+", divmod(abs(zone_minutes), 60)
    moment = Timestamp.read(f"{date_and_time.isoformat()}{sign}{hours:02d}:{minutes:02d}")

    assert Timestamp.read(moment.in_utc.text).unix_ns == moment.unix_ns
