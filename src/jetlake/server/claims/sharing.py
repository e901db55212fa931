"""What is wrong with the imports and exports in an account's claims.

They are checked as nats-server does before an account counts, so that what is pushed here can be pushed there.
"""

import re
from itertools import permutations

from jetlake.server.claims.model import AccountClaims, ExportClaim, ImportClaim, read_activation
from jetlake.server.claims.token import InvalidTokenError
from jetlake.server.claims.validation import Issue, activation_issues, has_wildcards, subject_issues

RESPONSE_TYPES = frozenset({"", "Singleton", "Stream", "Chunked"})

REFERENCE = re.compile(r"\$([+-]?)0*(\d{1,19})", re.ASCII)
"""`$1`: what the first wildcard stands for. What Go does not read as a number is a token like any other."""

NUMBER_MAX = 2**63 - 1

UNLIMITED = -1


def sharing_issues(claims: AccountClaims) -> list[Issue]:
    """Return what is wrong with imports, exports and how many there are."""
    account, limits = claims.nats, claims.nats.limits
    issues = [issue for each in account.imports for issue in import_issues(each, claims.sub)]
    issues += _overlap_issues(account.imports)
    issues += [issue for each in account.exports for issue in _export_issues(each)]
    for kind in ("service", "stream"):
        issues += _containment_issues(kind, [each.subject for each in account.exports if each.type == kind])
    if limits.imports != UNLIMITED and len(account.imports) > limits.imports:
        issues.append(Issue("the account contains more imports than allowed by the operator"))
    if limits.exports != UNLIMITED:
        if len(account.exports) > limits.exports:
            issues.append(Issue("the account contains more exports than allowed by the operator"))
        if not limits.wildcards and any(has_wildcards(each.subject) for each in account.exports):
            issues.append(Issue("the account contains wildcard exports that are not allowed by the operator"))
    return issues


def is_contained(subject: str, other: str) -> bool:
    """Tell whether every subject that the first means is meant by the other, too."""
    mine, others = subject.split("."), other.split(".")
    if len(mine) < len(others) or (len(mine) > len(others) and others[-1] != ">"):
        return False
    for position, part in enumerate(others):
        if position == len(others) - 1 and part == ">":
            return True
        if part not in ("*", mine[position]):
            return False
    return True


def import_issues(each: ImportClaim, account: str) -> list[Issue]:
    """Return what is wrong with an import of this account."""
    issues = []
    if not each.type:
        issues.append(Issue('invalid import type: "unknown"'))
    if each.type == "service" and each.allow_trace:
        issues.append(Issue("AllowTrace only valid for stream import"))
    if not each.account:
        issues.append(Issue("account to import from is not specified"))
    if each.to:
        issues.append(Issue("the field to has been deprecated (use LocalSubject instead)", blocking=False))
    issues += subject_issues(each.subject)
    if each.local_subject:
        issues += _renaming_issues(each.local_subject, each.subject)
        if each.to:
            issues.append(Issue("Local Subject replaces To"))
    if each.share and each.type != "service":
        issues.append(Issue(f'sharing information (for latency tracking) is only valid for services: "{each.subject}"'))
    return issues + (_activation_issues(each, account) if each.token else [])


def _activation_issues(each: ImportClaim, account: str) -> list[Issue]:
    """A token is of use only for the account, the exporter and the subject that it was made for."""
    try:
        activation = read_activation(each.token)
    except InvalidTokenError:
        return [Issue(f'import "{each.subject}" contains an invalid activation token')]
    issues = activation_issues(activation)
    if each.account not in (activation.iss, activation.nats.issuer_account):
        issues.append(Issue(f'activation token doesn\'t match account for import "{each.subject}"'))
    if activation.sub != account:
        issues.append(Issue(f'activation token doesn\'t match account it is being included in, "{each.subject}"'))
    if activation.nats.kind != each.type:
        issues.append(
            Issue(f"mismatch between token import type {activation.nats.kind} and type of import {each.type}")
        )
    subject = each.to if each.type == "service" and each.to else each.subject
    if not is_contained(subject, activation.nats.subject):
        issues.append(
            Issue(f'activation token import subject "{activation.nats.subject}" doesn\'t match import "{each.subject}"')
        )
    return issues


