"""Many machines in one process: what they cost, and whether each keeps its time: `python -m benchmarks.agents`.

A server and one `jetlake agent run` are started. Every machine has a schedule, a timer, a file watcher, a kv watcher
and a command, as a real one has. The agent is measured from outside, by its files under /proc, while nothing happens
and while a key that all of them watch is changed.

```text
python -m benchmarks.agents                          500 machines, Jetlake
python -m benchmarks.agents --machines 1000
```
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import jetlake
from jetlake import kv

MACHINES = 500
IDLE_S = 20.0
SETTLE_S = 5.0
"""After the start, before anything is measured."""

BUCKET = "BENCH"
WAIT_S_MAX = 300.0

MANIFEST = """
name: bench{number}
version: 1.0.0
initial_state: WAIT
transitions:
  - {{name: changed, from: [WAIT], destination: WORK}}
  - {{name: done, from: [WORK], destination: WAIT}}
  - {{name: failed, from: [WORK, WAIT], destination: WAIT}}
watchers:
  - name: wanted
    type: kv
    state_match: [WAIT]
    success_transition: changed
    properties: {{bucket: {bucket}, key: wanted, mode: {mode}}}
    interval: 30s
  - name: work
    type: exec
    state_match: [WORK]
    success_transition: done
    fail_transition: failed
    properties:
      command: /bin/sh -c 'echo "$WANTED" > seen'
      timeout: 5m
      environment: ['WANTED={{{{ lookup "data.{bucket}_wanted" "" }}}}']
  - {{name: look, type: file, interval: 5s, properties: {{path: machine.yaml, gather_initial_state: true}}}}
  - {{name: nightly, type: schedule, properties: {{duration: 1h, schedules: ["0 2 * * *"]}}}}
  - {{name: patience, type: timer, state_match: [WORK], fail_transition: failed, properties: {{timer: 1h}}}}
"""


@dataclass
class Result:
    """What was measured."""

    machines: int
    mode: str
    # From the start of the process until all machines run.
    started_s: float = 0.0
    memory_mib: float = 0.0
    memory_after_mib: float = 0.0
    threads: int = 0
    # Of one core, while only files are looked at.
    idle_percent: float = 0.0
    # From the change of the key until every command has run with the new value.
    change_s: float = 0.0
    change_cpu_s: float = 0.0

    def __str__(self) -> str:
        change = (
            f"a change of a key: {self.machines} commands with the new value after {self.change_s:.1f} s, "
            f"{self.change_cpu_s:.1f} s of processor time in the agent; {self.memory_after_mib:.0f} MiB after it"
        )
        return "\n".join(
            (
                f"{self.machines} machines, five watchers each, kv by {self.mode}",
                f"started after {self.started_s:.1f} s; {self.memory_mib:.0f} MiB, {self.threads} threads",
                f"idle: {self.idle_percent:.1f} % of one core",
                change,
            )
        )


class Watched:
    """A process, as /proc shows it."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")

    @property
    def cpu_s(self) -> float:
        """Its own time, without that of the commands it ran."""
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def status(self, key: str) -> int:
        line = next(line for line in (self._folder / "status").read_text().splitlines() if line.startswith(f"{key}:"))
        return int(line.split()[1])

    @property
    def memory_mib(self) -> float:
        return self.status("VmRSS") / 1024


def write_machines(store: Path, count: int, mode: str) -> None:
    for number in range(count):
        folder = store / f"bench{number:05}"
        folder.mkdir(parents=True)
        (folder / "machine.yaml").write_text(MANIFEST.format(number=number, bucket=BUCKET, mode=mode))


async def wait_until(condition, what: str) -> None:
    deadline_s = time.monotonic() + WAIT_S_MAX
    while not condition():
        if time.monotonic() > deadline_s:
            raise SystemExit(f"after {WAIT_S_MAX:g} s {what}")
        await asyncio.sleep(0.1)


async def measure(url: str, folder: Path, machines: int, mode: str, idle_s: float) -> Result:
    """Run an agent and return what it cost."""
    result = Result(machines, mode)
    store = folder / "machines"
    write_machines(store, machines, mode)
    (folder / "node.yaml").write_text(f"identity: bench\nlifecycle: {{enabled: false}}\nmachines: {{store: {store}}}\n")
    async with kv.connect(url) as buckets:
        bucket = await buckets.create(BUCKET, str)
        with (folder / "log").open("wb") as log:
            began_s = time.monotonic()
            process = subprocess.Popen(  # noqa: ASYNC220
                [sys.executable, "-m", "jetlake", "agent", "run", "-c", str(folder / "node.yaml")],
                stderr=log,
                env=os.environ | {"NATS_URL": url},
            )
        try:
            lines = folder / "log"
            await wait_until(lambda: lines.read_bytes().count(b" starts in ") == machines, "not all machines ran")
            result.started_s = time.monotonic() - began_s
            watched = Watched(process.pid)
            await asyncio.sleep(SETTLE_S)
            cpu_s, at_s = watched.cpu_s, time.monotonic()
            await asyncio.sleep(idle_s)
            result.idle_percent = 100 * (watched.cpu_s - cpu_s) / (time.monotonic() - at_s)
            result.memory_mib, result.threads = watched.memory_mib, watched.status("Threads")
            cpu_s, at_s = watched.cpu_s, time.monotonic()
            await bucket.put("wanted", "new")
            await wait_until(
                lambda: lines.read_bytes().count(b"done: WORK => WAIT") == machines, "not all commands had run"
            )
            result.change_s, result.change_cpu_s = time.monotonic() - at_s, watched.cpu_s - cpu_s
            result.memory_after_mib = watched.memory_mib
        finally:
            process.terminate()
            process.wait(60)
    seen = [(each / "seen").read_text() for each in store.iterdir()]
    assert seen == ["new\n"] * machines, "a command saw another value"
    return result


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure many machines in one process.")
    parser.add_argument("--machines", type=int, default=MACHINES)
    parser.add_argument("--mode", choices=("watch", "poll"), default="watch")
    parser.add_argument("--idle", type=float, default=IDLE_S, help="seconds of watching an idle agent")
    parser.add_argument("--server", default="", help="a server that runs already")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if options.server:
            result = asyncio.run(measure(options.server, place, options.machines, options.mode, options.idle))
        else:
            with jetlake.Server(jetstream=True, store_directory=place / "store") as server:
                result = asyncio.run(measure(server.url, place, options.machines, options.mode, options.idle))
    print(json.dumps(asdict(result)) if options.json else result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
