"""What is remembered of one device between two batches, and what events do to it.

No Spark here. `device_rows` makes the rows of tables of it. Events may come late, twice and in any order of versions;
every rule below goes by the event's own time and version:

- a session is known by its connection and when that began; it ends when its device says so, or when another connection
  takes its place, whichever is first
- the states of a twin are kept with their times, in order; the time spent in each is added up from them
- a command is known by its correlation id; its request and its confirmation are put together whichever comes first
- a link counts as its newest event says

Invariant: the same events give the same rows in any order, as long as no more than the limits below lie between two
events that belong together.
"""

from copy import copy
from dataclasses import dataclass, field
from typing import Any

import msgspec

SESSIONS_KEPT = 8
"""Per device: an event that comes more than this many connections late finds its session gone, and starts a new one."""

TRANSITIONS_KEPT = 64
"""Per twin of a connection: older ones are added up and forgotten."""

FINISHED_COMMANDS_KEPT = 32
"""Per device, to recognise a confirmation that comes twice."""

OPEN_COMMANDS_KEPT = 4096
"""Of a device; older ones stay open in the table."""

METADATA_HREF = "/plgd/s"
LINKS_HREF = "/plgd/res"
"""The hrefs by which the metadata and the links of a device are aggregates like its resources."""

METADATA_TYPES = frozenset(("devicemetadataupdated", "devicemetadatasnapshottaken"))
"""Events that say how a device is connected."""

NOBODY = "00000000-0000-0000-0000-000000000000"
"""The user in whose name a service ends the sessions of a gateway that died."""

OK_STATUSES = frozenset(("OK", "ACCEPTED", "CREATED", "NOT_MODIFIED"))
KINDS = ("create", "retrieve", "update", "delete")
PENDING = {f"resource{kind}pending": kind for kind in KINDS}
DONE = {f"resource{kind}d": kind for kind in KINDS}
"""Kinds of commands by the types of the events that request and confirm them."""


class DeviceEvent(msgspec.Struct, frozen=True):
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
    def is_snapshot(self) -> bool:
        return self.event_type.endswith("snapshottaken")

    @property
    def order(self) -> tuple[int, int]:
        return self.event_ns, self.version


class TwinTransition(msgspec.Struct, frozen=True, order=True, array_like=True):
    """A state of a twin, and since when."""

    event_ns: int
    version: int
    state: str
    syncing_at_ns: int = 0
    in_sync_at_ns: int = 0
    forced_at_ns: int = 0
    is_enabled: bool = True


class DeviceSession(msgspec.Struct, array_like=True):
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
    transitions: list[TwinTransition] = []
    # Of transitions that are forgotten, by state.
    spent_ns: dict[str, int] = {}
    first_in_sync_ns: int = 0
    forced: list[int] = []


class DeviceCommand(msgspec.Struct, array_like=True):
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


class DeviceLink(msgspec.Struct, array_like=True):
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
    sessions: list[DeviceSession] = []
    commands: dict[str, DeviceCommand] = {}
    # Ends of metadata updates whose request was not seen: their events say nothing about what they end.
    metadata_ends: dict[str, tuple[int, str]] = {}
    links: dict[str, DeviceLink] = {}


@dataclass
class Touched:
    """What events have touched of a state, as it was before: looking at the rest of a device would cost more."""

    commands: dict[str, DeviceCommand | None] = field(default_factory=dict)
    links: dict[str, DeviceLink | None] = field(default_factory=dict)

    def changed_commands(self, state: DeviceState) -> list[DeviceCommand]:
        return [state.commands[key] for key, before in self.commands.items() if state.commands[key] != before]

    def changed_links(self, state: DeviceState) -> list[DeviceLink]:
        return [state.links[href] for href, before in self.links.items() if state.links[href] != before]


def apply(state: DeviceState, event: DeviceEvent, touched: Touched) -> None:
    """Take one event into the state."""
    kind = event.event_type
    if event.version < 0:
        return
    if kind.startswith("resourcelinks"):
        apply_links(state, event, touched)
    elif kind in METADATA_TYPES:
        apply_metadata(state, event, touched)
    elif kind == "devicemetadataupdatepending":
        request(state, event, touched, "metadata", METADATA_HREF)
    elif kind in PENDING:
        request(state, event, touched, PENDING[kind], event.href)
    elif kind in DONE:
        command = command_of(state, event, touched, DONE[kind], event.href)
        finish(command, event.event_ns, event.status, event.origin_id)


# Sessions and twins.


