"""Accounts whose users a service decides about: which clients it is asked about, and as which users it may admit them.

The claims of an account name the users that the service logs in as (`auth_users`), and the accounts it may put clients
into besides its own. Everybody else who shows claims of the account is asked about.

Invariant: a service lets nobody into an account that its own account does not name, and only users that a key of that
account has signed.
"""

import msgspec

from jetlake.server.authentication.presented import Login, Presented
from jetlake.server.authentication.verdict import Verdict
from jetlake.server.callout.admitted import Admitted
from jetlake.server.callout.authorization_answer import AuthorizationAnswer, RefusedAnswerError
from jetlake.server.callout.delegation import Delegation, without_callout
from jetlake.server.claims.accounts import ClaimedAccount
from jetlake.server.claims.model import UserClaims
from jetlake.server.claims.users import admit_user, allowed_to, check_account, default_permissions_of
from jetlake.server.claims.validation import ANY_ACCOUNT
from jetlake.server.options.users import Permissions


def has_service(account: ClaimedAccount) -> bool:
    """Tell whether a service decides about the users of an account."""
    return bool(account.claims.nats.authorization.auth_users)


def is_delegated(user: UserClaims, account: ClaimedAccount) -> bool:
    """Tell whether a service decides about this user of the account."""
    return has_service(account) and user.sub not in account.claims.nats.authorization.auth_users


def delegation_of(presented: Presented, token: str, user: UserClaims, account: ClaimedAccount) -> Delegation:
    """Return what a service is asked about a client that came with these claims."""
    return Delegation(
        account=account.claims.sub,
        issuer=account.claims.sub,
        xkey=account.claims.nats.authorization.xkey,
        presented=msgspec.structs.replace(presented, jwt=token),
        user=presented.nkey or presented.user or user.sub,
        name=user.name,
        tags=user.nats.tags,
    )


def check_signer(service: ClaimedAccount, answer: AuthorizationAnswer) -> None:
    """Refuse an answer that the account of the service has not signed. Raises `RefusedAnswerError`."""
    # One that was encrypted can only come from the service.
    if not answer.was_encrypted and answer.signer != service.claims.sub and answer.signer not in service.signers:
        raise RefusedAnswerError("Auth callout signing key is unknown")


def check_target(service: ClaimedAccount, user: UserClaims) -> None:
    """Refuse a user of an account that the service must not put clients into. Raises `RefusedAnswerError`."""
    allowed = service.claims.nats.authorization.allowed_accounts
    if user.account != service.claims.sub and user.account not in allowed and allowed != (ANY_ACCOUNT,):
        raise RefusedAnswerError(
            f'Account "{user.account}" not permitted as valid account option for auth callout for account '
            f'"{service.claims.sub}"'
        )


def admit_delegated(
    login: Login, user: UserClaims, target: ClaimedAccount, admitted: Admitted, shown_user: str, now_unix_s: float
) -> Verdict:
    """Return as whom a client is let in that a service has admitted. Raises `RefusedUserError`."""
    allowed = allowed_to(user, target)
    check_account(user, target, now_unix_s)
    verdict = admit_user(
        login, user, allowed, target.options, default_permissions_of(target), now_unix_s, zero_is_unlimited=True
    )
    return msgspec.structs.replace(
        verdict,
        user=user.name or shown_user,
        permissions=permissions_within(target, verdict.permissions),
        details=str(admitted),
    )


def permissions_within(account: ClaimedAccount, permissions: Permissions | None) -> Permissions | None:
    """Return the permissions of a user of an account: if it has a service, only servers ask that."""
    return without_callout(permissions) if has_service(account) else permissions
