"""Many competitors for few slots of a governor, counted by somebody else: `python -m benchmarks.governor`.

Worker processes compete; an observer in this process counts who is inside, over sockets of its own and without asking
the server. In the middle one worker is killed, with all the slots it holds: they must become free when their leases
expire.

```text
python -m benchmarks.governor                        1,000 competitors, 50 slots, Jetlake
python -m benchmarks.governor --server nats://…      the same on a server that runs already
```

The exit code is 0 exactly if nobody was inside too many, every living competitor got in once, and the slots of the
killed ones came back.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field

from jetlake.client.access import Access
from jetlake.client.api import open_api
from jetlake.governor import Governor, GovernorSettings, catalog

NAME = "COMPETITION"

COMPETITORS = 1_000
SLOTS = 50
WORKERS = 8
HOLD_S = 1.0
EXPIRES_S = 8.0
MAX_WAIT_S = 900.0

CONNECTIONS_PER_WORKER = 4
"""Competitors of one worker share connections, as the nodes of a test machine would not have a thousand each."""

SECOND_NS = 1_000_000_000


@dataclass
class Result:
    """What the observer saw."""

    competitors: int
    slots: int
    most_inside: int = 0
    entries: int = 0
    killed_competitors: int = 0
    killed_inside: int = 0
    # When all slots were held by the living again, after the kill; None = never.
    replaced_after_s: float | None = None
    seconds: float = 0.0
    waits_s: list[float] = field(default_factory=list)
    leases_left: int = 0

    @property
    def failures(self) -> list[str]:
        """Return what must not be."""
        wrong = []
        if self.most_inside > self.slots:
            wrong.append(f"{self.most_inside} were inside at once, {self.slots} may be")
        expected = self.competitors - self.killed_competitors
        if self.entries != expected:
            wrong.append(f"{self.entries} got in and were not killed, not {expected}")
        if self.killed_inside and self.replaced_after_s is None:
            wrong.append("the slots of those who were killed did not come back")
        if self.leases_left:
            wrong.append(f"{self.leases_left} leases are left that nobody holds")
        return wrong

    def __str__(self) -> str:
        waits = sorted(self.waits_s) or [0.0]
        lines = [
            f"{self.competitors:,} competitors, {self.slots} slots: {self.entries:,} entries in {self.seconds:.1f} s",
            f"inside at once: {self.most_inside} at most",
            f"waited: median {statistics.median(waits):.1f} s, longest {waits[-1]:.1f} s",
        ]
        if self.killed_competitors:
            after = "never" if self.replaced_after_s is None else f"after {self.replaced_after_s:.1f} s"
            lines.append(f"killed: {self.killed_competitors}, of them {self.killed_inside} inside; replaced {after}")
        return "\n".join(lines)


class Observer:
    """Counts who is inside. Each worker has one connection; when that breaks, its competitors are dead."""

    def __init__(self, result: Result) -> None:
        self._result = result
        self._inside: dict[str, int] = {}
        self._workers = 0
        self._done: set[str] = set()
        # Set when the last word of a worker was read.
        self.gone: defaultdict[int, asyncio.Event] = defaultdict(asyncio.Event)
        self._killed_at_s: float | None = None

    @property
    def inside(self) -> int:
        return len(self._inside)

    @property
    def done(self) -> int:
        return len(self._done)

    def inside_of(self, worker: int) -> int:
        return sum(each == worker for each in self._inside.values())

    def note_kill(self, worker: int) -> int:
        """The worker is dead: return how many of it were inside. They are not any more, and their leases nobody's."""
        dead = [name for name, owner in self._inside.items() if owner == worker]
        for name in dead:
            del self._inside[name]
        self._killed_at_s = time.monotonic()
        return len(dead)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        worker: int | None = None
        with suppress(OSError):
            while line := await reader.readline():
                kind, number, name, waited_s = line.decode().split()
                worker = int(number)
                self._count(kind, worker, name, float(waited_s))
                writer.write(b"ok\n")
                await writer.drain()
        writer.close()
        if worker is not None:
            self.gone[worker].set()

    def _count(self, kind: str, worker: int, name: str, waited_s: float) -> None:
        result = self._result
        if kind == "in":
            self._inside[name] = worker
            result.waits_s.append(waited_s)
            result.most_inside = max(result.most_inside, self.inside)
            # All slots are held by the living: every dead holder has been replaced.
            is_full = self.inside == result.slots
            if self._killed_at_s is not None and result.replaced_after_s is None and is_full:
                result.replaced_after_s = time.monotonic() - self._killed_at_s
        else:
            del self._inside[name]
            self._done.add(name)


