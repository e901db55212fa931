"""Exports and imports: what an account offers to others, and what it uses of theirs.

An account that exports a stream publishes messages for others; one that exports a service answers requests of others.
"""

import msgspec

from jetlake.config import EngineImports, EngineLatency, EngineServiceImport, EngineStreamImport

RESPONSE_TIMEOUT_MS = 120_000
"""How long a service may take to answer, unless its export says otherwise: as on nats-server."""

ONE, STREAM, CHUNKED = "one", "stream", "chunked"
"""How many answers a request to a service has; of those in chunks, an empty one is the last."""


class LatencyReports(msgspec.Struct, frozen=True, kw_only=True):
    """Where events about the duration of requests go, and for how many of a hundred requests."""

    subject: str
    # 0 = only those whose tracing headers ask for it.
    sampling_percent: int = 100


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """Subjects that other accounts may import."""

    subject: str
    is_service: bool
    # Who may; None = everybody.
    accounts: tuple[str, ...] | None = None
    # The token that must be the name of the account that imports; 0 = none.
    account_token_position: int = 0
    responses: str = ONE
    response_timeout_ms: int = RESPONSE_TIMEOUT_MS
    # None = the duration of requests is not published.
    latency: LatencyReports | None = None
    # Traces show what happens to the requests in this account.
    allow_trace: bool = False


class Import(msgspec.Struct, frozen=True, kw_only=True):
    """Subjects of another account, and what they are called here."""

    account: str
    subject: str
    local_subject: str
    is_service: bool
    # The service learns which client asks, and not only its account.
    share: bool = False
    # Traces show what happens to the messages in this account.
    allow_trace: bool = False


def for_engine(imports: tuple[Import, ...], exports: dict[str, tuple[Export, ...]]) -> EngineImports:
    """Return the imports of one account; `exports` are those of all accounts, by name."""
    return EngineImports(
        streams=tuple(
            EngineStreamImport(
                account=one.account, source=one.subject, to=one.local_subject, allow_trace=one.allow_trace
            )
            for one in imports
            if not one.is_service
        ),
        services=tuple(_service(one, exports.get(one.account, ())) for one in imports if one.is_service),
    )


def _service(wanted: Import, exports: tuple[Export, ...]) -> EngineServiceImport:
    export = find_export(wanted, exports)
    return EngineServiceImport(
        account=wanted.account,
        source=wanted.local_subject,
        to=wanted.subject,
        export=export.subject if export else "",
        responses=export.responses if export else ONE,
        response_timeout_ms=export.response_timeout_ms if export else RESPONSE_TIMEOUT_MS,
        share=wanted.share,
        allow_trace=export is not None and export.allow_trace,
        latency=None
        if export is None or export.latency is None
        else EngineLatency(subject=export.latency.subject, sampling_percent=export.latency.sampling_percent),
    )


def find_export(wanted: Import, exports: tuple[Export, ...]) -> Export | None:
    """Return the export that an import is of: that of the same subject, else the first that includes it."""
    same_kind = [export for export in exports if export.is_service == wanted.is_service]
    exact = [export for export in same_kind if export.subject == wanted.subject]
    including = [export for export in same_kind if includes(export.subject, wanted.subject)]
    return next(iter([*exact, *including]), None)


def includes(pattern: str, subject: str) -> bool:
    """Tell whether everything that matches `subject`, which may be a pattern, also matches `pattern`."""
    wanted, tokens = subject.split("."), pattern.split(".")
    for position, part in enumerate(tokens):
        if part == ">":
            return len(wanted) > position
        if position >= len(wanted) or wanted[position] == ">":
            return False
        if part not in ("*", wanted[position]):
            return False
    return len(wanted) == len(tokens)


def overlaps(one: str, other: str) -> bool:
    """Tell whether a subject could match both."""
    tokens, others = one.split("."), other.split(".")
    for position in range(max(len(tokens), len(others))):
        pair = (tokens[position : position + 1], others[position : position + 1])
        if [">"] in pair:
            return bool(pair[0] and pair[1])
        if not (pair[0] and pair[1]) or ("*" not in (*pair[0], *pair[1]) and pair[0] != pair[1]):
            return False
    return True
