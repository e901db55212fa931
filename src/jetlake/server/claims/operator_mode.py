"""`OperatorMode`: everything a server does with claims, from its start to its end.

```python
mode = OperatorMode(access, log, on_change=…)
mode.open()                       # before the first client; raises StartError
verdict = mode.decide(login)      # None = refused
mode.complete(options)            # options with the accounts that are known by now
mode.update("A…", token)          # claims were pushed
mode.reload(access)               # the configuration was read again
```

`on_change` receives the accounts that are new (no client is affected) and those that have changed (their clients are
checked again). It is called by the thread that caused the change, without holding any lock of this module.

Invariant: what is decided here follows from the configuration and the claims alone; nothing a client sends is believed
unless a key signed it that the operator, or an account of the operator, has vouched for.
"""

import time
from collections.abc import Callable
from threading import Lock, Timer
from typing import TYPE_CHECKING

import msgspec

from jetlake.errors import StartError
from jetlake.server.authentication.presented import Login, Presented, read_presented
from jetlake.server.authentication.verdict import Refusal, Verdict
from jetlake.server.callout.admitted import Admitted, read_admitted
from jetlake.server.callout.authorization_answer import AuthorizationAnswer, RefusedAnswerError
from jetlake.server.callout.delegation import Delegation
from jetlake.server.claims import delegated, users
from jetlake.server.claims.accounts import ClaimedAccount, ClaimedAccounts, UnknownAccountError, unusable_mappings
from jetlake.server.claims.imports import SharedAccounts, share
from jetlake.server.claims.model import (
    AccountClaims,
    OperatorClaims,
    UserClaims,
    read_account,
    read_one_user,
    read_operator,
    read_user,
)
from jetlake.server.claims.resolvers import FolderResolver, MemoryResolver, make_resolver
from jetlake.server.claims.store import StoreFullError
from jetlake.server.claims.token import InvalidTokenError
from jetlake.server.claims.users import RefusedUserError
from jetlake.server.claims.validation import account_issues, blocks, operator_issues, user_issues
from jetlake.server.nkeys import is_public_user_key
from jetlake.server.options.accounts import AccessOptions
from jetlake.server.options.server import ServerOptions
from jetlake.server.options.trust import TrustOptions
from jetlake.server.options.users import SYSTEM_ACCOUNT

if TYPE_CHECKING:
    from jetlake.server.log import Log


EXPIRY_SLACK_S = 0.05
"""How long after the expiry of an account or activation it is looked at again: then it is over by any clock."""

EXPIRY_WAIT_S_MAX = 86_400.0
"""The longest wait for an expiry: a clock that was set is noticed within a day."""


class LookupNeededError(Exception):
    """An account would have to be looked up, which may take long."""


