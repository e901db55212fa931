"""What is remembered of a device gives the same rows whatever order its events come in. No Spark is needed here."""

import random
from collections import Counter

import msgspec
import pytest

from jetlake.spark.pipelines.device_rows import fold
from jetlake.spark.pipelines.device_state import (
    FINISHED_COMMANDS_KEPT,
    NOBODY,
    SESSIONS_KEPT,
    TRANSITIONS_KEPT,
    DeviceEvent,
    DeviceState,
)

SECOND = 1_000_000_000
KEYS = {
    "sessions": ("connection_id", "started_at"),
    "twins": ("connection_id", "started_at"),
    "commands": ("aggregate_id", "correlation_id"),
    "pending": ("href",),
    "links": ("href",),
}


class Tables:
    """Rows by table and key, as upserts leave them."""

    def __init__(self):
        self.state = DeviceState()
        self.rows = {name: {} for name in KEYS}

    def take(self, *events):
        # A state is stored between two batches.
        self.state = msgspec.msgpack.decode(msgspec.msgpack.encode(self.state), type=DeviceState)
        for row in fold(self.state, "D", list(events)):
            key = tuple(row.values[name] for name in KEYS[row.table])
            there = self.rows[row.table].get(key)
            order = ("known_ends", "revision") if row.table == "commands" else ("revision",)
            if there is None or [row.values[name] for name in order] >= [there[name] for name in order]:
                self.rows[row.table][key] = row.values
        return self

    def plain(self):
        """Everything but how often it changed."""
        return {name: {key: {**row, "revision": 0} for key, row in rows.items()} for name, rows in self.rows.items()}

    def only(self, table):
        (row,) = self.rows[table].values()
        return row


def metadata(at_s, connection="c1", since_s=1, online=True, twin="OUT_OF_SYNC", **more):
    return DeviceEvent(
        event_type="devicemetadataupdated",
        aggregate_id="M",
        version=at_s,
        event_ns=at_s * SECOND,
        connection_id=connection,
        connected_at_ns=since_s * SECOND,
        is_online=online,
        twin_state=twin,
        **more,
    )


def command(event_type, at_s, name="x", **more):
    return DeviceEvent(
        event_type=event_type,
        aggregate_id="R",
        href="/a",
        correlation_id=name,
        version=at_s,
        event_ns=at_s * SECOND,
        **more,
    )


def links(event_type, at_s, *hrefs, unpublished=()):
    made = tuple({"href": href, "resource_types": ["t"]} for href in hrefs)
    return DeviceEvent(event_type=event_type, version=at_s, event_ns=at_s * SECOND, links=made, unpublished=unpublished)


def test_a_session_ends_when_the_device_says_so():
    row = Tables().take(metadata(1)).take(metadata(5, online=False)).only("sessions")

    assert (row["is_open"], row["ended_by"], row["seconds"]) == (False, "offline", 4.0)


def test_a_session_is_ended_by_the_next_connection():
    tables = Tables().take(metadata(1), metadata(9, connection="c2", since_s=9))

    first, second = tables.rows["sessions"].values()
    assert (first["ended_by"], first["seconds"]) == ("takeover", 8.0)
    assert second["is_open"]


def test_a_service_ends_the_sessions_of_a_gateway_that_died():
    assert (
        Tables().take(metadata(1), metadata(3, online=False, user_id=NOBODY)).only("sessions")["ended_by"] == "service"
    )


def test_an_end_that_comes_before_its_session_finds_it():
    events = [
        metadata(1),
        metadata(5, online=False),
        metadata(7, connection="c2", since_s=7),
        metadata(8, "c2", 7, False),
    ]

    expected = Tables().take(*events).plain()

    assert Tables().take(events[3]).take(events[1]).take(events[2]).take(events[0]).plain() == expected


def test_devices_of_2021_are_online_until_they_say_otherwise_or_are_silent():
    def at(second, until_s=0, online=True):
        return metadata(second, connection="", since_s=0, online=online, online_until_ns=until_s * SECOND)

    tables = Tables().take(at(1, 10), at(8, 20), at(15, online=False), at(30, 40), at(50, 60))

    assert [(row["started_at"], row["ended_by"]) for row in tables.rows["sessions"].values()] == [
        (1_000_000, "offline"),
        (30_000_000, "takeover"),
        (50_000_000, None),
    ]


