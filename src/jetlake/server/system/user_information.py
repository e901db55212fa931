"""`$SYS.REQ.USER.INFO`: a client asks who it is and what it may do.

The connection identifies the client, never the contents of its request. Its permissions are those of its user in the
current configuration, or in operator mode those of the claims it logged in with, which the engine enforces, too.
"""

import msgspec

from jetlake.monitoring.claims_facts import ClaimsFacts, ShownPermissions, ShownSubjects, ShownUser
from jetlake.server.options.accounts import AccessOptions
from jetlake.shared.engine_reports import Connection

NANOSECONDS_PER_MILLISECOND = 1_000_000
NANOSECONDS_PER_SECOND = 1_000_000_000


class Subjects(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which subjects are allowed and which are not; nothing = all are."""

    allow: list[str] | None = None
    deny: list[str] = []


class Responses(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how long (in nanoseconds) a request may be answered."""

    max: int
    ttl: int


class PermissionSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a user may do."""

    publish: Subjects
    subscribe: Subjects
    responses: Responses | None = None


class UserInformation(msgspec.Struct, frozen=True, kw_only=True):
    """The body of the reply. Without `permissions` everything is allowed."""

    user: str
    account: str
    account_name: str
    user_name: str | msgspec.UnsetType = msgspec.UNSET
    permissions: PermissionSummary | msgspec.UnsetType = msgspec.UNSET
    # In nanoseconds from now.
    expires: int | msgspec.UnsetType = msgspec.UNSET


def user_information(access: AccessOptions, connection: Connection, now_unix_ns: int) -> UserInformation:
    """Return the answer of a server whose users are those of a file."""
    account, user = connection.account, connection.user
    known = next((each for each in access.users if each.name == user and each.account == account), None)
    permissions = known.permissions if known else None
    expires_unix_s = 0
    if access.callout is not None:
        # Only servers whose clients are decided about by a service pay for loading what knows its answers.
        from jetlake.server.callout.admitted import read_admitted_user
        from jetlake.server.callout.delegation import without_callout

        if admitted := read_admitted_user(connection.details):
            permissions, expires_unix_s = admitted.nats.as_options(), admitted.exp
        if account == access.callout.account:
            permissions = without_callout(permissions)
    return UserInformation(
        user=user,
        account=account,
        account_name=account,
        permissions=msgspec.UNSET if permissions is None else _shown(permissions),
        expires=_until(expires_unix_s, now_unix_ns),
    )


def claimed_user_information(claims: ClaimsFacts, connection: Connection, now_unix_ns: int) -> UserInformation:
    """Return the answer for a client that logged in with claims."""
    user = claims.user(connection.details) or ShownUser()
    permissions = claims.permissions(connection.details)
    return UserInformation(
        user=connection.user,
        account=connection.account,
        account_name=claims.account_name(connection.account),
        user_name=user.name or msgspec.UNSET,
        permissions=msgspec.UNSET if permissions is None else _shown(permissions),
        expires=_until(user.expires_unix_s, now_unix_ns),
    )


def _until(unix_s: int, now_unix_ns: int) -> int | msgspec.UnsetType:
    """Return how many nanoseconds there are until a moment; nothing if it is 0."""
    return unix_s * NANOSECONDS_PER_SECOND - now_unix_ns if unix_s else msgspec.UNSET


def _shown(permissions: ShownPermissions) -> PermissionSummary:
    responses = permissions.responses
    return PermissionSummary(
        publish=_subjects(permissions.publish),
        subscribe=_subjects(permissions.subscribe),
        responses=None
        if responses is None
        else Responses(max=responses.count_max, ttl=responses.expires_ms * NANOSECONDS_PER_MILLISECOND),
    )


def _subjects(permissions: ShownSubjects) -> Subjects:
    return Subjects(allow=None if permissions.allow is None else list(permissions.allow), deny=list(permissions.deny))
