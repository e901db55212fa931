"""What operators, accounts and users claim: the payloads of their tokens as values.

```python
account = read_account(text)        # raises InvalidTokenError
account.sub, account.nats.limits.conn
```

The fields are the keys of the claims, version 2. Claims of version 1 are read into the same values.

Invariant: what is returned was signed by its `iss`. Whether it is valid now is for `validation`.
"""

from functools import lru_cache
from typing import Any, Literal, TypeVar

import msgspec

from jetlake.server.claims import token as tokens
from jetlake.server.claims.permissions import ClaimedPermissions, Integer, UserPermissions
from jetlake.server.claims.token import InvalidTokenError, OpenedToken, open_token

Kind = Literal["", "stream", "service"]

UNLIMITED_V1 = {"subs": -1, "data": -1, "payload": -1}
"""What users of version 1 are not limited by, unless they say so."""

SCOPE_LIMITS = {"subs": -1, "data": -1, "payload": -1}
"""What the template of a signing key does not limit unless it says so; users themselves have 0 there."""


USERS_REMEMBERED = 4096
"""Tokens of users that need not be opened again: a signature that fits once fits always. A few megabytes."""

ACTIVATIONS_REMEMBERED = 1024
"""The same, of activations: they are looked at whenever an account changes."""


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """What all claims have. Times are unix seconds; 0 = not given."""

    sub: str = ""
    iss: str = ""
    name: str = ""
    aud: str = ""
    jti: str = ""
    iat: Integer = 0
    exp: Integer = 0
    nbf: Integer = 0


