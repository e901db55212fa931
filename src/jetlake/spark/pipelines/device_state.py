"""What is remembered of one device between two batches, and the rows that change when events of it come.

No Spark here: `fold` takes a state and events and returns rows, so it is tested like any function. Events may come
late, twice and in any order of versions; every rule below goes by the event's own time and version:

- a session is known by its connection and when that began; it ends when its device says so, or when another connection
  takes its place, whichever is first
- the states of a twin are kept with their times, in order; the time spent in each is added up from them
- a command is known by its correlation id; its request and its confirmation are put together whichever comes first
- a link counts as its newest event says

Invariant: the same events give the same rows in any order, as long as no more than the limits below lie between two
events that belong together.
"""

from typing import Any

import msgspec

SESSIONS_KEPT = 8
"""Of a device: an event that is later than this many connections finds its session gone, and starts it anew."""

TRANSITIONS_KEPT = 64
"""Of a connection's twin: older ones are added up and forgotten."""

FINISHED_COMMANDS_KEPT = 32
"""Of a device, to recognise a confirmation that comes twice."""

OPEN_COMMANDS_KEPT = 4096
"""Of a device; older ones stay open in the table."""

METADATA_HREF = "/plgd/s"
NOBODY = "00000000-0000-0000-0000-000000000000"
"""The user in whose name a service ends the sessions of a gateway that died."""

OK_STATUSES = frozenset(("OK", "ACCEPTED", "CREATED", "NOT_MODIFIED"))
KINDS = ("create", "retrieve", "update", "delete")


class DeviceEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event, with the fields that matter here."""

    event_type: str
    aggregate_id: str = ""
    href: str = ""
    version: int = -1
    event_ns: int = 0
    user_id: str = ""
    correlation_id: str = ""
    owner: str = ""
    origin_id: str = ""
    status: str = ""
    valid_until_ns: int = 0
    is_online: bool = False
    connection_id: str = ""
    connected_at_ns: int = 0
    online_until_ns: int = 0
    protocol: str = ""
    service_id: str = ""
    local_endpoints: tuple[str, ...] = ()
    twin_state: str = ""
    syncing_at_ns: int = 0
    in_sync_at_ns: int = 0
    forced_at_ns: int = 0
    is_twin_enabled: bool = False
    is_canceled: bool = False
    links: tuple[dict[str, Any], ...] = ()
    unpublished: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[int, int]:
        return self.event_ns, self.version


class Transition(msgspec.Struct, frozen=True, order=True, array_like=True):
    """A state of a twin, and since when."""

    event_ns: int
    version: int
    state: str
    syncing_at_ns: int = 0
    in_sync_at_ns: int = 0
    forced_at_ns: int = 0
    is_enabled: bool = True


class Session(msgspec.Struct, array_like=True):
    """One connection of the device."""

    connection_id: str
    started_ns: int
    # When the device, or a service in its place, said that it is over; 0 if nobody has.
    ended_ns: int = 0
    is_ended_by_service: bool = False
    protocol: str = ""
    service_id: str = ""
    local_endpoints: tuple[str, ...] = ()
    online_until_ns: int = 0
    transitions: list[Transition] = []
    # Of transitions that are forgotten, by state.
    spent_ns: dict[str, int] = {}
    first_in_sync_ns: int = 0
    forced: list[int] = []


class Command(msgspec.Struct, array_like=True):
    """One command, as far as it is known."""

    aggregate_id: str
    correlation_id: str
    href: str
    kind: str
    requested_ns: int = 0
    valid_until_ns: int = 0
    requester: str = ""
    owner: str = ""
    finished_ns: int = 0
    status: str = ""
    responder: str = ""


class Link(msgspec.Struct, array_like=True):
    """One link, as its newest event says."""

    href: str
    first_ns: int
    last_ns: int
    version: int
    unpublished_ns: int = 0
    details: dict[str, Any] = {}


class DeviceState(msgspec.Struct, array_like=True):
    """Everything that is remembered of one device."""

    # Grows with each batch that changes a row: of two rows with one key the newer one has the higher revision.
    revision: int = 0
    sessions: list[Session] = []
    commands: dict[str, Command] = {}
    # Ends of metadata updates whose request was not seen: their events say nothing about what they end.
    metadata_ends: dict[str, tuple[int, str]] = {}
    links: dict[str, Link] = {}


class Row(msgspec.Struct, frozen=True):
    """One row of one table."""

    table: str
    values: dict[str, Any]


def fold(state: DeviceState, device_id: str, events: list[DeviceEvent]) -> list[Row]:
    """Take events into the state and return the rows that are new or have changed."""
    before = rows_of(state, device_id)
    for event in events:
        apply(state, event)
    after = rows_of(state, device_id)
    changed = [values for key, values in after.items() if before.get(key) != values]
    if changed:
        state.revision += 1
    trim(state)
    return [Row(row.table, {**row.values, "revision": state.revision}) for row in changed]


def apply(state: DeviceState, event: DeviceEvent) -> None:
    """Take one event into the state."""
    kind = event.event_type
    if event.version < 0:
        return
    if kind.startswith("resourcelinks"):
        apply_links(state, event)
    elif kind in ("devicemetadataupdated", "devicemetadatasnapshottaken"):
        apply_metadata(state, event)
    elif kind == "devicemetadataupdatepending":
        request(state, event, "metadata", METADATA_HREF)
    elif kind.endswith("pending"):
        request(state, event, kind.removeprefix("resource").removesuffix("pending"), event.href)
    elif kind.startswith("resource"):
        done = next((each for each in KINDS if kind == f"resource{each}d"), "")
        if done:
            finish(command_of(state, event, done, event.href), event.event_ns, event.status, event.origin_id)


# Sessions and twins.


def apply_metadata(state: DeviceState, event: DeviceEvent) -> None:
    """Take an event that says how a device is connected and how far its twin is."""
    if event.correlation_id and event.event_type == "devicemetadataupdated":
        end_metadata(state, event)
    session = find_session(state, event)
    if session is None:
        return
    session.protocol = event.protocol or session.protocol
    session.service_id = event.service_id or session.service_id
    session.local_endpoints = event.local_endpoints or session.local_endpoints
    session.online_until_ns = max(session.online_until_ns, event.online_until_ns)
    if not event.is_online and (not session.ended_ns or event.event_ns < session.ended_ns):
        session.ended_ns = event.event_ns
        session.is_ended_by_service = event.user_id == NOBODY
    if event.twin_state:
        add_transition(session, event)


def find_session(state: DeviceState, event: DeviceEvent) -> Session | None:
    """Return the session an event belongs to, a new one if there is none; None if it is about no connection."""
    started_ns = event.connected_at_ns
    if started_ns:
        for session in state.sessions:
            if session.connection_id == event.connection_id and session.started_ns == started_ns:
                return session
    else:
        # Of 2021, or of a gateway that does not say when: it is the connection that was there at that time.
        there = [
            session
            for session in state.sessions
            if session.connection_id == event.connection_id
            and session.started_ns <= event.event_ns
            and (not session.ended_ns or event.event_ns <= session.ended_ns)
            and (not session.online_until_ns or event.event_ns <= session.online_until_ns)
        ]
        if there:
            return there[-1]
        if not event.is_online:
            return None
        started_ns = event.event_ns
    session = Session(event.connection_id, started_ns)
    state.sessions.append(session)
    state.sessions.sort(key=lambda each: (each.started_ns, each.connection_id))
    return session


def add_transition(session: Session, event: DeviceEvent) -> None:
    """Keep a state of the twin in the order of time."""
    made = Transition(
        *event.order,
        event.twin_state,
        event.syncing_at_ns,
        event.in_sync_at_ns,
        event.forced_at_ns,
        event.is_twin_enabled,
    )
    if made in session.transitions:
        return
    session.transitions.append(made)
    session.transitions.sort()
    if made.in_sync_at_ns and (not session.first_in_sync_ns or made.in_sync_at_ns < session.first_in_sync_ns):
        session.first_in_sync_ns = made.in_sync_at_ns
    if made.forced_at_ns and made.forced_at_ns not in session.forced:
        session.forced.append(made.forced_at_ns)


# Commands.


def command_of(state: DeviceState, event: DeviceEvent, kind: str, href: str) -> Command:
    """Return the command an event is about."""
    key = f"{event.aggregate_id}/{event.correlation_id}"
    if key not in state.commands:
        state.commands[key] = Command(event.aggregate_id, event.correlation_id, href, kind)
    return state.commands[key]


def request(state: DeviceState, event: DeviceEvent, kind: str, href: str) -> None:
    """Take the request of a command."""
    command = command_of(state, event, kind, href)
    if not command.requested_ns or event.event_ns < command.requested_ns:
        command.requested_ns = event.event_ns
        command.valid_until_ns = event.valid_until_ns
        command.requester, command.owner = event.user_id, event.owner
    if kind == "metadata" and event.correlation_id in state.metadata_ends:
        finish(command, *state.metadata_ends.pop(event.correlation_id), responder="")


def finish(command: Command, event_ns: int, status: str, responder: str) -> None:
    """Take the confirmation of a command; the first one counts."""
    if not command.finished_ns or event_ns < command.finished_ns:
        command.finished_ns, command.status, command.responder = event_ns, status, responder


def end_metadata(state: DeviceState, event: DeviceEvent) -> None:
    """Take the end of a metadata update, if it is one: who connects may give a correlation id, too."""
    status = "CANCELED" if event.is_canceled else "OK"
    command = state.commands.get(f"{event.aggregate_id}/{event.correlation_id}")
    if command is not None:
        finish(command, event.event_ns, status, event.origin_id)
    else:
        state.metadata_ends[event.correlation_id] = (event.event_ns, status)


# Links.


def apply_links(state: DeviceState, event: DeviceEvent) -> None:
    """Take what was published or unpublished; a snapshot has all links there are."""
    for details in event.links:
        put_link(state, event, str(details["href"]), details)
    for href in event.unpublished:
        put_link(state, event, href, None)
    if event.event_type == "resourcelinkssnapshottaken":
        there = {str(details["href"]) for details in event.links}
        for href in [href for href in state.links if href not in there]:
            put_link(state, event, href, None)


def put_link(state: DeviceState, event: DeviceEvent, href: str, details: dict[str, Any] | None) -> None:
    link = state.links.get(href)
    if link is None:
        link = state.links[href] = Link(href, event.event_ns, event.event_ns, event.version)
    elif event.event_type != "resourcelinkssnapshottaken" or details is None:
        if event.event_ns < link.first_ns and details is not None:
            link.first_ns = event.event_ns
        if event.order < (link.last_ns, link.version):
            return
        if details is None and link.unpublished_ns:
            return
        link.last_ns, link.version = event.event_ns, event.version
    else:
        # A snapshot says what is there; it is no publication.
        if event.order < (link.last_ns, link.version):
            return
    link.unpublished_ns = event.event_ns if details is None else 0
    link.details = details if details is not None else link.details


# Rows.


def rows_of(state: DeviceState, device_id: str) -> dict[tuple[str, ...], Row]:
    """Return the rows of everything that is remembered, by table and key."""
    found: dict[tuple[str, ...], Row] = {}
    following: list[Session | None] = [*state.sessions[1:], None]
    for session, following_session in zip(state.sessions, following, strict=False):
        key = (session.connection_id, str(session.started_ns))
        ended_ns, ended_by = end_of(session, following_session)
        found["session", *key] = Row("sessions", session_row(device_id, session, ended_ns, ended_by))
        if session.transitions:
            found["twin", *key] = Row("twins", twin_row(device_id, session, ended_ns))
    for name, command in state.commands.items():
        found["command", name] = Row("commands", command_row(device_id, command))
    for href, link in state.links.items():
        found["link", href] = Row("links", link_row(device_id, link))
    return found


def end_of(session: Session, following: Session | None) -> tuple[int, str]:
    """Return when and by whom a session was ended; 0 if it goes on."""
    if following is not None and (not session.ended_ns or following.started_ns < session.ended_ns):
        return following.started_ns, "takeover"
    if session.ended_ns:
        return session.ended_ns, "service" if session.is_ended_by_service else "offline"
    return 0, ""


def session_row(device_id: str, session: Session, ended_ns: int, ended_by: str) -> dict[str, Any]:
    return {
        "device_id": device_id,
        "connection_id": session.connection_id,
        "started_at": micros(session.started_ns),
        "ended_at": micros(ended_ns),
        "ended_by": ended_by or None,
        "is_open": not ended_ns,
        "seconds": seconds(session.started_ns, ended_ns),
        "online_until": micros(session.online_until_ns),
        "protocol": session.protocol,
        "service_id": session.service_id,
        "local_endpoints": session.local_endpoints,
    }


def twin_row(device_id: str, session: Session, ended_ns: int) -> dict[str, Any]:
    last = session.transitions[-1]
    spent = dict(session.spent_ns)
    for index, each in enumerate(session.transitions):
        until = session.transitions[index + 1].event_ns if index + 1 < len(session.transitions) else ended_ns
        spent[each.state] = spent.get(each.state, 0) + max(0, (until or each.event_ns) - each.event_ns)
    synced = next((each for each in reversed(session.transitions) if each.in_sync_at_ns), None)
    return {
        "device_id": device_id,
        "connection_id": session.connection_id,
        "started_at": micros(session.started_ns),
        "state": last.state,
        "is_enabled": last.is_enabled,
        "is_open": not ended_ns,
        "syncing_at": micros(synced.syncing_at_ns if synced else last.syncing_at_ns),
        "in_sync_at": micros(synced.in_sync_at_ns if synced else 0),
        "sync_seconds": seconds(synced.syncing_at_ns, synced.in_sync_at_ns) if synced else None,
        "seconds_to_in_sync": seconds(session.started_ns, session.first_in_sync_ns),
        "forced_syncs": len(session.forced),
        "out_of_sync_seconds": spent.get("OUT_OF_SYNC", 0) / 1e9,
        "syncing_seconds": spent.get("SYNCING", 0) / 1e9,
        "in_sync_seconds": spent.get("IN_SYNC", 0) / 1e9,
        "changed_at": micros(last.event_ns),
    }


def command_row(device_id: str, command: Command) -> dict[str, Any]:
    is_late = bool(command.valid_until_ns and command.finished_ns > command.valid_until_ns)
    return {
        "device_id": device_id,
        "href": command.href,
        "aggregate_id": command.aggregate_id,
        "correlation_id": command.correlation_id,
        "kind": command.kind,
        "requested_at": micros(command.requested_ns),
        "valid_until": micros(command.valid_until_ns),
        "finished_at": micros(command.finished_ns),
        "latency_ms": None if not command.requested_ns or not command.finished_ns else latency_ms(command),
        "outcome": outcome_of(command),
        "status": command.status or None,
        "is_late": is_late,
        "requester": command.requester,
        "owner": command.owner,
        "responder": command.responder,
        # A row that knows both ends is never replaced by one that lost sight of its beginning.
        "known_ends": bool(command.requested_ns) + bool(command.finished_ns),
    }


def outcome_of(command: Command) -> str:
    if not command.finished_ns:
        return "open"
    if command.status == "CANCELED":
        return "canceled"
    return "ok" if command.status in OK_STATUSES else "error"


def latency_ms(command: Command) -> float:
    return (command.finished_ns - command.requested_ns) / 1e6


def link_row(device_id: str, link: Link) -> dict[str, Any]:
    return {
        "device_id": device_id,
        "href": link.href,
        "resource_types": link.details.get("resource_types", ()),
        "interfaces": link.details.get("interfaces", ()),
        "title": link.details.get("title", ""),
        "policy": link.details.get("policy", 0),
        "endpoints": link.details.get("endpoints", ()),
        "first_published_at": micros(link.first_ns),
        "last_changed_at": micros(link.last_ns),
        "unpublished_at": micros(link.unpublished_ns),
        "is_published": not link.unpublished_ns,
    }


def micros(nanoseconds: int) -> int | None:
    """Return a time in microseconds, as tables have it; None if there is none."""
    return nanoseconds // 1000 if nanoseconds else None


def seconds(from_ns: int, to_ns: int) -> float | None:
    return (to_ns - from_ns) / 1e9 if from_ns and to_ns else None


# Limits.


def trim(state: DeviceState) -> None:
    """Forget what is older than the limits."""
    del state.sessions[:-SESSIONS_KEPT]
    for session in state.sessions:
        while len(session.transitions) > TRANSITIONS_KEPT:
            oldest = session.transitions.pop(0)
            spent = session.transitions[0].event_ns - oldest.event_ns
            session.spent_ns[oldest.state] = session.spent_ns.get(oldest.state, 0) + spent
        del session.forced[:-TRANSITIONS_KEPT]
    finished = sorted((each.finished_ns, name) for name, each in state.commands.items() if each.finished_ns)
    for _, name in finished[:-FINISHED_COMMANDS_KEPT]:
        del state.commands[name]
    pending = sorted((each.requested_ns, name) for name, each in state.commands.items() if not each.finished_ns)
    for _, name in pending[:-OPEN_COMMANDS_KEPT]:
        del state.commands[name]
    for name in list(state.metadata_ends)[:-FINISHED_COMMANDS_KEPT]:
        del state.metadata_ends[name]
