"""The lists `exports` and `imports` of an account.

| entry                                                                   | effect                                   |
|-------------------------------------------------------------------------|------------------------------------------|
| `exports: [{stream: "orders.>"}]`                                       | every account may import these           |
| `exports: [{service: quote, accounts: [SHOP], response_type: stream}]`  | one account may ask, and gets many       |
|                                                                         | answers                                  |
| `imports: [{stream: {account: A, subject: "orders.>"}, prefix: shop}]`  | they are `shop.orders.>` here            |
| `imports: [{service: {account: A, subject: quote}, to: "a.quote"}]`     | a request to `a.quote` is one to `quote` |
"""

import msgspec

from jetlake.server.configuration.document import ConfigurationNode, kind_of
from jetlake.server.configuration.latency import check_latency, read_latency
from jetlake.server.configuration.section import Section
from jetlake.server.options.accounts import Account
from jetlake.server.options.imports import (
    CHUNKED,
    ONE,
    RESPONSE_TIMEOUT_MS,
    STREAM,
    Export,
    Import,
    find_export,
    overlaps,
)

RESPONSES = {"single": ONE, "singleton": ONE, "stream": STREAM, "chunk": CHUNKED, "chunked": CHUNKED}


def read_exports(section: Section) -> tuple[Export, ...]:
    """Return what an account shows to others."""
    exports = [_read_export(inner) for inner in section.sections("exports") or []]
    by_subject: dict[tuple[bool, str], Export] = {}
    for export in exports:
        if export is not None:
            key = (export.is_service, export.subject)
            earlier = by_subject.get(key)
            by_subject[key] = export if earlier is None else _both(earlier, export)
    return tuple(by_subject.values())


def _both(earlier: Export, later: Export) -> Export:
    """Return what two exports of one subject are together: one that names accounts restricts both."""
    restricts = later.accounts is not None or later.account_token_position
    accounts = earlier.accounts
    if later.accounts is not None:
        accounts = tuple(dict.fromkeys((*(earlier.accounts or ()), *later.accounts)))
    return msgspec.structs.replace(
        later,
        accounts=accounts,
        account_token_position=later.account_token_position if restricts else earlier.account_token_position,
        responses=earlier.responses if later.responses == ONE else later.responses,
        latency=later.latency or earlier.latency,
    )


def read_imports(section: Section) -> tuple[Import, ...]:
    """Return what an account wants to see of others; `check_imports` tells whether it may."""
    imports = [_read_import(inner) for inner in section.sections("imports") or []]
    return tuple(found for found in imports if found is not None)


def _read_export(section: Section) -> Export | None:
    stream, service = section.text("stream"), section.text("service")
    responses = _read_responses(section)
    timeout_s = section.strict_duration_s("threshold", "response_threshold", "response_max_time", "response_time")
    is_service = service is not None
    if not is_service:
        for name in ("response", "response_type", "threshold", "latency", "allow_trace"):
            if section.node(name) is not None:
                section.error(section.node(name), f'"{name}" is for a service, and this exports a stream: remove it')
    latency = read_latency(section) if is_service else None
    allow_trace = bool(section.switch("allow_trace"))
    accounts = section.texts("accounts")
    position = section.integer("account_token_position", lowest=0) or 0
    section.finish()
    if (stream is None) == (service is None):
        section.error(None, "an export needs a stream or a service, and not both")
        return None
    return Export(
        subject=service if service is not None else stream or "",
        is_service=is_service,
        accounts=accounts,
        account_token_position=position,
        responses=responses,
        response_timeout_ms=RESPONSE_TIMEOUT_MS if timeout_s is None else max(1, int(timeout_s * 1000)),
        latency=latency,
        allow_trace=allow_trace,
    )


def _read_responses(section: Section) -> str:
    text = section.text("response", "response_type")
    if text is None:
        return ONE
    if text.lower() not in RESPONSES:
        section.error(
            section.node("response", "response_type"),
            f'Unknown response type: "{text}": take singleton, stream or chunked',
        )
        return ONE
    return RESPONSES[text.lower()]


