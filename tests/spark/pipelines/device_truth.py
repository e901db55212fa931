"""What the tables of the pipeline `devices` must hold: a plain fold over events in the order they happened.

It knows nothing of the pipeline: it reads the protobuf messages of a simulation one after the other, as a person would.
"""

import json
from typing import Any

from jetlake.devices.content import value_of
from jetlake.devices.ids import aggregate_id, metadata_id
from jetlake.devices.protos import events_2025_pb2 as events

COMMANDS = {
    events.ResourceUpdatePending: ("update", True),
    events.ResourceUpdated: ("update", False),
    events.ResourceRetrievePending: ("retrieve", True),
    events.ResourceRetrieved: ("retrieve", False),
}
OUTCOMES = {events.OK: "ok", events.ERROR: "error", events.CANCELED: "canceled"}


class DeviceTruth:
    """Rows by key, each as a tuple of what matters."""

    def __init__(self) -> None:
        self.changes: list[tuple[Any, ...]] = []
        self.resources: dict[tuple[str, str], tuple[Any, ...]] = {}
        self.sessions: dict[tuple[str, str, int], tuple[Any, ...]] = {}
        self.twins: dict[tuple[str, str, int], str] = {}
        self.commands: dict[tuple[str, str], tuple[Any, ...]] = {}
        self.links: dict[tuple[str, str], bool] = {}
        self._open: dict[str, tuple[str, str, int]] = {}
        self._requested: dict[tuple[str, str], int] = {}

    def take(self, message: Any) -> None:
        """Take the next event."""
        kind = type(message)
        if kind is events.ResourceChanged:
            self._change(message)
        elif kind in COMMANDS:
            self._command(message, *COMMANDS[kind])
        elif kind is events.DeviceMetadataUpdated:
            self._metadata(message)
        elif kind is events.ResourceLinksPublished:
            self.links |= {(message.device_id, link.href): True for link in message.resources}

    def _change(self, message: Any) -> None:
        device, href = message.resource_id.device_id, message.resource_id.href
        value = json.dumps(value_of(message.content), separators=(",", ":"), sort_keys=True)
        before = self.resources.get((device, href))
        metadata = message.event_metadata
        row = (value, metadata.version, metadata.timestamp)
        self.changes.append((device, href, *row, before[0] if before else None, before[2] if before else None))
        self.resources[device, href] = row

    def _command(self, message: Any, kind: str, is_request: bool) -> None:
        name = message.audit_context.correlation_id
        key = (aggregate_id(message.resource_id.device_id, message.resource_id.href), name)
        at = message.event_metadata.timestamp
        if is_request:
            self._requested[key] = at
            self.commands[key] = (kind, "open", None)
        else:
            self.commands[key] = (kind, OUTCOMES[message.status], (at - self._requested[key]) / 1e6)

    def _metadata(self, message: Any) -> None:
        device, connection = message.device_id, message.connection
        assert metadata_id(device)
        key = (device, connection.id, connection.connected_at)
        before = self._open.get(device)
        if connection.status == events.Connection.ONLINE and before != key:
            if before is not None:
                self.sessions[before] = ("takeover", connection.connected_at)
            self.sessions[key] = (None, None)
            self._open[device] = key
        elif connection.status == events.Connection.OFFLINE and before is not None:
            self.sessions[key] = ("offline", message.event_metadata.timestamp)
            del self._open[device]
        self.twins[key] = events.TwinSynchronization.State.Name(message.twin_synchronization.state)


def tables_of(lake: Any) -> DeviceTruth:
    """Return the same from the tables of a lake."""
    found = DeviceTruth()
    for row in rows(lake, "device_changes"):
        found.changes.append(
            (
                row["device_id"],
                row["href"],
                row["value"],
                row["version"],
                row["event_ns"],
                row["previous_value"],
                None if row["previous_at"] is None else micros(row["previous_at"]),
            )
        )
    for row in rows(lake, "device_resources"):
        found.resources[row["device_id"], row["href"]] = (row["value"], row["version"], row["event_ns"])
    for row in rows(lake, "device_sessions"):
        key = (row["device_id"], row["connection_id"], micros(row["started_at"]))
        found.sessions[key] = (row["ended_by"], None if row["ended_at"] is None else micros(row["ended_at"]))
    for row in rows(lake, "device_twins"):
        found.twins[row["device_id"], row["connection_id"], micros(row["started_at"])] = row["state"]
    for row in rows(lake, "device_commands"):
        found.commands[row["aggregate_id"], row["correlation_id"]] = (row["kind"], row["outcome"], row["latency_ms"])
    for row in rows(lake, "device_links"):
        found.links[row["device_id"], row["href"]] = row["is_published"]
    return found


def check(lake: Any, truth: DeviceTruth) -> None:
    """Compare the tables of a lake with the truth, one after the other."""
    found = tables_of(lake)
    assert found.resources == truth.resources
    in_tables = {(*row[:6], row[6]) for row in found.changes}
    expected = {(*row[:6], None if row[6] is None else row[6] // 1000) for row in truth.changes}
    assert len(found.changes) == len(in_tables), "a change is in the history twice"
    assert in_tables == expected
    assert found.sessions == {
        (device, connection, start // 1000): (by, None if end is None else end // 1000)
        for (device, connection, start), (by, end) in truth.sessions.items()
    }
    assert found.twins == {(*key[:2], key[2] // 1000): state for key, state in truth.twins.items()}
    assert found.commands == truth.commands
    assert found.links == truth.links


def rows(lake: Any, table: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = lake.existing(table).to_arrow().to_pylist()
    return made


def micros(moment: Any) -> int:
    return round(moment.timestamp() * 1_000_000)
