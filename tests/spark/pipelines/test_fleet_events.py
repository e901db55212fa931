"""Messages of a fleet as events: told apart, and set aside with a reason where they say too little."""

import json

import pytest

from jetlake.spark.pipelines.fleet import folding
from jetlake.spark.pipelines.fleet.events import (
    BUCKETS,
    EVENTS,
    NO_IDENTITY,
    NO_TIME,
    NOT_OURS,
    TOO_LARGE,
    event_of,
)
from jetlake.spark.pipelines.fleet.folding import AHEAD_S_MAX, TOO_DEEP, WRONG_TIME
from jetlake.spark.pipelines.messages import NOT_JSON, NOT_TEXT

pyarrow = pytest.importorskip("pyarrow", reason="the extra `spark` is not installed")

STORED_S = 1_767_225_600

CHECK = {"protocol": "io.choria.machine.watcher.nagios.v1.state", "identity": "n1", "timestamp": 7, "name": "disk"}


def event(message):
    payload = message if isinstance(message, bytes) else json.dumps(message).encode()
    return event_of("STREAM", "a.subject", 3, STORED_S, payload)


@pytest.mark.parametrize("wrapped", [True, False])
def test_an_event_is_the_same_raw_and_as_a_cloud_event(wrapped):
    body = CHECK | {"status": "OK"}

    found = event({"specversion": "1.0", "id": "x", "data": body} if wrapped else body | {"id": "x"})

    assert found[:4] == (folding.CHECK, "n1", 7, 3)
    assert (found.name, found.value, found.payload) == ("disk", "OK", None)


@pytest.mark.parametrize(
    ("protocol", "kind"),
    [
        ("io.choria.lifecycle.v1.startup", folding.STARTED),
        ("choria:lifecycle:shutdown:1", folding.STOPPED),
        ("io.choria.lifecycle.v1.alive", folding.HEARD),
        ("io.choria.machine.v1.transition", folding.TRANSITION),
        ("io.choria.machine.watcher.exec.v1.state", folding.RUN),
        ("io.choria.machine.watcher.file.v1.state", folding.HEARD),
    ],
)
def test_the_protocol_says_what_an_event_is(protocol, kind):
    assert event({"data": {"protocol": protocol, "identity": "n1", "timestamp": 1}}).kind == kind


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"\xff", NOT_TEXT),
        (b"", NOT_JSON),
        (b"no json", NOT_JSON),
        ([1, 2], NOT_OURS),
        ({"data": {"identity": "n1", "timestamp": 1}}, NOT_OURS),
        ({"data": {"protocol": CHECK["protocol"], "timestamp": 1}}, NO_IDENTITY),
        ({"data": {"protocol": CHECK["protocol"], "identity": "n1"}}, NO_TIME),
        ({"data": {"protocol": CHECK["protocol"], "identity": "n1", "timestamp": "soon"}}, NO_TIME),
        (b"[" * 5000, TOO_DEEP),
        ({"data": CHECK | {"timestamp": -1}}, WRONG_TIME),
        ({"data": CHECK | {"timestamp": STORED_S + AHEAD_S_MAX + 1}}, WRONG_TIME),
        ({"data": CHECK | {"timestamp": STORED_S * 1000}}, WRONG_TIME),
        ({"data": CHECK | {"timestamp": 2**64 - 1}}, WRONG_TIME),
        (CHECK | {"timestamp": 10**30}, WRONG_TIME),
        ({"data": CHECK | {"sequence": 2**63}}, TOO_LARGE),
        ({"data": CHECK | {"sequence": -(2**63) - 1}}, TOO_LARGE),
    ],
)
def test_a_message_that_says_too_little_is_set_aside_with_the_reason(message, reason):
    found = event(message)

    assert (found.kind, found.value, found.name, found.more) == (folding.BAD, reason, "STREAM", "a.subject")
    assert found.payload is not None


def test_an_event_may_be_a_day_ahead_of_the_server_and_as_old_as_it_likes():
    for at_s in (0, 1, STORED_S, STORED_S + AHEAD_S_MAX):
        assert event({"data": CHECK | {"timestamp": at_s, "sequence": 2**63 - 1}})[:3] == (folding.CHECK, "n1", at_s)


def test_a_field_of_another_type_is_left_out_and_the_rest_counts():
    found = event({"data": CHECK | {"status": "OK", "version": 5, "machine": {"a": 1}}})

    assert (found.kind, found.identity, found.value) == (folding.CHECK, "n1", "OK")


def test_a_registration_is_left_as_it_is_and_its_sender_is_known():
    message = {"protocol": "choria:transport:1", "data": "c29tZQ==", "headers": {"mc_sender": "n1"}}

    found = event(message)

    assert (found.kind, found.identity, found.more) == (folding.REGISTRATION, "n1", "a.subject")
    assert json.loads(found.payload) == message


def test_the_events_of_a_node_are_in_one_bucket():
    payloads = [json.dumps({"data": CHECK | {"identity": f"n{number % 5}"}}).encode() for number in range(50)]
    batch = pyarrow.record_batch(
        {
            "stream": ["S"] * 50,
            "subject": ["a"] * 50,
            "sequence": range(50),
            "timestamp": pyarrow.array([0] * 50, pyarrow.timestamp("us", "UTC")),
            "data": pyarrow.array(payloads, pyarrow.binary()),
        }
    )

    (part,) = EVENTS.parts(batch)

    places = set(zip(part.rows.column("identity").to_pylist(), part.buckets.tolist(), strict=True))
    assert len(places) == 5
    assert all(0 <= bucket < BUCKETS for _, bucket in places)
