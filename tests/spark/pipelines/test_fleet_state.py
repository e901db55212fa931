"""The state of a node, event by event: late, repeated and reordered events give the same rows."""

import random

import pytest

from jetlake.choria.documents import encode, output_protocol
from jetlake.choria.envelopes import make_request, parse
from jetlake.choria.registration import file_content
from jetlake.spark.pipelines.fleet import folding
from jetlake.spark.pipelines.fleet.folding import FleetEvent, Fold
from jetlake.spark.pipelines.fleet.timelines import RECENT_MAX, Timeline

NODE = "web1.example.net"
LATENESS_S = 120


def event(kind, at_s, sequence, **fields):
    values = {"name": None, "value": None, "more": None, "extra": None, "number": 0, "stored_s": at_s, "payload": None}
    return FleetEvent(kind=kind, identity=NODE, at_s=at_s, sequence=sequence, event=sequence, **{**values, **fields})


def check(at_s, status, number=None):
    return event(folding.CHECK, at_s, at_s if number is None else number, name="disk", value=status)


def registration(at_s, inventory, *, wrapped=False, sender=NODE, request=None):
    body = file_content(path="/inventory.json", mtime_s=5, updated=False, content=inventory)
    payload = make_request(body, sender=sender, request_id=f"{request or at_s:032}", time_s=at_s)
    if wrapped:
        payload = encode(parse(payload, "request"), output_protocol("jetstream"))
    return event(folding.REGISTRATION, 0, at_s, payload=payload, more="choria.discovery")


def keys(change):
    names = {folding.SESSION: change.time_1, folding.CHECK_CHANGE: change.time_1, folding.INVENTORY: change.number_2}
    return change.kind, change.name if change.kind != folding.SESSION else "", names.get(change.kind, change.number_1)


def folded(*batches):
    """Return the rows of every key after these batches, by kind."""
    nodes, rows = {}, {}
    for batch in batches:
        fold = Fold(nodes, LATENESS_S)
        fold.add_events(sorted(batch, key=lambda each: each.at_s))
        for change in fold.changes():
            key = (change.kind, change.name) if change.kind in (folding.CHECK_STATE, folding.MACHINE) else keys(change)
            key = (folding.NODE,) if change.kind == folding.NODE else key
            rows[key] = change
    found = {}
    for change in rows.values():
        found.setdefault(change.kind, []).append(change)
    return found


def test_a_check_counts_runs_and_changes_in_the_order_of_their_time():
    rows = folded([check(0, "OK"), check(60, "CRITICAL"), check(120, "CRITICAL"), check(180, "OK")])

    (state,) = rows[folding.CHECK_STATE]
    assert (state.text, state.time_1, state.number_1, state.number_2) == ("OK", 180, 4, 2)
    assert [(row.time_1, row.text_2, row.text) for row in rows[folding.CHECK_CHANGE]] == [
        (60, "OK", "CRITICAL"),
        (180, "CRITICAL", "OK"),
    ]


def test_a_late_result_takes_back_a_change_that_was_none():
    rows = folded([check(0, "OK"), check(60, "WARNING"), check(120, "OK")], [check(90, "OK")])

    (state,) = rows[folding.CHECK_STATE]
    assert (state.number_1, state.number_2, state.time_1) == (4, 2, 90)
    assert [(row.time_1, row.flag) for row in sorted(rows[folding.CHECK_CHANGE], key=lambda row: row.time_1)] == [
        (60, True),
        (90, True),
        (120, False),
    ]


def test_a_result_that_comes_again_or_much_too_late_changes_nothing():
    first = [check(at_s, "OK") for at_s in range(0, 600, 60)]

    rows = folded(first, first, [check(5, "CRITICAL")])

    (state,) = rows[folding.CHECK_STATE]
    assert (state.text, state.number_1, state.number_2) == ("OK", 10, 0)


def test_a_check_that_changes_all_the_time_is_flapping():
    steady = folded([check(at_s * 60, "OK" if at_s < 10 else "CRITICAL") for at_s in range(20)])
    flapping = folded([check(at_s * 60, "OK" if at_s % 2 else "CRITICAL") for at_s in range(20)])

    assert [row.flag for row in steady[folding.CHECK_STATE]] == [False]
    assert [row.flag for row in flapping[folding.CHECK_STATE]] == [True]


