"""Schedules: when they come next, in every form; what cannot be read is named."""

import time
from contextlib import suppress
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jetlake.agents.machines.cron import parse_cron
from jetlake.errors import ConfigurationError

UTC = "CRON_TZ=UTC "


def unix_s(text, zone="UTC"):
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def next_of(schedule, after, zone="UTC"):
    found = parse_cron(f"CRON_TZ={zone} {schedule}").next_after(unix_s(after, zone))
    return None if found is None else datetime.fromtimestamp(found, ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M")


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("*/30 * * * *", "2026-01-31 12:00:00", "2026-01-31 12:30"),
        ("*/30 * * * *", "2026-01-31 12:59:59", "2026-01-31 13:00"),
        ("0 2 * * SUN", "2026-01-31 12:00", "2026-02-01 02:00"),
        ("0 2 * * 7", "2026-01-31 12:00", "2026-02-01 02:00"),
        ("15,45 8-10 * jan,Feb mon-fri", "2026-01-30 10:45", "2026-02-02 08:15"),
        ("0 0 29 2 *", "2026-01-01 00:00", "2028-02-29 00:00"),
        ("5/20 * * * *", "2026-01-01 00:06", "2026-01-01 00:25"),
        ("0 0 ? * ?", "2026-01-01 00:00", "2026-01-02 00:00"),
        # Both days restricted: one suffices.
        ("0 0 13 * FRI", "2026-01-01 12:00", "2026-01-02 00:00"),
        ("0 0 13 * FRI", "2026-01-09 12:00", "2026-01-13 00:00"),
        ("@hourly", "2026-01-01 00:30", "2026-01-01 01:00"),
        ("@weekly", "2026-01-31 12:00", "2026-02-01 00:00"),
        ("@yearly", "2026-01-31 12:00", "2027-01-01 00:00"),
        # Only on Sundays, and rarely: a day and a step of weekdays must both match.
        ("0 0 1 3 */7", "1970-03-01 23:59", "1981-03-01 00:00"),
        ("0 0 29 2 */7", "2088-02-29 12:00", "2128-02-29 00:00"),
    ],
)
def test_a_schedule_comes_next(schedule, after, expected):
    assert next_of(schedule, after) == expected


def test_a_time_that_a_change_of_the_clock_skips_is_left_out():
    assert next_of("30 2 * * *", "2026-03-28 12:00", "Europe/Berlin") == "2026-03-30 02:30"


def test_an_hour_that_comes_twice_fires_once():
    schedule = parse_cron("CRON_TZ=Europe/Berlin 30 2 * * *")
    first = schedule.next_after(unix_s("2026-10-24 12:00", "Europe/Berlin"))

    assert schedule.next_after(first) - first > 20 * 3600


def test_every_counts_from_now():
    assert parse_cron("@every 90s").next_after(1000.0) == 1090.0


def test_without_a_zone_the_local_one_counts(monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert parse_cron("0 0 * * *").next_after(unix_s("2026-01-31 12:00")) == unix_s("2026-02-01 05:00")
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("* * * *", "it has 4 fields"),
        ("60 * * * *", "'60' is not a minute: 0 to 59"),
        ("* * * foo *", "'foo' is not a month"),
        ("*/0 * * * *", "a step of 0"),
        ("5-1 * * * *", "ends before it begins"),
        ("*-5 * * * *", "stands alone"),
        ("1,,2 * * * *", "'' is not a minute"),
        ("0 0 31 2 *", "no month of it has such a day"),
        ("@often", "there are @annually"),
        ("@every soon", "at least a second"),
        ("CRON_TZ=Nowhere/Land 0 0 * * *", "there is no time zone"),
        ("", "it has 0 fields"),
    ],
)
def test_what_cannot_be_read_is_named(text, reason):
    with pytest.raises(ConfigurationError, match=reason):
        parse_cron(text)


FIELDS = st.tuples(
    *(
        st.one_of(
            st.just("*"),
            st.integers(least, most).map(str),
            st.integers(1, 20).map(lambda step: f"*/{step}"),
            st.tuples(st.integers(least, most), st.integers(least, most)).map(lambda pair: f"{min(pair)}-{max(pair)}"),
        )
        for least, most in ((0, 59), (0, 23), (1, 28), (1, 12), (0, 6))
    )
)


@given(fields=FIELDS, start=st.integers(0, 2_000_000_000))
@settings(max_examples=150, deadline=None)
def test_the_next_time_is_the_first_minute_that_matches(fields, start):
    schedule = parse_cron(UTC + " ".join(fields))

    found = schedule.next_after(float(start))

    assert found is not None
    assert found > start
    moment = datetime.fromtimestamp(found, ZoneInfo("UTC"))
    assert moment.second == 0
    assert matches(schedule, moment)
    # Nothing in the hours before it matches.
    earlier = moment - timedelta(minutes=1)
    for _ in range(180):
        if earlier.timestamp() <= start:
            break
        assert not matches(schedule, earlier)
        earlier -= timedelta(minutes=1)


def matches(schedule, moment):
    day, weekday = moment.day in schedule.days, moment.isoweekday() % 7 in schedule.weekdays
    either = schedule.is_any_day or schedule.is_any_weekday
    return (
        moment.minute in schedule.minutes
        and moment.hour in schedule.hours
        and moment.month in schedule.months
        and ((day and weekday) if either else (day or weekday))
    )


@given(text=st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_schedule_or_refused(text):
    with suppress(ConfigurationError):
        assert parse_cron(text).text == text
