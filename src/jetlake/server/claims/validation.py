"""What is wrong with claims, beyond their signature: each issue blocks them, blocks them for now, or is a warning.

```python
issues = account_issues(claims, now_unix_s=…)
if blocks(issues, with_times=True): …
```

The words are nats-server's, because tools show them.
"""

import re
from collections.abc import Iterable
from ipaddress import ip_network
from typing import TYPE_CHECKING

import msgspec

from jetlake.server import nkeys
from jetlake.server.claims.model import (
    AccountClaimBody,
    AccountClaims,
    ActivationClaims,
    AuthorizationResponseClaims,
    Claims,
    ExternalAuthorization,
    OperatorClaims,
    ScopedKey,
    UserClaims,
    WeightedMapping,
)
from jetlake.server.claims.permissions import ClaimedPermissions, UserPermissions

if TYPE_CHECKING:
    from datetime import tzinfo

TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d):([0-5]\d)")

INFORMATION_LENGTH_MAX = 8 * 1024
"""nats-server's, for descriptions and their addresses."""

CLUSTER_TRAFFIC = frozenset({"", "system", "owner"})
ANY_ACCOUNT = "*"


class Issue(msgspec.Struct, frozen=True):
    """One thing that is wrong."""

    description: str
    blocking: bool = True
    # It is only wrong at the moment: too late or too early.
    time_check: bool = False


def blocks(issues: Iterable[Issue], *, with_times: bool) -> bool:
    """Tell whether claims with these issues do not count."""
    return any(issue.blocking or (with_times and issue.time_check) for issue in issues)


def operator_issues(claims: OperatorClaims, now_unix_s: float) -> list[Issue]:
    """Return what is wrong with an operator."""
    issues = _time_issues(claims, now_unix_s)
    issues += [
        Issue(f"{key} is not an operator public key")
        for key in claims.nats.signing_keys
        if not nkeys.is_public_operator_key(key)
    ]
    system_account = claims.nats.system_account
    if system_account and not nkeys.is_public_account_key(system_account):
        issues.append(Issue(f"{system_account} is not an account public key"))
    return issues


def account_issues(claims: AccountClaims, now_unix_s: float) -> list[Issue]:
    """Return what is wrong with an account. Its imports and exports are looked at by `sharing`."""
    # Most accounts share nothing.
    from jetlake.server.claims.sharing import sharing_issues

    account = claims.nats
    issues = _time_issues(claims, now_unix_s)
    issues += sharing_issues(claims)
    if "" in account.limits.tiered_limits:
        issues.append(Issue('Tiered JetStream Limits can not contain a blank "" tier name'))
    issues += permission_issues(account.default_permissions)
    for source, targets in account.mappings.items():
        issues += _mapping_issues(source, targets)
    issues += _authorization_issues(account.authorization)
    issues += _trace_issues(account)
    issues += [issue for key in account.signing_keys for issue in _signing_key_issues(key)]
    if max(len(account.description), len(account.info_url)) > INFORMATION_LENGTH_MAX:
        issues.append(Issue("Description is too long"))
    if account.cluster_traffic not in CLUSTER_TRAFFIC:
        issues.append(Issue(f'unknown cluster traffic option: "{account.cluster_traffic}"'))
    return issues


def user_issues(claims: UserClaims, now_unix_s: float) -> list[Issue]:
    """Return what is wrong with a user."""
    issues = _time_issues(claims, now_unix_s)
    issues += permission_issues(claims.nats)
    issues += _limit_issues(claims.nats)
    account = claims.nats.issuer_account
    if account and not nkeys.is_public_account_key(account):
        issues.append(Issue("account_id is not an account public key"))
    return issues


def activation_issues(claims: ActivationClaims) -> list[Issue]:
    """Return what is wrong with an activation, whenever it is used."""
    issues = subject_issues(claims.nats.subject)
    if not claims.nats.kind:
        issues.append(Issue('invalid import type: "unknown"'))
    account = claims.nats.issuer_account
    if account and not nkeys.is_public_account_key(account):
        issues.append(Issue("account_id is not an account public key"))
    return issues


def authorization_response_issues(claims: AuthorizationResponseClaims, now_unix_s: float) -> list[Issue]:
    """Return what is wrong with the answer of a service; each of these makes it worthless."""
    answer = claims.nats
    issues = _time_issues(claims, now_unix_s)
    if not nkeys.is_public_user_key(claims.sub):
        issues.append(Issue("Subject must be a user public key"))
    if not nkeys.is_public_server_key(claims.aud):
        issues.append(Issue("Audience must be a server public key"))
    if not (answer.error or answer.jwt):
        issues.append(Issue("Error or Jwt is required"))
    if answer.error and answer.jwt:
        issues.append(Issue("Only Error or Jwt can be set"))
    if answer.issuer_account and not nkeys.is_public_account_key(answer.issuer_account):
        issues.append(Issue("issuer_account is not an account public key"))
    return issues


