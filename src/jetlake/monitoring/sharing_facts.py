"""What accounts show to each other and make of subjects, as `/accountz` tells it.

The fields are the keys of the page; their order and their words are nats-server's.
"""

from collections import defaultdict

import msgspec

from jetlake.server.options.accounts import AccessOptions
from jetlake.server.options.imports import CHUNKED, ONE, STREAM, Export, Import
from jetlake.server.options.mappings import Mapping
from jetlake.server.options.users import GLOBAL_ACCOUNT

RESPONSE_TYPES = {ONE: "Singleton", STREAM: "Streamed", CHUNKED: "Chunked"}

PERCENT_MAX = 100


class ShownExport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Subjects that other accounts may import."""

    subject: str
    type: str
    response_type: str = ""
    approved_accounts: tuple[str, ...] = ()


class ShownImport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Subjects of another account, and what they are called here."""

    subject: str
    account: str
    to: str = ""
    local_subject: str
    type: str
    # They are shown whatever they are.
    invalid: bool
    share: bool
    tracking: bool


class ShownDestination(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of the subjects a message may go to; weights add up from one to the next."""

    subject: str
    weight: int
    cluster: str = ""


class SharingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What one account shares, and its mappings."""

    exports: list[ShownExport] = []
    imports: list[ShownImport] = []
    mappings: dict[str, list[ShownDestination]] = {}


def sharing_of(access: AccessOptions) -> dict[str, SharingFacts]:
    """Return what accounts share, for those that share or map something."""
    facts = {
        account.name: SharingFacts(
            exports=[_export(each) for each in account.exports],
            imports=[_import(each) for each in account.imports],
            mappings={mapping.source: _destinations(mapping) for mapping in account.mappings},
        )
        for account in access.accounts
        if account.exports or account.imports or account.mappings
    }
    if access.mappings:
        facts[GLOBAL_ACCOUNT] = SharingFacts(
            mappings={mapping.source: _destinations(mapping) for mapping in access.mappings}
        )
    return facts


def _export(export: Export) -> ShownExport:
    return ShownExport(
        subject=export.subject,
        type="service" if export.is_service else "stream",
        response_type=RESPONSE_TYPES[export.responses] if export.is_service else "",
        approved_accounts=export.accounts or (),
    )


def _import(shown: Import) -> ShownImport:
    # Here every wildcard is one, whatever it is called.
    local_subject = ".".join("*" if part.startswith("$") and part[1:].isdigit() else part for part in _parts(shown))
    return ShownImport(
        subject=shown.subject,
        account=shown.account,
        to=local_subject if shown.is_service else "",
        local_subject=local_subject,
        type="service" if shown.is_service else "stream",
        invalid=False,
        share=shown.share,
        tracking=False,
    )


def _parts(shown: Import) -> list[str]:
    return shown.local_subject.split(".")


def _destinations(mapping: Mapping) -> list[ShownDestination]:
    """Return the destinations as they are chosen: with the subject itself for the rest, and each weight on top."""
    by_cluster: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for destination in mapping.destinations:
        by_cluster[destination.cluster].append((destination.weight_percent, destination.subject))
    names_itself = any(destination.subject == mapping.source for destination in mapping.destinations)
    shown = []
    for cluster in ("", *sorted(set(by_cluster) - {""})):
        chosen = by_cluster[cluster]
        total = sum(weight for weight, _ in chosen)
        if total < PERCENT_MAX and not names_itself:
            chosen = [*chosen, (PERCENT_MAX - total, _numbered(mapping.source))]
        reached = 0
        for weight, subject in sorted(chosen, key=lambda pair: pair[0]):
            reached += weight
            shown.append(ShownDestination(subject=subject, weight=reached, cluster=cluster))
    return shown


def _numbered(pattern: str) -> str:
    """Return a pattern whose wildcards are numbers, as a destination has them."""
    number = 0
    parts = []
    for part in pattern.split("."):
        number += part == "*"
        parts.append(f"${number}" if part == "*" else part)
    return ".".join(parts)