def apply_metadata(state: DeviceState, event: DeviceEvent, touched: Touched) -> None:
    """Take an event that says how a device is connected and how far its twin is."""
    if event.correlation_id and event.event_type == "devicemetadataupdated":
        end_metadata(state, event, touched)
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


def find_session(state: DeviceState, event: DeviceEvent) -> DeviceSession | None:
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
    session = DeviceSession(event.connection_id, started_ns)
    state.sessions.append(session)
    state.sessions.sort(key=lambda each: (each.started_ns, each.connection_id))
    return session


def add_transition(session: DeviceSession, event: DeviceEvent) -> None:
    """Keep a state of the twin in the order of time."""
    made = TwinTransition(
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


def command_of(state: DeviceState, event: DeviceEvent, touched: Touched, kind: str, href: str) -> DeviceCommand:
    """Return the command an event is about."""
    key = f"{event.aggregate_id}/{event.correlation_id}"
    command = state.commands.get(key)
    if key not in touched.commands:
        touched.commands[key] = copy(command)
    if command is None:
        command = state.commands[key] = DeviceCommand(event.aggregate_id, event.correlation_id, href, kind)
    return command


def request(state: DeviceState, event: DeviceEvent, touched: Touched, kind: str, href: str) -> None:
    """Take the request of a command."""
    command = command_of(state, event, touched, kind, href)
    if not command.requested_ns or event.event_ns < command.requested_ns:
        command.requested_ns = event.event_ns
        command.valid_until_ns = event.valid_until_ns
        command.requester, command.owner = event.user_id, event.owner
    if kind == "metadata" and event.correlation_id in state.metadata_ends:
        finish(command, *state.metadata_ends.pop(event.correlation_id), responder="")


def finish(command: DeviceCommand, event_ns: int, status: str, responder: str) -> None:
    """Take the confirmation of a command; the first one counts."""
    if not command.finished_ns or event_ns < command.finished_ns:
        command.finished_ns, command.status, command.responder = event_ns, status, responder


def end_metadata(state: DeviceState, event: DeviceEvent, touched: Touched) -> None:
    """Apply the end of a metadata update, if it is one: a device that connects may give a correlation id, too."""
    status = "CANCELED" if event.is_canceled else "OK"
    if f"{event.aggregate_id}/{event.correlation_id}" in state.commands:
        command = command_of(state, event, touched, "metadata", METADATA_HREF)
        finish(command, event.event_ns, status, event.origin_id)
    else:
        state.metadata_ends[event.correlation_id] = (event.event_ns, status)


# Links.


def apply_links(state: DeviceState, event: DeviceEvent, touched: Touched) -> None:
    """Take what was published or unpublished; a snapshot has all links there are."""
    for details in event.links:
        put_link(state, event, touched, str(details["href"]), details)
    for href in event.unpublished:
        put_link(state, event, touched, href, None)
    if event.event_type == "resourcelinkssnapshottaken":
        there = {str(details["href"]) for details in event.links}
        for href in [href for href in state.links if href not in there]:
            put_link(state, event, touched, href, None)


def put_link(
    state: DeviceState, event: DeviceEvent, touched: Touched, href: str, details: dict[str, Any] | None
) -> None:
    link = state.links.get(href)
    if href not in touched.links:
        touched.links[href] = copy(link)
    if link is None:
        link = state.links[href] = DeviceLink(href, event.event_ns, event.event_ns, event.version)
    elif event.event_type != "resourcelinkssnapshottaken" or details is None:
        if event.event_ns < link.first_ns and details is not None:
            link.first_ns = event.event_ns
        if event.order < (link.last_ns, link.version):
            return
        if details is None and link.unpublished_ns:
            return
        link.last_ns, link.version = event.event_ns, event.version
    else:
        # A snapshot says what is there; it does not publish a link.
        if event.order < (link.last_ns, link.version):
            return
    link.unpublished_ns = event.event_ns if details is None else 0
    link.details = details if details is not None else link.details


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
    if len(state.commands) > FINISHED_COMMANDS_KEPT:
        trim_commands(state)
    for name in list(state.metadata_ends)[:-FINISHED_COMMANDS_KEPT]:
        del state.metadata_ends[name]


def trim_commands(state: DeviceState) -> None:
    finished = sorted((each.finished_ns, name) for name, each in state.commands.items() if each.finished_ns)
    for _, name in finished[:-FINISHED_COMMANDS_KEPT]:
        del state.commands[name]
    pending = sorted((each.requested_ns, name) for name, each in state.commands.items() if not each.finished_ns)
    for _, name in pending[:-OPEN_COMMANDS_KEPT]:
        del state.commands[name]
