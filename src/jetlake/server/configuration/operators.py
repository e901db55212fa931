"""Operator mode: the keys `operator`, `trusted_keys`, `resolver…` and `default_sentinel`.

```text
operator: operator.jwt                            # a file, or the JWT itself
system_account: AB…
resolver: { type: full, dir: "jwt", allow_delete: true }
resolver_preload: { AB…: eyJ… }
```
"""

import os
import re

import msgspec

from jetlake.config import NATS_VERSION
from jetlake.errors import reason_of
from jetlake.server.claims.model import OperatorClaims, UserClaims, read_account, read_operator, read_user
from jetlake.server.claims.permissions import NO_PERMISSIONS, UserPermissions
from jetlake.server.claims.token import InvalidTokenError
from jetlake.server.configuration.accounts import TRUST_KEYS
from jetlake.server.configuration.document import ConfigurationNode, kind_of
from jetlake.server.configuration.section import Section
from jetlake.server.nkeys import is_public_account_key, is_public_operator_key
from jetlake.server.options.trust import ResolverKind, ResolverOptions, ResolverTls, TrustOptions

BEGINNING = "eyJ"
"""All JWTs begin so; everything else is the name of a file."""

DECORATED = re.compile(r"-{3,}[^\n]*-{3,}\r?\n([\w\-.=]+)\r?\n-{3,}[^\n]*-{3,}")
"""A token between two lines of dashes, as tools write it into files."""

VERSION = re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}", re.ASCII)

URL = re.compile(r'URL\(\s*"?([^\s"]*)"?\s*\)', re.IGNORECASE)

RESOLVER_KINDS: dict[str, ResolverKind] = {"MEM": "memory", "MEMORY": "memory", "FULL": "full", "CACHE": "cache"}


def read_trust(section: Section) -> TrustOptions | None:
    """Return whom a file trusts; None = it does not ask for operator mode."""
    operators = _read_operators(section)
    listed = section.texts("trusted", "trusted_keys") or ()
    for key in listed:
        if not is_public_operator_key(key):
            section.error(
                section.node("trusted", "trusted_keys"),
                f'trust key "{key}" required to be a valid public operator nkey',
            )
    tls = _read_resolver_tls(section)
    resolver = _read_resolver(section) or _resolver_of(operators)
    if resolver is not None and resolver.kind == "url":
        resolver = msgspec.structs.replace(resolver, tls=tls)
    preloaded = _read_preloaded(section)
    pinned = _read_pinned(section)
    sentinel = _read_sentinel(section, has_operators=bool(operators))
    if not operators and not listed:
        return None
    if operators and listed:
        section.error(
            section.node("trusted", "trusted_keys"),
            "conflicting options for 'TrustedKeys' and 'TrustedOperators'; the operator names its keys itself",
        )
    if preloaded and resolver is not None and resolver.kind == "url":
        section.error(
            section.node("resolver_preload"),
            "resolver preloads only available for writeable resolver types MEM/DIR/CACHE_DIR",
        )
    return TrustOptions(
        operators=tuple(operators),
        keys=(*listed, *(key for claims in operators.values() for key in claims.issuers())),
        strict_keys=frozenset(
            key
            for claims in operators.values()
            if claims.nats.strict_signing_key_usage
            for key in claims.nats.signing_keys
        ),
        resolver=resolver,
        preloaded=preloaded,
        pinned_accounts=pinned,
        default_sentinel=sentinel,
    )


def check_trust(section: Section, trust: TrustOptions, *, has_accounts: bool, has_users: bool) -> None:
    """Report what a file must not, or must have besides operators."""
    node = section.node(*TRUST_KEYS)
    if trust.resolver is None:
        section.error(node, "operators require an account resolver to be configured; add `resolver: MEMORY` or another")
    if has_accounts:
        section.error(
            section.node("accounts"),
            "operators do not allow Accounts to be configured directly; put their claims into the resolver",
        )
    if has_users:
        section.error(
            node, "operators do not allow users to be configured directly; users come with claims their account signs"
        )


