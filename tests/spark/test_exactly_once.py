"""Every row is stored once, whatever fails: tasks, commits, the driver, a worker.

`JETLAKE_EXACTLY_ONCE_ROWS` makes the runs larger than the few rows that are enough to hit every path.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import jetlake
from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.client.raw_streams import Streams
from tests.compatibility.server_process import ServerProcess, find_executable
from tests.spark.standalone import StandaloneCluster, kill_group

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.crash, pytest.mark.timeout(1200)]

ROWS = int(os.environ.get("JETLAKE_EXACTLY_ONCE_ROWS", "20000"))
BATCHES = 2
KILLS = 3
RUN_S_MAX = 400
HOUR_NS = 3600 * 10**9
WINDOW_MIN_NS = 10**8

PROGRAM = Path(__file__).with_name("exactly_once_query.py")


class Copy:
    """A stream, the stream it is copied to, and runs of the query that does it."""

    def __init__(
        self, url: str, streams: Streams, folder: Path, *, replicas: int = 1, guarantee="exactly-once", commit="auto"
    ):
        self.url = url
        self.streams = streams
        self.folder = folder
        self.faults = folder / "faults"
        self.faults.mkdir()
        for name in ("SOURCE", "TARGET"):
            # A staged commit needs no ids, so the server is to have forgotten them.
            window_ns = WINDOW_MIN_NS if commit == "staged" else HOUR_NS
            config = {"name": name, "subjects": [f"{name}.>"], "duplicate_window": window_ns, "num_replicas": replicas}
            streams.ask(f"STREAM.CREATE.{name}", {**config, "allow_direct": True})
        self.plan = {
            "url": url,
            "source": "SOURCE",
            "target": "TARGET",
            "checkpoint": str(folder / "checkpoint"),
            "master": "local[2,4]",
            "rows": ROWS // BATCHES,
            "guarantee": guarantee,
            "commit": commit,
            "faults": str(self.faults),
        }

    def fill(self, shore_fill) -> None:
        shore_fill("SOURCE", ROWS)

    def start(self) -> subprocess.Popen[bytes]:
        with (self.folder / "query.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, str(PROGRAM), json.dumps(self.plan)], stdout=log, stderr=log, start_new_session=True
            )

    def run(self) -> int:
        """Run the query until it ends; return its exit code."""
        process = self.start()
        try:
            return process.wait(RUN_S_MAX)
        finally:
            kill_group(process)

    def stored(self) -> int:
        return self.streams.state("TARGET").messages

    def sent(self) -> int:
        """Return what can be seen of the rows that tasks have sent: of a batch that is stored at once only this."""
        if self.plan["commit"] != "staged":
            return self.stored()
        path = self.faults / "sent"
        return path.stat().st_size if path.exists() else 0

    def wait_for_more(self, process: subprocess.Popen[bytes], before: int) -> None:
        deadline = time.monotonic() + RUN_S_MAX
        while self.sent() <= before:
            assert process.poll() is None or self.sent() > before, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.02)

    def numbers(self) -> list[int]:
        """Return what is in the target, by the numbers in its messages."""
        rows = jetlake.table("TARGET", self.url, columns=["data"]).to_arrow()
        return sorted(json.loads(data)["n"] for data in rows.column("data").to_pylist())

    def log(self) -> str:
        return (self.folder / "query.log").read_text(errors="replace")[-4000:]


@pytest.fixture(params=["staged", "ids"])
def copy(request, fresh_shore, tmp_path):
    made = Copy(fresh_shore.url, fresh_shore.streams, tmp_path, commit=request.param)
    made.fill(fresh_shore.fill)
    return made


def test_tasks_and_a_commit_that_fail_store_nothing_twice(copy):
    (copy.faults / "tasks").touch()
    (copy.faults / "commit").touch()

    # The failed commit ends the first run.
    assert copy.run() != 0, copy.log()
    assert (copy.faults / "commit-failed").exists(), copy.log()
    assert copy.run() == 0, copy.log()

    assert (copy.faults / "task-failed-1").exists()
    assert copy.numbers() == list(range(ROWS))


def test_a_commit_that_the_driver_does_not_hear_of_stores_nothing_twice(copy):
    (copy.faults / "after-commit").touch()

    assert copy.run() != 0, copy.log()
    assert copy.stored() == ROWS // BATCHES
    assert copy.run() == 0, copy.log()

    assert copy.numbers() == list(range(ROWS))


def test_a_server_that_is_killed_between_the_rows_and_their_commit_stores_every_row_once(fresh_shore, tmp_path):
    copy = Copy(fresh_shore.url, fresh_shore.streams, tmp_path, commit="staged")
    copy.fill(fresh_shore.fill)
    (copy.faults / "wait").touch()
    process = copy.start()
    try:
        deadline = time.monotonic() + RUN_S_MAX
        while not (copy.faults / "waiting").exists():
            assert time.monotonic() < deadline, copy.log()
            assert process.poll() is None, copy.log()
            time.sleep(0.02)
        fresh_shore.kill_and_restart()
        (copy.faults / "wait").unlink()
        assert process.wait(RUN_S_MAX) != 0, copy.log()
    finally:
        kill_group(process)
    assert "repeat the batch" in copy.log()
    copy.streams = fresh_shore.streams
    assert copy.stored() == 0
    assert copy.run() == 0, copy.log()

    assert copy.numbers() == list(range(ROWS))


def test_without_ids_the_same_failures_store_rows_twice(fresh_shore, tmp_path):
    copy = Copy(fresh_shore.url, fresh_shore.streams, tmp_path, guarantee="at-least-once")
    copy.fill(fresh_shore.fill)
    (copy.faults / "commit").touch()

    assert copy.run() != 0, copy.log()
    assert copy.run() == 0, copy.log()

    numbers = copy.numbers()
    assert set(numbers) == set(range(ROWS))
    assert len(numbers) > ROWS


def kill_thrice_then_finish(copy: Copy) -> None:
    (copy.faults / "slow").touch()
    for _ in range(KILLS):
        before = copy.sent()
        process = copy.start()
        try:
            copy.wait_for_more(process, before)
        finally:
            kill_group(process)
    (copy.faults / "slow").unlink()
    assert copy.run() == 0, copy.log()


def test_a_driver_that_is_killed_three_times_stores_every_row_once(copy):
    kill_thrice_then_finish(copy)

    assert copy.numbers() == list(range(ROWS))


def test_a_worker_of_a_cluster_that_is_killed_stores_every_row_once(copy, tmp_path):
    with StandaloneCluster(tmp_path / "cluster", workers=2) as cluster:
        copy.plan["master"] = cluster.url
        copy.plan["config"] = cluster.config
        (copy.faults / "slow").touch()
        process = copy.start()
        try:
            copy.wait_for_more(process, 0)
            cluster.kill_worker(0)
            (copy.faults / "slow").unlink()
            assert process.wait(RUN_S_MAX) == 0, copy.log()
        finally:
            kill_group(process)

    assert copy.numbers() == list(range(ROWS))


class NatsCluster:
    """Three nats-servers that keep each message three times."""

    def __init__(self, folder: Path) -> None:
        import socket

        sockets = [socket.socket() for _ in range(6)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in sockets]
        for one in sockets:
            one.close()
        routes = ", ".join(f"nats://127.0.0.1:{port}" for port in ports[3:])
        self.members = []
        for number in range(3):
            home = folder / f"member-{number}"
            home.mkdir(parents=True)
            (home / "server.conf").write_text(
                f'server_name: member{number}\nlisten: "127.0.0.1:{ports[number]}"\n'
                f'jetstream {{ store_dir: "{home}" }}\n'
                f'cluster {{ name: three, listen: "127.0.0.1:{ports[3 + number]}", routes: [{routes}] }}\n'
            )
            self.members.append(ServerProcess("nats-server", home, ["-c", str(home / "server.conf")]))
        self.url = ",".join(f"nats://127.0.0.1:{port}" for port in ports[:3])
        assert find_executable("nats-server")

    def streams(self) -> Streams:
        """Return the streams of the cluster as soon as it has a leader."""
        deadline = time.monotonic() + 60
        while True:
            assert time.monotonic() < deadline, self.members[0].log()
            connection = None
            try:
                connection = RawConnection(ConnectionSettings(url=self.url))
                if "error" not in connection.request("$JS.API.INFO", timeout_s=2).json():
                    return Streams(connection)
            except jetlake.ClientError:
                pass
            if connection is not None:
                connection.close()
            time.sleep(0.2)

    def stop(self) -> None:
        for member in self.members:
            member.stop()


@pytest.fixture
def nats_cluster(tmp_path):
    cluster = NatsCluster(tmp_path / "cluster")
    yield cluster
    cluster.stop()


def test_on_a_cluster_of_three_nats_servers_every_row_is_stored_once(nats_cluster, tmp_path, request):
    streams = nats_cluster.streams()
    request.addfinalizer(streams.connection.close)
    copy = Copy(nats_cluster.url, streams, tmp_path, replicas=3)
    for number in range(0, ROWS, 100):
        payloads = [json.dumps({"n": one}).encode() for one in range(number, min(number + 100, ROWS))]
        for payload in payloads[:-1]:
            streams.connection.send(b"PUB SOURCE.a %d\r\n%s\r\n" % (len(payload), payload))
        # The last of each hundred is acknowledged, and with it those before.
        assert "error" not in streams.connection.request("SOURCE.a", payloads[-1]).json()

    (copy.faults / "tasks").touch()
    (copy.faults / "commit").touch()
    assert copy.run() != 0, copy.log()
    kill_thrice_then_finish(copy)

    assert copy.numbers() == list(range(ROWS))
