"""The pipeline `fleet` from real servers: drivers killed, a Spark cluster, three nats-servers; always exact."""

import os
import signal
import subprocess
import sys
import time

import pytest

from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.client.raw_streams import Streams
from jetlake.simulation.fleet import Fleet, FleetOptions
from jetlake.simulation.publisher import publish
from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines import catalog
from jetlake.spark.pipelines.runner import Runner
from jetlake.spark.pipelines.state import PipelineFiles
from tests.cluster import start_cluster
from tests.spark.pipelines.fleet_truth_check import differences
from tests.spark.standalone import StandaloneCluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

STREAMS = {
    "CHORIA_EVENTS": "choria.lifecycle.>",
    "CHORIA_MACHINE": "choria.machine.>",
    "CHORIA_REGISTRATION": "choria.discovery",
}
KILLS = int(os.environ.get("JETLAKE_CRASH_KILLS", "3"))
RUN_S_MAX = 600
STORED_S_MAX = 120


def feed(url, *, nodes, seconds, replicas=1):
    """Have a server store what a fleet says, late and twice in part, and return what really happened."""
    connection = RawConnection(ConnectionSettings(url=url, name="test"))
    streams = Streams(connection)
    for name, subject in STREAMS.items():
        body = {"name": name, "subjects": [subject], "allow_direct": True, "num_replicas": replicas}
        streams.ask(f"STREAM.CREATE.{name}", body)
    fleet = Fleet(
        FleetOptions(
            nodes=nodes,
            seconds=seconds,
            seed=9,
            start_s=1_767_225_600,
            restarts_per_hour=3,
            crashes_per_hour=3,
            late_share=0.05,
            duplicate_share=0.05,
        )
    )
    sender = RawConnection(ConnectionSettings(url=url, name="test"))
    sent = publish(fleet.events(), sender, speed=0)
    sender.close()
    deadline = time.monotonic() + STORED_S_MAX
    while sum(streams.state(name).messages for name in STREAMS) < sent:
        assert time.monotonic() < deadline, "not everything was stored"
        time.sleep(0.1)
    connection.close()
    return fleet.truth.as_json()


def command(url, lake, batch, *more):
    program = [sys.executable, "-m", "jetlake", "pipeline", "run", "fleet", "--once", "--set", f"batch={batch}"]
    return [*program, "--server", url, "--lake", str(lake), *more]


def kill_after_batches(arguments, files, count, log):
    """Start a run, and kill it with everything it started when so many more batches are done."""
    before = len(files.progress())
    process = subprocess.Popen(arguments, stdout=log, stderr=log, start_new_session=True)
    deadline = time.monotonic() + RUN_S_MAX
    while len(files.progress()) < before + count:
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline, "it does not get on"
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_the_tables_are_exact_after_three_drivers_were_killed(fresh_shore, tmp_path):
    truth = feed(fresh_shore.url, nodes=60, seconds=3600)
    lake = tmp_path / "lake"
    files = PipelineFiles(lake, "fleet")
    batch = truth["published"] // (3 * KILLS + 3)
    arguments = command(fresh_shore.url, lake, batch)

    with (tmp_path / "run.log").open("w") as log:
        for _ in range(KILLS):
            kill_after_batches(arguments, files, 2, log)
            assert files.status().state == "died"
        code = subprocess.run(arguments, stdout=log, stderr=log, timeout=RUN_S_MAX, check=False).returncode

    assert code == 0, (tmp_path / "run.log").read_text()[-3000:]
    assert differences(Lake(lake), truth) == []


def test_the_tables_are_exact_on_a_spark_cluster_of_two_workers(fresh_shore, tmp_path):
    truth = feed(fresh_shore.url, nodes=40, seconds=1800)
    lake = tmp_path / "lake"
    with StandaloneCluster(tmp_path / "cluster", workers=2) as cluster, (tmp_path / "run.log").open("w") as log:
        arguments = command(fresh_shore.url, lake, 3000, *cluster.flags(spark__sql__shuffle__partitions="2"))
        code = subprocess.run(arguments, stdout=log, stderr=log, timeout=RUN_S_MAX, check=False).returncode

    assert code == 0, (tmp_path / "run.log").read_text()[-3000:]
    assert differences(Lake(lake), truth) == []


@pytest.mark.nats_server
def test_the_tables_are_exact_from_a_cluster_of_three_nats_servers(spark, tmp_path):
    with start_cluster(tmp_path / "servers") as cluster:
        url = ",".join(cluster.urls)
        truth = feed(cluster.urls[0], nodes=40, seconds=1800, replicas=3)
        lake = Lake(tmp_path / "lake")
        pipeline = catalog.shipped("fleet", "fleet", {"batch": "3000"})
        (state,) = Runner(spark, lake, url, once=True).run([pipeline])

    assert (state.state, state.error) == ("finished", "")
    assert differences(lake, truth) == []
