"""The state of many nodes over a batch: events in, changed rows out. No Spark, no clock.

Rows leave in slots, the same for every kind of row, because what leaves Spark's state has one schema; `tables` gives
the slots their names. A registration is decoded here, and only where its inventory differs from the one that is known.

Invariant: the same events in any order, and in any division into batches, lead to the same rows of every key, as long
as none comes later than allowed. One exception: a session that was lost ends with the last word before the next start,
and if that start comes late, with the start.
"""

import zlib
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import msgspec

from jetlake.choria.documents import OutputDocument
from jetlake.choria.envelopes import EnvelopeError, Received, parse
from jetlake.choria.registration import content_of
from jetlake.spark.pipelines.fleet.nodes import SHUTDOWN, STARTUP, FleetNode, new_node

BAD, REGISTRATION, STARTED, STOPPED, HEARD, GOVERNOR, TRANSITION, CHECK, RUN = range(9)
"""Kinds of events."""

NODE, SESSION, INVENTORY, CHECK_STATE, CHECK_CHANGE, MACHINE, STEP, LEASE, BAD_ROW = range(9)
"""Kinds of rows."""

AHEAD_S_MAX = 24 * 3600
"""How far the time of an event may be after the time it was stored.

Enough for a clock in the wrong time zone. After a later time, such as one in milliseconds, all events that follow of
the same check or machine would come too late to count; one in microseconds does not even fit into a table.
"""

TOO_DEEP = "it is nested too deeply to be read"
WRONG_TIME = "its time is before 1970, or more than a day after it was stored; times are in seconds"
WRONG_FILE_TIME = "its mtime is outside the years 1 to 9999; times are in seconds"

CALENDAR_S = range(-62_135_596_800, 253_402_300_800)
"""Seconds of the years 1 to 9999: tables and their readers know no others."""

TRANSPORTS = (b"choria:transport:1", b"io.choria.protocol.v2.transport")


class FleetEvent(NamedTuple):
    """One event, flat; what the texts mean depends on its kind."""

    kind: int
    identity: str
    at_s: int
    sequence: int
    event: int
    name: str
    value: str
    more: str
    extra: str
    number: int
    stored_s: int
    payload: bytes | None


class RowChange(NamedTuple):
    """One row that changed."""

    kind: int
    key: str
    name: str = ""
    text: str | None = None
    text_2: str | None = None
    text_3: str | None = None
    time_1: int | None = None
    time_2: int | None = None
    time_3: int | None = None
    number_1: int | None = None
    number_2: int | None = None
    number_3: int | None = None
    number_4: int | None = None
    flag: bool | None = None
    payload: bytes | None = None


class RegistrationBody(msgspec.Struct, gc=False):
    """What of a registration is read before it is unpacked."""

    mtime: int = 0
    file: str = ""
    content: msgspec.Raw = msgspec.Raw()
    zcontent: msgspec.Raw = msgspec.Raw()


_decode_document = msgspec.json.Decoder(OutputDocument).decode
_decode_body = msgspec.json.Decoder(RegistrationBody).decode


