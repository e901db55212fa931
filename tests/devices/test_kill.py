"""The service is killed at random while devices notify: no hole and no duplicate afterwards."""

from __future__ import annotations

import asyncio
import os
import random
import re
import subprocess
import sys
import threading

import pytest

from jetlake.devices.client import DeviceClient
from jetlake.devices.consumer import read_events
from jetlake.devices.content import value_of
from jetlake.errors import DeviceError
from tests.devices.samples import D1
from tests.devices.waiting import until

LONG = os.environ.get("JETLAKE_LONG", "") == "1"
KILLS = 15 if LONG else 3
RESOURCES = 4
CHANGES = 400 if LONG else 60
"""Of each resource: enough that every kill meets some under way."""

START_S_MAX = 60.0
RETRY_S = 0.05


class ServiceProcess:
    """A `jetlake device serve` on one port, started again after each kill."""

    def __init__(self, url: str) -> None:
        self._environment = os.environ | {"NATS_URL": url}
        self.address = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        words = ["device", "serve", "--jetstream", "--grpc", self.address, "--http", "-"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jetlake", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment,
        )
        timer = threading.Timer(START_S_MAX, self.process.kill)
        timer.start()
        output = ""
        for line in self.process.stdout:
            output += line
            if "is ready" in line:
                break
        timer.cancel()
        found = re.search(r"gRPC +(\S+)", output)
        assert found is not None, output
        self.address = found[1]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.mark.crash
@pytest.mark.timeout(600 if LONG else 300)
async def test_killed_service_leaves_no_hole_and_no_duplicate(server, api, stream):
    service = await asyncio.to_thread(ServiceProcess, server.url)
    chance = random.Random(20210701)
    done = [0] * RESOURCES

    async def device(number: int) -> None:
        async with DeviceClient(service.address) as client:
            for sequence in range(1, CHANGES + 1):
                while True:
                    try:
                        # A device that got no answer says the same once more.
                        await client.notify(D1, f"/r/{number}", sequence, connection_id=f"c{number}", sequence=sequence)
                        break
                    except DeviceError as error:
                        if error.status not in ("UNAVAILABLE", "ABORTED", "CANCELLED", "DEADLINE_EXCEEDED"):
                            raise
                        await asyncio.sleep(RETRY_S)
                done[number] = sequence

    devices = [asyncio.create_task(device(number)) for number in range(RESOURCES)]
    try:
        for kill in range(KILLS):
            # Somewhere in the next part of the work, wherever that is by then.
            target = (kill + chance.random()) * RESOURCES * CHANGES / KILLS
            await until(lambda target=target: sum(done) >= target or all(task.done() for task in devices))
            await asyncio.to_thread(service.kill)
            await asyncio.to_thread(service.start)
        await asyncio.gather(*devices)
    finally:
        for task in devices:
            task.cancel()
        service.kill()

    versions: dict[str, list[int]] = {}
    values: dict[str, list[int]] = {}
    async for event in read_events(api, stream, to_end=True):
        href = event.message.resource_id.href
        versions.setdefault(href, []).append(event.version)
        if event.event_type == "resourcechanged":
            values.setdefault(href, []).append(value_of(event.message.content))
    assert set(versions) == {f"/r/{number}" for number in range(RESOURCES)}
    for href, found in versions.items():
        assert found == list(range(len(found))), href
        assert values[href] == list(range(1, CHANGES + 1)), href
