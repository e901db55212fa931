"""A hub and a leaf node of it, of either kind, as real processes.

The same test body runs with two nats-servers, with a Jetlake on either side, and with two Jetlakes.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from tests.compatibility.server_process import ServerProcess, start_server_process

LISTENING = re.compile(r"Listening for leafnode connections on (\S+):(\d+)")

SECONDS_MAX = 45.0
"""How long anything may take on a busy machine; nats-server itself waits for up to 20 s before it copies again."""

TIMEOUT = pytest.mark.timeout(180)
"""For tests that wait for several such things."""

QUIET_SECONDS = 0.5
"""How long is listened for what must not come."""

KINDS = [
    pytest.param(("nats-server", "nats-server"), marks=pytest.mark.nats_server, id="nats-server"),
    pytest.param(("nats-server", "jetlake"), marks=pytest.mark.jetlake, id="jetlake-leaf"),
    pytest.param(("jetlake", "nats-server"), marks=pytest.mark.jetlake, id="jetlake-hub"),
    pytest.param(("jetlake", "jetlake"), marks=pytest.mark.jetlake, id="jetlake-both"),
]
"""The kind of the hub and that of the leaf node."""


def leaf_port(server: ServerProcess) -> int:
    found = LISTENING.search(server.log())
    assert found is not None, server.log()
    return int(found[2])


@dataclass
class Site:
    """Servers of a test, and the clients that it has there; all of them end with it."""

    folder: Path
    kinds: tuple[str, str]
    servers: list[ServerProcess] = field(default_factory=list)
    clients: list[Client] = field(default_factory=list)

    def start(self, kind: str, config: str) -> ServerProcess:
        folder = self.folder / f"{kind}-{len(self.servers)}"
        folder.mkdir()
        config = config.replace("STORE", str(folder / "store"))
        server = start_server_process(kind, folder, config=config)
        self.servers.append(server)
        return server

    def start_hub(self, leafnodes: str = "", further: str = "", port: int = -1) -> ServerProcess:
        config = f'server_name: hub\nleafnodes {{\n listen: "127.0.0.1:{port}"\n {leafnodes}\n}}\n{further}'
        return self.start(self.kinds[0], config)

    def start_leaf(
        self, port: int, remote: str = "", further: str = "", name: str = "edge", url: str = ""
    ) -> ServerProcess:
        url = url or f"nats-leaf://127.0.0.1:{port}"
        config = (
            f'server_name: {name}\nleafnodes {{\n reconnect: "100ms"\n remotes: [ {{ url: "{url}"\n {remote} }} ] }}\n'
        )
        return self.start(self.kinds[1], config + further)

    async def connect(self, server: ServerProcess, **options: Any) -> Client:
        client = await nats.connect(server.url, allow_reconnect=False, **options)
        self.clients.append(client)
        return client

    async def pair(self, remote: str = "", leafnodes: str = "") -> tuple[Client, Client]:
        """Start a hub and a leaf node, and return a client of each once they are linked."""
        hub = self.start_hub(leafnodes)
        leaf = self.start_leaf(leaf_port(hub), remote)
        clients = await self.connect(hub), await self.connect(leaf)
        await wait_until_linked(*clients)
        return clients

    async def close(self) -> None:
        for client in self.clients:
            await client.close()
        for server in self.servers:
            server.stop()


async def wait_until_linked(one: Client, other: Client) -> None:
    """Wait until messages pass in both directions."""
    await hear(one, other, "linked.one")
    await hear(other, one, "linked.other")


async def hear(listener: Client, speaker: Client, subject: str) -> None:
    """Wait until what one client publishes reaches the other."""
    subscription = await listener.subscribe(subject)
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        await speaker.publish(subject, b"?")
        try:
            await subscription.next_msg(timeout=0.1)
        except TimeoutError:
            continue
        await subscription.unsubscribe()
        await listener.flush()
        return
    raise AssertionError(f"nothing on {subject} came through within {SECONDS_MAX} s")


async def listen(client: Client, subject: str, queue: str = "") -> list[Msg]:
    """Subscribe, and return the list that messages are added to."""
    heard: list[Msg] = []

    async def add(message: Msg) -> None:
        heard.append(message)

    await client.subscribe(subject, queue=queue, cb=add)
    await client.flush()
    return heard


async def wait_for(condition: Callable[[], bool | Awaitable[bool]], what: str) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        result = condition()
        if result if isinstance(result, bool) else await result:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"not within {SECONDS_MAX} s: {what}")


async def settle(*clients: Client) -> None:
    """Give what must not come some time to come."""
    for client in clients:
        await client.flush()
    await asyncio.sleep(QUIET_SECONDS)