async def compete(
    url: str,
    *,
    competitors: int = COMPETITORS,
    slots: int = SLOTS,
    workers: int = WORKERS,
    hold_s: float = HOLD_S,
    expires_s: float = EXPIRES_S,
    replicas: int = 1,
    kill: bool = True,
) -> Result:
    """Run the competition on a server."""
    result = Result(competitors=competitors, slots=slots)
    observer = Observer(result)
    async with open_api(Access(url=url), reconnect=True) as api:
        settings = GovernorSettings(
            name=NAME, capacity=slots, expires_ns=round(expires_s * SECOND_NS), replicas=replicas
        )
        await catalog.add(api, settings)
        begin_s = time.monotonic()
        server = await asyncio.start_server(observer.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        share = competitors // workers
        command = [sys.executable, "-m", "benchmarks.governor", "--server", url, "--observer", str(port)]
        command += ["--competitors", str(share), "--hold", str(hold_s)]
        processes = [
            await asyncio.create_subprocess_exec(*command, "--worker", str(number)) for number in range(workers)
        ]
        try:
            if kill:
                await _kill_one(processes, observer, result, share, competitors)
            for process in processes:
                await process.wait()
        finally:
            for process in processes:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            server.close()
        result.entries = observer.done
        result.seconds = time.monotonic() - begin_s
        # Those of the killed worker have expired by then, or do so now.
        await asyncio.sleep(0 if not kill else max(expires_s - (result.replaced_after_s or 0), 0))
        result.leases_left = len(await catalog.leases(api, NAME))
        await catalog.remove(api, NAME)
    return result


async def _kill_one(
    processes: list[asyncio.subprocess.Process], observer: Observer, result: Result, share: int, competitors: int
) -> None:
    """Kill the worker that holds most slots once a fifth is done and all slots are taken."""
    while observer.done < competitors // 5 or observer.inside < result.slots:
        if all(process.returncode is not None for process in processes):
            return
        await asyncio.sleep(0.005)
    victim = max(range(len(processes)), key=observer.inside_of)
    processes[victim].send_signal(signal.SIGKILL)
    await processes[victim].wait()
    # What it said last may still be unread.
    await observer.gone[victim].wait()
    finished = sum(name.startswith(f"{victim}-") for name in observer._done)  # noqa: SLF001 - both are this module's
    result.killed_competitors = share - finished
    result.killed_inside = observer.note_kill(victim)


async def work(number: int, url: str, port: int, competitors: int, hold_s: float) -> None:
    """Be one worker: all its competitors enter once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    telling = asyncio.Lock()

    async def tell(kind: str, name: str, waited_s: float) -> None:
        async with telling:
            writer.write(f"{kind} {number} {name} {waited_s}\n".encode())
            await writer.drain()
            if await reader.readline() != b"ok\n":
                raise SystemExit(1)

    async def enter(governor: Governor, name: str) -> None:
        begin_s = time.monotonic()
        async with governor.slot(holder=name, max_wait_s=MAX_WAIT_S, end_on_sigterm=False):
            await tell("in", name, time.monotonic() - begin_s)
            await asyncio.sleep(hold_s)
            await tell("out", name, 0.0)

    async with asyncio.TaskGroup() as group:
        for connection in range(CONNECTIONS_PER_WORKER):
            names = [f"{number}-{each}" for each in range(connection, competitors, CONNECTIONS_PER_WORKER)]
            group.create_task(_enter_all(url, names, enter))


async def _enter_all(url: str, names: list[str], enter: object) -> None:
    async with Governor(Access(url=url), NAME, connect_wait_s=60) as governor, asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(enter(governor, name))  # type: ignore[operator]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--server", default="")
    parser.add_argument("--competitors", type=int, default=COMPETITORS)
    parser.add_argument("--slots", type=int, default=SLOTS)
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--hold", type=float, default=HOLD_S)
    parser.add_argument("--expires", type=float, default=EXPIRES_S)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--worker", type=int, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--observer", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        asyncio.run(work(options.worker, options.server, options.observer, options.competitors, options.hold))
        return 0
    if options.server:
        result = run(options, options.server)
    else:
        import jetlake

        with tempfile.TemporaryDirectory() as folder, jetlake.Server(jetstream=True, store_directory=folder) as server:
            result = run(options, server.url)
    print(result)
    for failure in result.failures:
        print(f"FAILED: {failure}")
    return 1 if result.failures else 0


def run(options: argparse.Namespace, url: str) -> Result:
    return asyncio.run(
        compete(
            url,
            competitors=options.competitors,
            slots=options.slots,
            workers=options.workers,
            hold_s=options.hold,
            expires_s=options.expires,
            replicas=options.replicas,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