def _read_import(section: Section) -> Import | None:
    stream, service = section.node("stream"), section.node("service")
    prefix, local_subject = section.text("prefix"), section.text("to")
    share, allow_trace = bool(section.switch("share")), bool(section.switch("allow_trace"))
    section.finish()
    if (stream is None) == (service is None):
        section.error(None, "an import needs a stream or a service, and not both")
        return None
    source = stream or service
    assert source is not None
    if not isinstance(source.data, dict):
        section.error(source, f"an import needs {{account, subject}}, not {kind_of(source.data)}")
        return None
    inner = Section(source, section.problems)
    account, subject = inner.text("account"), inner.text("subject")
    inner.finish()
    if not account or not subject:
        section.error(source, "Expect an account name and a subject")
        return None
    if stream is not None and prefix and local_subject:
        section.error(
            section.node("to"), "Stream import can not have a 'prefix' and a 'to' property; remove one of them"
        )
    if stream is None and section.node("allow_trace") is not None:
        section.error(
            section.node("allow_trace"),
            "Detected allow_trace directive on a non-stream; set it on the export of the service",
        )
    if stream is not None and prefix:
        local_subject = f"{prefix.removesuffix('.')}.{subject}"
    return Import(
        account=account,
        subject=subject,
        local_subject=local_subject or subject,
        is_service=service is not None,
        share=share,
        allow_trace=allow_trace,
    )


def check_imports(section: Section, accounts: list[Account], system_account: str) -> None:
    """Report imports that accounts may not have, exports to accounts that are not there, or that cannot be measured."""
    node = section.node("accounts")
    by_name = {account.name: account for account in accounts}
    for account in accounts:
        check_latency(section, node, account, system_account)
        for export in account.exports:
            for name in export.accounts or ():
                if name not in by_name:
                    kind = "service" if export.is_service else "stream"
                    section.error(node, f'"{name}" account not defined for {kind} export; add it to accounts')
        for position, wanted in enumerate(account.imports):
            _check_import(section, node, account, wanted, by_name)
            _check_duplicate(section, node, wanted, account.imports[:position])


def _check_import(
    section: Section, node: ConfigurationNode | None, account: Account, wanted: Import, by_name: dict[str, Account]
) -> None:
    kind = "service" if wanted.is_service else "stream"
    exporter = by_name.get(wanted.account)
    if exporter is None:
        section.error(node, f'"{wanted.account}" account not defined for {kind} import; add it to accounts')
        return
    if not may_import(account.name, wanted, exporter.exports):
        section.error(
            node,
            f'Error adding {kind} import "{wanted.subject}": {kind} import not authorized; export it from '
            f'"{wanted.account}", to everybody or to "{account.name}"',
        )
    elif leads_back(account.name, wanted, by_name, frozenset()):
        section.error(node, f'Error adding {kind} import "{wanted.subject}": import forms a cycle; remove one of them')


def _check_duplicate(
    section: Section, node: ConfigurationNode | None, wanted: Import, before: tuple[Import, ...]
) -> None:
    other = find_duplicate(wanted, before)
    if other is None:
        return
    if wanted.is_service:
        section.error(
            node,
            f'Error adding service import "{wanted.subject}": duplicate service import subject '
            f'"{wanted.local_subject}", previously used in import for account "{other.account}", subject '
            f'"{other.subject}"',
        )
    else:
        section.error(
            node, f'Error adding stream import "{wanted.subject}": stream import already exists; remove one of them'
        )


def find_duplicate(wanted: Import, others: tuple[Import, ...]) -> Import | None:
    """Return the import that another one repeats: services by their subject here, streams by that over there."""

    def key(one: Import) -> tuple[bool, str, str]:
        return one.is_service, one.account, one.local_subject if one.is_service else one.subject

    return next((other for other in others if key(other) == key(wanted)), None)


def may_import(name: str, wanted: Import, exports: tuple[Export, ...]) -> bool:
    """Tell whether an account of this name may import that."""
    export = find_export(wanted, exports)
    if export is None:
        return False
    if export.account_token_position:
        tokens = wanted.subject.split(".")
        position = export.account_token_position - 1
        return position < len(tokens) and tokens[position] == name
    return export.accounts is None or name in export.accounts


def leads_back(name: str, wanted: Import, by_name: dict[str, Account], seen: frozenset[str]) -> bool:
    """Tell whether what an account imports comes back to it through others."""
    exporter = by_name.get(wanted.account)
    if exporter is None or exporter.name in seen:
        return False
    for further in exporter.imports:
        if further.is_service != wanted.is_service or not overlaps(further.local_subject, wanted.subject):
            continue
        if further.account == name or leads_back(name, further, by_name, seen | {exporter.name}):
            return True
    return False