class Operator(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator says about itself."""

    signing_keys: tuple[str, ...] = ()
    account_server_url: str = ""
    operator_service_urls: tuple[str, ...] = ()
    system_account: str = ""
    assert_server_version: str = ""
    # Accounts are signed by signing keys, never by the operator's own key.
    strict_signing_key_usage: bool = False
    tags: tuple[str, ...] = ()


class OperatorClaims(Claims, frozen=True, kw_only=True):
    """An operator, which signs accounts."""

    nats: Operator = Operator()

    def issuers(self) -> tuple[str, ...]:
        """Return the keys that may sign accounts."""
        own = () if self.nats.strict_signing_key_usage else (self.sub,)
        return (*own, *self.nats.signing_keys)


class JetStreamLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What an account may store. No memory and no disk = JetStream is off; of the sizes of streams, 0 is unlimited."""

    mem_storage: Integer = 0
    disk_storage: Integer = 0
    streams: Integer = 0
    consumer: Integer = 0
    max_ack_pending: Integer = 0
    mem_max_stream_bytes: Integer = 0
    disk_max_stream_bytes: Integer = 0
    max_bytes_required: bool = False

    @property
    def enabled(self) -> bool:
        return self.mem_storage != 0 or self.disk_storage != 0


class AccountLimits(JetStreamLimits, frozen=True, kw_only=True):
    """Everything that an account is limited in. What is left out is 0, and -1 is unlimited."""

    subs: Integer = 0
    data: Integer = 0
    payload: Integer = 0
    imports: Integer = 0
    exports: Integer = 0
    wildcards: bool = False
    disallow_bearer: bool = False
    conn: Integer = 0
    leaf: Integer = 0
    # By number of replicas: R1, R3.
    tiered_limits: dict[str, JetStreamLimits] = {}


class ImportClaim(msgspec.Struct, frozen=True, kw_only=True):
    """What an account gets from another."""

    name: str = ""
    subject: str = ""
    account: str = ""
    token: str = ""
    to: str = ""
    local_subject: str = ""
    type: Kind = ""
    share: bool = False
    allow_trace: bool = False


class LatencyClaim(msgspec.Struct, frozen=True, kw_only=True):
    """Where it is reported how long a service takes, and of how many requests in a hundred."""

    sampling: Integer | str = 0
    results: str = ""


class ExportClaim(msgspec.Struct, frozen=True, kw_only=True):
    """What an account lets others have."""

    name: str = ""
    subject: str = ""
    type: Kind = ""
    token_req: bool = False
    revocations: dict[str, Integer] = {}
    response_type: str = ""
    response_threshold: Integer = 0
    service_latency: LatencyClaim | None = None
    account_token_position: Integer = 0
    advertise: bool = False
    allow_trace: bool = False
    description: str = ""
    info_url: str = ""


class ScopedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A signing key with a template, which decides what the users may do that the key signs."""

    kind: Literal["user_scope"]
    key: str
    role: str = ""
    description: str = ""
    template: UserPermissions = UserPermissions()


class WeightedMapping(msgspec.Struct, frozen=True, kw_only=True):
    """Where a subject is mapped to, and how many messages in a hundred; 0 = all."""

    subject: str = ""
    weight: Integer = 0
    cluster: str = ""


class ExternalAuthorization(msgspec.Struct, frozen=True, kw_only=True):
    """A service decides about the users of the account; those it runs as are named here."""

    auth_users: tuple[str, ...] = ()
    allowed_accounts: tuple[str, ...] = ()
    xkey: str = ""


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """Where messages with a trace context are reported, and how many in a hundred; 0 = all."""

    dest: str = ""
    sampling: Integer = 0


class AccountClaimBody(msgspec.Struct, frozen=True, kw_only=True):
    """What an account is, as its operator says."""

    imports: tuple[ImportClaim, ...] = ()
    exports: tuple[ExportClaim, ...] = ()
    limits: AccountLimits = AccountLimits()
    signing_keys: tuple[str | ScopedKey, ...] = ()
    # Until when what was issued to a key, or to all of them (`*`), no longer counts.
    revocations: dict[str, Integer] = {}
    default_permissions: ClaimedPermissions = ClaimedPermissions()
    mappings: dict[str, tuple[WeightedMapping, ...]] = {}
    authorization: ExternalAuthorization = ExternalAuthorization()
    trace: Trace | None = None
    cluster_traffic: str = ""
    description: str = ""
    info_url: str = ""
    tags: tuple[str, ...] = ()


class AccountClaims(Claims, frozen=True, kw_only=True):
    """An account, which signs users."""

    nats: AccountClaimBody = AccountClaimBody()


class UserClaimBody(UserPermissions, frozen=True, kw_only=True):
    """What a user may do, and which account it belongs to if a signing key signed it."""

    issuer_account: str = ""
    tags: tuple[str, ...] = ()


class UserClaims(Claims, frozen=True, kw_only=True):
    """A user, which signs nonces."""

    nats: UserClaimBody = UserClaimBody()

    @property
    def account(self) -> str:
        """The account this user says it belongs to."""
        return self.nats.issuer_account or self.iss


class Activation(msgspec.Struct, frozen=True, kw_only=True):
    """What an account may import."""

    subject: str = ""
    kind: Kind = ""
    issuer_account: str = ""


class ActivationClaims(Claims, frozen=True, kw_only=True):
    """An exporting account's permission for the account `sub` to import something."""

    nats: Activation = Activation()


class AuthorizationResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What a service has decided about a client: the claims of a user, or why there are none."""

    jwt: str = ""
    error: str = ""
    issuer_account: str = ""


class AuthorizationResponseClaims(Claims, frozen=True, kw_only=True):
    """The answer of a service, about the user `sub` and for the server `aud`."""

    nats: AuthorizationResponse = AuthorizationResponse()


Claimed = TypeVar("Claimed", bound=Claims)


def read_operator(text: str) -> OperatorClaims:
    """Return the claims of an operator. Raises `InvalidTokenError`."""
    return _read(open_token(text), tokens.OPERATOR, OperatorClaims)


def read_account(text: str) -> AccountClaims:
    """Return the claims of an account. Raises `InvalidTokenError`."""
    claims = _read(open_token(text), tokens.ACCOUNT, AccountClaims)
    limits = claims.nats.limits
    if not limits.tiered_limits:
        return claims
    # Limits of tiers replace the others.
    cleared = {name: field.default for name, field in _fields(JetStreamLimits).items()}
    limits = msgspec.structs.replace(limits, **cleared)
    return msgspec.structs.replace(claims, nats=msgspec.structs.replace(claims.nats, limits=limits))


def read_one_user(text: str) -> UserClaims:
    """Return the claims of a user that is not expected again. Raises `InvalidTokenError`."""
    return _read(open_token(text), tokens.USER, UserClaims)


read_user = lru_cache(maxsize=USERS_REMEMBERED)(read_one_user)
"""Return the claims of a user. Raises `InvalidTokenError`."""


@lru_cache(maxsize=ACTIVATIONS_REMEMBERED)
def read_activation(text: str) -> ActivationClaims:
    """Return the claims of an activation. Raises `InvalidTokenError`."""
    return _read(open_token(text), tokens.ACTIVATION, ActivationClaims)


def read_authorization_response(text: str) -> AuthorizationResponseClaims:
    """Return the answer of a service. Raises `InvalidTokenError`."""
    return _read(open_token(text), tokens.AUTHORIZATION_RESPONSE, AuthorizationResponseClaims)


def _read(token: OpenedToken, kind: str, type_: type[Claimed]) -> Claimed:
    if token.kind != kind:
        raise InvalidTokenError(f"not {kind} claim")
    if token.version < 1:
        raise InvalidTokenError(f"library supports version {tokens.VERSION} or less - received {token.version}")
    payload = _from_version_1(token.payload, kind) if token.version == 1 else token.payload
    try:
        return msgspec.convert(_with_scope_limits(payload, kind), type_)
    except msgspec.MsgspecError as error:
        raise InvalidTokenError(f"the claims cannot be read: {error}") from error


def _from_version_1(payload: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return claims of version 1 as those of version 2: some keys have moved, and users had no limits by default."""
    inner = payload.get("nats", {})
    if not isinstance(inner, dict):
        raise InvalidTokenError('the claims cannot be read: "nats" must be an object')
    inner = dict(inner)
    if kind == tokens.ACTIVATION:
        inner["kind"] = inner.pop("type", "")
    if kind == tokens.USER:
        inner = {**UNLIMITED_V1, **inner}
    if kind == tokens.ACCOUNT and isinstance(inner.get("limits"), dict):
        # Streams came later.
        stored = set(JetStreamLimits.__struct_fields__) | {"tiered_limits"}
        inner["limits"] = {name: value for name, value in inner["limits"].items() if name not in stored}
    moved = {name: payload[name] for name in ("tags", "issuer_account") if name in payload}
    return {**payload, "nats": {**inner, **moved}}


def _with_scope_limits(payload: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return account claims whose templates have the limits that they leave out."""
    inner = payload.get("nats")
    if kind != tokens.ACCOUNT or not isinstance(inner, dict) or not isinstance(inner.get("signing_keys"), list):
        return payload
    keys = [
        {**key, "template": {**SCOPE_LIMITS, **key.get("template", {})}}
        if isinstance(key, dict) and isinstance(key.get("template", {}), dict)
        else key
        for key in inner["signing_keys"]
    ]
    return {**payload, "nats": {**inner, "signing_keys": keys}}


def _fields(type_: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.name: field for field in msgspec.structs.fields(type_)}
