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
from jetlake.server.claims.places_and_times import hours_of, may_come_from
from jetlake.server.claims.templates import TemplateError, TemplateValues, fill_in
from jetlake.server.nkeys import verify
from jetlake.server.options.users import CONNECTION_TYPES, Permissions

MILLISECONDS_PER_SECOND = 1_000

EXPIRES_UNIX_MS_MAX = 2**53
"""In the year 287,396: no clock of the engine gets there, and its numbers hold it."""


class RefusedUserError(Exception):
    """A client is not let in; the message says why. `cause` is for one that was in and is told."""

    def __init__(self, reason: str, cause: str = "") -> None:
        super().__init__(reason)
        self.cause = cause


def decide(login: Login, presented: Presented, user: UserClaims, account: ClaimedAccount, now_unix_s: float) -> Verdict:
    """Return as whom a client is let in. Raises `RefusedUserError`."""
    allowed = allowed_to(user, account)
    if account.is_expired(now_unix_s):
        raise RefusedUserError("the claims of the account have expired", "account expired")
    if allowed.proxy_required:
        raise RefusedUserError("the user must come through a proxy, and this server does not know any")
    if allowed.bearer_token and account.claims.nats.limits.disallow_bearer:
        raise RefusedUserError("the account does not allow bearer tokens")
    _check_callout(user, account)
    _check_connection_type(allowed, login.connection_type)
    if not allowed.bearer_token and not verify(user.sub, login.nonce, presented.signature):
        raise RefusedUserError("the signature of the nonce is missing or does not fit the key of the user")
    if account.revokes(user.sub, user.iat):
        raise RefusedUserError("the claims of the user are revoked", "revoked")
    if not may_come_from(allowed, host_of(login.remote_address)):
        raise RefusedUserError(f"the user may not connect from {host_of(login.remote_address)}")
    hours = hours_of(allowed, now_unix_s)
    if not hours.allowed:
        raise RefusedUserError("the user may not connect at this time of day")
    subscriptions_max = lower_limit(limit_of(allowed.subs), account.options.max_subscriptions)
    if subscriptions_max == 0:
        # Nothing could ever be delivered to it, replies included.
        raise RefusedUserError("the user may not have any subscription: its limit, or that of its account, is 0")
    # When its account expires, the client is asked about again.
    ends = [end for end in (user.exp, hours.until_unix_s) if end]
    limits = account.options
    return Verdict(
        account=account.claims.sub,
        user=user.sub,
        permissions=permissions_of(allowed, account),
        max_payload_bytes=lower_limit(limit_of(allowed.payload), limits.max_payload_bytes),
        max_subscriptions=subscriptions_max,
        max_account_connections=limits.max_connections,
        expires_unix_ms=min(int(min(ends) * MILLISECONDS_PER_SECOND), EXPIRES_UNIX_MS_MAX) if ends else None,
    )


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
    except TemplateError as error:
        raise RefusedUserError(f"the template of the signing key cannot be filled in: {error}") from error


def permissions_of(allowed: UserPermissions, account: ClaimedAccount) -> Permissions | None:
    """Return the permissions of a user; one that has none of its own has those of its account."""
    return allowed.as_options() or account.claims.nats.default_permissions.as_options()


def host_of(address: str) -> str:
    """Return an address without its port."""
    return address.rpartition(":")[0].strip("[]")


def _check_callout(user: UserClaims, account: ClaimedAccount) -> None:
    """If a service decides about the users of an account, only those come in that the service itself runs as."""
    decided_by = account.claims.nats.authorization.auth_users
    if decided_by and user.sub not in decided_by:
        raise RefusedUserError("the account has its users decided about by a service, which is not supported yet")


def _check_connection_type(allowed: UserPermissions, connection_type: str) -> None:
    wanted = {name.upper() for name in allowed.allowed_connection_types}
    if wanted and connection_type not in wanted & CONNECTION_TYPES:
        raise RefusedUserError(f"the user may not connect as {connection_type}")
