"""`ConfiguredCallout`: whom a service decides about by a configuration file, and as whom it may let them in.

The service decides about everybody who is not one of `auth_users`, whether the file would let them in or not. With
`allowed_accounts` users that the file lets into other accounts stay with what the file says.

Invariant: `auth_users` never depend on the service: they come in by the file, or not at all.
"""

import time
from collections.abc import Callable

import msgspec

from jetlake.server.authentication.presented import Login, Presented
from jetlake.server.authentication.verdict import Verdict
from jetlake.server.callout.admitted import Admitted
from jetlake.server.callout.authorization_answer import AuthorizationAnswer, RefusedAnswerError
from jetlake.server.callout.delegation import Delegation, without_callout
from jetlake.server.claims.users import RefusedUserError, admit_user
from jetlake.server.options.accounts import AccessOptions, Account
from jetlake.server.options.callout import CalloutOptions
from jetlake.server.options.users import GLOBAL_ACCOUNT


class ConfiguredCallout:
    """The service of one configuration."""

    def __init__(self, access: AccessOptions, options: CalloutOptions, clock: Callable[[], float] = time.time) -> None:
        self._access = access
        self._options = options
        self._clock = clock
        self._auth_users = frozenset(options.auth_users)
        self._allowed_accounts = frozenset(options.allowed_accounts)
        accounts = {account.name: account for account in access.accounts}
        self._accounts = {name: accounts.get(name, Account(name=name)) for name in access.account_names()}
        self._passwords = {user.name: user.password for user in access.users}

    def mistakes(self) -> list[str]:
        """Return what of the block leads nowhere: a line each."""
        options, known = self._options, self._passwords
        lines = [f'Authorization callout user "{name}" not valid' for name in options.auth_users if name not in known]
        if options.account not in self._accounts:
            lines.append(f'Authorization callout account "{options.account}" not valid')
        return lines

    def review(self, presented: Presented | None, verdict: Verdict | None) -> Verdict | Delegation | None:
        """Return what becomes of a client about whom the file alone would decide so; None = refused."""
        if presented is None or (verdict is not None and not self._is_in_scope(verdict.account)):
            return self._within_account(verdict)
        # There is nobody whose claims would count.
        presented = msgspec.structs.replace(presented, jwt="")
        # What the file has made sure of counts, and only then what the client says.
        user = presented.claimed_user if verdict is None else verdict.user
        if user in self._auth_users:
            return self._within_account(verdict)
        if self._options.account not in self._accounts:
            return None
        return Delegation(
            account=self._options.account,
            issuer=self._options.issuer,
            xkey=self._options.xkey,
            presented=self._completed(presented, verdict),
            user=user,
        )

    def conclude(self, login: Login, delegation: Delegation, answer: AuthorizationAnswer) -> Verdict:
        """Return as whom a client is let in that a service has admitted. Raises `RefusedAnswerError`."""
        user = answer.user
        # Who has encrypted an answer is the service, whatever key has signed it.
        if not answer.was_encrypted and answer.signer != self._options.issuer:
            raise RefusedAnswerError("Auth callout signing key is unknown")
        if user.nats.issuer_account:
            raise RefusedAnswerError("Error non operator mode: attempted to use issuer_account")
        if user.iss != self._options.issuer:
            raise RefusedAnswerError(
                f'Wrong issuer for auth callout response, expected "{self._options.issuer}" got "{user.iss}"'
            )
        account = self._accounts.get(user.aud)
        if account is None:
            raise RefusedAnswerError(f'No valid account "{user.aud}" for auth callout response')
        try:
            verdict = admit_user(login, user, user.nats, account, None, self._clock(), zero_is_unlimited=True)
        except RefusedUserError as error:
            raise RefusedAnswerError(f"Error validating user JWT: {error}") from error
        admitted = Admitted(account=delegation.account, user_jwt=answer.user_jwt)
        named = msgspec.structs.replace(verdict, user=user.name or delegation.user, details=str(admitted))
        within = self._within_account(named)
        assert within is not None
        return within

    def _is_in_scope(self, account: str) -> bool:
        return account == GLOBAL_ACCOUNT or not self._allowed_accounts or account in self._allowed_accounts

    def _completed(self, presented: Presented, verdict: Verdict | None) -> Presented:
        """Return what a client shows, with the user that it is by its certificate or because it shows nothing."""
        if verdict is None or verdict.user not in self._passwords or presented.nkey or presented.user == verdict.user:
            return presented
        if presented.anonymous:
            return msgspec.structs.replace(presented, user=verdict.user, password=self._passwords[verdict.user])
        return msgspec.structs.replace(presented, user=verdict.user)

    def _within_account(self, verdict: Verdict | None) -> Verdict | None:
        if verdict is None or verdict.account != self._options.account:
            return verdict
        return msgspec.structs.replace(verdict, permissions=without_callout(verdict.permissions))