class OperatorMode:
    """The claims of one server. Any thread may call."""

    def __init__(
        self,
        access: AccessOptions,
        log: "Log",
        *,
        on_change: Callable[[frozenset[str]], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        assert access.trust is not None, "the caller has looked"
        self._trust: TrustOptions = access.trust
        self._system_account = access.system_account
        self._log = log
        self._on_change = on_change
        self._clock = clock
        self._accounts = ClaimedAccounts(
            access.trust, make_resolver(access.trust), on_added=lambda: on_change(frozenset()), clock=clock
        )
        self._completed: tuple[int, ServerOptions, ServerOptions] | None = None
        self._counting = Lock()
        # Calls when the next account or activation expires; None = none does.
        self._expiry: Timer | None = None
        self._closed = False
        self._refused_imports: frozenset[str] = frozenset()
        # How many clients were refused because their account is not pinned.
        self.pinned_failures = 0

    @property
    def is_slow(self) -> bool:
        """Tell whether a decision may take seconds."""
        return self._accounts.resolver.is_slow

    @property
    def folder(self) -> FolderResolver | None:
        """Where pushed claims are stored; None = they are not."""
        resolver = self._accounts.resolver
        return resolver if isinstance(resolver, FolderResolver) else None

    @property
    def trust(self) -> TrustOptions:
        return self._trust

    @property
    def system_account(self) -> str:
        return self._system_account

    def now_unix_s(self) -> float:
        return self._clock()

    def open(self) -> None:
        """Find the claims, and those of the system account among them. Raises `StartError`."""
        for operator in self.operators():
            self._log.info(f'Trusted operator "{operator.name}" ({operator.sub})')
            for issue in operator_issues(operator, self._clock()):
                self._log.warning(f'Operator "{operator.name}": {issue.description}')
        if self._trust.operators and self._system_account in ("", SYSTEM_ACCOUNT):
            self._log.warning("Trusted Operators should utilize a System Account")
        self._warn_about_preloaded()
        self._accounts.resolver.open()
        if folder := self.folder:
            what = "all" if folder.options.kind == "full" else "some"
            self._log.info(f"Managing {what} jwt in exclusive directory {folder.store.directory}")
        if self._system_account not in ("", SYSTEM_ACCOUNT):
            self._find_system_account()

    def operators(self) -> list[OperatorClaims]:
        """Return what the operators say about themselves."""
        return [read_operator(token) for token in self._trust.operators]

    def find(self, key: str) -> ClaimedAccount | None:
        """Return an account that is known; None = it is not."""
        return self._accounts.find(key)

    def look_up(self, keys: list[str]) -> None:
        """Know these accounts, as far as there are claims for them."""
        for key in keys:
            try:
                self._note(self._accounts.look_up(key))
            except UnknownAccountError as error:
                self._log.warning(f"Account {key}: {error}")

    def verify(self, token: str) -> None:
        """Refuse claims of an account that would not count. Raises `UnknownAccountError`."""
        self._accounts.verify(token)

    def check_signer(self, claims: AccountClaims) -> None:
        """Refuse claims that no trusted operator has signed. Raises `UnknownAccountError`."""
        self._accounts.check_signer(claims)

    def complete(self, options: ServerOptions) -> ServerOptions:
        """Return options with the accounts that are known by now, as if they stood in the configuration."""
        version = self._accounts.version
        kept = self._completed
        if kept is not None and kept[0] == version and kept[1] is options:
            return kept[2]
        shared = share(self._accounts.known(), self._clock())
        access = msgspec.structs.replace(options.access, accounts=shared.accounts)
        completed = msgspec.structs.replace(options, access=access)
        self._completed = (version, options, completed)
        self._expect(shared)
        return completed

    def close(self) -> None:
        """Wait for nothing any more."""
        with self._counting:
            self._closed = True
            if self._expiry is not None:
                self._expiry.cancel()

    # Clients

    def decide(self, login: Login) -> Verdict | Delegation | Refusal | None:
        """Return the verdict over a client; None = refused, like one with a cause. The log says why."""
        try:
            return self._decide(login, may_wait=True)
        except RefusedUserError as error:
            self._log.write("debug", f"{login.remote_address} - {error}")
            return Refusal(error.cause) if error.cause else None

    def decide_quickly(self, login: Login) -> Verdict | Delegation | None:
        """Return the verdict over a client that can be let in without looking up its account; None = for `decide`."""
        try:
            return self._decide(login, may_wait=False)
        except (RefusedUserError, LookupNeededError):
            return None

    def conclude(self, login: Login, delegation: Delegation, answer: AuthorizationAnswer) -> Verdict:
        """Return as whom a client is let in that a service has admitted. Raises `RefusedAnswerError`."""
        service = self._accounts.find(delegation.account)
        if service is None:
            raise RefusedAnswerError(f'No valid account "{delegation.account}" for auth callout')
        delegated.check_signer(service, answer)
        delegated.check_target(service, answer.user)
        admitted = Admitted(
            account=delegation.account, user_jwt=answer.user_jwt, name=delegation.name, tags=delegation.tags
        )
        shown_user = msgspec.structs.replace(delegation.presented, jwt="").claimed_user
        try:
            target = self._account_of(answer.user, may_wait=True)
            return delegated.admit_delegated(login, answer.user, target, admitted, shown_user, self._clock())
        except RefusedUserError as error:
            raise RefusedAnswerError(f"Error validating user JWT: {error}") from error

    # Accounts that change

    def update(self, key: str, token: str) -> None:
        """Know an account by new claims, if it is known at all. Raises `UnknownAccountError`."""
        before = self._accounts.find(key)
        if before is None and not self._is_awaited(key):
            return
        if before is not None and before.token == token and not before.is_disabled:
            return
        self._note(self._accounts.adopt(key, token))
        self._on_change(frozenset({key}))

    def _is_awaited(self, key: str) -> bool:
        """Tell whether an account that is known imports from this one."""
        return any(each.account == key for account in self._accounts.known() for each in account.claims.nats.imports)

    def disable(self, key: str) -> None:
        """Let no more clients into an account whose claims were deleted, and disconnect the current ones."""
        if self._accounts.disable(key):
            self._log.info(f"Account {key} is disabled: its claims were deleted")
            self._on_change(frozenset({key}))

    def reload(self, access: AccessOptions) -> list[str]:
        """Go by another configuration from now on, and return a line for each account that is gone."""
        assert access.trust is not None, "a reload cannot leave operator mode"
        self._trust = access.trust
        resolver = self._accounts.resolver
        if isinstance(resolver, FolderResolver):
            return self._reload_folder(resolver)
        if isinstance(resolver, MemoryResolver):
            self._accounts.resolver = MemoryResolver(access.trust.preloaded)
            self._warn_about_preloaded()
            return [line for account in self._accounts.known() for line in self._fetch_again(account)]
        return []

    def _expect(self, shared: SharedAccounts) -> None:
        """Say which imports do not count, and look again when an account or an activation expires."""
        refused = frozenset(shared.refused)
        for line in sorted(refused - self._refused_imports):
            self._log.warning(line)
        with self._counting:
            self._refused_imports = refused
            if self._expiry is not None:
                self._expiry.cancel()
                self._expiry = None
            if shared.next_expiry_unix_s is not None and not self._closed:
                wait_s = max(shared.next_expiry_unix_s - self._clock(), 0) + EXPIRY_SLACK_S
                self._expiry = Timer(min(wait_s, EXPIRY_WAIT_S_MAX), self._expire)
                self._expiry.name = "jetlake-expiry"
                self._expiry.daemon = True
                self._expiry.start()

    def _expire(self) -> None:
        """Send away the clients of accounts that have expired, and drop imports whose activation has."""
        self._accounts.touch()
        now = self._clock()
        self._on_change(frozenset(account.claims.sub for account in self._accounts.known() if account.is_expired(now)))

    def _reload_folder(self, resolver: FolderResolver) -> list[str]:
        try:
            resolver.preload(self._trust.preloaded)
            resolver.store.scan()
        except (OSError, StoreFullError) as error:
            self._log.error(f"The claims of accounts cannot be read again: {error}")
            return []
        return [line for account in self._accounts.known() for line in self._fetch_again(account)]

    def _fetch_again(self, account: ClaimedAccount) -> list[str]:
        key = account.claims.sub
        token = self._accounts.resolver.fetch(key)
        if not token and not account.token:
            # A system account that waits for its claims.
            return []
        try:
            if token != account.token or account.is_disabled:
                self._note(self._accounts.adopt(key, token))
        except UnknownAccountError:
            self._accounts.forget(key)
            return [f'Reloaded: deleting account [{"bad claims" if token else "removed"}]: "{key}"']
        return []

    def _decide(self, login: Login, *, may_wait: bool) -> Verdict | Delegation:
        if admitted := read_admitted(login.admitted):
            return self._review(login, admitted, may_wait=may_wait)
        presented = read_presented(login.connect)
        if presented is None:
            raise RefusedUserError("what the client presents cannot be read")
        token, user = self._read_user(presented)
        now = self._clock()
        issues = user_issues(user, now)
        if blocks(issues, with_times=True) or not is_public_user_key(user.sub):
            why = "; ".join(issue.description for issue in issues) or f"{user.sub} is not the key of a user"
            raise RefusedUserError(f"the claims of the user are not valid: {why}")
        if self._trust.pinned_accounts and user.account not in self._trust.pinned_accounts:
            with self._counting:
                self.pinned_failures += 1
            raise RefusedUserError(f"Account {user.account} not listed as operator pinned account")
        account = self._account_of(user, may_wait=may_wait)
        # Who came in before the account had a service stays in by its own claims.
        if delegated.is_delegated(user, account) and not login.admitted:
            allowed = users.check_login(login, presented, user, account, now)
            users.check_circumstances(login, allowed, now)
            return delegated.delegation_of(presented, token, user, account)
        verdict = users.decide(login, presented, user, account, now)
        permissions = delegated.permissions_within(account, verdict.permissions)
        return msgspec.structs.replace(verdict, permissions=permissions, details=token)

    def _review(self, login: Login, admitted: Admitted, *, may_wait: bool) -> Verdict:
        """Return the verdict on a client that a service has admitted before, by the current claims.

        The service is not asked again: otherwise pushing claims would ask it about all clients of the account.
        """
        user = read_one_user(admitted.user_jwt)
        service = self._accounts.find(admitted.account)
        if service is None:
            raise RefusedUserError(f"Account {admitted.account}: it is not known any more")
        try:
            delegated.check_target(service, user)
        except RefusedAnswerError as error:
            raise RefusedUserError(str(error)) from error
        target = self._account_of(user, may_wait=may_wait)
        return delegated.admit_delegated(login, user, target, admitted, "", self._clock())

    def _account_of(self, user: UserClaims, *, may_wait: bool) -> ClaimedAccount:
        account = self._accounts.find(user.account)
        if account is None or account.is_expired(self._clock()):
            if self.is_slow and not may_wait:
                raise LookupNeededError
            account = self._look_up_of(user, account)
        return account

    def _look_up_of(self, user: UserClaims, known: ClaimedAccount | None) -> ClaimedAccount:
        try:
            account = self._accounts.look_up(user.account)
        except UnknownAccountError as error:
            cause = "" if known is None else "account expired"
            raise RefusedUserError(f"Account {user.account}: {error}", cause) from error
        self._note(account)
        return account

    def _read_user(self, presented: Presented) -> tuple[str, UserClaims]:
        """Return the claims a client shows, or those for clients that show none. Raises `RefusedUserError`."""
        why = "a user JWT is required"
        for token in (presented.jwt, self._trust.default_sentinel):
            if token:
                try:
                    return token, read_user(token)
                except InvalidTokenError as error:
                    why = f"the user JWT is not valid: {error}"
        raise RefusedUserError(why)

    def _find_system_account(self) -> None:
        try:
            self._note(self._accounts.look_up(self._system_account))
        except UnknownAccountError as error:
            if self.folder is None or len(self._trust.operators) != 1:
                raise StartError(
                    f"error resolving system account {self._system_account}: {error}; "
                    "add its claims to resolver_preload"
                ) from error
            self._accounts.adopt_unclaimed(self._system_account, self.operators()[0].iss)
            self._log.info("Using bootstrapping system account")
        account = self._accounts.find(self._system_account)
        assert account is not None, "it was just found"
        if account.options.jetstream is not None:
            raise StartError("Not allowed to enable JetStream on the system account; remove its storage limits")

    def _warn_about_preloaded(self) -> None:
        for key, token in self._trust.preloaded.items():
            issues = account_issues(read_account(token), self._clock())
            if blocks(issues, with_times=True):
                self._log.warning(f"Account [{key}] has validation issues:")
                for issue in issues:
                    self._log.warning(f"  - {issue.description}")

    def _note(self, account: ClaimedAccount) -> None:
        """Know the accounts it imports from, too, and say what of its claims has no effect here."""
        for each in account.claims.nats.imports:
            if self._accounts.find(each.account) is None:
                try:
                    self._note(self._accounts.look_up(each.account))
                except UnknownAccountError as error:
                    self._log.write("debug", f"Account {each.account}: {error}")
        for source in unusable_mappings(account.claims):
            self._log.warning(f'Account {account.claims.sub} ({account.name}): the mapping of "{source}" is not valid')
