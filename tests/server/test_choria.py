"""The block `choria`: streams out of the box, lifecycle events, adapters that the server runs."""

import json
import os
import signal
import time

import pytest

import jetlake
from jetlake.errors import ConfigurationError, StartError
from tests.adapters.fleet import Fleet, Stored

WAIT_S_MAX = 60.0
DAY_NS = 86_400 * 10**9


def config(folder, block, extra=""):
    return f'jetstream {{ store_dir: "{folder}" }}\n{extra}\nchoria {{\n{block}\n}}\n'


def wait_until(condition):
    deadline = time.monotonic() + WAIT_S_MAX
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def streams_of(server):
    stored = Stored(server.url)
    try:
        return {name: stored.streams.ask(f"STREAM.INFO.{name}")["config"] for name in stored.streams.names()}
    finally:
        stored.close()


def test_the_streams_of_a_broker_are_made_with_its_retention(tmp_path):
    with jetlake.Server(config=config(tmp_path, "streams: true")) as server:
        streams = streams_of(server)

    assert {name: stream["subjects"] for name, stream in streams.items()} == {
        "CHORIA_EVENTS": ["choria.lifecycle.>"],
        "CHORIA_MACHINE": ["choria.machine.>"],
        "CHORIA_STREAM_ADVISORIES": ["$JS.EVENT.ADVISORY.>"],
        "KV_CHORIA_LEADER_ELECTION": ["$KV.CHORIA_LEADER_ELECTION.>"],
        "CHORIA_EXECUTOR": ["choria.submission.in.choria.executor.>"],
    }
    assert streams["CHORIA_EVENTS"]["max_age"] == streams["CHORIA_MACHINE"]["max_age"] == DAY_NS
    assert streams["CHORIA_STREAM_ADVISORIES"]["max_age"] == 7 * DAY_NS
    assert streams["KV_CHORIA_LEADER_ELECTION"]["max_age"] == 60 * 10**9
    assert streams["KV_CHORIA_LEADER_ELECTION"]["max_msgs_per_subject"] == 1
    assert streams["CHORIA_EXECUTOR"]["subject_transform"]["dest"] == "choria.executor.>"


def test_another_retention_changes_the_streams_and_leaves_the_rest_of_them_alone(tmp_path):
    with jetlake.Server(config=config(tmp_path, "streams: true")) as server:
        stored = Stored(server.url)
        own = streams_of(server)["CHORIA_EVENTS"] | {"max_bytes": 10_000_000}
        stored.streams.ask("STREAM.UPDATE.CHORIA_EVENTS", own)
        stored.close()

    block = 'streams { event_retention: "30d", machine_retention: 3600, executor_retention: 0, event_replicas: -1 }'
    with jetlake.Server(config=config(tmp_path, block)) as server:
        streams = streams_of(server)

    assert streams["CHORIA_EVENTS"]["max_age"] == 30 * DAY_NS
    assert streams["CHORIA_EVENTS"]["max_bytes"] == 10_000_000
    assert streams["CHORIA_MACHINE"]["max_age"] == 3600 * 10**9


def test_a_retention_of_nothing_makes_no_stream(tmp_path):
    block = "streams { event_retention: 0, leader_election_ttl: 0, executor_retention: 0 }"

    with jetlake.Server(config=config(tmp_path, block)) as server:
        assert set(streams_of(server)) == {"CHORIA_MACHINE", "CHORIA_STREAM_ADVISORIES"}


def test_streams_can_be_left_alone(tmp_path):
    with jetlake.Server(config=config(tmp_path, "streams { manage_streams: false }")) as server:
        assert streams_of(server) == {}


def test_advisories_and_machine_events_are_kept(tmp_path):
    with jetlake.Server(config=config(tmp_path, "streams: true")) as server:
        fleet, stored = Fleet(server.url), Stored(server.url)
        fleet.publish("choria.machine.transition", b"{}")
        stored.create("OTHER", "other")
        wait_until(lambda: stored.count("CHORIA_MACHINE") == 1 and stored.count("CHORIA_STREAM_ADVISORIES") > 0)
        fleet.close()
        stored.close()


def test_a_server_tells_when_it_starts_and_stops(tmp_path):
    text = config(tmp_path, "streams: true\nidentity: broker1.example.net")
    with jetlake.Server(config=text):
        pass
    with jetlake.Server(config=text) as server:
        stored = Stored(server.url)
        wait_until(lambda: stored.count("CHORIA_EVENTS") == 3)
        events = [stored.message("CHORIA_EVENTS", sequence) for sequence in (1, 2, 3)]
        stored.close()

    assert [event["subject"] for event in events] == [
        "choria.lifecycle.event.startup.broker",
        "choria.lifecycle.event.shutdown.broker",
        "choria.lifecycle.event.startup.broker",
    ]
    first = json.loads(events[0]["data"])
    assert first["subject"] == "broker1.example.net"
    assert first["data"]["version"] == jetlake.__version__


