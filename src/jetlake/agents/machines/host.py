"""`MachineHost`: the part of a node's agent that runs its machines.

The host scans the folders of a store when the agent starts and every ten seconds: it starts a new machine, restarts one
whose manifest has changed, and stops one whose folder is gone. A machine that cannot be loaded is reported once, and
tried again when its manifest changes.

Invariant: each machine has a task of its own; one that fails, or whose manifest is wrong, does not touch the others.
"""

import asyncio
import hashlib
import time
from pathlib import Path
from typing import Any

import msgspec

from jetlake.agents.inventory import read_facts
from jetlake.agents.machines.events import EventQueue
from jetlake.agents.machines.machine import Machine
from jetlake.agents.machines.manifest import FILE_NAME, parse_manifest, read_manifest_text
from jetlake.agents.machines.options import MachinesOptions
from jetlake.agents.machines.requests import Requests
from jetlake.agents.machines.services import Services
from jetlake.agents.machines.states import StateChange
from jetlake.agents.node import LocalNode
from jetlake.errors import ConfigurationError, reason_of
from jetlake.shared.cancellation import cancel

__all__ = ["MachineHost"]

STOP_S_MAX = 8.0
"""For a machine to end: it kills its commands and gives back its slots. Long enough to be cancelled twice."""

FACTS_S = 10.0
"""How long facts are used before their file is read again."""

SETTLED_S = 2.0
"""A file that was not written for this long is recognised by its times; clocks of file systems are coarse."""

MACHINES_MAX = 10_000
"""Machines of one process; a folder with more is the wrong folder."""


class Hosted(msgspec.Struct):
    """One machine that runs, and of which manifest."""

    machine: Machine
    task: "asyncio.Task[None]"
    digest: str