def read_claimed_system_account(section: Section, trust: TrustOptions) -> str:
    """Return the key of the system account, from the file or from the operator; empty = neither names one."""
    node = section.node("system_account", "system")
    chosen = section.text("system_account", "system") or ""
    named = [read_operator(token).nats.system_account for token in trust.operators]
    if chosen and any(named) and chosen not in named:
        section.error(node, "system_account in config and operator JWT must be identical; remove it from the file")
    if chosen and not is_public_account_key(chosen):
        section.error(node, f'the system account "{chosen}" is not the public key of an account: it begins with A')
        return ""
    if not chosen and len(named) == 1:
        chosen = named[0]
    if not chosen and trust.operators and trust.resolver is not None and trust.resolver.has_folder:
        section.error(
            section.node(*TRUST_KEYS),
            "using nats based account resolver - the system account needs to be specified in configuration or the "
            "operator jwt",
        )
    return chosen


def _read_operators(section: Section) -> dict[str, OperatorClaims]:
    """Return the tokens of operators with what they say."""
    operators: dict[str, OperatorClaims] = {}
    listed = section.texts("operator", "operators", "roots", "root", "root_operators", "root_operator") or ()
    node = section.node("operator", "operators", "roots", "root", "root_operators", "root_operator")
    for given in listed:
        try:
            token = _read_token(given)
            claims = read_operator(token)
        except OSError as error:
            section.error(node, f"error parsing operator JWT: open {given}: {reason_of(error)}")
            continue
        except (InvalidTokenError, ValueError) as error:
            # A name that no file can have, or a file that is not text.
            section.error(node, f"error parsing operator JWT: {error}")
            continue
        operators[token] = claims
        _check_operator(section, node, claims)
    return operators


def _read_token(given: str) -> str:
    """Return a token that is given itself, or in a file, bare or between lines of dashes."""
    text = given
    if not given.startswith(BEGINNING) or os.path.isfile(given):
        with open(given, encoding="ascii") as file:
            text = file.read()
    decorated = DECORATED.search(text)
    return decorated[1] if decorated else text.strip()


def _check_operator(section: Section, node: ConfigurationNode | None, claims: OperatorClaims) -> None:
    for key in claims.issuers():
        if not is_public_operator_key(key):
            section.error(node, f'trusted Keys "{key}" are required to be a valid public operator nkey')
    wanted = claims.nats.assert_server_version
    if not wanted:
        return
    parts = wanted.split(".")
    if VERSION.fullmatch(wanted) is None:
        section.error(node, f"operator {claims.sub} expects version {wanted}: it must be of the form 1.2.3")
    elif [int(part) for part in parts] > [int(part) for part in NATS_VERSION.split(".")]:
        section.error(node, f"operator {claims.sub} expected version {wanted} > server version {NATS_VERSION}")


def _resolver_of(operators: dict[str, OperatorClaims]) -> ResolverOptions | None:
    """Return where the only operator says that its accounts are; None = it says nothing."""
    if len(operators) != 1:
        return None
    url = next(iter(operators.values())).nats.account_server_url
    return ResolverOptions(kind="url", url=f"{url.rstrip('/')}/accounts") if _is_web_address(url) else None


def _read_resolver(section: Section) -> ResolverOptions | None:
    node = section.node("resolver", "account_resolver", "accounts_resolver")
    if node is None:
        return None
    if isinstance(node.data, dict):
        return _read_resolver_block(section, node)
    if not isinstance(node.data, str):
        section.error(node, f'"resolver" must be MEMORY, URL(…) or a map, not {kind_of(node.data)}')
        return None
    if node.data.strip().upper() in ("MEM", "MEMORY"):
        return ResolverOptions(kind="memory")
    found = URL.fullmatch(node.data.strip())
    if found is None or not _is_web_address(found[1]):
        section.error(
            node,
            'error parsing account resolver, should be MEM or URL("url") or a map containing dir and type '
            "state=[FULL|CACHE])",
        )
        return None
    return ResolverOptions(kind="url", url=found[1])


