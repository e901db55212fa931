"""What claims say about permissions, and limits that users share with the templates of signing keys.

Invariant: numbers are as in the claims: what is left out is 0, and -1 is unlimited.
"""

from typing import Annotated

import msgspec

from jetlake.server.options.users import UNLIMITED, Permissions, ResponsePermissions, SubjectPermissions

NANOSECONDS_PER_MILLISECOND = 1_000_000

DEFAULT_RESPONSES = ResponsePermissions()

Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A number in claims, as large as Go reads one; claims with others are not valid."""

LIMIT_MAX = 2**31 - 1
"""nats-server's: what is above counts as this."""


class ClaimedSubjects(msgspec.Struct, frozen=True, kw_only=True):
    """Which subjects are allowed and which are not; nothing in a list says nothing."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    @property
    def given(self) -> bool:
        return bool(self.allow or self.deny)

    def as_options(self) -> SubjectPermissions:
        return SubjectPermissions(allow=self.allow or None, deny=self.deny)


class ClaimedResponses(msgspec.Struct, frozen=True, kw_only=True):
    """A right to answer; the time is in nanoseconds."""

    max: Integer = 0
    ttl: Integer = 0


class ClaimedPermissions(msgspec.Struct, frozen=True, kw_only=True):
    """The part of claims that says what a user may do."""

    pub: ClaimedSubjects = ClaimedSubjects()
    sub: ClaimedSubjects = ClaimedSubjects()
    resp: ClaimedResponses | None = None

    def as_options(self) -> Permissions | None:
        """Return them as those of a configuration file; None = they say nothing."""
        if not (self.pub.given or self.sub.given or self.resp):
            return None
        publish = self.pub.as_options()
        responses = None if self.resp is None else _responses(self.resp)
        if responses is not None and publish.allow is None:
            # A right to answer allows nothing but answers, unless more is said.
            publish = SubjectPermissions(allow=(), deny=publish.deny)
        return Permissions(publish=publish, subscribe=self.sub.as_options(), responses=responses)


class TimeRange(msgspec.Struct, frozen=True, kw_only=True):
    """From when to when in a day, as `15:04:05`; the end may be on the next day."""

    start: str = ""
    end: str = ""


class UserPermissions(ClaimedPermissions, frozen=True, kw_only=True):
    """Permissions and limits of a user, from its claims or from the template of the key that signed them."""

    src: tuple[str, ...] | str = ()
    times: tuple[TimeRange, ...] = ()
    times_location: str = ""
    subs: Integer = 0
    data: Integer = 0
    payload: Integer = 0
    bearer_token: bool = False
    proxy_required: bool = False
    allowed_connection_types: tuple[str, ...] = ()

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks a client may come from: a list, or in old claims one text with commas."""
        if isinstance(self.src, tuple):
            return self.src
        return tuple(part for entry in self.src.split(",") if (part := entry.strip().lower()))


NO_PERMISSIONS = UserPermissions()
"""What claims must have that a key with a template signs: the template says everything."""


def limit_of(number: int) -> int | None:
    """Return a limit as options have it: None = unlimited."""
    return None if number < 0 else min(number, LIMIT_MAX)


def lower_limit(one: int | None, other: int | None) -> int | None:
    """Return the stricter one of two limits."""
    given = [limit for limit in (one, other) if limit is not None]
    return min(given) if given else None


def _responses(claimed: ClaimedResponses) -> ResponsePermissions:
    # 0 means the default and negative numbers mean no limit, as in a configuration file.
    expires_ms = max(claimed.ttl // NANOSECONDS_PER_MILLISECOND, 1) if claimed.ttl > 0 else UNLIMITED
    return ResponsePermissions(
        count_max=max(claimed.max, UNLIMITED) if claimed.max else DEFAULT_RESPONSES.count_max,
        expires_ms=expires_ms if claimed.ttl else DEFAULT_RESPONSES.expires_ms,
    )