class MachineHost:
    """Runs the machines of one node."""

    name = "machines"

    def __init__(self, options: MachinesOptions, *, data: dict[str, Any] | None = None) -> None:
        self._options = options
        # Given to every machine when it starts, for trying one out.
        self._given_data = data or {}
        self._hosted: dict[Path, Hosted] = {}
        # What could not be loaded, by folder: the manifest it was.
        self._refused: dict[Path, str] = {}
        # Of each manifest as it was last read; as long as that is the same, it is not read again.
        self._signatures: dict[Path, tuple[int, ...]] = {}
        self._services: Services | None = None
        self._hearing: set[asyncio.Task[None]] = set()
        self._facts: dict[str, Any] = {}
        self._facts_read_s = float("-inf")

    @property
    def machines(self) -> list[Machine]:
        return [hosted.machine for hosted in self._hosted.values()]

    def describe(self) -> list[dict[str, str]]:
        """Return name, version and state of each machine, for the inventory of the node."""
        return [{"name": each.name, "version": each.manifest.version, "state": each.state} for each in self.machines]

    async def run(self, node: LocalNode) -> None:
        events = EventQueue(raw=node.options.raw_events)
        self._services = services = Services(
            identity=node.options.identity,
            collective=node.options.main_collective,
            api=node.api,
            is_connected=lambda: node.is_connected,
            facts=lambda: self._current_facts(node),
            report=node.report,
            events=events,
            prometheus_folder=self._options.prometheus_folder,
            overrides_file=self._options.overrides_file,
        )
        services.state_of = self._state_of
        services.on_change = self._note_change
        helpers = [asyncio.create_task(events.run(node))]
        if self._options.requests:
            helpers.append(asyncio.create_task(Requests(self, node).run()))
        try:
            while True:
                await self._scan(node)
                for helper in helpers:
                    if helper.done():
                        # They end by a bug of ours only, which this raises.
                        helper.result()
                await asyncio.sleep(self._options.scan_s)
        finally:
            await self._stop_all()
            services.close()
            await cancel(*helpers, timeout_s=STOP_S_MAX)

    async def finish(self, node: LocalNode) -> None:
        """Publish the last events of the machines."""
        if self._services is not None:
            while len(self._services.events):
                await self._services.events.publish_some(node)

    def find(self, *, name: str = "", version: str = "", path: str = "", machine_id: str = "") -> list[Machine]:
        """Return the machines that have all of what is given."""
        return [
            each
            for each in self.machines
            if (not name or each.name == name)
            and (not version or each.manifest.version == version)
            and (not path or str(each.folder) == path)
            and (not machine_id or each.machine_id == machine_id)
        ]

    # Folders

    async def _scan(self, node: LocalNode) -> None:
        folders, changed = await asyncio.to_thread(self._look_at_folders, node)
        for folder in [folder for folder in self._hosted if folder not in folders]:
            node.report("info", f"{self._hosted[folder].machine.name}: {folder} is gone: stopping")
            hosted = self._hosted.pop(folder)
            await cancel(hosted.task, timeout_s=STOP_S_MAX)
            hosted.machine.forget()
        for folder, content in changed:
            await self._load(folder, content, node)

    def _look_at_folders(self, node: LocalNode) -> tuple[dict[Path, None], list[tuple[Path, str | ConfigurationError]]]:
        """Return all folders, and the manifests that may have changed since the last look."""
        folders = self._folders(node)
        changed: list[tuple[Path, str | ConfigurationError]] = []
        for folder in folders:
            signature = _signature(folder / FILE_NAME)
            if signature is not None and self._signatures.get(folder) == signature:
                continue
            try:
                changed.append((folder, read_manifest_text(folder / FILE_NAME)))
            except ConfigurationError as error:
                changed.append((folder, error))
            if signature is not None:
                self._signatures[folder] = signature
        self._signatures = {folder: each for folder, each in self._signatures.items() if folder in folders}
        return folders, changed

    def _folders(self, node: LocalNode) -> dict[Path, None]:
        found = dict.fromkeys(folder.absolute() for folder in self._options.folders)
        store = self._options.store
        if store is not None:
            try:
                inside = sorted(store.iterdir())
            except OSError as error:
                node.report("error", f"cannot read the machines in {store}: {reason_of(error)}")
                # Running machines continue: a disk that is briefly unavailable must not stop them.
                return dict.fromkeys(self._hosted)
            found |= dict.fromkeys(folder.absolute() for folder in inside if _is_candidate(folder))
        return dict(list(found.items())[:MACHINES_MAX])

    async def _load(self, folder: Path, content: str | ConfigurationError, node: LocalNode) -> None:
        running = self._hosted.get(folder)
        # A text is known by its digest, a refusal to read it by its words.
        digest = (
            str(content) if isinstance(content, ConfigurationError) else hashlib.sha256(content.encode()).hexdigest()
        )
        if (running is not None and running.digest == digest) or self._refused.get(folder) == digest:
            return
        try:
            if isinstance(content, ConfigurationError):
                raise content
            # Reading hundreds of them takes seconds, in which those that run must not stand still.
            manifest = await asyncio.to_thread(parse_manifest, content, str(folder / FILE_NAME))
        except ConfigurationError as error:
            self._refused[folder] = digest
            node.report("error", f"a machine cannot be loaded: {error}")
            return
        if running is not None:
            node.report("info", f"{running.machine.name}: the manifest has changed: restarting")
            del self._hosted[folder]
            await cancel(running.task, timeout_s=STOP_S_MAX)
        self._refused.pop(folder, None)
        assert self._services is not None
        machine = Machine(manifest, folder, self._services, resume=self._options.resume)
        if self._given_data:
            await machine.put_data(self._given_data)
        task = asyncio.create_task(machine.run(), name=f"machine {manifest.name}")
        self._hosted[folder] = Hosted(machine, task, digest)

    async def _stop_all(self) -> None:
        hosted, self._hosted = list(self._hosted.values()), {}
        await cancel(*(each.task for each in hosted), *self._hearing, timeout_s=STOP_S_MAX)

    # What machines learn of each other

    def _state_of(self, name: str) -> str | None:
        return next((each.state for each in self.machines if each.name == name), None)

    def _note_change(self, name: str, change: StateChange) -> None:
        for machine in self.machines:
            subscribes = any(
                (each.machine, each.event) == (name, change.event)
                for transition in machine.manifest.transitions
                for each in transition.subscriptions
            )
            if subscribes:
                task = asyncio.create_task(machine.hear(name, change.event))
                self._hearing.add(task)
                task.add_done_callback(self._hearing.discard)

    def _current_facts(self, node: LocalNode) -> dict[str, Any]:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._facts_read_s >= FACTS_S:
            self._facts = read_facts(node.options.facts_file, node.report)
            self._facts_read_s = now_s
        return self._facts


def _signature(path: Path) -> tuple[int, ...] | None:
    """Return a signature that stays the same while a file is unchanged; None if it is not known yet."""
    try:
        status = path.stat()
    except OSError:
        return None
    # A file that was written a moment ago may be written again without looking different.
    if time.time() - status.st_ctime < SETTLED_S:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _is_candidate(folder: Path) -> bool:
    name = folder.name
    return folder.is_dir() and name != "tmp" and not name.startswith(".") and not name.endswith("-temp")