def test_any_order_and_any_division_into_batches_gives_the_same_rows():
    started = [event(folding.STARTED, at_s, at_s, value="0.23.0") for at_s in (0, 100)]
    stopped = [event(folding.STOPPED, 90, 90)]
    steps = [
        event(
            folding.TRANSITION, at_s, at_s, name="puppet", value="RUNNING" if at_s % 20 else "IDLE", more="go", extra=""
        )
        for at_s in range(10, 100, 10)
    ]
    leases = [
        event(folding.GOVERNOR, 20, 21, name="PUPPET", value="enter", number=7),
        event(folding.GOVERNOR, 40, 41, name="PUPPET", value="exit", number=7),
        event(folding.GOVERNOR, 50, 51, name="PUPPET", value="timeouts"),
    ]
    runs = [
        event(folding.RUN, 30, 31, name="puppet", value="error"),
        event(folding.RUN, 60, 61, name="puppet", value="success"),
    ]
    checks = [check(at_s, "OK" if at_s % 21 else "CRITICAL", 1000 + at_s) for at_s in range(0, 110, 7)]
    events = [*started, *stopped, *steps, *leases, *runs, *checks, registration(70, b"{}")]
    wanted = folded(events)
    generator = random.Random(3)

    for _ in range(50):
        shuffled = events + generator.sample(events, 5)
        generator.shuffle(shuffled)
        cuts = sorted(generator.sample(range(len(shuffled)), 3))
        parts = [shuffled[low:high] for low, high in zip([0, *cuts], [*cuts, len(shuffled)], strict=True)]
        rows = folded(*parts)
        # Sequences decide nothing here, and a change that was taken back is told as such.
        changes = [row for row in rows.pop(folding.CHECK_CHANGE, []) if row.flag]
        assert sorted(changes) == sorted(wanted[folding.CHECK_CHANGE])
        assert {kind: sorted(map(str, each)) for kind, each in rows.items()} == {
            kind: sorted(map(str, each)) for kind, each in wanted.items() if kind != folding.CHECK_CHANGE
        }


def test_a_session_ends_by_a_shutdown_or_is_lost_when_the_node_starts_again():
    rows = folded(
        [
            event(folding.STARTED, 0, 1, value="0.23.0"),
            check(50, "OK"),
            event(folding.STARTED, 100, 2, value="0.24.0"),
            event(folding.STOPPED, 200, 3),
        ]
    )

    sessions = [(row.time_1, row.time_2, row.text, row.name) for row in rows[folding.SESSION]]
    (node,) = rows[folding.NODE]
    assert sorted(sessions) == [(0, 50, "lost", "0.23.0"), (100, 200, "shutdown", "0.24.0")]
    assert (node.text, node.name, node.number_1, node.number_2) == ("down", "0.24.0", 2, 1)


def test_a_lease_of_a_node_that_starts_again_is_abandoned():
    rows = folded(
        [event(folding.GOVERNOR, 10, 1, name="PUPPET", value="enter", number=3)],
        [event(folding.STARTED, 90, 2, value="0.23.0")],
    )

    (lease,) = rows[folding.LEASE]
    assert (lease.name, lease.number_1, lease.time_1, lease.time_2, lease.time_3) == ("PUPPET", 3, 10, None, 90)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_registration_counts_once_and_its_inventory_is_told_when_it_changes(wrapped):
    rows = folded(
        [registration(10, b'{"a": 1}', wrapped=wrapped), registration(10, b'{"a": 1}', wrapped=wrapped)],
        [registration(20, b'{"a": 1}', wrapped=wrapped), registration(30, b'{"a": 2}', wrapped=wrapped)],
    )

    (node,) = rows[folding.NODE]
    assert (node.number_3, node.time_3) == (3, 30)
    assert [(row.time_2, row.text) for row in rows[folding.INVENTORY]] == [(10, '{"a": 1}'), (30, '{"a": 2}')]


def test_a_registration_that_cannot_be_read_or_is_by_somebody_else_is_set_aside():
    rows = folded(
        [
            event(folding.REGISTRATION, 0, 1, payload=b'{"protocol":"choria:transport:1"}'),
            event(folding.REGISTRATION, 0, 2, payload=b'{"sender": 5}'),
            registration(3, b"{}", sender="other.example.net"),
        ]
    )

    reasons = [row.text for row in rows[folding.BAD_ROW]]
    assert reasons[0].startswith("not a transport: ")
    assert reasons[1].startswith("neither a request nor an output document")
    assert reasons[2] == "the sender of the transport is not that of the request"


def test_a_timeline_is_bounded_and_keeps_its_newest_event():
    timeline = Timeline([])
    for at_s in range(RECENT_MAX + 10):
        timeline.add(at_s, at_s, at_s, "x")

    assert len(timeline.ripe(10_000)) == 10
    assert len(timeline.ripe(0)) == RECENT_MAX - 1
    assert not timeline.add(RECENT_MAX + 9, 0, RECENT_MAX + 9, "x")
    assert not timeline.add(3, 3, 3, "x")