def _read_resolver_tls(section: Section) -> ResolverTls:
    inner = section.section("resolver_tls")
    if inner is None:
        return ResolverTls()
    tls = ResolverTls(
        authority_file=inner.path("ca_file") or "",
        certificate_file=inner.path("cert_file") or "",
        key_file=inner.path("key_file") or "",
    )
    if inner.switch("insecure"):
        inner.error(inner.node("insecure"), '"insecure" is not supported here: name the authority with ca_file')
    # They are for servers, or tune what the system decides.
    inner.accept("timeout", "verify", "min_version", "cipher_suites", "curve_preferences")
    inner.finish()
    return tls


def _read_resolver_block(section: Section, node: ConfigurationNode) -> ResolverOptions | None:
    inner = Section(node, section.problems)
    word = inner.text("type") or ""
    kind = RESOLVER_KINDS.get(word.upper())
    directory = inner.path("dir") or ""
    allow_delete = bool(inner.switch("allow_delete"))
    hard_delete = inner.switch("hard_delete")
    accounts_max = inner.integer("limit")
    keep_s = inner.strict_duration_s("ttl") or 0.0
    # There are no other servers to compare claims with.
    interval_s = inner.strict_duration_s("interval")
    timeout_s = inner.strict_duration_s("timeout")
    inner.finish()
    if kind is None:
        section.error(node, f'the type of the resolver is "{word}": it must be full, cache or memory')
        return None
    if kind == "memory":
        return ResolverOptions(kind="memory")
    if not directory:
        section.error(node, "dir has no value and needs to point to a directory")
    elif os.path.exists(directory) and not (os.path.isdir(directory) and os.access(directory, os.W_OK)):
        section.error(node, "dir needs to point to an accessible directory")
    if timeout_s is not None and timeout_s <= 0:
        section.error(inner.node("timeout"), "the time-out of the resolver must be longer than nothing")
    for name, given, refused_by in (
        ("sync", interval_s, "cache"),
        ("allow_delete", allow_delete, "cache"),
        ("hard_delete", hard_delete is not None, "cache"),
        ("ttl", keep_s, "full"),
    ):
        if given and kind == refused_by:
            section.error(node, f"{kind.upper()} does not accept {name}; remove it")
    if kind == "full" and hard_delete is not None and not allow_delete:
        section.error(node, "hard_delete has no effect without delete; add allow_delete: true")
    return ResolverOptions(
        kind=kind,
        directory=directory,
        allow_delete=allow_delete,
        hard_delete=bool(hard_delete),
        accounts_max=accounts_max if accounts_max and accounts_max > 0 else None,
        keep_s=keep_s,
        timeout_s=timeout_s or ResolverOptions(kind=kind).timeout_s,
    )


def _read_preloaded(section: Section) -> dict[str, str]:
    preloaded = section.map_of_texts("resolver_preload") or {}
    for key, token in preloaded.items():
        try:
            read_account(token)
        except InvalidTokenError as error:
            section.error(section.node("resolver_preload"), f'invalid account JWT of "{key}": {error}')
    return {key: token.strip() for key, token in preloaded.items()}


def _read_pinned(section: Section) -> frozenset[str]:
    pinned = section.texts("resolver_pinned_accounts") or ()
    for key in pinned:
        if not is_public_account_key(key):
            section.error(
                section.node("resolver_pinned_accounts"),
                f'pinned account key "{key}" is not a valid public account nkey',
            )
    return frozenset(pinned)


def _read_sentinel(section: Section, *, has_operators: bool) -> str:
    token = section.text("default_sentinel") or ""
    if not token:
        return ""
    node = section.node("default_sentinel")
    if not has_operators:
        section.error(node, "default sentinel requires operators and accounts")
        return ""
    try:
        claims = read_user(token)
    except InvalidTokenError:
        section.error(node, "default sentinel JWT not valid")
        return ""
    if not claims.nats.bearer_token and not _is_scoped(claims):
        section.error(node, "default sentinel must be a bearer token")
    return token


def _is_scoped(claims: UserClaims) -> bool:
    """A user without permissions that a signing key signed: the key may say that it is a bearer token."""
    claimed = {name: getattr(claims.nats, name) for name in UserPermissions.__struct_fields__}
    return bool(claims.nats.issuer_account) and UserPermissions(**claimed) == NO_PERMISSIONS


def _is_web_address(url: str) -> bool:
    return url.startswith(("http://", "https://"))
