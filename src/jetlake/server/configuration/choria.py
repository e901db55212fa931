"""The block `choria`: streams out of the box, adapters, lifecycle events.

```text
choria {
  streams { event_retention: "24h", advisory_retention: "168h" }     # or just: streams: true
  adapters { node_data { type: jetstream, ingest { … }, stream { … } } }
}
```
"""

from typing import Any

from jetlake.choria.streams import StreamRetention
from jetlake.server.addresses import PORT_MAX
from jetlake.server.configuration.document import kind_of, plain
from jetlake.server.configuration.section import Section
from jetlake.server.options.accounts import AccessOptions
from jetlake.server.options.choria import COMPONENT, ChoriaOptions
from jetlake.server.options.users import GLOBAL_ACCOUNT
from jetlake.shared.durations import duration_ns

RETENTION_KEYS = (
    "event_retention",
    "machine_retention",
    "advisory_retention",
    "leader_election_ttl",
    "executor_retention",
)

REPLICAS_KEYS = (
    "event_replicas",
    "machine_replicas",
    "advisory_replicas",
    "leader_election_replicas",
    "executor_replicas",
)

CONNECTION_TEXTS = ("server", "user", "password", "token")

CONNECTION_FILES = ("credentials", "nkey", "tls_ca", "tls_certificate", "tls_key")

AGE_LENGTH_MAX = 64
"""Characters of a time: it would be longer than the universe is old before it took as many."""

NANOSECONDS_PER_SECOND = 1_000_000_000


def read_choria(section: Section, access: AccessOptions) -> ChoriaOptions | None:
    """Return what a file says; None = there is no such block."""
    inner = section.section("choria")
    if inner is None:
        return None
    streams = _read_streams(inner)
    adapters: dict[str, Any] = {}
    node = inner.node("adapters")
    if node is not None:
        if isinstance(node.data, dict):
            adapters = plain(node)
        else:
            inner.error(node, f'"adapters" must be a map of adapters by name, not {kind_of(node.data)}')
    connection: dict[str, Any] = {key: inner.text(key) for key in CONNECTION_TEXTS}
    connection |= {key: inner.path(key) for key in CONNECTION_FILES}
    connection["tls_first"] = inner.switch("tls_first")
    options = ChoriaOptions(
        account=_read_account(inner, access),
        identity=inner.text("identity") or "",
        component=inner.text("component") or COMPONENT,
        streams=streams,
        lifecycle_events=inner.switch("lifecycle_events") is not False,
        raw_events=bool(inner.switch("legacy_lifecycle_format")),
        adapters=adapters,
        metrics_port=inner.integer("metrics_port", lowest=0, highest=PORT_MAX),
        connection={key: value for key, value in connection.items() if value},
    )
    inner.finish()
    return options


def _read_streams(section: Section) -> StreamRetention | None:
    node = section.node("streams")
    if node is None or node.data is False:
        return None
    if node.data is True:
        return StreamRetention()
    inner = section.section("streams")
    if inner is None:
        return None
    ages = {}
    for key in RETENTION_KEYS:
        seconds = _read_age(inner, key)
        if seconds is not None:
            ages[key] = max(seconds, 0.0)
    for key in REPLICAS_KEYS:
        replicas = inner.integer(key)
        if replicas not in (None, 1, -1):
            inner.error(inner.node(key), f'"{key}" is {replicas}: a single server keeps one copy; write 1')
    managed = inner.switch("manage_streams")
    inner.finish()
    return None if managed is False else StreamRetention(**ages)


def _read_age(section: Section, key: str) -> float | None:
    """Return a time in seconds: a number, or text with the units of Choria's files, days and weeks among them."""
    node = section.node(key)
    if node is None or not isinstance(node.data, str):
        return section.seconds(key)
    nanoseconds = duration_ns(node.data) if len(node.data) <= AGE_LENGTH_MAX else None
    if nanoseconds is None:
        section.error(node, f'"{key}" is {node.data!r}: write a time such as 24h or 30d')
        return None
    return section.bounded(node, key, nanoseconds / NANOSECONDS_PER_SECOND)


def _read_account(section: Section, access: AccessOptions) -> str:
    name = section.text("account")
    names = access.account_names()
    if name is not None and name not in names:
        section.error(section.node("account"), f'"account" is {name!r}: there is no such account')
    if name is None and access.accounts and GLOBAL_ACCOUNT not in [account.name for account in access.accounts]:
        able = [account.name for account in access.accounts if account.jetstream is not None]
        if len(able) != 1:
            section.error(None, '"choria" needs an "account": say whose streams and events these are')
            return ""
        return able[0]
    return name or GLOBAL_ACCOUNT
