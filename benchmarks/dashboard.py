"""Many open pages of the dashboard while messages come: `python -m benchmarks.dashboard`.

A server and one `jetlake dashboard` are started. Messages are published at a fixed rate into streams that the pages
show. Each page is what a browser holds open: the overview, then the websocket with its figures. The dashboard is
measured from outside, by its files under /proc, once with all pages in one session and once with a session for each.

| aim                                              | bound    |
|--------------------------------------------------|----------|
| until the first page answers                     | ≤ 2 s    |
| memory with 100 open pages                       | ≤ 150 MB |
| no page closed or without figures at 5,000/s     |          |
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path

import aiohttp

from benchmarks.servers import BenchmarkError, commands
from benchmarks.stream_servers import StreamServer
from jetlake.client.api import open_api

PAGES = 100
MESSAGES_PER_S = 5_000
MEASURED_S = 20.0
SETTLE_S = 5.0
"""After all pages are open, before anything is measured."""

STREAMS = 20
START_S_MAX = 60.0
BETWEEN_PAGES_S = 0.02
PAYLOAD = b'{"device": 7, "celsius": 21.5}'
KEYS = re.compile(r'data-(?:live|spark)="([^"]+)"')


@dataclass
class Figures:
    """What was measured with one way to open pages."""

    pages: int
    sessions: int
    messages_per_s: float
    core_share: float
    memory_mb: float
    frames_per_s: float
    closed_pages: int


class DashboardProcess:
    """One `jetlake dashboard`, and what it uses."""

    def __init__(self, url: str) -> None:
        began_s = time.monotonic()
        words = ["dashboard", "--port", "0", "--server", url]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jetlake", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.process.stdout is not None
        found = re.search(r"http://\S+", self.process.stdout.readline())
        if found is None:
            raise BenchmarkError("the dashboard did not say where it is")
        self.url = found[0]
        with urllib.request.urlopen(self.url, timeout=START_S_MAX) as response:
            response.read()
        self.start_s = time.monotonic() - began_s

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None, "the process is there"
        return int(found[1]) * 1024 / 1e6

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(START_S_MAX)


class OpenPages:
    """Pages that are open, in one session or in one each."""

    def __init__(self, url: str, pages: int, *, shared: bool) -> None:
        self._url = url
        self._pages = pages
        self._shared = shared
        self._clients: list[aiohttp.ClientSession] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.frames = 0

    async def open(self) -> None:
        for number in range(self._pages):
            if not self._shared or not number:
                self._clients.append(aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)))
                # The first answer sets the cookie of the session.
                await self._text(self._clients[-1])
            self._tasks.append(asyncio.create_task(self._page(self._clients[-1])))
            await asyncio.sleep(BETWEEN_PAGES_S)

    async def _text(self, client: aiohttp.ClientSession) -> str:
        async with client.get(f"{self._url}/") as response:
            if response.status != 200:
                raise BenchmarkError(f"the overview answers {response.status}")
            return await response.text()

    async def _page(self, client: aiohttp.ClientSession) -> None:
        keys = sorted(set(KEYS.findall(await self._text(client))))
        async with client.ws_connect(f"{self._url}/live", headers={"Origin": self._url}) as socket:
            await socket.send_str(json.dumps({"keys": keys}))
            async for _ in socket:
                self.frames += 1

    @property
    def closed(self) -> int:
        return sum(task.done() for task in self._tasks)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in self._clients:
            await client.close()


async def publish(url: str, per_s: int, stop: asyncio.Event) -> float:
    """Publish at this rate until told to stop; return the rate that was kept."""
    async with open_api(url) as api:
        for number in range(STREAMS):
            await api.request(f"STREAM.CREATE.S{number}", {"name": f"S{number}", "subjects": [f"s.{number}.>"]})
        began_s, sent = time.monotonic(), 0
        while not stop.is_set():
            due = int((time.monotonic() - began_s) * per_s)
            for number in range(sent, due):
                await api.connection.publish(f"s.{number % STREAMS}.x", PAYLOAD)
            sent = max(sent, due)
            await api.connection.flush()
            await asyncio.sleep(0.01)
        return sent / (time.monotonic() - began_s)


async def measure(dashboard: DashboardProcess, url: str, options: argparse.Namespace, *, shared: bool) -> Figures:
    """Open the pages, let messages come, and measure."""
    stop = asyncio.Event()
    publishing = asyncio.create_task(publish(url, options.rate, stop))
    pages = OpenPages(dashboard.url, options.pages, shared=shared)
    try:
        await pages.open()
        await asyncio.sleep(SETTLE_S)
        cpu_s, frames, began_s = dashboard.cpu_s(), pages.frames, time.monotonic()
        await asyncio.sleep(options.seconds)
        took_s = time.monotonic() - began_s
        figures = Figures(
            pages=options.pages,
            sessions=1 if shared else options.pages,
            messages_per_s=0.0,
            core_share=(dashboard.cpu_s() - cpu_s) / took_s,
            memory_mb=dashboard.memory_mb(),
            frames_per_s=(pages.frames - frames) / took_s,
            closed_pages=pages.closed,
        )
    finally:
        stop.set()
        await pages.close()
    figures.messages_per_s = await publishing
    return figures


def main() -> int:
    options = read_options()
    results = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            for shared in (True, False):
                command = commands()[options.server]
                with StreamServer(options.server, command, Path(folder) / f"store{shared}") as server:
                    url = f"nats://127.0.0.1:{server.port}"
                    dashboard = DashboardProcess(url)
                    try:
                        print(f"start to the first page: {dashboard.start_s:.2f} s, {dashboard.memory_mb():.0f} MB")
                        figures = asyncio.run(measure(dashboard, url, options, shared=shared))
                    finally:
                        dashboard.stop()
                results.append(asdict(figures) | {"start_s": dashboard.start_s})
                print(*(f"  {name}: {value:,.2f}" for name, value in results[-1].items()), sep="\n", flush=True)
    except BenchmarkError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    return 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.dashboard", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", choices=("jetlake", "nats-server"), default="jetlake")
    parser.add_argument("--pages", type=int, default=PAGES)
    parser.add_argument("--rate", type=int, default=MESSAGES_PER_S, help="messages per second")
    parser.add_argument("--seconds", type=float, default=MEASURED_S)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures into this file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
