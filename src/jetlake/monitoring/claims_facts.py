"""What pages and events show of claims, in operator mode: the allow-list of `facts`, for accounts and users.

Claims are public; what proves them is not. The token of a user that needs no signature (a bearer token) is as good as a
password, so it is never shown.
"""

from typing import Protocol

import msgspec


class ShownIssue(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with claims."""

    description: str
    blocking: bool
    time_check: bool


class ShownAccount(msgspec.Struct, frozen=True, kw_only=True):
    """An account as its claims describe it. Times of revocations are unix seconds."""

    name: str
    updated_unix_ns: int
    jwt: str = ""
    issuer_key: str = ""
    tags: list[str] = []
    is_expired: bool = False
    # The claims as the operator wrote them; None = they have not been pushed yet.
    claims: msgspec.Raw | None = None
    issues: list[ShownIssue] = []
    revoked_users: dict[str, int] = {}


class ShownUser(msgspec.Struct, frozen=True, kw_only=True):
    """A user as its claims describe it."""

    name: str = ""
    jwt: str = ""
    issuer_key: str = ""
    tags: list[str] = []
    # In unix seconds; 0 = never.
    expires_unix_s: int = 0


class ShownOperators(msgspec.Struct, frozen=True, kw_only=True):
    """The operators a server trusts: their tokens, and the claims in them."""

    jwts: list[str] = []
    claims: list[msgspec.Raw] = []


class ShownSubjects(Protocol):
    """Which subjects a user may use, and which not; `allow` None = all."""

    @property
    def allow(self) -> tuple[str, ...] | None: ...
    @property
    def deny(self) -> tuple[str, ...]: ...


class ShownResponses(Protocol):
    """A user's right to answer: how often, and for how long."""

    @property
    def count_max(self) -> int: ...
    @property
    def expires_ms(self) -> int: ...


class ShownPermissions(Protocol):
    """What a user may do; `jetlake.server.options.users.Permissions` is one."""

    @property
    def publish(self) -> ShownSubjects: ...
    @property
    def subscribe(self) -> ShownSubjects: ...
    @property
    def responses(self) -> ShownResponses | None: ...


class ClaimsFacts(Protocol):
    """What is known about claims; `jetlake.server.claims.shown.ShownClaims` knows it."""

    @property
    def pinned_failures(self) -> int: ...
    def operators(self) -> ShownOperators: ...
    def account(self, key: str) -> ShownAccount | None: ...
    def account_name(self, key: str) -> str: ...
    def user(self, details: str) -> ShownUser | None: ...
    def permissions(self, details: str) -> ShownPermissions | None: ...
