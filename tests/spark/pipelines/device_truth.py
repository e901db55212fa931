"""What the tables of the pipeline `devices` must hold: a plain fold over events in the order they happened.

It knows nothing of the pipeline: it reads the protobuf messages of a simulation one after the other, as a person would.
What the bus did to them is found by asking the server for every message of the stream, one by one.
"""

import base64
import json
from datetime import UTC, datetime
from typing import Any

from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.client.raw_streams import Streams
from jetlake.devices.codec import EventCodec
from jetlake.devices.content import value_of
from jetlake.devices.ids import aggregate_id, links_id, metadata_id
from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.errors import DeviceError

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
        # Open commands by resource: when each was requested, and until when it is valid.
        self.pending: dict[tuple[str, str], dict[str, tuple[int, int]]] = {}
        self.gauges: dict[tuple[str, str], tuple[int, int | None, list[int]]] = {}
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
        waiting = self.pending.setdefault((message.resource_id.device_id, message.resource_id.href), {})
        if is_request:
            waiting[name] = (at, message.valid_until)
            self._requested[key] = at
            self.commands[key] = (kind, "open", None)
        else:
            del waiting[name]
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


class BusTruth:
    """What the stream has of each aggregate, and of each event that is not a snapshot."""

    def __init__(self, url: str, stream: str = "EVENTS") -> None:
        self.audit: dict[int, tuple[Any, ...]] = {}
        self.quality: dict[str, tuple[Any, ...]] = {}
        versions: dict[str, list[int]] = {}
        lateness: dict[str, list[int]] = {}
        undecodable: dict[str, int] = {}
        codec = EventCodec()
        with RawConnection(ConnectionSettings(url=url, name="test")) as connection:
            streams = Streams(connection)
            for sequence in range(1, streams.state(stream).last_sequence + 1):
                stored = streams.ask(f"STREAM.MSG.GET.{stream}", {"seq": sequence})["message"]
                try:
                    event = codec.decode(base64.b64decode(stored["data"]), subject=stored["subject"])
                except DeviceError:
                    key = id_of_subject(stored["subject"])
                    undecodable[key] = undecodable.get(key, 0) + 1
                    continue
                key, metadata = event.key.aggregate_id, event.message.event_metadata
                versions.setdefault(key, []).append(event.version)
                late_us = stored_us(stored["time"]) - metadata.timestamp // 1000
                lateness.setdefault(key, []).append(late_us // 1000)
                if not event.is_snapshot:
                    who = event.message.audit_context
                    self.audit[sequence] = (
                        *(event.event_type, key, event.version, metadata.timestamp),
                        *(who.user_id, who.owner, metadata.connection_id),
                    )
        for key in versions.keys() | undecodable.keys():
            seen, late = versions.get(key, []), lateness.get(key, [])
            distinct = set(seen)
            first_times = [(place, each) for place, each in enumerate(seen) if each not in seen[:place]]
            self.quality[key] = (
                len(seen),
                max(distinct) - min(distinct) + 1 - len(distinct) if seen else 0,
                len(seen) - len(distinct),
                sum(any(other > each for other in seen[:place]) for place, each in first_times),
                undecodable.get(key, 0),
                sum(late) / len(late) if late else None,
                max(late, default=None),
            )


def id_of_subject(subject: str) -> str:
    _, device_id, family, *rest = subject.split(".")
    return {"metadata": metadata_id, "resource-links": links_id}.get(family, lambda _: rest[0])(device_id)


def stored_us(time: str) -> int:
    """Return a time as the server writes it in microseconds since 1970."""
    whole, _, fraction = time.removesuffix("Z").partition(".")
    second = datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp()
    return int(second) * 1_000_000 + int(fraction.ljust(6, "0")[:6])


def check_bus(lake: Any, truth: BusTruth) -> None:
    """Compare the tables about the bus with the truth."""
    names = ("events", "missing", "duplicates", "reordered", "undecodable", "lateness_ms_mean", "lateness_ms_max")
    quality = rows(lake, "device_bus_quality")
    assert len(quality) == len(truth.quality)
    for row in quality:
        found, wanted = tuple(row[name] for name in names), truth.quality[row["aggregate_id"]]
        assert (*found[:5], found[6]) == (*wanted[:5], wanted[6]), row
        assert (found[5] is None) == (wanted[5] is None)
        assert found[5] is None or abs(found[5] - wanted[5]) < 0.01
    audit = rows(lake, "device_audit")
    columns = ("event_type", "aggregate_id", "version", "event_ns", "user_id", "owner", "origin_id")
    # A text that an event does not have is NULL.
    in_table = {row["sequence"]: tuple("" if row[name] is None else row[name] for name in columns) for row in audit}
    assert len(audit) == len(in_table), "a message is in the audit twice"
    assert in_table == truth.audit


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
    for row in rows(lake, "device_pending"):
        # The commands have no names there.
        limits = [micros(moment) for moment in row["valid_until"]]
        assert row["next_valid_until"] is None if not limits else micros(row["next_valid_until"]) == limits[0]
        oldest = None if row["oldest_requested_at"] is None else micros(row["oldest_requested_at"])
        found.gauges[row["device_id"], row["href"]] = (row["open"], oldest, limits)
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
    assert found.gauges == {key: gauge(waiting) for key, waiting in truth.pending.items()}


def gauge(waiting: dict[str, tuple[int, int]]) -> tuple[int, int | None, list[int]]:
    """Return how many commands wait, since when, and until when they are valid."""
    oldest = min((at // 1000 for at, _ in waiting.values()), default=None)
    return len(waiting), oldest, sorted(until // 1000 for _, until in waiting.values() if until)


def rows(lake: Any, table: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = lake.existing(table).to_arrow().to_pylist()
    return made


def micros(moment: Any) -> int:
    return round(moment.timestamp() * 1_000_000)