class Fold:
    """One batch over the nodes of a bucket."""

    def __init__(self, nodes: dict[str, FleetNode], lateness_s: int) -> None:
        self.nodes = nodes
        self._lateness_s = lateness_s
        self._touched: dict[str, None] = {}
        self._checks: dict[tuple[str, str], None] = {}
        self._machines: dict[tuple[str, str], None] = {}
        self._lifecycles: dict[str, None] = {}
        self._leases: dict[tuple[str, str, int], None] = {}
        self._changes: list[RowChange] = []

    def add_events(self, events: Iterable[FleetEvent]) -> None:
        """Take the events of the batch, best in the order of their time."""
        nodes, touched, checks = self.nodes, self._touched, self._checks
        for event in events:
            kind, identity, at_s, sequence, digest, name, value, _, _, _, stored_s, _ = event
            if kind == BAD:
                self._set_aside(event, value)
                continue
            node = nodes.get(identity)
            if node is None:
                node = nodes[identity] = new_node()
            if at_s > node.last_s:
                node.last_s = at_s
            if stored_s > node.stored_s:
                node.stored_s = stored_s
            touched[identity] = None
            if kind == CHECK:
                # By far the most: a timeline that goes on is the usual case.
                check = node.checks.get(name) or node.check(name)
                recent = check.timeline.recent
                if recent and at_s > recent[-1][0]:
                    recent.append((at_s, sequence, digest, value))
                    checks[identity, name] = None
                elif check.add_result(at_s, sequence, digest, value):
                    checks[identity, name] = None
            else:
                self._take_other(node, event)
            lifecycle = node.lifecycle
            if at_s >= lifecycle.newest_s:
                if at_s > lifecycle.seen[lifecycle.newest_s]:
                    lifecycle.seen[lifecycle.newest_s] = at_s
            elif lifecycle.seen and lifecycle.see(at_s):
                # A late word of a session that has ended: it may have ended later than it seemed.
                self._lifecycles[identity] = None

    def _take_other(self, node: FleetNode, event: FleetEvent) -> None:
        match event.kind:
            case 1:  # REGISTRATION
                self._register(node, event)
            case 2:  # STARTED
                self._note_version(node, event)
                if node.lifecycle.add_change(event.at_s, event.sequence, event.event, STARTUP + event.value):
                    self._lifecycles[event.identity] = None
                    self._abandon(node, event)
            case 3:  # STOPPED
                if node.lifecycle.add_change(event.at_s, event.sequence, event.event, SHUTDOWN):
                    self._lifecycles[event.identity] = None
            case 4:  # HEARD
                self._note_version(node, event)
            case 5:  # GOVERNOR
                self._note_lease(node, event)
            case 6:  # TRANSITION
                self._note_transition(node, event)
            case _:  # RUN
                runs = node.machine(event.name).runs_timeline
                if runs.add(event.at_s, event.sequence, event.event, event.value):
                    self._machines[event.identity, event.name] = None

    def _note_version(self, node: FleetNode, event: FleetEvent) -> None:
        if event.value and event.at_s >= node.version_s:
            node.version, node.version_s = event.value, event.at_s

    def _note_transition(self, node: FleetNode, event: FleetEvent) -> None:
        if not node.machine(event.name).timeline.add(event.at_s, event.sequence, event.event, event.value):
            return
        self._machines[event.identity, event.name] = None
        self._changes.append(
            RowChange(
                STEP,
                event.identity,
                event.name,
                event.more,
                event.extra,
                event.value,
                time_1=event.at_s,
                number_1=event.sequence,
            )
        )

    def _note_lease(self, node: FleetNode, event: FleetEvent) -> None:
        if event.value == "timeouts" or event.number <= 0:
            if node.refused.add(event.at_s, event.sequence, event.event, ""):
                node.refusals += 1
            return
        lease = node.lease(event.name, event.number)
        if event.value == "enter":
            lease.entered_s = lease.entered_s or event.at_s
            # The node may have started again before this was known.
            lease.abandoned_s = 0 if lease.left_s else node.lifecycle.next_start_s(lease.entered_s)
        else:
            lease.left_s, lease.abandoned_s = lease.left_s or event.at_s, 0
        self._leases[event.identity, event.name, event.number] = None

    def _abandon(self, node: FleetNode, event: FleetEvent) -> None:
        """A node that starts again holds nothing any more: what it had not given back stays with the governor."""
        for lease in node.leases:
            if lease.entered_s and lease.entered_s < event.at_s and not lease.left_s:
                lease.abandoned_s = min(lease.abandoned_s or event.at_s, event.at_s)
                self._leases[event.identity, lease.governor, lease.sequence] = None

    def _register(self, node: FleetNode, event: FleetEvent) -> None:
        try:
            received = received_of(event.payload or b"")
            if received.sender != event.identity:
                self._set_aside(event, "the sender of the transport is not that of the request")
                return
            body = _decode_body(received.data)
            at_s = seconds_of(received.time)
            check_times(at_s, body.mtime, event.stored_s)
            digest = zlib.crc32(received.request_id.encode(errors="replace"))
            if not node.registered.add(at_s, event.sequence, digest, ""):
                return
            node.registrations += 1
            node.registered_s = max(node.registered_s, at_s)
            node.last_s = max(node.last_s, at_s)
            self._note_inventory(node, event.identity, at_s, body, received.data)
        except RecursionError:
            self._set_aside(event, TOO_DEEP)
        except (EnvelopeError, msgspec.MsgspecError, ValueError) as error:
            self._set_aside(event, str(error))

    def _note_inventory(self, node: FleetNode, identity: str, at_s: int, body: RegistrationBody, data: str) -> None:
        # Packed content is compared as it is: equal content is packed equally, and most of it is what was there.
        packed = bytes(body.zcontent) or bytes(body.content)
        digest = zlib.crc32(packed)
        if digest == node.inventory:
            return
        content = content_of(data)
        if at_s >= node.inventory_s:
            node.inventory, node.inventory_s = digest, at_s
        self._changes.append(
            RowChange(
                INVENTORY,
                identity,
                body.file,
                content.decode(errors="replace"),
                time_1=body.mtime or None,
                time_2=at_s,
                number_1=len(content),
                number_2=digest,
            )
        )

    def _set_aside(self, event: FleetEvent, reason: str) -> None:
        self._changes.append(
            RowChange(
                BAD_ROW,
                event.identity or "",
                event.name or "",
                reason,
                event.more,
                time_1=event.stored_s,
                number_1=event.sequence,
                payload=event.payload,
            )
        )

    def changes(self) -> list[RowChange]:
        """Return the rows that changed, and drop state that is no longer needed."""
        rows = self._changes
        for identity, name in self._checks:
            rows += self._check_rows(identity, name)
        for identity, name in self._machines:
            machine = self.nodes[identity].machines[name]
            state, since_s, transitions, runs, failed, outcome = machine.view()
            machine.apply_ripe(self._lateness_s)
            rows.append(
                RowChange(
                    MACHINE,
                    identity,
                    name,
                    state,
                    outcome,
                    time_1=since_s or None,
                    number_1=transitions,
                    number_2=runs,
                    number_3=failed,
                )
            )
        for identity, governor, sequence in self._leases:
            lease = self.nodes[identity].lease(governor, sequence)
            rows.append(
                RowChange(
                    LEASE,
                    identity,
                    governor,
                    time_1=lease.entered_s or None,
                    time_2=lease.left_s or None,
                    time_3=lease.abandoned_s or None,
                    number_1=sequence,
                )
            )
        for identity in self._touched:
            rows += self._node_rows(identity)
        return rows

    def _check_rows(self, identity: str, name: str) -> list[RowChange]:
        check = self.nodes[identity].checks[name]
        view, news = check.tell(self._lateness_s)
        last_s = check.told_s
        rows = [
            RowChange(CHECK_CHANGE, identity, name, status, before, time_1=at_s, flag=changed)
            for at_s, before, status, changed in news
        ]
        rows.append(
            RowChange(
                CHECK_STATE,
                identity,
                name,
                view.status,
                time_1=view.since_s,
                time_2=last_s,
                number_1=view.runs,
                number_2=view.changes,
                number_3=view.recent_changes,
                flag=view.is_flapping,
            )
        )
        return rows

    def _node_rows(self, identity: str) -> list[RowChange]:
        node = self.nodes[identity]
        lifecycle = node.lifecycle
        sessions, starts, lost, down = lifecycle.view()
        lifecycle.apply_ripe(self._lateness_s)
        node.registered.ripe(self._lateness_s)
        node.refused.ripe(self._lateness_s)
        rows = []
        open_session = next((session for session in sessions if not session.end), None)
        if identity in self._lifecycles:
            rows = [
                RowChange(
                    SESSION,
                    identity,
                    session.version,
                    session.end or None,
                    time_1=session.started_s,
                    time_2=session.ended_s or None,
                )
                for session in sessions
            ]
        state = "up" if open_session is not None else "down" if down or starts else "unknown"
        rows.append(
            RowChange(
                NODE,
                identity,
                node.version,
                state,
                time_1=open_session.started_s if open_session else None,
                time_2=node.last_s or None,
                time_3=node.registered_s or None,
                number_1=starts,
                number_2=lost,
                number_3=node.registrations,
                number_4=node.refusals,
            )
        )
        return rows


def received_of(payload: bytes) -> Received:
    """Return a registration from an envelope of the network, or from the document that an adapter made of it."""
    if any(mark in payload for mark in TRANSPORTS):
        return parse(payload, "request")
    try:
        document = _decode_document(payload)
    except msgspec.MsgspecError as error:
        raise EnvelopeError(f"neither a request nor an output document: {error}") from error
    return Received(document.data, document.sender, document.time, document.requestid)


def check_times(at_s: int, file_changed_s: int, stored_s: int) -> None:
    """Refuse times of a registration that cannot be right. Raises `ValueError`."""
    if not 0 <= at_s <= stored_s + AHEAD_S_MAX:
        raise ValueError(WRONG_TIME)
    if file_changed_s not in CALENDAR_S:
        raise ValueError(WRONG_FILE_TIME)


def seconds_of(time: str) -> int:
    """Return an RFC 3339 time in Unix seconds. Raises `ValueError`."""
    return int(datetime.fromisoformat(time).timestamp())
