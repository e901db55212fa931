"""The decision over one client, in the form the engine takes."""

import msgspec

from jetlake.server.options.accounts import AccessOptions, Account
from jetlake.server.options.users import GLOBAL_ACCOUNT, Permissions, User

REDACTED = "[REDACTED]"
"""Stands where others have a user's name, for a client that came in with a token."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An admission: what the engine needs to know about the client from here on. None = no limit but the server's."""

    account: str
    user: str
    permissions: Permissions | None = None
    max_payload_bytes: int | None = None
    max_subscriptions: int | None = None
    max_account_connections: int | None = None
    # When the client is sent away; None = never.
    expires_unix_ms: int | None = None
    # What the client logged in with, for those who ask about it later; the engine only keeps it.
    details: str = ""

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)


class Refusal(msgspec.Struct, frozen=True):
    """A refusal whose cause is sent to a client that was connected: `revoked` or `account expired`."""

    cause: str


class Verdicts:
    """Makes the verdict for each user of a configuration, with the limits of its account.

    Leaf nodes are counted by themselves, by `max_leafnodes` of an account.
    """

    def __init__(self, access: AccessOptions, *, is_for_leafs: bool = False) -> None:
        self._accounts = {account.name: account for account in access.accounts}
        self._is_for_leafs = is_for_leafs

    def for_user(self, user: User) -> Verdict:
        account = self._accounts.get(user.account, Account(name=user.account))
        return Verdict(
            account=user.account,
            user=user.name,
            permissions=user.permissions,
            max_payload_bytes=account.max_payload_bytes,
            max_subscriptions=account.max_subscriptions,
            max_account_connections=account.max_leafnodes if self._is_for_leafs else account.max_connections,
        )

    def for_anybody(self, name: str = "", account: str = GLOBAL_ACCOUNT) -> Verdict:
        """Return the verdict for a client without a user of its own; `name` is only shown."""
        return self.for_user(User(name=name, account=account))
