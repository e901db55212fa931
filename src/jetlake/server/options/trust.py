"""Operator mode: whom a server trusts to say which accounts there are, and where it finds what they said.

Accounts and users are not in the configuration then. An operator signs accounts, an account signs users, and a user
shows its claims when it connects; `jetlake.server.claims` checks them.

Invariant: the tokens here were signed by whom they name, and are of the kind their field says.
"""

import re
from typing import Literal

import msgspec

ResolverKind = Literal["memory", "full", "cache", "url"]

CACHE_ACCOUNTS_MAX = 1_000
"""nats-server's, for a cache that was given no limit."""

FETCH_TIMEOUT_S = 1.9
"""nats-server's: less than the two seconds that clients wait for an answer to CONNECT."""


class ResolverTls(msgspec.Struct, frozen=True, kw_only=True):
    """Files for a web address with TLS: its authority, and our certificate and key. Empty = the system's."""

    authority_file: str = ""
    certificate_file: str = ""
    key_file: str = ""


class ResolverOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where the claims of accounts are: in memory, in a folder, or at a web address.

    A `full` folder has those of all accounts and takes new ones from `nsc push`; a `cache` has some, and makes room.
    """

    kind: ResolverKind
    directory: str = ""
    url: str = ""
    tls: ResolverTls = ResolverTls()
    allow_delete: bool = False
    # Deleting claims removes their file, too.
    hard_delete: bool = False
    # None = as many as there are.
    accounts_max: int | None = None
    # How long a cache keeps what nobody uses; 0 = as long as there is room.
    keep_s: float = 0.0
    timeout_s: float = FETCH_TIMEOUT_S

    @property
    def has_folder(self) -> bool:
        return self.kind in ("full", "cache")


class TrustOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a server trusts. Tokens are as they were given; keys are public."""

    operators: tuple[str, ...] = ()
    # The keys that may sign accounts: those of the operators, or what `trusted_keys` lists.
    keys: tuple[str, ...] = ()
    # Of these keys, those of operators whose accounts must sign users by signing keys, too.
    strict_keys: frozenset[str] = frozenset()
    resolver: ResolverOptions | None = None
    # Claims by the key of their account.
    preloaded: dict[str, str] = {}
    # Accounts whose users may come in; empty = all.
    pinned_accounts: frozenset[str] = frozenset()
    # The claims of a client that shows none; empty = it is refused.
    default_sentinel: str = ""

    def __repr__(self) -> str:
        # Options end up in logs and tracebacks; a bearer token must not.
        return f"TrustOptions(keys: {', '.join(self.keys)})"


def without_credentials(url: str) -> str:
    """Return an address as it may be shown."""
    return re.sub(r"//[^/@]*@", "//[REDACTED]@", url)
