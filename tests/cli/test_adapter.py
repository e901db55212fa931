"""`jetlake adapter` as a process, on both servers: it ends in order, survives others' deaths, and stays small."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.adapters.fleet import Fleet, Stored

WAIT_S_MAX = 60.0
CONFIG = {
    "type": "jetstream",
    "ingest": {"protocol": "request", "workers": 2},
    "stream": {"workers": 2},
}

MEMORY_BYTES_MAX = 150 * 1024 * 1024
"""Of the process, Python and its modules (40 MB) included, while it cannot deliver."""


class AdapterProcess:
    def __init__(self, folder, url, content):
        folder.mkdir(exist_ok=True)
        path = folder / f"adapters{len(list(folder.iterdir()))}.json"
        path.write_text(json.dumps(content))
        self.log_path = path.with_suffix(".log")
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "jetlake", "adapter", "run", "-c", str(path), "--metrics-port", "0"],
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=os.environ | {"NATS_URL": url},
            )

    def log(self):
        return self.log_path.read_text()

    def metric(self, name):
        import urllib.request

        page = next(line for line in self.log().splitlines() if "metrics are at" in line).rsplit(" ", 1)[1]
        text = urllib.request.urlopen(page, timeout=60).read().decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(f"{name}{{"))

    def wait_ready(self, workers=2):
        wait_until(lambda: "metrics are at" in self.log(), self.log)
        wait_until(lambda: self.metric("jetlake_adapter_connections") >= workers * 2, self.log)

    def memory_bytes(self):
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def stop(self):
        self.process.terminate()
        return self.process.wait(WAIT_S_MAX)


@pytest.fixture
def start(tmp_path, url):
    started = []

    def run(name, url=url, **options):
        adapter = {**CONFIG, **options}
        adapter["ingest"] = {"topic": f"{name}.in", **CONFIG["ingest"], **options.get("ingest", {})}
        adapter["stream"] = {"topic": f"{name}.out", **CONFIG["stream"], **options.get("stream", {})}
        started.append(AdapterProcess(tmp_path / "adapters", url, {"adapters": {name: adapter}}))
        return started[-1]

    yield run
    for process in started:
        process.process.kill()
        process.process.wait()


@pytest.fixture
def stored(url):
    opened = Stored(url)
    yield opened
    opened.close()


@pytest.fixture
def fleet(url):
    opened = Fleet(url)
    yield opened
    opened.close()


def wait_until(condition, what=str):
    deadline = time.monotonic() + WAIT_S_MAX
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.02)


def test_a_process_that_is_told_to_stop_loses_nothing(start, stored, fleet):
    stored.create("term", "term.out")
    adapter = start("term", queue_len=10_000)
    adapter.wait_ready()

    fleet.register("term.in", 3_000)
    assert adapter.stop() == 0

    assert stored.count("term") == 3_000
    assert "received 3,000, published 3,000, dropped 0" in adapter.log()


def test_the_other_process_takes_over_from_one_that_is_killed(start, stored, fleet):
    stored.create("kill", "kill.out")
    first, second = start("kill"), start("kill")
    first.wait_ready()
    second.wait_ready()

    fleet.register("kill.in", 2_000)
    first.process.kill()
    first.process.wait()
    fleet.register("kill.in", 1_000, first=2_000)
    wait_until(lambda: second.metric("choria_adapter_published_msgs") >= 1_000, second.log)
    assert second.stop() == 0

    senders = [document["sender"] for document in stored.documents("kill")]
    # What the killed one had received and not published is gone; nothing is there twice, and nothing after it is lost.
    assert len(senders) == len(set(senders)) <= 3_000
    assert {f"web{number}.example.net" for number in range(2_000, 3_000)} <= set(senders)


def test_memory_stays_bounded_while_the_stream_is_slow(start, fleet, tmp_path, server_kind):
    from tests.compatibility.server_process import start_server_process

    folder = tmp_path / "slow"
    folder.mkdir()
    slow = start_server_process(server_kind, folder, ["-js", "-sd", str(folder / "store")])
    try:
        opened = Stored(slow.url)
        opened.create("slow", "slow.out")
        opened.close()
        adapter = start(
            "slow",
            queue_len=1_000_000,
            queue_bytes="16MiB",
            queue_wait="0.1s",
            stream={"servers": [slow.url.removeprefix("nats://")], "ack_wait": "60s"},
        )
        adapter.wait_ready()
        os.kill(slow.pid, signal.SIGSTOP)
        body = "x" * 20_000
        for first in range(0, 10_000, 500):
            fleet.register("slow.in", 500, first=first, body=body)
        wait_until(lambda: adapter.metric("choria_adapter_received_msgs") == 10_000, adapter.log)
        wait_until(lambda: adapter.metric("jetlake_adapter_dropped_msgs") > 0, adapter.log)
        memory_bytes = adapter.memory_bytes()
        os.kill(slow.pid, signal.SIGCONT)
        wait_until(
            lambda: (
                adapter.metric("choria_adapter_published_msgs") + adapter.metric("jetlake_adapter_dropped_msgs")
                == 10_000
            ),
            adapter.log,
        )
    finally:
        os.kill(slow.pid, signal.SIGCONT)
        slow.stop()

    # 200 MB came in.
    assert memory_bytes < MEMORY_BYTES_MAX
    assert adapter.stop() == 0


def test_a_file_with_mistakes_is_checked_and_those_adapters_that_can_run_do(start, process, stored, tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("adapters:\n  good: {type: jetstream, ingest: {topic: a}}\n  bad: {type: x, ingest: {topic: a}}\n")

    ended = process("adapter", "check", "-c", str(path))
    assert ended.returncode == 1
    assert "good\tjetstream\ta" in ended.stdout
    assert "adapter bad: type is 'x'" in ended.stderr
    assert json.loads(process("adapter", "check", "-c", str(path), "--json").stdout)["adapters"][0]["name"] == "good"


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "no map"), ("adapters: {}", "no adapter is configured"), ("adapters: {a: 1}", "must be a map")],
)
def test_nothing_that_can_run_ends_with_one_line(process, tmp_path, text, reason):
    path = tmp_path / "a.yaml"
    path.write_text(text)

    ended = process("adapter", "run", "-c", str(path))

    assert ended.returncode == 1
    assert reason in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_missing_file_is_refused(process):
    assert "no such file" in process("adapter", "run", "-c", str(Path("missing.yaml"))).stderr
    assert process("adapter", "run").returncode == 2
