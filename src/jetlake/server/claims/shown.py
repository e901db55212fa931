"""`ShownClaims`: the part of claims that monitoring and the system account may see.

Invariant: no token leaves that alone would let its holder log in.
"""

import base64

import msgspec

from jetlake.monitoring.claims_facts import ShownAccount, ShownIssue, ShownOperators, ShownUser
from jetlake.server.callout.admitted import read_admitted, read_admitted_user
from jetlake.server.claims.accounts import ClaimedAccount
from jetlake.server.claims.delegated import permissions_within
from jetlake.server.claims.model import UserClaims, read_user
from jetlake.server.claims.operator_mode import OperatorMode
from jetlake.server.claims.users import RefusedUserError, allowed_to, permissions_of
from jetlake.server.claims.validation import account_issues
from jetlake.server.options.users import Permissions


class ShownClaims:
    """The claims of one server, for monitoring."""

    def __init__(self, mode: OperatorMode) -> None:
        self._mode = mode

    @property
    def pinned_failures(self) -> int:
        return self._mode.pinned_failures

    def operators(self) -> ShownOperators:
        """Return the operators that are trusted."""
        tokens = self._mode.trust.operators
        return ShownOperators(jwts=list(tokens), claims=[_claims_in(token) for token in tokens])

    def account(self, key: str) -> ShownAccount | None:
        """Return an account that is known; None = it is not."""
        account = self._mode.find(key)
        return None if account is None else self._shown(account)

    def account_name(self, key: str) -> str:
        """Return what people call an account: its key if it has no name."""
        account = self._mode.find(key)
        return key if account is None else account.name

    def user(self, details: str) -> ShownUser | None:
        """Return the user that a client logged in as, by what the engine keeps of it; None = it has no claims."""
        if not details:
            return None
        if admitted := read_admitted(details):
            issued = read_user(admitted.user_jwt)
            return ShownUser(
                name=admitted.name,
                issuer_key=_issuer_of(issued),
                tags=list(admitted.tags),
                expires_unix_s=issued.exp,
            )
        user = read_user(details)
        account = self._mode.find(user.account)
        return ShownUser(
            name=user.name,
            jwt="" if user.nats.bearer_token or _is_scoped_bearer(account, user.iss) else details,
            issuer_key=_issuer_of(user),
            tags=list(user.nats.tags),
            expires_unix_s=user.exp,
        )

    def permissions(self, details: str) -> Permissions | None:
        """Return the permissions of the user that a client logged in as; None = everything is allowed."""
        user = read_admitted_user(details) or (read_user(details) if details else None)
        account = None if user is None else self._mode.find(user.account)
        if user is None or account is None:
            return None
        try:
            return permissions_within(account, permissions_of(allowed_to(user, account), account))
        except RefusedUserError:
            # The claims of the account have changed, and the client is about to be sent away.
            return None

    def _shown(self, account: ClaimedAccount) -> ShownAccount:
        now = self._mode.now_unix_s()
        return ShownAccount(
            name=account.name,
            updated_unix_ns=account.updated_unix_ns,
            jwt=account.token,
            issuer_key=account.claims.iss,
            tags=list(account.claims.nats.tags),
            is_expired=account.is_expired(now),
            claims=_claims_in(account.token) if account.token else None,
            issues=[
                ShownIssue(description=issue.description, blocking=issue.blocking, time_check=issue.time_check)
                for issue in account_issues(account.claims, now)
            ],
            revoked_users=account.claims.nats.revocations,
        )


def _issuer_of(user: UserClaims) -> str:
    return user.iss if user.nats.issuer_account else user.account


def _is_scoped_bearer(account: ClaimedAccount | None, signer: str) -> bool:
    scope = None if account is None else account.signers.get(signer)
    return scope is not None and scope.template.bearer_token


def _claims_in(token: str) -> msgspec.Raw:
    """Return the claims of a token that was opened before, as they stand in it."""
    part = token.split(".")[1]
    return msgspec.Raw(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
