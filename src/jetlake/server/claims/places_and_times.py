"""Where a user may come from, and at what time of day.

A range of times may go over midnight: `22:00:00` to `06:00:00`. Of several ranges that hold, the one that ends last
counts, and that is when the client is sent away.
"""

from datetime import date, datetime, time, timedelta, tzinfo
from ipaddress import ip_address, ip_network

import msgspec

from jetlake.server.claims.permissions import TimeRange, UserPermissions
from jetlake.server.claims.validation import TIME_OF_DAY, time_zone


class Hours(msgspec.Struct, frozen=True):
    """Whether a client may come in now, and until when; None = there is no end."""

    allowed: bool
    until_unix_s: float | None = None


def may_come_from(user: UserPermissions, address: str) -> bool:
    """Tell whether a client with this address, without its port, is in one of the networks; no network = anywhere."""
    if not user.networks:
        return True
    try:
        place = ip_address(address)
        mapped = getattr(place, "ipv4_mapped", None)
        return any((mapped or place) in ip_network(network, strict=False) for network in user.networks)
    except ValueError:
        return False


def hours_of(user: UserPermissions, now_unix_s: float) -> Hours:
    """Return whether a user may come in at this time of day, and until when."""
    if not user.times:
        return Hours(allowed=True)
    zone = time_zone(user.times_location)
    if zone is None:
        return Hours(allowed=False)
    now = datetime.fromtimestamp(now_unix_s, zone)
    ends = [end for each in user.times if (end := _end_of(each, now, zone)) is not None]
    return Hours(allowed=True, until_unix_s=max(ends)) if ends else Hours(allowed=False)


def _end_of(times: TimeRange, now: datetime, zone: tzinfo) -> float | None:
    """Return when the range ends that a moment is in; None = it is in none."""
    start_time, end_time = _time_of(times.start), _time_of(times.end)
    if start_time is None or end_time is None:
        return None
    today, moment = now.date(), now.timestamp()
    start, end = _timestamp(today, start_time, zone), _timestamp(today, end_time, zone)
    if start < moment < end:
        return end
    if start > end:
        if moment < end:
            return end
        end = _timestamp(today + timedelta(days=1), end_time, zone)
        if start < moment < end:
            return end
    return None


def _time_of(text: str) -> time | None:
    found = TIME_OF_DAY.fullmatch(text)
    return None if found is None else time(int(found[1]), int(found[2]), int(found[3]))


def _timestamp(day: date, of_day: time, zone: tzinfo) -> float:
    # By timestamps, so that a change of the clocks within the range counts as it should.
    return datetime.combine(day, of_day, zone).timestamp()
