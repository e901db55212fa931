"""The rows of tables that change when events of a device come.

No Spark here: `fold` takes a state and events and returns rows, so it is tested like any function. Only what events
touch is looked at; a device may have hundreds of links and commands, and a batch has a few events of it.

Invariant: a row is returned if and only if it differs from the one before, except that the row of what is pending on a
resource comes with each command of it that changes.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from jetlake.spark.pipelines.device_state import (
    METADATA_TYPES,
    OK_STATUSES,
    DeviceCommand,
    DeviceEvent,
    DeviceLink,
    DeviceSession,
    DeviceState,
    Touched,
    apply,
    trim,
)


class Row(msgspec.Struct, frozen=True):
    """One row of one table."""

    table: str
    values: dict[str, Any]


def fold(state: DeviceState, device_id: str, events: list[DeviceEvent]) -> list[Row]:
    """Take events into the state and return the rows that are new or have changed."""
    # A session also changes when another one begins, so all of a device are compared; there are few.
    with_sessions = any(event.event_type in METADATA_TYPES for event in events)
    before = rows_of_sessions(state, device_id) if with_sessions else []
    touched = Touched()
    for event in events:
        apply(state, event, touched)
    rows = [row for row in rows_of_sessions(state, device_id) if row not in before] if with_sessions else []
    commands = touched.changed_commands(state)
    rows += [Row("commands", command_row(device_id, command)) for command in commands]
    for href in dict.fromkeys(command.href for command in commands):
        rows.append(Row("pending", pending_row(device_id, href, state.commands.values())))
    rows += [Row("links", link_row(device_id, link)) for link in touched.changed_links(state)]
    trim(state)
    if not rows:
        return []
    state.revision += 1
    for row in rows:
        row.values["revision"] = state.revision
    return rows


def rows_of_sessions(state: DeviceState, device_id: str) -> list[Row]:
    """Return the rows of all connections that are remembered, and of their twins."""
    found = []
    following: list[DeviceSession | None] = [*state.sessions[1:], None]
    for session, following_session in zip(state.sessions, following, strict=False):
        ended_ns, ended_by = end_of(session, following_session)
        found.append(Row("sessions", session_row(device_id, session, ended_ns, ended_by)))
        if session.transitions:
            found.append(Row("twins", twin_row(device_id, session, ended_ns)))
    return found


def end_of(session: DeviceSession, following: DeviceSession | None) -> tuple[int, str]:
    """Return when and by whom a session was ended; 0 if it goes on."""
    if following is not None and (not session.ended_ns or following.started_ns < session.ended_ns):
        return following.started_ns, "takeover"
    if session.ended_ns:
        return session.ended_ns, "service" if session.is_ended_by_service else "offline"
    return 0, ""


def session_row(device_id: str, session: DeviceSession, ended_ns: int, ended_by: str) -> dict[str, Any]:
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


def twin_row(device_id: str, session: DeviceSession, ended_ns: int) -> dict[str, Any]:
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


def command_row(device_id: str, command: DeviceCommand) -> dict[str, Any]:
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


def outcome_of(command: DeviceCommand) -> str:
    if not command.finished_ns:
        return "open"
    if command.status == "CANCELED":
        return "canceled"
    return "ok" if command.status in OK_STATUSES else "error"


def latency_ms(command: DeviceCommand) -> float:
    return (command.finished_ns - command.requested_ns) / 1e6


def pending_row(device_id: str, href: str, commands: Iterable[DeviceCommand]) -> dict[str, Any]:
    """Return what waits for an answer. Its age, and how many have expired, is for the reader, who knows the time."""
    waiting = [each for each in commands if each.href == href and each.requested_ns and not each.finished_ns]
    limits = sorted(each.valid_until_ns // 1000 for each in waiting if each.valid_until_ns)
    return {
        "device_id": device_id,
        "href": href,
        "open": len(waiting),
        "oldest_requested_at": micros(min((each.requested_ns for each in waiting), default=0)),
        "next_valid_until": limits[0] if limits else None,
        "valid_until": limits,
    }


def link_row(device_id: str, link: DeviceLink) -> dict[str, Any]:
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
