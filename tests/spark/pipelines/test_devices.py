"""The pipeline `devices`: events of simulated devices through a server into tables, compared with a plain fold."""

import random
import subprocess
import sys

import pytest

from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.client.raw_streams import Streams
from jetlake.errors import ConfigurationError
from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines.catalog import Catalog
from jetlake.spark.pipelines.runner import Runner
from jetlake.spark.pipelines.validation import validate
from tests.cluster import start_cluster
from tests.spark.pipelines.driver_kills import BEFORE, die_at
from tests.spark.pipelines.shipped_crash_runner import small_batches
from tests.spark.standalone import StandaloneCluster

pytest.importorskip("google.protobuf", reason="the extra `devices` is not installed")

from jetlake.devices.bulk import BulkPublisher
from jetlake.devices.simulator.simulation import Simulation, SimulationOptions
from tests.spark.pipelines.device_truth import BusTruth, DeviceTruth, check, check_bus, rows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

BAD = ("events.x.metadata.devicemetadataupdated", "events.x.resources.y.resourcechanged")


class Fleet:
    """Simulated devices: their events as they happened, and as the stream has them."""

    def __init__(self, devices, seconds, *, disorder=True, seed=3):
        simulation = Simulation(SimulationOptions(devices=devices, seconds=seconds, seed=seed, start_ns=10**18))
        self.messages = [timed.message for timed in simulation.timed_events()]
        self.simulation = simulation
        self.truth = DeviceTruth()
        for message in self.messages:
            self.truth.take(message)
        self.sent = disordered(self.messages, random.Random(seed)) if disorder else self.messages

    def publish(self, url, *, replicas=1, stream="EVENTS"):
        connection = RawConnection(ConnectionSettings(url=url, name="test"))
        config = {"name": stream, "subjects": ["events.>"], "num_replicas": replicas}
        Streams(connection).ask(f"STREAM.CREATE.{stream}", config)
        with BulkPublisher(ConnectionSettings(url=url, name="test"), stream=stream) as publisher:
            publisher.publish(self.sent)
        for subject in BAD:
            connection.request(subject, b"garbage")
        connection.close()
        self.bus = BusTruth(url, stream)


def disordered(messages, chance):
    """Return events as a bus with several writers and redelivery has them: some late, some twice."""
    placed = []
    for place, message in enumerate(messages):
        late = chance.randrange(400) if chance.random() < 0.05 else 0
        placed.append((place + late, message))
        if chance.random() < 0.05:
            placed.append((place + chance.randrange(400), message))
    return [message for _, message in sorted(placed, key=lambda each: each[0])]


def pipeline(rows_per_trigger=250):
    return small_batches("devices", rows_per_trigger)


def run(spark, lake, url, made):
    (state,) = Runner(spark, lake, url, once=True).run([made])
    assert state.error == ""
    assert state.state == "finished"


def check_all(lake, fleet):
    check(lake, fleet.truth)
    check_bus(lake, fleet.bus)
    truth = fleet.simulation.truth.as_json(fleet.simulation.devices)
    assert len(rows(lake, "device_changes")) == truth["events"]["ResourceChanged"]
    assert len(rows(lake, "device_sessions")) == truth["sessions"]
    assert sorted(row["subject"] for row in rows(lake, "devices_bad")) == sorted(BAD)
    assert all("not protobuf" in row["reason"] and row["data"] == b"garbage" for row in rows(lake, "devices_bad"))


@pytest.mark.parametrize("name", ["devices", "dead"])
def test_the_definition_is_valid(spark, tmp_path, name):
    verdict = validate(Catalog().find(name), spark, Lake(tmp_path), None)

    assert verdict.problems == []
    assert {f"{name}_bad", *verdict.columns} >= set(Catalog().find(name).table_names())


def test_a_generation_that_nobody_knows_is_refused():
    with pytest.raises(ConfigurationError, match="it must be 2025 or 2021"):
        Catalog().find("devices", {"generation": "2030"})


def test_tables_hold_what_happened_though_events_come_late_and_twice(spark, fresh_shore, tmp_path):
    fleet = Fleet(10, 500.0)
    fleet.publish(fresh_shore.url)
    lake = Lake(tmp_path / "lake")

    run(spark, lake, fresh_shore.url, pipeline())

    check_all(lake, fleet)


def test_a_run_goes_on_where_the_last_one_ended_and_takes_only_what_is_new(spark, fresh_shore, tmp_path):
    fleet = Fleet(6, 400.0)
    everything = fleet.sent
    fleet.sent = everything[: len(everything) // 2]
    fleet.publish(fresh_shore.url)
    lake = Lake(tmp_path / "lake")
    run(spark, lake, fresh_shore.url, pipeline(10_000))

    with BulkPublisher(ConnectionSettings(url=fresh_shore.url), stream="EVENTS") as publisher:
        publisher.publish(everything[len(everything) // 2 :])
    run(spark, lake, fresh_shore.url, pipeline(10_000))

    fleet.bus = BusTruth(fresh_shore.url)
    check_all(lake, fleet)


@pytest.mark.slow
@pytest.mark.crash
def test_tables_are_exact_after_the_driver_was_killed_between_two_of_them(spark, fresh_shore, tmp_path):
    fleet = Fleet(6, 400.0)
    fleet.publish(fresh_shore.url)
    lake = Lake(tmp_path / "lake")

    # The history has the batch, and the newest values, by which it is made, have not.
    die_at(fresh_shore.url, lake, "devices", 200, "device_changes", 1)
    run(spark, lake, fresh_shore.url, pipeline(200))

    check_all(lake, fleet)


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(5400)
def test_tables_are_exact_after_three_kills_of_the_driver(spark, fresh_shore, tmp_path):
    fleet = Fleet(20, 900.0)
    fleet.publish(fresh_shore.url)
    lake = Lake(tmp_path / "lake")

    die_at(fresh_shore.url, lake, "devices", 400, "device_changes", 1)
    # Commands have the batch, and the quality of the bus has not.
    die_at(fresh_shore.url, lake, "devices", 400, "device_commands", 2)
    die_at(fresh_shore.url, lake, "devices", 400, "device_bus_quality", 4, BEFORE)
    run(spark, lake, fresh_shore.url, pipeline(400))

    check_all(lake, fleet)


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_tables_hold_what_happened_when_a_cluster_of_nats_servers_is_read(spark, tmp_path):
    fleet = Fleet(10, 500.0)
    lake = Lake(tmp_path / "lake")

    with start_cluster(tmp_path / "cluster") as cluster:
        fleet.publish(cluster.urls[0], replicas=3)
        run(spark, lake, cluster.url, pipeline())

    check_all(lake, fleet)


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_tables_hold_what_happened_on_a_cluster_of_two_workers(fresh_shore, tmp_path):
    fleet = Fleet(10, 500.0)
    fleet.publish(fresh_shore.url)
    lake = Lake(tmp_path / "lake")
    command = [sys.executable, "-m", "jetlake", "pipeline", "run", "devices", "--once", "--server", fresh_shore.url]

    with StandaloneCluster(tmp_path / "cluster", workers=2) as cluster:
        # The usual number, 200, is for larger clusters: each partition has a state store of its own.
        ended = subprocess.run(
            [*command, "--lake", str(lake.folder), *cluster.flags(spark__sql__shuffle__partitions="2")],
            capture_output=True,
            text=True,
            timeout=5000,
            check=False,
        )

    assert ended.returncode == 0, ended.stdout + ended.stderr[-3000:]
    check_all(lake, fleet)
