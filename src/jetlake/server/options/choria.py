"""What a server does for Choria: streams of its own, adapters beside it, lifecycle events."""

from typing import Any

import msgspec

from jetlake.choria.streams import StreamRetention

COMPONENT = "broker"
"""What a server is called in lifecycle events unless the configuration says otherwise."""


class ChoriaOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The block `choria`. Everything of it concerns one account."""

    account: str = ""
    identity: str = ""
    component: str = COMPONENT
    # The streams to make; None = none.
    streams: StreamRetention | None = None
    lifecycle_events: bool = True
    # Before 2020 events were not CloudEvents.
    raw_events: bool = False
    # As the file has them; `jetlake adapter run` checks and runs them in a process of its own.
    adapters: dict[str, Any] = {}
    metrics_port: int | None = None
    # How the adapters connect; this server if there is no address.
    connection: dict[str, Any] = {}
