"""The simulated fleet: the same for the same seed, in the original's formats, and its account is true.

The account is checked against a fold over the messages, which is written here and shares nothing with the simulation.
"""

import collections
import json

import pytest
from msgspec.structs import replace

from jetlake.choria.envelopes import parse
from jetlake.choria.events import decode
from jetlake.choria.registration import content_of
from jetlake.choria.times import rfc3339_s
from jetlake.client.schemas import problems, read
from jetlake.errors import ConfigurationError
from jetlake.simulation.fleet import Fleet, FleetOptions

START_S = 1_767_225_600
CHURN = {
    "restarts_per_hour": 6.0,
    "crashes_per_hour": 4.0,
    "departures_per_hour": 1.0,
    "arrivals_per_hour": 2.0,
    "changes_per_hour": 10.0,
}
OPTIONS = FleetOptions(
    nodes=60,
    seconds=1_800,
    seed=7,
    start_s=START_S,
    governor_slots=5,
    run_interval_s=200,
    check_interval_s=120,
    **CHURN,
)


def run(options):
    fleet = Fleet(options)
    return list(fleet.events()), fleet.truth.as_json()


def test_the_same_seed_gives_the_same_events_and_the_same_account():
    assert run(OPTIONS) == run(OPTIONS)


def test_another_seed_gives_other_events():
    other = FleetOptions(nodes=60, seconds=600, seed=8, start_s=START_S)

    assert run(other)[0] != run(FleetOptions(nodes=60, seconds=600, seed=7, start_s=START_S))[0]


def test_events_come_in_order_within_the_time():
    events, _ = run(OPTIONS)

    times = [event.time_s for event in events]
    assert times == sorted(times)
    assert START_S <= times[0] <= times[-1] < START_S + 1_800


def fold(events):
    """Return counts and final states as the messages tell them; messages that come twice count once."""
    counts, nodes, slots = collections.Counter(), {}, set()
    different = {event.payload: event for event in events}
    for event in sorted(different.values(), key=time_of):
        if event.subject == "choria.discovery":
            received = parse(event.payload, "request")
            body = json.loads(received.data)
            node = node_of(nodes, received.sender)
            node["registrations"] += 1
            node["mtime_s"] = body["mtime"]
            node["inventory"] = json.loads(content_of(received.data))
            counts["registration"] += 1
            continue
        body = decode(event.payload)
        node = node_of(nodes, body["identity"])
        kind = event.subject.split(".")
        if kind[1] == "lifecycle" and kind[3] == "governor":
            counts[f"governor.{body['event_type']}"] += 1
            if body["event_type"] == "enter":
                slots.add(body["sequence"])
            elif body["event_type"] == "exit":
                slots.discard(body["sequence"])
        elif kind[1] == "lifecycle":
            counts[kind[3]] += 1
            if kind[3] == "startup":
                node["starts"] += 1
                node["version"] = body["version"]
                node["is_up"] = True
            elif kind[3] == "shutdown":
                node["is_up"] = False
        elif kind[2] == "transition":
            counts["transition"] += 1
            node["state"] = body["to_state"]
            node["transitions"] += 1
        else:
            counts[f"watcher.{body['type']}"] += 1
            if body["type"] == "nagios":
                name = body["name"].removeprefix("check_")
                check = node["checks"].setdefault(name, {"runs": 0, "changes": 0, "status": body["status"]})
                check["runs"] += 1
                check["changes"] += check["status"] != body["status"]
                check["status"] = body["status"]
    return counts, nodes, slots


def time_of(event):
    if event.subject == "choria.discovery":
        received = parse(event.payload, "request")
        return received.time
    return rfc3339_s(decode(event.payload)["timestamp"])


def node_of(nodes, identity):
    return nodes.setdefault(
        identity,
        {
            "registrations": 0,
            "mtime_s": 0,
            "inventory": {},
            "starts": 0,
            "version": "",
            "is_up": False,
            "state": "",
            "transitions": 0,
            "checks": {},
        },
    )


@pytest.mark.parametrize("disorder", [{}, {"late_share": 0.1, "duplicate_share": 0.1}])
def test_the_account_is_what_the_messages_say(disorder):
    events, truth = run(replace(OPTIONS, **disorder))
    counts, nodes, slots = fold(events)

    assert dict(sorted(counts.items())) == truth["counts"]
    assert len(events) == truth["published"]
    assert sum(counts.values()) == truth["events"]
    assert slots == set(truth["governors"]["PUPPET"]["held"]) | set(truth["governors"]["PUPPET"]["abandoned"])
    assert nodes.keys() == truth["nodes"].keys()
    for identity, node in nodes.items():
        told = truth["nodes"][identity]
        # A crash is said by nobody.
        assert node["is_up"] == (told["state"] in ("up", "crashed")), identity
        for key in ("registrations", "starts", "version", "mtime_s", "inventory"):
            assert node[key] == told[key], (identity, key)
        assert (node["state"], node["transitions"]) == (told["machine"]["state"], told["machine"]["transitions"])
        assert node["checks"] == {
            name: {key: check[key] for key in ("runs", "changes", "status")} for name, check in told["checks"].items()
        }


def test_everything_that_can_happen_happens():
    _, truth = run(OPTIONS)

    assert set(truth["counts"]) == {
        "registration",
        "startup",
        "shutdown",
        "upgraded",
        "alive",
        "transition",
        "watcher.nagios",
        "watcher.exec",
        "governor.enter",
        "governor.exit",
        "governor.timeouts",
    }
    assert {node["state"] for node in truth["nodes"].values()} == {"up", "down", "crashed", "gone"}
    assert truth["governors"]["PUPPET"]["held_max"] == 5
    assert any(check["changes"] > 3 for node in truth["nodes"].values() for check in node["checks"].values())


def test_events_fit_their_schemas():
    names = {
        "choria.machine.transition": "choria.machine.v1.transition",
        "choria.machine.watcher.nagios.state": "choria.machine.watcher.nagios.v1.state",
        "choria.machine.watcher.exec.state": "choria.machine.watcher.exec.v1.state",
        "choria.lifecycle.event.startup.server": "choria.lifecycle.v1.startup",
        "choria.lifecycle.event.shutdown.server": "choria.lifecycle.v1.shutdown",
        "choria.lifecycle.event.alive.server": "choria.lifecycle.v1.alive",
        "choria.lifecycle.event.upgraded.server": "choria.lifecycle.v1.upgraded",
    }
    schemas = {subject: read(name) for subject, name in names.items()}
    filecontent = read("choria.registration.v1.filecontent")
    events, _ = run(OPTIONS)

    for event in events:
        if event.subject in schemas:
            assert list(problems(decode(event.payload), schemas[event.subject])) == []
        elif event.subject == "choria.discovery":
            assert list(problems(json.loads(parse(event.payload, "request").data), filecontent)) == []


def test_disorder_publishes_more_and_later_and_tells_the_same():
    events, truth = run(replace(OPTIONS, late_share=0.2, duplicate_share=0.2))

    assert truth["published"] == len(events) > truth["events"]
    times = [event.time_s for event in events]
    assert times == sorted(times)


@pytest.mark.parametrize(
    "wrong", [{"nodes": 0}, {"nodes": 10**9}, {"seconds": 0}, {"late_share": 2.0}, {"check_interval_s": 0}]
)
def test_options_that_cannot_work_are_refused(wrong):
    with pytest.raises(ConfigurationError):
        FleetOptions(**wrong)
