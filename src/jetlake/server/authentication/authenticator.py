"""The decision: which user a client is, if any.

In nats-server's order: keys, then users (by certificate where that is configured), then the token or the single user
that all clients share. There is one way through: whatever the client said first, and whether it is asked again after a
reload, `decide` is what decides.
"""

from jetlake.server.authentication.passwords import Comparison, HashNeededError, Passwords, equal, is_bcrypt
from jetlake.server.authentication.presented import Login, Presented, client_certificate, read_presented
from jetlake.server.authentication.verdict import REDACTED, Verdict, Verdicts
from jetlake.server.options.accounts import AccessOptions
from jetlake.server.options.users import User

CONNECTION_TYPE = "STANDARD"
"""Every client comes over TCP so far."""


class Authenticator:
    """Decides by one configuration; a reload makes a new one, which may share the memory of passwords."""

    def __init__(self, access: AccessOptions, passwords: Passwords | None = None) -> None:
        self._access = access
        self._passwords = passwords or Passwords()
        self._verdicts = Verdicts(access)
        self._users = {user.name: user for user in access.users if not user.nkey}
        self._keys = {user.name: user for user in access.users if user.nkey}
        self._stranger = next((user for user in access.users if user.name == access.no_auth_user), None)
        stored = [*(user.password for user in self._users.values())]
        stored += [access.credentials.password, access.credentials.token]
        # What is compared when nothing else is, so that every refusal takes as long as that of a known user.
        self._decoy = next((password for password in stored if is_bcrypt(password)), "")

    @property
    def slow(self) -> bool:
        """Tell whether a decision may take a tenth of a second."""
        return bool(self._decoy)

    @property
    def passwords(self) -> Passwords:
        return self._passwords

    @property
    def has_plain_passwords(self) -> bool:
        """Tell whether a password stands in the configuration as it is, for everybody who can read it."""
        stored = [user.password for user in self._users.values()]
        if self._access.map_certificates:
            # They need none.
            stored = [password for password in stored if password]
        if self._access.credentials.password:
            stored.append(self._access.credentials.password)
        return any(not is_bcrypt(password) for password in stored)

    def decide(self, login: Login) -> Verdict | None:
        """Return the verdict over a client; None = refused.

        If any password is a hash, every refusal takes as long as computing one: who is refused does not learn whether
        there is such a user, or what kind of password it has.
        """
        comparison = Comparison(self._passwords, is_quick=False)
        verdict = self._decide(login, comparison)
        if verdict is None and self._decoy and not comparison.has_hashed:
            comparison.match(self._decoy, "")
        return verdict

    def decide_quickly(self, login: Login) -> Verdict | None:
        """Return the verdict over a client that can be let in without computing a hash; None = it is for `decide`."""
        try:
            return self._decide(login, Comparison(self._passwords, is_quick=True))
        except HashNeededError:
            return None

    def _decide(self, login: Login, comparison: Comparison) -> Verdict | None:
        presented = read_presented(login.connect)
        if presented is None:
            return None
        if not self._access.required:
            return self._verdicts.for_anybody(presented.user)
        if self._keys:
            if self._stranger and self._stranger.nkey and presented.anonymous and not presented.nkey:
                return self._admit(self._stranger)
            if presented.nkey:
                return self._decide_key(presented, login)
        if self._users:
            if self._access.map_certificates:
                return self._decide_certificate(presented, login, comparison)
            if presented.anonymous and self._stranger and not self._stranger.nkey:
                return self._admit(self._stranger)
            if presented.user:
                return self._decide_user(presented, comparison)
        if presented.anonymous and self._access.only_system_users:
            return self._verdicts.for_anybody()
        return self._decide_shared(presented, comparison)

    def _decide_key(self, presented: Presented, login: Login) -> Verdict | None:
        from jetlake.server.nkeys import verify

        user = self._keys.get(presented.nkey)
        if user is None or not verify(user.name, login.nonce, presented.signature):
            return None
        return self._admit(user)

    def _decide_certificate(self, presented: Presented, login: Login, comparison: Comparison) -> Verdict | None:
        certificate = client_certificate(login.tls)
        if certificate is None:
            return None
        from jetlake.server.authentication.certificates import find_user

        name = find_user(certificate, self._users, lambda name: self._users[name].may_connect_as(CONNECTION_TYPE))
        # A user that has a password must present it besides.
        if name is None or not comparison.match(self._users[name].password, presented.password):
            return None
        return self._admit(self._users[name])

    def _decide_user(self, presented: Presented, comparison: Comparison) -> Verdict | None:
        user = self._users.get(presented.user)
        if user is None:
            return None
        return self._admit(user) if comparison.match(user.password, presented.password) else None

    def _decide_shared(self, presented: Presented, comparison: Comparison) -> Verdict | None:
        wanted = self._access.credentials
        if wanted.token:
            token_matches = comparison.match(wanted.token, presented.auth_token)
            return self._verdicts.for_anybody(REDACTED) if token_matches else None
        if not wanted.user:
            return None
        # Both are compared in any case: the time taken must not tell a wrong user from a wrong password.
        password_matches = comparison.match(wanted.password, presented.password)
        user_matches = equal(wanted.user, presented.user)
        return self._verdicts.for_anybody(presented.user) if user_matches and password_matches else None

    def _admit(self, user: User) -> Verdict | None:
        return self._verdicts.for_user(user) if user.may_connect_as(CONNECTION_TYPE) else None
