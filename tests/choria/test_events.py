"""Events: their bodies fit the published schemas, both forms are read, and they are printed in the original's words."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.choria.events import decode, describe, encode, lifecycle_body, subject_of, transition_body, watcher_body
from jetlake.choria.times import go_duration
from jetlake.client.schemas import problems, read

TIME_S = 1_628_160_000
HEAD = {"identity": "web1.example.net", "timestamp_s": TIME_S}
MACHINE = {**HEAD, "machine": "deploy", "version": "1.0.0", "machine_id": "m1"}

LIFECYCLE = {
    "startup": ({"version": "0.23.0"}, "[startup] web1.example.net: server version 0.23.0"),
    "alive": ({"version": "0.23.0"}, "[alive] web1.example.net: server version 0.23.0"),
    "shutdown": ({}, "[shutdown] web1.example.net: server"),
    "provisioned": ({}, "[provisioned] web1.example.net: server"),
    "upgraded": ({"version": "1", "new_version": "2"}, "[upgraded] web1.example.net: server version 1 to 2"),
}


@pytest.mark.parametrize("kind", LIFECYCLE)
def test_lifecycle_events_fit_their_schemas_and_are_told_in_words(kind):
    fields, text = LIFECYCLE[kind]
    body = lifecycle_body(kind, **HEAD, component="server", **fields)

    assert list(problems(body, read(f"choria.lifecycle.v1.{kind}"))) == []
    assert subject_of(body) == f"choria.lifecycle.event.{kind}.server"
    assert describe(body) == text


def test_a_cloud_event_is_as_the_original_sends_it():
    body = lifecycle_body("startup", **HEAD, component="server", version="0.23.0", event_id="55f3")

    assert json.loads(encode(body)) == {
        "specversion": "1.0",
        "id": "55f3",
        "source": "io.choria.lifecycle",
        "type": "io.choria.lifecycle.v1.startup",
        "subject": "web1.example.net",
        "time": "2021-08-05T10:40:00Z",
        "datacontenttype": "application/json",
        "data": {
            "protocol": "io.choria.lifecycle.v1.startup",
            "id": "55f3",
            "identity": "web1.example.net",
            "component": "server",
            "timestamp": TIME_S,
            "version": "0.23.0",
        },
    }


@pytest.mark.parametrize("raw", [True, False])
def test_both_forms_are_read(raw):
    for body in (lifecycle_body("shutdown", **HEAD, component="server"), transition(), check()):
        assert decode(encode(body, raw=raw)) == body


@pytest.mark.parametrize(
    ("event_type", "sequence", "words"),
    [
        ("enter", 7, "obtained slot 7 on PUPPET"),
        ("exit", 7, "vacated slot 7 on PUPPET"),
        ("timeouts", 0, "failed to obtain a slot on PUPPET"),
        ("eviction", 7, "evicted from slot 7 on PUPPET"),
    ],
)
def test_governor_events_are_told_in_words(event_type, sequence, words):
    body = lifecycle_body(
        "governor", **HEAD, component="CLI", governor="PUPPET", sequence=sequence, event_type=event_type
    )

    assert describe(body) == f"[governor] web1.example.net: {words}"


def transition():
    return transition_body(**MACHINE, transition="run", from_state="WAIT", to_state="RUN")


def check(status="OK", code=0):
    return watcher_body(
        "nagios",
        **MACHINE,
        name="load",
        plugin="check_load",
        status=status,
        status_code=code,
        output="load is fine",
        check_time=TIME_S,
        perfdata=[{"label": "load1", "value": 0.5, "unit": ""}],
        runtime=0.1,
        history=[],
        annotations={},
    )


def test_machine_events_fit_their_schemas():
    assert list(problems(transition(), read("choria.machine.v1.transition"))) == []
    assert list(problems(check(), read("choria.machine.watcher.nagios.v1.state"))) == []
    assert subject_of(transition()) == "choria.machine.transition"
    assert subject_of(check()) == "choria.machine.watcher.nagios.state"


def test_a_machine_event_is_a_cloud_event_with_an_id_of_its_own():
    first, second = (json.loads(encode(transition())) for _ in range(2))

    assert first["source"] == "io.choria.machine"
    assert first["type"] == "io.choria.machine.v1.transition"
    assert first["subject"] == "web1.example.net"
    assert first["id"] != second["id"]


@pytest.mark.parametrize(
    ("kind", "fields", "text"),
    [
        (
            "exec",
            {"command": "puppet", "previous_outcome": "success", "previous_run_time": 1_000_000},
            "web1.example.net deploy#w command: puppet, previous: success ran: 0.001s",
        ),
        (
            "file",
            {"path": "/x", "previous_outcome": "changed"},
            "web1.example.net deploy#w path: /x, previous: changed",
        ),
        (
            "kv",
            {"mode": "poll", "bucket": "CFG", "key": "k", "state": "changed"},
            "web1.example.net key-value deploy#w polling bucket: CFG key: k state: changed",
        ),
        ("schedule", {"state": "on"}, "web1.example.net deploy#w schedule state: on"),
        (
            "timer",
            {"state": "running", "timer": 7_200_000_000_000},
            "web1.example.net timer deploy#w state: running with 2h0m0s timer",
        ),
        ("nagios", {"status": "OK", "output": "fine"}, "web1.example.net deploy#w OK: fine"),
        ("metric", {"metrics": {"metrics": {"k": 0}}}, "web1.example.net deploy#w metrics: k=0.000"),
    ],
)
def test_watcher_states_are_told_in_words(kind, fields, text):
    assert describe(watcher_body(kind, **MACHINE, name="w", **fields)) == text


def test_a_transition_is_told_in_words():
    assert describe(transition()) == "web1.example.net deploy transitioned via event run: WAIT => RUN"


def test_an_old_protocol_is_understood():
    old = {"protocol": "choria:lifecycle:startup:1", "identity": "n", "component": "server", "version": "0.6.0"}

    assert describe(decode(json.dumps(old).encode())) == "[startup] n: server version 0.6.0"


@pytest.mark.parametrize(
    "payload", [b"", b"x", b"[]", b"{}", b'{"protocol": 7}', b'{"specversion":"1.0","source":"x"}']
)
def test_what_is_no_event_is_not_read(payload):
    assert decode(payload) is None


@given(
    st.dictionaries(
        st.sampled_from(["identity", "machine", "timer", "metrics", "type", "state"]),
        st.text() | st.integers() | st.none(),
    )
)
def test_no_event_of_a_stranger_breaks_the_reader(fields):
    for protocol in (
        "io.choria.machine.watcher.x.v1.state",
        "io.choria.lifecycle.v1.governor",
        "io.choria.machine.v1.transition",
    ):
        for kind in ("exec", "metric", "timer", "kv"):
            body = decode(json.dumps({"type": kind, **fields, "protocol": protocol}).encode())
            assert "\n" not in describe(body)


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [(0, "0s"), (1_500_000_000, "1.5s"), (250_000_000, "250ms"), (1_200 * 10**9, "20m0s"), (86_400 * 10**9, "24h0m0s")],
)
def test_durations_are_written_as_go_does(nanoseconds, text):
    assert go_duration(nanoseconds) == text


def test_an_event_without_a_component_is_refused():
    with pytest.raises(ValueError, match="component"):
        lifecycle_body("startup", identity="n", component="")
    with pytest.raises(ValueError, match="not a kind"):
        lifecycle_body("birth", identity="n", component="server")