def test_a_twin_adds_up_the_time_in_each_state():
    tables = Tables().take(
        metadata(1),
        metadata(3, twin="SYNCING", syncing_at_ns=3 * SECOND),
        metadata(7, twin="IN_SYNC", syncing_at_ns=3 * SECOND, in_sync_at_ns=7 * SECOND),
    )
    tables.take(metadata(20, online=False, twin="OUT_OF_SYNC"))

    row = tables.only("twins")
    assert (row["state"], row["sync_seconds"], row["seconds_to_in_sync"]) == ("OUT_OF_SYNC", 4.0, 6.0)
    assert (row["out_of_sync_seconds"], row["syncing_seconds"], row["in_sync_seconds"]) == (2.0, 4.0, 13.0)


def test_forced_synchronisations_are_counted_once_each():
    events = [metadata(2 + at, forced_at_ns=forced) for at, forced in enumerate((0, 5, 5, 9))]

    assert Tables().take(*events, *events).only("twins")["forced_syncs"] == 2


@pytest.mark.parametrize(
    ("status", "outcome"), [("OK", "ok"), ("CREATED", "ok"), ("ERROR", "error"), ("CANCELED", "canceled")]
)
def test_a_command_has_its_outcome_and_latency_whichever_end_comes_first(status, outcome):
    ends = [
        command("resourceupdatepending", 1, valid_until_ns=3 * SECOND, user_id="u"),
        command("resourceupdated", 5, status=status, origin_id="c1"),
    ]

    expected = Tables().take(*ends).only("commands")

    assert (expected["kind"], expected["outcome"], expected["latency_ms"], expected["is_late"]) == (
        "update",
        outcome,
        4000.0,
        True,
    )
    turned = Tables().take(ends[1]).take(ends[0], ends[1]).only("commands")
    assert {**turned, "revision": 0} == {**expected, "revision": 0}


def test_a_confirmation_that_comes_again_after_its_command_was_forgotten_does_not_replace_it():
    tables = Tables().take(
        command("resourceupdatepending", 1, "first"), command("resourceupdated", 2, "first", status="OK")
    )
    for number in range(FINISHED_COMMANDS_KEPT + 1):
        name = f"later-{number}"
        tables.take(
            command("resourceupdatepending", 3 + number, name),
            command("resourceupdated", 4 + number, name, status="OK"),
        )

    tables.take(command("resourceupdated", 2, "first", status="OK"))

    assert "R/first" not in tables.state.commands
    assert tables.rows["commands"]["R", "first"]["latency_ms"] == 1000.0


def test_an_update_of_metadata_is_a_command_and_a_new_connection_is_none():
    pending = DeviceEvent(
        event_type="devicemetadataupdatepending", aggregate_id="M", correlation_id="m", version=2, event_ns=2 * SECOND
    )
    tables = Tables().take(
        metadata(1, correlation_id="connect"), metadata(3, correlation_id="m", is_canceled=True), pending
    )

    row = tables.only("commands")
    assert (row["kind"], row["href"], row["outcome"], row["latency_ms"]) == ("metadata", "/plgd/s", "canceled", 1000.0)


def test_what_is_pending_is_told_with_its_limits_until_nothing_is():
    tables = Tables().take(
        command("resourceupdatepending", 5, "a", valid_until_ns=9 * SECOND),
        command("resourceupdatepending", 2, "b", valid_until_ns=7 * SECOND),
        command("resourceretrievepending", 3, "c"),
    )

    assert {**tables.only("pending"), "revision": 0} == {
        "device_id": "D",
        "href": "/a",
        "open": 3,
        "oldest_requested_at": 2_000_000,
        "next_valid_until": 7_000_000,
        "valid_until": [7_000_000, 9_000_000],
        "revision": 0,
    }
    tables.take(command("resourceupdated", 6, "b", status="OK"), command("resourceretrieved", 6, "c", status="OK"))
    assert (tables.only("pending")["open"], tables.only("pending")["valid_until"]) == (1, [9_000_000])
    tables.take(command("resourceupdated", 8, "a", status="ERROR"))
    row = tables.only("pending")
    assert (row["open"], row["oldest_requested_at"], row["next_valid_until"], row["valid_until"]) == (0, None, None, [])


def test_a_confirmation_that_comes_before_its_request_leaves_nothing_pending():
    tables = Tables().take(command("resourceupdated", 6, status="OK")).take(command("resourceupdatepending", 5))

    assert tables.only("pending")["open"] == 0


