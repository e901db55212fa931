"""What accounts share with each other and make of subjects, as `/accountz` shows it: from the options to the facts."""

from collections import defaultdict

from jetlake.monitoring.sharing_facts import SharingFacts, ShownDestination, ShownExport, ShownImport, ShownLatency
from jetlake.server.options.accounts import AccessOptions
from jetlake.server.options.imports import CHUNKED, ONE, STREAM, Export, Import, find_export
from jetlake.server.options.mappings import Mapping
from jetlake.server.options.users import GLOBAL_ACCOUNT

RESPONSE_TYPES = {ONE: "Singleton", STREAM: "Streamed", CHUNKED: "Chunked"}

PERCENT_MAX = 100


def sharing_of(access: AccessOptions) -> dict[str, SharingFacts]:
    """Return what accounts share, for those that share or map something."""
    exports = {account.name: account.exports for account in access.accounts}
    facts = {
        account.name: SharingFacts(
            exports=[_export(each) for each in account.exports],
            imports=[_import(each, find_export(each, exports.get(each.account, ()))) for each in account.imports],
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
        service_latency=_latency(export),
        approved_accounts=export.accounts or (),
    )


def _latency(export: Export | None) -> ShownLatency | None:
    if export is None or export.latency is None:
        return None
    return ShownLatency(sampling=export.latency.sampling_percent or "headers", results=export.latency.subject)


def _import(shown: Import, export: Export | None) -> ShownImport:
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
        latency=_latency(export),
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