def permission_issues(permissions: ClaimedPermissions) -> list[Issue]:
    """Return what is wrong with lists of subjects; those for subscriptions may name a queue."""
    issues = []
    for subjects, may_name_queue in ((permissions.sub, True), (permissions.pub, False)):
        for entry in (*subjects.allow, *subjects.deny):
            words = entry.split(" ")
            if len(words) > 2:
                issues.append(Issue(f'Permission Subject "{entry}" contains too many spaces'))
                continue
            issues += [issue for word in words for issue in subject_issues(word)]
            if len(words) == 2 and not may_name_queue:
                issues.append(Issue(f'Permission Subject "{entry}" is not allowed to contain queue'))
    return issues


def subject_issues(subject: str) -> list[Issue]:
    """Return what is wrong with a subject, wildcards allowed."""
    if not subject:
        return [Issue("subject cannot be empty")]
    issues = []
    if " " in subject:
        issues.append(Issue(f'subject "{subject}" cannot have spaces'))
    if subject[0] == "." or subject[-1] == ".":
        issues.append(Issue(f'subject "{subject}" cannot start or end with a `.`'))
    if ".." in subject:
        issues.append(Issue(f'subject "{subject}" cannot contain consecutive `.`'))
    return issues


def has_wildcards(subject: str) -> bool:
    return any(part == "*" for part in subject.split(".")) or subject == ">" or subject.endswith(".>")


def time_zone(name: str) -> "tzinfo | None":
    """Return the time zone of this name; None = there is none. Empty is the server's own."""
    from datetime import datetime
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    if not name or name == "Local":
        return datetime.now().astimezone().tzinfo
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _time_issues(claims: Claims, now_unix_s: float) -> list[Issue]:
    issues = []
    now = int(now_unix_s)
    if 0 < claims.exp < now:
        issues.append(Issue("claim is expired", blocking=False, time_check=True))
    if claims.nbf > now:
        issues.append(Issue("claim is not yet valid", blocking=False, time_check=True))
    return issues


def _limit_issues(user: UserPermissions) -> list[Issue]:
    issues = []
    for network in user.networks:
        try:
            # A network without its length is not one, though Python reads it as that of a single address.
            is_network = "/" in network and ip_network(network, strict=False) is not None
        except ValueError:
            is_network = False
        if not is_network:
            issues.append(Issue(f'invalid cidr "{network}" in user src limits'))
    for times in user.times:
        for name, text in (("start", times.start), ("end", times.end)):
            if not TIME_OF_DAY.fullmatch(text):
                issues.append(Issue(f'{name} in time range is invalid "{text}"'))
    if user.times_location and time_zone(user.times_location) is None:
        issues.append(Issue(f"could not parse iana time zone by name: unknown time zone {user.times_location}"))
    return issues


def _mapping_issues(source: str, targets: tuple[WeightedMapping, ...]) -> list[Issue]:
    issues = subject_issues(source)
    totals: dict[str, int] = {}
    for target in targets:
        issues += subject_issues(target.subject)
        weight = target.weight or 100
        if weight > 100:
            issues.append(Issue(f'Mapping "{source}" has a weight {weight} that exceeds 100'))
        totals[target.cluster] = totals.get(target.cluster, 0) + weight
    for cluster, total in totals.items():
        if total > 100:
            place = f' in cluster "{cluster}"' if cluster else ""
            issues.append(Issue(f'Mapping "{source}"{place} exceeds 100% among all of it\'s weighted to mappings'))
    return issues


def _authorization_issues(authorization: ExternalAuthorization) -> list[Issue]:
    issues = []
    if authorization.allowed_accounts and not authorization.auth_users:
        issues.append(Issue("External authorization cannot have accounts without users specified"))
    issues += [
        Issue(f'AuthUser "{user}" is not a valid user public key')
        for user in authorization.auth_users
        if not nkeys.is_public_user_key(user)
    ]
    for account in authorization.allowed_accounts:
        if account == ANY_ACCOUNT:
            if len(authorization.allowed_accounts) > 1:
                issues.append(Issue('AllowedAccounts can only be a list of accounts or "*"'))
        elif not nkeys.is_public_account_key(account):
            issues.append(Issue(f'Account "{account}" is not a valid account public key'))
    return issues


def _trace_issues(account: AccountClaimBody) -> list[Issue]:
    trace = account.trace
    if trace is None:
        return []
    issues = [Issue(f"the account Trace.Destination {issue.description}") for issue in subject_issues(trace.dest)[:1]]
    if has_wildcards(trace.dest):
        issues.append(Issue(f'the account Trace.Destination subject "{trace.dest}" is not a valid publish subject'))
    if not 0 <= trace.sampling <= 100:
        issues.append(
            Issue(f"the account Trace.Sampling value '{trace.sampling}' is not valid, should be in the range [1..100]")
        )
    return issues


def _signing_key_issues(key: str | ScopedKey) -> list[Issue]:
    if isinstance(key, ScopedKey):
        if not nkeys.is_public_account_key(key.key):
            return [Issue(f"{key.key} is not an account public key")]
    elif not nkeys.is_public_account_key(key):
        return [Issue(f'"{key}" is not a valid account signing key')]
    return []
