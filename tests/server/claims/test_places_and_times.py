"""Where a user may come from, and when."""

from datetime import UTC, datetime

import pytest

from jetlake.server.claims.permissions import TimeRange, UserPermissions
from jetlake.server.claims.places_and_times import hours_of, may_come_from


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def user(*ranges, zone="UTC"):
    return UserPermissions(times=tuple(TimeRange(start=start, end=end) for start, end in ranges), times_location=zone)


@pytest.mark.parametrize(
    ("networks", "address", "allowed"),
    [
        ((), "203.0.113.9", True),
        ((), "", True),
        (("203.0.113.0/24",), "203.0.113.9", True),
        (("203.0.113.0/24",), "203.0.114.9", False),
        (("203.0.113.7/24",), "203.0.113.9", True),
        (("::1/128", "10.0.0.0/8"), "10.1.2.3", True),
        (("2001:db8::/32",), "2001:db8::7", True),
        (("2001:db8::/32",), "10.1.2.3", False),
        (("10.0.0.0/8",), "::ffff:10.1.2.3", True),
        (("10.0.0.0/8",), "", False),
        (("10.0.0.0/8",), "nonsense", False),
        (("nonsense",), "10.1.2.3", False),
    ],
)
def test_networks_say_where_a_user_may_come_from(networks, address, allowed):
    assert may_come_from(UserPermissions(src=networks), address) is allowed


def test_networks_may_be_one_text_with_commas():
    assert UserPermissions(src="10.0.0.0/8, 192.168.0.0/16,").networks == ("10.0.0.0/8", "192.168.0.0/16")


@pytest.mark.parametrize(
    ("ranges", "now", "until"),
    [
        ([("08:00:00", "17:00:00")], "2026-11-17T12:00:00", "2026-11-17T17:00:00"),
        ([("08:00:00", "17:00:00")], "2026-11-17T07:59:59", None),
        ([("08:00:00", "17:00:00")], "2026-11-17T17:00:00", None),
        ([("22:00:00", "06:00:00")], "2026-11-17T23:30:00", "2026-11-18T06:00:00"),
        ([("22:00:00", "06:00:00")], "2026-11-17T05:00:00", "2026-11-17T06:00:00"),
        ([("22:00:00", "06:00:00")], "2026-11-17T12:00:00", None),
        ([("08:00:00", "17:00:00"), ("09:00:00", "19:00:00")], "2026-11-17T12:00:00", "2026-11-17T19:00:00"),
        ([("01:00:00", "02:00:00"), ("11:00:00", "13:00:00")], "2026-11-17T12:00:00", "2026-11-17T13:00:00"),
    ],
)
def test_hours_say_until_when_a_user_may_stay(ranges, now, until):
    hours = hours_of(user(*ranges), at(now))

    assert hours.allowed is (until is not None)
    assert hours.until_unix_s == (at(until) if until else None)


def test_hours_are_those_of_their_time_zone():
    in_new_york = user(("08:00:00", "09:00:00"), zone="America/New_York")

    assert hours_of(in_new_york, at("2026-11-17T13:30:00")).allowed
    assert not hours_of(in_new_york, at("2026-11-17T08:30:00")).allowed


def test_hours_go_on_over_a_change_of_the_clocks():
    """On this night there are eight hours between eleven and six, and one of them twice."""
    hours = hours_of(user(("23:00:00", "06:00:00"), zone="Europe/Berlin"), at("2026-10-24T22:00:00"))

    assert hours.until_unix_s == at("2026-10-25T05:00:00")


@pytest.mark.parametrize("zone", ["Nowhere/At_All", "../../etc/passwd", "/etc/passwd", "\x00"])
def test_time_zone_that_does_not_exist_lets_nobody_in(zone):
    assert not hours_of(user(("00:00:00", "23:59:59"), zone=zone), at("2026-11-17T12:00:00")).allowed
