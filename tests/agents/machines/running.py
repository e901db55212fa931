"""Machines that run in a test: with a server or without, their log and their events at hand."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from jetlake.agents.machines.host import MachineHost
from jetlake.agents.machines.machine import Machine
from jetlake.agents.machines.options import MachinesOptions
from jetlake.agents.node import NodeAgent
from jetlake.agents.options import read_node_options
from jetlake.choria.settings import ChoriaSettings
from jetlake.client.access import Access

WAIT_S_MAX = 60.0
IDENTITY = "web1.example.net"


def manifest(watchers: str, *, name: str = "m", transitions: str = "", initial: str = "A") -> str:
    """Return the text of a manifest; by default `go` leads from A to B and `back` from B to A."""
    default = "[{name: go, from: [A], destination: B}, {name: back, from: [B], destination: A}]"
    return (
        f"name: {name}\nversion: 1.0.0\ninitial_state: {initial}\ntransitions: {transitions or default}\n"
        f"watchers:\n{watchers}\n"
    )


def write(folder: Path, text: str, **files: str) -> Path:
    """Write a machine and the scripts beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(f"#!/bin/sh\n{content}\n")
        (folder / name).chmod(0o755)
    (folder / "machine.yaml").write_text(text)
    return folder


class Running:
    """The machines of one node."""

    def __init__(self, host: MachineHost, log: list[str]) -> None:
        self.host = host
        self.log = log

    @property
    def machine(self) -> Machine:
        return self.host.machines[0]

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        """Return the events that wait to be published: all of them, without a server."""
        assert self.host._services is not None
        return [
            body for body in self.host._services.events._waiting if body.get("type", "transition") == kind or not kind
        ]

    async def until(self, condition: Callable[[], bool], what: str = "") -> None:
        deadline = time.monotonic() + WAIT_S_MAX
        while not condition():
            assert time.monotonic() < deadline, f"{what}\n" + "\n".join(self.log)
            await asyncio.sleep(0.01)

    async def until_state(self, state: str) -> None:
        await self.until(lambda: bool(self.host.machines) and self.machine.state == state, f"never in {state}")


@asynccontextmanager
async def running(
    *folders: Path,
    url: str = "",
    store: Path | None = None,
    settings: dict[str, str] | None = None,
    data: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncIterator[Running]:
    """Run machines until the block ends; without a URL there is no server."""
    log: list[str] = []
    host = MachineHost(MachinesOptions(folders=folders, store=store, scan_s=0.2, **options), data=data)
    node = read_node_options(ChoriaSettings({"identity": IDENTITY} | (settings or {})))
    agent = NodeAgent(node, Access(url=url) if url else None, [host], lambda level, text: log.append(f"{level} {text}"))
    stopping = asyncio.Event()
    task = asyncio.create_task(agent.run(stopping))
    found = Running(host, log)
    try:
        await found.until(lambda: len(host.machines) >= len(folders), "not all machines were loaded")
        yield found
    finally:
        stopping.set()
        await asyncio.wait_for(task, WAIT_S_MAX)
    bugs = [line for line in log if "a bug" in line]
    assert not bugs, bugs


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def is_there(path: str) -> bool:
    return Path(path).exists()
