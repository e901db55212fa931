"""A sender, its server and its disk fail at random while messages are submitted: `python -m tests.submission.chaos`.

It runs in a file system of its own, which it fills up and empties again, and ends with 0 if every reliable message is
in the stream exactly once and in order. See `test_chaos`.

```text
python -m tests.submission.chaos KIND FOLDER DISK SEED SECONDS
```
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from jetlake.client.access import Access
from jetlake.client.api import Api, open_api
from jetlake.errors import ClientError, SpoolError
from jetlake.submission import Spool, submit
from tests.cluster import free_ports
from tests.compatibility.server_process import ServerProcess, start_server_process
from tests.submission.reading import messages

SUBJECTS = 4
STREAM = "CHAOS"
SETTLE_S_MAX = 90.0
FILL_CHUNK_BYTES = 1 << 20


class Submitter(Thread):
    """Submits numbered messages; one that is refused is submitted again, so that the numbers have no gap."""

    def __init__(self, spool: Spool, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self._spool = spool
        self._chance = chance
        self._stopping = Event()
        self.submitted = [0] * SUBJECTS
        self.refusals: dict[str, int] = {}

    def run(self) -> None:
        while not self._stopping.is_set():
            subject = self._chance.randrange(SUBJECTS)
            payload = f"{self.submitted[subject]}".ljust(self._chance.choice((10, 3000)))
            try:
                submit(f"app.{subject}", payload, spool=self._spool, reliable=True, max_tries=100_000)
            except SpoolError as error:
                reason = "full spool" if "spool is full" in str(error) else "full disk"
                self.refusals[reason] = self.refusals.get(reason, 0) + 1
                time.sleep(0.01)
                continue
            self.submitted[subject] += 1
            time.sleep(self._chance.uniform(0, 0.01))

    def stop(self) -> None:
        self._stopping.set()
        self.join()


class Chaos:
    """A server and a sender as processes, and what happens to them."""

    def __init__(self, kind: str, folder: Path, disk: Path, chance: random.Random) -> None:
        self._kind = kind
        self._folder = folder
        self._disk = disk
        self._chance = chance
        self._port = free_ports(1)[0]
        # nats-server gives JetStream up when its own disk is full, and does not take it up again; ours goes on.
        self._store = (disk if kind == "jetlake" else folder) / "store"
        self.spool = Spool(disk / "spool", messages_max=200)
        self.url = f"nats://127.0.0.1:{self._port}"
        self.done: dict[str, int] = {}
        self._server: ServerProcess | None = None
        self._sender: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.start_server()
        self.start_sender()

    def start_server(self) -> None:
        folder = self._folder / f"server{self.done.get('server killed', 0)}-{time.monotonic_ns()}"
        folder.mkdir()
        self._server = start_server_process(self._kind, folder, ["-js", "-sd", str(self._store)], port=self._port)

    def start_sender(self) -> None:
        command = [sys.executable, "-m", "jetlake", "submission", "run", "--spool", str(self.spool.folder)]
        with (self._folder / "sender.log").open("ab") as log:
            self._sender = subprocess.Popen([*command, "--server", self.url], stderr=log)

    def happen(self) -> None:
        """Let something happen."""
        action = self._chance.choice((self._kill_sender, self._kill_server, self._fill_disk, self._kill_both))
        action()

    def stop(self) -> None:
        for process in (self._sender, self._server.process if self._server else None):
            if process is not None:
                process.kill()
                process.wait()

    def _note(self, what: str) -> None:
        self.done[what] = self.done.get(what, 0) + 1

    def _kill_sender(self) -> None:
        assert self._sender is not None
        self._sender.kill()
        self._sender.wait()
        self._note("sender killed")
        self.start_sender()

    def _kill_server(self) -> None:
        assert self._server is not None
        self._server.process.kill()
        self._server.process.wait()
        self._note("server killed")
        time.sleep(self._chance.uniform(0, 0.3))
        self.start_server()

    def _kill_both(self) -> None:
        self._kill_server()
        self._kill_sender()

    def _fill_disk(self) -> None:
        """Fill the disk to the last byte for a while."""
        filler = self._disk / "filler"
        try:
            with filler.open("wb", buffering=0) as file, suppress(OSError):
                for size in (FILL_CHUNK_BYTES, 4096, 1):
                    with suppress(OSError):
                        while file.write(b"\0" * size):
                            pass
            self._note("disk filled")
            time.sleep(self._chance.uniform(0.2, 0.8))
        finally:
            filler.unlink()


async def make_stream(url: str) -> None:
    async with open_api(Access(url=url)) as api:
        await api.request(f"STREAM.CREATE.{STREAM}", {"name": STREAM, "subjects": ["mcollective.submission.in.app.*"]})


async def check(url: str, spool: Spool, submitted: list[int]) -> list[str]:
    """Wait until the spool is empty, and return what is wrong with the stream."""
    deadline = time.monotonic() + SETTLE_S_MAX
    while any(spool.names(priority) for priority in range(5)):
        if time.monotonic() > deadline:
            return [f"{sum(len(spool.names(each)) for each in range(5))} messages are still in the spool"]
        await asyncio.sleep(0.1)
    async with open_api(Access(url=url)) as api:
        found = await _all(api)
    wrong = []
    for subject, count in enumerate(submitted):
        numbers = [int(each.payload) for each in found if each.subject.endswith(f".{subject}")]
        if numbers != list(range(count)):
            wrong.append(f"app.{subject}: {count} were submitted, the stream has {numbers}")
    rejected = spool.folder / "rejected"
    if rejected.exists():
        wrong.append(f"{len(os.listdir(rejected))} messages were rejected")
    return wrong


async def _all(api: Api) -> list:  # type: ignore[type-arg]
    for _ in range(20):
        with suppress(ClientError):
            return await messages(api, STREAM)
        await asyncio.sleep(0.5)
    raise AssertionError("the stream cannot be read")


def main() -> int:
    kind, folder, disk, seed, seconds = sys.argv[1:]
    chance = random.Random(int(seed))
    chaos = Chaos(kind, Path(folder), Path(disk), chance)
    submitter = Submitter(chaos.spool, random.Random(int(seed) + 1))
    try:
        chaos.start()
        asyncio.run(make_stream(chaos.url))
        submitter.start()
        end = time.monotonic() + float(seconds)
        while time.monotonic() < end:
            time.sleep(chance.uniform(0.1, 0.8))
            chaos.happen()
        submitter.stop()
        wrong = asyncio.run(check(chaos.url, chaos.spool, submitter.submitted))
    finally:
        chaos.stop()
    print(f"seed {seed}: {sum(submitter.submitted)} messages, refused {submitter.refusals}, {chaos.done}")
    for line in wrong:
        print(f"WRONG: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