def _renaming_issues(renamed: str, subject: str) -> list[Issue]:
    issues = subject_issues(renamed)
    if (renamed == ">" or renamed.endswith(".>")) != (subject == ">" or subject.endswith(".>")):
        issues.append(Issue("both, renaming subject and subject, need to end or not end in >"))
    wildcards = subject.split(".").count("*")
    references = 0
    for part in renamed.split("."):
        if part == "*":
            references += 1
        elif (number := _reference_of(part)) is not None:
            if number > wildcards:
                issues.append(Issue(f'Reference {part} in "{renamed}" reference * in "{subject}" that do not exist'))
            else:
                references += 1
    if references != wildcards:
        issues.append(Issue("subject does not contain enough * or reference wildcards $[0-9]"))
    return issues


def _overlap_issues(imports: tuple[ImportClaim, ...]) -> list[Issue]:
    """Two services of one account must not be asked on the same subjects."""
    issues = []
    taken: dict[str, list[str]] = {}
    for each in imports:
        if each.type != "service":
            continue
        subject = each.to or _wildcards_of(each.local_subject) or each.subject
        others = taken.setdefault(each.account, [])
        issues += [
            Issue(f'overlapping subject namespace for "{subject}" and "{other}" in same account "{each.account}"')
            for other in others
            if is_contained(subject, other) or is_contained(other, subject)
        ]
        others.append(subject)
    return issues


def _wildcards_of(renamed: str) -> str:
    """Return a renaming subject with wildcards in the place of its references."""
    return ".".join(token if _reference_of(token) is None else "*" for token in renamed.split("."))


def _reference_of(token: str) -> int | None:
    """Return the number of the wildcard that a token refers to; None = it is not a reference."""
    found = REFERENCE.fullmatch(token)
    if found is None or int(found[2]) > NUMBER_MAX:
        return None
    return -int(found[2]) if found[1] == "-" else int(found[2])


def _export_issues(each: ExportClaim) -> list[Issue]:
    issues = subject_issues(each.subject)
    if not each.type:
        issues.append(Issue('invalid export type: "unknown"'))
    if each.type == "service" and each.response_type not in RESPONSE_TYPES:
        issues.append(Issue(f'invalid response type for service: "{each.response_type}"'))
    if each.type == "stream":
        if each.response_type:
            issues.append(Issue(f'invalid response type for stream: "{each.response_type}"'))
        if each.allow_trace:
            issues.append(Issue("AllowTrace only valid for service export"))
    if each.service_latency is not None:
        issues += _latency_issues(each)
    if each.response_threshold < 0:
        issues.append(Issue("negative response threshold is invalid"))
    if each.response_threshold > 0 and each.type != "service":
        issues.append(Issue("response threshold only valid for services"))
    return issues + _position_issues(each)


def _position_issues(each: ExportClaim) -> list[Issue]:
    """The name of the importing account stands at this position of the subject."""
    position, parts = each.account_token_position, each.subject.split(".")
    if position <= 0:
        return []
    if not has_wildcards(each.subject):
        return [Issue(f"Account Token Position can only be used with wildcard subjects: {each.subject}")]
    if position > len(parts):
        return [Issue(f"Account Token Position {position} exceeds length of subject '{each.subject}'")]
    if parts[position - 1] != "*":
        found = parts[position - 1]
        return [Issue(f"Account Token Position {position} matches '{found}' but must match a * in: {each.subject}")]
    return []


def _latency_issues(each: ExportClaim) -> list[Issue]:
    latency = each.service_latency
    assert latency is not None, "the caller has looked"
    issues = subject_issues(latency.results)
    if each.type != "service":
        issues.append(Issue("latency tracking only permitted for services"))
    if isinstance(latency.sampling, int) and not 0 <= latency.sampling <= 100:
        issues.append(Issue("sampling percentage needs to be between 1-100"))
    if has_wildcards(latency.results):
        issues.append(Issue("results subject can not contain wildcards"))
    return issues


def _containment_issues(kind: str, subjects: list[str]) -> list[Issue]:
    found: dict[str, str] = {}
    for one, other in permutations(subjects, 2):
        if is_contained(one, other):
            found.setdefault(other, one)
    return [Issue(f'{kind} export subject "{one}" already exports "{other}"') for one, other in found.items()]
