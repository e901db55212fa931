"""Simulated devices, and the account of what they did."""

import json
import subprocess
import sys
from collections import Counter

import pytest

from jetlake.client.raw_connection import ConnectionSettings
from jetlake.devices.codec import EventCodec
from jetlake.devices.consumer import read_events
from jetlake.devices.content import value_of
from jetlake.devices.simulator.run import check_unused, run_simulation
from jetlake.devices.simulator.simulation import Simulation, SimulationOptions
from jetlake.devices.twin import Twin
from jetlake.errors import ConfigurationError

OPTIONS = SimulationOptions(devices=60, seconds=1200, seed=7, start_ns=1_700_000_000_000_000_000)


def test_same_seed_gives_the_same_events_and_another_one_does_not():
    options = OPTIONS._replace(devices=10, seconds=300)
    first, second, other = (
        [event.message.SerializeToString(deterministic=True) for event in Simulation(each).timed_events()]
        for each in (options, options, options._replace(seed=8))
    )

    assert first == second
    assert first != other


def test_everything_happens_that_devices_do():
    simulation = Simulation(OPTIONS)
    found = list(simulation.timed_events())

    types = Counter(type(event.message).__name__ for event in found)
    truth = simulation.truth

    assert {name: count for name, count in types.items() if "Snapshot" not in name} == truth.events
    assert {
        "ResourceLinksPublished",
        "DeviceMetadataUpdated",
        "ResourceChanged",
        "ResourceUpdatePending",
        "ResourceUpdated",
        "ResourceRetrievePending",
        "ResourceRetrieved",
        "ResourceStateSnapshotTaken",
        "DeviceMetadataSnapshotTaken",
    } <= set(types)
    assert truth.commands["ok"] > truth.commands["error"] > 0
    assert truth.sessions > len(simulation.devices)
    assert truth.unchanged
    assert [event.at_ns for event in found] == sorted(event.at_ns for event in found)


def test_versions_have_no_holes():
    versions = {}
    for event in Simulation(OPTIONS).timed_events():
        encoded = EventCodec().encode(event.message)
        assert encoded.version == versions.get(encoded.key, -1) + 1
        versions[encoded.key] = encoded.version


async def test_twin_of_the_stream_is_what_the_account_says(server, api, stream):
    simulation = Simulation(OPTIONS)
    await check_unused(api, stream, simulation)

    report = run_simulation(simulation, ConnectionSettings(url=server.url), stream=stream)
    twin = Twin()
    count = 0
    async for event in read_events(api, stream, to_end=True):
        await twin.apply(event)
        count += 1

    truth = simulation.truth.as_json(simulation.devices)
    assert report.is_complete
    assert count == report.stored
    assert {view.device_id for view in twin.devices()} == set(truth["devices"])
    for view in twin.devices():
        told = truth["devices"][view.device_id]
        assert view.is_online() == told["online"]
        assert view.name == told["name"]
        assert view.metadata.current.connection.id == told["connection"]
        assert sorted(each.audit_context.correlation_id for each in view.pending_commands(0)) == told["open_commands"]
        if told["online"]:
            known = {href: value_of(resource.latest.content) for href, resource in view.resources.items()}
            assert known == told["values"]
    with pytest.raises(ConfigurationError, match="use another --seed"):
        await check_unused(api, stream, simulation)


async def test_paced_simulation_ends_when_it_is_told_to(server, api, stream):
    simulation = Simulation(OPTIONS._replace(devices=5, seconds=100))
    looks = iter(range(1000))

    report = run_simulation(
        simulation, ConnectionSettings(url=server.url), stream="", speed=50, is_stopping=lambda: next(looks) > 3
    )

    assert not report.is_complete
    assert report.stored < 500


@pytest.mark.parametrize("wrong", [{"devices": 0}, {"seconds": 0}, {"devices": 10_000_000}])
def test_impossible_simulation_is_refused(wrong):
    with pytest.raises(ConfigurationError, match="cannot be simulated"):
        Simulation(OPTIONS._replace(**wrong))


async def test_command_simulates_and_writes_the_truth(server, api, tmp_path):
    truth = tmp_path / "truth.json"
    words = ["simulate", "devices", "--devices", "20", "--seconds", "60", "--seed", "3", "--speed", "0"]

    def run():
        command = [sys.executable, "-m", "jetlake", *words, "--truth", str(truth), "-s", server.url]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    done, again = run(), run()

    assert done.returncode == 0, done.stderr
    assert "events of 20 devices" in done.stdout
    written = json.loads(truth.read_text())
    info = await api.request("STREAM.INFO.EVENTS")
    assert sum(written["events"].values()) <= info["state"]["messages"]
    assert len(written["devices"]) == 20
    assert again.returncode == 1
    assert "use another --seed" in again.stderr
