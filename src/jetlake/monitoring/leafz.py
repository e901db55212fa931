"""`/leafz`: the connections to hubs and of leaf nodes. With `remotes=1` also how each configured hub stands.

`remotes` is not one of nats-server's keys: without it the page is as there.

Invariant: nothing here shows what a server logs in with; the URLs of remotes are without it.
"""

import msgspec

from jetlake.monitoring.parameters import QueryParameters
from jetlake.monitoring.readings import MonitoredServer
from jetlake.shared.engine_reports import LeafLink, LeafRemoteState
from jetlake.shared.go_text import duration_text, time_text


class LeafzOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted; the fields are those of a `$SYS.REQ.SERVER.*.LEAFZ` request."""

    subscriptions: bool = False
    account: str = ""
    remotes: bool = False


class LeafEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One connection; the fields are the keys of the page."""

    id: int
    name: str
    is_spoke: bool
    is_isolated: bool = False
    account: str
    ip: str
    port: int
    rtt: str
    in_msgs: int
    out_msgs: int
    in_bytes: int
    out_bytes: int
    subscriptions: int
    subscriptions_list: list[str] = []
    compression: str = ""


class LeafRemoteEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One configured hub."""

    account: str
    urls: list[str]
    connected: bool
    # Of the connection in `leafs`; 0 = there is none.
    id: int = 0
    # Since the start.
    attempts: int
    last_error: str = ""
    # When it was connected to, or lost, or an attempt failed.
    changed: str
    # In nanoseconds.
    retry_in: int = 0
    pending_bytes: int


class Leafz(msgspec.Struct, kw_only=True):
    """The page."""

    server_id: str
    now: str
    leafnodes: int
    leafs: list[LeafEntry]
    remotes: list[LeafRemoteEntry] | msgspec.UnsetType = msgspec.UNSET


def options_of(parameters: QueryParameters) -> LeafzOptions:
    """Return the options that the parameters of the page ask for. Raises `PageError`."""
    return LeafzOptions(
        subscriptions=parameters.boolean("subs"),
        account=parameters.text("acc"),
        remotes=parameters.boolean("remotes"),
    )


def build(source: MonitoredServer, options: LeafzOptions) -> Leafz:
    """Return the page."""
    links = [link for link in source.leaf_links() if options.account in ("", link.account)]
    entries = [_entry(link) for link in links]
    if options.subscriptions:
        for link, entry in zip(links, entries, strict=True):
            entry.subscriptions_list = source.leaf_interest(link)
    page = Leafz(
        server_id=source.facts.server_id,
        now=time_text(source.now_unix_ns()),
        leafnodes=len(entries),
        leafs=entries,
    )
    if options.remotes:
        states = source.leaf_remotes()
        page.remotes = [_remote_entry(state) for state in states if options.account in ("", state.account)]
    return page


def _entry(link: LeafLink) -> LeafEntry:
    return LeafEntry(
        id=link.id,
        name=link.name,
        is_spoke=link.is_spoke,
        is_isolated=link.is_isolated,
        account=link.account,
        ip=link.ip,
        port=link.port,
        rtt=duration_text(link.round_trip_ns),
        in_msgs=link.in_messages,
        out_msgs=link.out_messages,
        in_bytes=link.in_bytes,
        out_bytes=link.out_bytes,
        subscriptions=link.subscriptions,
        compression=link.compression,
    )


def _remote_entry(state: LeafRemoteState) -> LeafRemoteEntry:
    return LeafRemoteEntry(
        account=state.account,
        urls=state.urls,
        connected=state.is_connected,
        id=state.link_id if state.is_connected else 0,
        attempts=state.attempts,
        last_error=state.last_error,
        changed=time_text(state.changed_unix_ns),
        retry_in=state.retry_in_ms * 1_000_000,
        pending_bytes=state.pending_bytes,
    )
