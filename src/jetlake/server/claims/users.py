"""The decision over a client that shows claims: which user it is, and what that user may do.

A user is let in if its claims are signed by a key of its account and valid now, the account is known and trusted, the
client has signed the nonce (unless the claims are a bearer token), nothing was revoked, and network, time of day and
connection type are allowed.

Invariant: all refusals look the same to the client; `RefusedUserError` says why, for the log.
"""

from jetlake.server.authentication.presented import Login, Presented
from jetlake.server.authentication.verdict import Verdict
from jetlake.server.claims.accounts import ClaimedAccount
from jetlake.server.claims.model import UserClaims
from jetlake.server.claims.permissions import NO_PERMISSIONS, UserPermissions, limit_of, lower_limit
from jetlake.server.claims.places_and_times import Hours, hours_of, may_come_from
from jetlake.server.claims.templates import ClaimTemplateError, TemplateValues, fill_in
from jetlake.server.nkeys import verify
from jetlake.server.options.accounts import Account
from jetlake.server.options.users import CONNECTION_TYPES, LEAF_TYPES, Permissions

MILLISECONDS_PER_SECOND = 1_000

EXPIRES_UNIX_MS_MAX = 2**53
"""In the year 287,396: no clock of the engine gets there, and its numbers hold it."""


class RefusedUserError(Exception):
    """A client is refused; the message says why. `cause` is sent to a client that was connected."""

    def __init__(self, reason: str, cause: str = "") -> None:
        super().__init__(reason)
        self.cause = cause


def decide(login: Login, presented: Presented, user: UserClaims, account: ClaimedAccount, now_unix_s: float) -> Verdict:
    """Return as whom a client is let in. Raises `RefusedUserError`."""
    allowed = check_login(login, presented, user, account, now_unix_s)
    return admit_user(login, user, allowed, account.options, default_permissions_of(account), now_unix_s)


def check_login(
    login: Login, presented: Presented, user: UserClaims, account: ClaimedAccount, now_unix_s: float
) -> UserPermissions:
    """Return what a user may do whose claims count and whose key the client holds. Raises `RefusedUserError`."""
    allowed = allowed_to(user, account)
    check_account(user, account, now_unix_s)
    if allowed.bearer_token and account.claims.nats.limits.disallow_bearer:
        raise RefusedUserError("the account does not allow bearer tokens")
    if not allowed.bearer_token and not verify(user.sub, login.nonce, presented.signature):
        raise RefusedUserError("the signature of the nonce is missing or does not fit the key of the user")
    return allowed


def check_account(user: UserClaims, account: ClaimedAccount, now_unix_s: float) -> None:
    """Refuse users of an account that has expired, and those it has revoked. Raises `RefusedUserError`."""
    if account.is_expired(now_unix_s):
        raise RefusedUserError("the claims of the account have expired", "account expired")
    if account.revokes(user.sub, user.iat):
        raise RefusedUserError("the claims of the user are revoked", "revoked")


def check_circumstances(login: Login, allowed: UserPermissions, now_unix_s: float) -> Hours:
    """Return until when a client may stay, by the way, the place and the time it comes. Raises `RefusedUserError`."""
    if allowed.proxy_required:
        raise RefusedUserError("the user must come through a proxy, and this server does not know any")
    _check_connection_type(allowed, login.connection_type)
    if not may_come_from(allowed, login.host):
        raise RefusedUserError(f"the user may not connect from {login.host}")
    hours = hours_of(allowed, now_unix_s)
    if not hours.allowed:
        raise RefusedUserError("the user may not connect at this time of day")
    return hours


def admit_user(
    login: Login,
    user: UserClaims,
    allowed: UserPermissions,
    account: Account,
    default_permissions: Permissions | None,
    now_unix_s: float,
    *,
    zero_is_unlimited: bool = False,
) -> Verdict:
    """Return the verdict on a user whose claims count. Raises `RefusedUserError`.

    With `zero_is_unlimited` a limit of 0 in the claims means none, as in those of services that leave limits out.
    """
    hours = check_circumstances(login, allowed, now_unix_s)
    subscriptions, payload_bytes = (
        None if zero_is_unlimited and limit == 0 else limit_of(limit) for limit in (allowed.subs, allowed.payload)
    )
    is_leaf = login.connection_type in LEAF_TYPES
    # When its account expires, the client is asked about again.
    ends = [end for end in (user.exp, hours.until_unix_s) if end]
    return Verdict(
        account=account.name,
        user=user.sub,
        permissions=allowed.as_options() or default_permissions,
        max_payload_bytes=lower_limit(payload_bytes, account.max_payload_bytes),
        # With none at all it is sent away, as nothing could be delivered to it.
        max_subscriptions=lower_limit(subscriptions, account.max_subscriptions),
        max_account_connections=account.max_leafnodes if is_leaf else account.max_connections,
        expires_unix_ms=_expiry_of(ends),
    )


def _expiry_of(ends_unix_s: list[float]) -> int | None:
    """Return when a client is sent away, as a number of the engine; None = never.

    An end before 1970 is allowed, as on nats-server: such a client is let in and sent away at once.
    """
    if not ends_unix_s:
        return None
    return min(max(int(min(ends_unix_s) * MILLISECONDS_PER_SECOND), 0), EXPIRES_UNIX_MS_MAX)


def allowed_to(user: UserClaims, account: ClaimedAccount) -> UserPermissions:
    """Return what a user may do, from its claims or the template of its signer. Raises `RefusedUserError`."""
    if user.iss not in account.signers:
        raise RefusedUserError(f"the account does not know the key {user.iss} that signed the claims of the user")
    scope = account.signers[user.iss]
    if scope is None:
        return user.nats
    claimed = {name: getattr(user.nats, name) for name in UserPermissions.__struct_fields__}
    if UserPermissions(**claimed) != NO_PERMISSIONS:
        raise RefusedUserError("a user signed by a scoped key must not have permissions or limits of its own")
    values = TemplateValues(
        name=user.name,
        subject=user.sub,
        account_name=account.name,
        account_subject=user.nats.issuer_account,
        tags=user.nats.tags,
        account_tags=account.claims.nats.tags,
    )
    try:
        return fill_in(scope.template, values)
    except ClaimTemplateError as error:
        raise RefusedUserError(f"the template of the signing key cannot be filled in: {error}") from error


def permissions_of(allowed: UserPermissions, account: ClaimedAccount) -> Permissions | None:
    """Return the permissions of a user; one that has none of its own has those of its account."""
    return allowed.as_options() or default_permissions_of(account)


def default_permissions_of(account: ClaimedAccount) -> Permissions | None:
    """Return the permissions of users that have none of their own."""
    return account.claims.nats.default_permissions.as_options()


def _check_connection_type(allowed: UserPermissions, connection_type: str) -> None:
    wanted = {name.upper() for name in allowed.allowed_connection_types}
    if wanted and connection_type not in wanted & CONNECTION_TYPES:
        raise RefusedUserError(f"the user may not connect as {connection_type}")