def test_links_are_published_unpublished_and_replaced_by_a_snapshot():
    events = [
        links("resourcelinkspublished", 1, "/a", "/b", "/c"),
        links("resourcelinksunpublished", 2, unpublished=("/a",)),
        links("resourcelinkssnapshottaken", 3, "/b"),
        links("resourcelinkspublished", 4, "/a"),
    ]
    tables = Tables().take(*events)

    there = {row["href"]: (row["is_published"], row["first_published_at"]) for row in tables.rows["links"].values()}
    assert there == {"/a": (True, 1_000_000), "/b": (True, 1_000_000), "/c": (False, 1_000_000)}
    assert Tables().take(*reversed(events)).rows["links"].keys() == tables.rows["links"].keys()


def test_what_says_nothing_changes_nothing():
    tables = Tables().take(metadata(1))

    assert fold(tables.state, "D", [metadata(1)]) == []
    assert (
        fold(tables.state, "D", [DeviceEvent(event_type="resourcepainted"), DeviceEvent(event_type="x", version=3)])
        == []
    )


def test_the_state_of_a_device_does_not_grow_for_ever():
    tables = Tables()
    for number in range(1, 200):
        tables.take(
            metadata(number * 10, connection=f"c{number}", since_s=number * 10),
            *(metadata(number * 10 + 1, f"c{number}", number * 10, twin="SYNCING") for _ in range(3)),
            command("resourceupdatepending", number * 10, f"n{number}"),
            command("resourceupdated", number * 10 + 1, f"n{number}", status="OK"),
        )

    assert len(tables.state.sessions) == SESSIONS_KEPT
    assert len(tables.state.commands) == FINISHED_COMMANDS_KEPT
    assert len(tables.rows["sessions"]) == 199
    assert sum(row["is_open"] for row in tables.rows["sessions"].values()) == 1


def test_a_twin_with_many_states_keeps_their_sums():
    count = 3 * TRANSITIONS_KEPT
    tables = Tables()
    for number in range(1, count + 1):
        tables.take(metadata(number, twin="SYNCING" if number % 2 else "IN_SYNC"))

    row = tables.only("twins")
    assert len(tables.state.sessions[0].transitions) == TRANSITIONS_KEPT
    assert row["syncing_seconds"] + row["in_sync_seconds"] == count - 1


def test_events_of_a_simulation_give_its_truth_in_any_order_and_more_than_once():
    pytest.importorskip("google.protobuf", reason="the extra `devices` is not installed")
    from jetlake.devices.codec import EventCodec
    from jetlake.devices.event_rows import row_of
    from jetlake.devices.simulator.simulation import Simulation, SimulationOptions

    simulation = Simulation(SimulationOptions(devices=20, seconds=1200.0, start_ns=10**18))
    codec = EventCodec()
    by_device = {}
    for timed in simulation.timed_events():
        encoded = codec.encode(timed.message)
        row = row_of(codec, encoded.payload, encoded.subject)
        known = {name: row[name] for name in DeviceEvent.__struct_fields__}
        by_device.setdefault(row["device_id"], []).append(msgspec.convert(known, DeviceEvent, strict=False))
    chance = random.Random(7)
    outcomes, sessions, online = Counter(), 0, {}
    for device_id, events in by_device.items():
        ordered = Tables().take(*events)
        mixed = [*events, *chance.sample(events, len(events) // 3)]
        chance.shuffle(mixed)
        pieces = Tables()
        while mixed:
            size = chance.randrange(1, 20)
            pieces.take(*mixed[:size])
            del mixed[:size]
        if len(ordered.rows["sessions"]) <= SESSIONS_KEPT and len(ordered.rows["commands"]) <= FINISHED_COMMANDS_KEPT:
            assert pieces.plain() == ordered.plain()
        outcomes.update(row["outcome"] for row in ordered.rows["commands"].values())
        sessions += len(ordered.rows["sessions"])
        online[device_id] = any(row["is_open"] for row in ordered.rows["sessions"].values())

    truth = simulation.truth.as_json(simulation.devices)
    assert outcomes == {name: count for name, count in truth["commands"].items() if count}
    assert sessions == truth["sessions"]
    assert online == {device_id: device["online"] for device_id, device in truth["devices"].items()}
