"""What accounts show to each other and make of subjects, as `/accountz` tells it.

The fields are the keys of the page; their order and their words are nats-server's.
"""

import msgspec


class ShownLatency(msgspec.Struct, frozen=True, kw_only=True):
    """Where latency events of a service go, and for how many of a hundred requests, or those with tracing headers."""

    sampling: int | str
    results: str


class ShownExport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Subjects that other accounts may import."""

    subject: str
    type: str
    response_type: str = ""
    service_latency: ShownLatency | None = None
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
    latency: ShownLatency | None = None


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
