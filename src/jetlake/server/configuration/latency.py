"""`latency` of an exported service: where latency events go, and for how many requests.

It is a subject, or a map of `subject` and `sampling`: a whole number of percent, 1 to 100, with or without the sign, or
`headers` for only those requests whose tracing headers ask for it.
"""

from jetlake.server.configuration.document import ConfigurationNode, kind_of
from jetlake.server.configuration.quantities import percent_of
from jetlake.server.configuration.section import Section
from jetlake.server.options.accounts import Account
from jetlake.server.options.imports import ONE, Export, LatencyReports, includes

BY_HEADERS = "headers"
"""Only requests with tracing headers are measured."""


def read_latency(section: Section) -> LatencyReports | None:
    """Return where latency events go; None = there are none."""
    node = section.node("latency")
    if node is None:
        return None
    if isinstance(node.data, str):
        return LatencyReports(subject=node.data)
    if not isinstance(node.data, dict):
        section.error(
            node, f"Expected latency to be a subject or a map of subject and sampling, not {kind_of(node.data)}"
        )
        return None
    inner = Section(node, section.problems)
    subject, percent = inner.text("subject"), _read_sampling(inner)
    inner.finish()
    if subject is None:
        if inner.node("subject") is None:
            section.error(node, "Latency subject required, but missing: name the subject that events are published to")
        return None
    return LatencyReports(subject=subject, sampling_percent=percent)


def _read_sampling(section: Section) -> int:
    node = section.node("sampling")
    if node is None:
        return 100
    if isinstance(node.data, str) and node.data.strip().lower() == BY_HEADERS:
        return 0
    given = percent_of(node.data.removesuffix("%")) if isinstance(node.data, str) else node.data
    if isinstance(given, bool) or not isinstance(given, int):
        section.error(
            node, f'Latency sampling must be a whole number of percent or "{BY_HEADERS}", not {kind_of(node.data)}'
        )
        return 100
    if not 1 <= given <= 100:
        section.error(node, f"bad sampling percentage, should be 1-100, not {given}")
        return 100
    return given


def check_latency(section: Section, node: ConfigurationNode | None, account: Account, system_account: str) -> None:
    """Report exports whose latency cannot be measured."""
    for export in account.exports:
        if export.latency is not None:
            reason = why_not_measured(export, account.exports) or ("" if system_account else "system account not setup")
            if reason:
                section.error(
                    node,
                    f'Error adding service latency sampling for "{export.subject}" on subject '
                    f'"{export.latency.subject}": {reason}',
                )


def why_not_measured(export: Export, exports: tuple[Export, ...]) -> str:
    """Return why no latency events of an export can be published; empty = they can."""
    assert export.latency is not None, "the caller has looked"
    subject = export.latency.subject
    tokens = subject.split(".")
    if not all(tokens) or "*" in tokens or ">" in tokens or any(character.isspace() for character in subject):
        return "invalid publish subject; name one without wildcards and blanks"
    if any(other.is_service and includes(other.subject, subject) for other in exports):
        return "invalid publish subject; name one that the account does not export as a service"
    if export.responses != ONE:
        return "bad service response type; only services with a single response are measured"
    return ""