def test_the_old_format_of_events_can_be_asked_for(tmp_path):
    block = "streams: true\nlegacy_lifecycle_format: true\ncomponent: nats"
    with jetlake.Server(config=config(tmp_path, block)) as server:
        stored = Stored(server.url)
        wait_until(lambda: stored.count("CHORIA_EVENTS") == 1)
        event = stored.message("CHORIA_EVENTS", 1)
        stored.close()

    assert event["subject"] == "choria.lifecycle.event.startup.nats"
    assert json.loads(event["data"])["protocol"] == "io.choria.lifecycle.v1.startup"


ADAPTER = """
adapters {
  node_data {
    type: jetstream
    stream { topic: choria.node_metadata, workers: 2 }
    ingest { topic: choria.discovery, protocol: request, workers: 2 }
  }
}
"""


def test_adapters_run_beside_the_server_and_come_back_when_killed(tmp_path):
    with jetlake.Server(config=config(tmp_path, ADAPTER)) as server:
        fleet, stored = Fleet(server.url), Stored(server.url)
        stored.create("M", "choria.node_metadata")
        first = wait_for_adapter(server)
        register_until_stored(fleet, stored, "M", 1)
        os.kill(first, signal.SIGKILL)
        second = wait_for_adapter(server, other_than=first)
        register_until_stored(fleet, stored, "M", stored.count("M") + 1)
        fleet.close()
        stored.close()

    with pytest.raises(ProcessLookupError):
        os.kill(second, 0)


def test_adapters_log_in_as_the_configuration_says(tmp_path):
    extra = "authorization { users: [{ user: adapter, password: secret }, { user: ada, password: ada }] }"
    block = f"user: adapter\npassword: secret\n{ADAPTER}"
    with jetlake.Server(config=config(tmp_path, block, extra)) as server:
        url = server.url.replace("nats://", "nats://ada:ada@")
        fleet, stored = Fleet(url), Stored(url)
        stored.create("M", "choria.node_metadata")
        process_id = wait_for_adapter(server)
        register_until_stored(fleet, stored, "M", 1)
        with open(f"/proc/{process_id}/cmdline") as file:
            assert "secret" not in file.read()
        fleet.close()
        stored.close()


def test_adapters_end_before_the_clients_of_a_leaving_server_are_closed(tmp_path):
    block = f"streams: true\n{ADAPTER}"
    with jetlake.Server(config=config(tmp_path, block)) as server:
        process_id = wait_for_adapter(server)
        stored = Stored(server.url)

        server.leave(lambda _: True)

        assert server._choria._children.process_ids == []
        assert not os.path.exists(f"/proc/{process_id}")
        stored.close()
    with jetlake.Server(config=config(tmp_path, "streams: true")) as server:
        stored = Stored(server.url)
        wait_until(lambda: stored.count("CHORIA_EVENTS") == 3)
        subjects = [stored.message("CHORIA_EVENTS", sequence)["subject"].split(".")[3] for sequence in (1, 2, 3)]
        stored.close()

    assert subjects == ["startup", "shutdown", "startup"]


def wait_for_adapter(server, other_than=0):
    found = []

    def is_there():
        found[:] = [each for each in server._choria._children.process_ids if each != other_than]
        return bool(found)

    wait_until(is_there)
    return found[0]


def register_until_stored(fleet, stored, stream, count):
    """Let nodes register until the adapter, which takes its time to start, has stored so many."""
    deadline = time.monotonic() + WAIT_S_MAX
    while stored.count(stream) < count:
        assert time.monotonic() < deadline
        fleet.register("choria.discovery", 1)
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("stream: true", 'unknown field "stream"'),
        ("streams: 7", '"streams" must be a map'),
        ('streams { event_retention: "soon" }', "write a time such as 24h"),
        ("streams { event_retentoin: 1 }", "unknown field"),
        ("streams { machine_replicas: 3 }", "a single server keeps one copy"),
        ("adapters: 7", '"adapters" must be a map'),
        ("account: NOBODY", "there is no such account"),
        ("metrics_port: 70000", "at most 65535"),
    ],
)
def test_a_mistake_is_refused_with_its_place(tmp_path, block, reason):
    with pytest.raises(ConfigurationError, match=reason):
        jetlake.Server(config=config(tmp_path, block))


def test_streams_without_jetstream_are_refused():
    with pytest.raises(StartError, match="needs JetStream"):
        jetlake.Server(config="choria { streams: true }").start()


def test_the_account_must_be_named_where_several_could_be_meant(tmp_path):
    accounts = "accounts { A { jetstream: enabled, users: [{user: a}] }, B { jetstream: enabled, users: [{user: b}] } }"

    with pytest.raises(ConfigurationError, match='needs an "account"'):
        jetlake.Server(config=config(tmp_path, "streams: true", accounts))
    with jetlake.Server(config=config(tmp_path, "streams: true\naccount: B", accounts)) as server:
        of_a, of_b = (server.url.replace("nats://", f"nats://{user}:@") for user in ("a", "b"))
        stored = Stored(of_b)
        assert "CHORIA_EVENTS" in stored.streams.names()
        stored.close()
        stored = Stored(of_a)
        assert stored.streams.names() == []
        stored.close()
