"""`Rules`: which user a client is that connects in one way: over TCP or WebSocket, as a client or as a leaf node.

In nats-server's order: keys, then users (by certificate if that is configured), then the token or the single user that
all clients share. A WebSocket client may have other credentials than a client over TCP, but users are the same; leaf
nodes may have users of their own.

Invariant: nobody is a user whose `allowed_connection_types` do not have this way to connect.
"""

from jetlake.server.authentication.passwords import Comparison, equal
from jetlake.server.authentication.presented import Login, Presented, client_certificate, read_presented
from jetlake.server.authentication.verdict import REDACTED, Verdict, Verdicts
from jetlake.server.options.accounts import AccessOptions
from jetlake.server.options.users import LEAF_TYPES, User


class Rules:
    """What decides about clients of one connection type."""

    def __init__(self, access: AccessOptions, connection_type: str) -> None:
        self._access = access
        self._connection_type = connection_type
        self._verdicts = Verdicts(access, is_for_leafs=connection_type in LEAF_TYPES)
        self._users = {user.name: user for user in access.users if not user.nkey}
        self._keys = {user.name: user for user in access.users if user.nkey}
        self._stranger = next((user for user in access.users if user.name == access.no_auth_user), None)

    def maps(self, user: User) -> bool:
        """Tell whether a certificate makes a client this user here."""
        return self._access.map_certificates and user.may_connect_as(self._connection_type)

    def stored_secrets(self) -> list[str]:
        """Return the passwords and tokens that clients are compared with."""
        credentials = self._access.credentials
        return [*(user.password for user in self._users.values()), credentials.password, credentials.token]

    def decide(self, login: Login, comparison: Comparison, certificate_users: frozenset[str]) -> Verdict | None:
        """Return the verdict over a client; None = refused.

        `certificate_users` are known by their certificates alone: without one, their missing password is not an empty
        one that a client could present.
        """
        presented = read_presented(login.connect)
        if presented is None:
            return None
        if not self._access.required:
            return self._verdicts.for_anybody(presented.user, self._access.default_account)
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
                return self._decide_user(presented, comparison, certificate_users)
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

        name = find_user(certificate, self._users, lambda name: self.maps(self._users[name]))
        # A user that has a password must present it besides.
        if name is None or not comparison.match(self._users[name].password, presented.password):
            return None
        return self._admit(self._users[name])

    def _decide_user(
        self, presented: Presented, comparison: Comparison, certificate_users: frozenset[str]
    ) -> Verdict | None:
        user = self._users.get(presented.user)
        if user is None or (user.name in certificate_users and user is not self._stranger):
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
        return self._verdicts.for_user(user) if user.may_connect_as(self._connection_type) else None
