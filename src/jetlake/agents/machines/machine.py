"""`Machine`: one autonomous agent: its state, its data, its watchers.

A transition happens as a whole and in order: the new state is on the disk, the other machines of the node hear of it,
the watchers look again, the event is queued. Transitions that follow each other quickly are slowed down, as in the
original, so that a machine that goes in circles does no harm.

A watcher that keeps what it saw in the data notes its change first, and the transition removes the note in the same
write as it stores the state. So a change is not lost if the agent ends between the data and the transition.

Invariant: what `state` says is on the disk, unless the disk refuses; `run` returns when no watcher is left.
"""

import asyncio
import random
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from jetlake.agents.machines.manifest import Manifest
from jetlake.agents.machines.services import Services
from jetlake.agents.machines.states import StateChange, StateMachine
from jetlake.agents.machines.store import MachineStore, SavedState
from jetlake.agents.machines.templates import parse_template
from jetlake.agents.machines.watchers import watcher_of
from jetlake.agents.machines.watchers.watcher import Watcher
from jetlake.choria.events import transition_body, watcher_body
from jetlake.client.backoff import jittered
from jetlake.client.uninterrupted import finish
from jetlake.errors import ConfigurationError, JetlakeError
from jetlake.shared.cancellation import cancel

__all__ = ["Machine"]

SLOW_DOWN_MS = (
    0, 25, 50, 75, 100, 125, 150, 200, 250, 500, 750, 1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000, 4_500, 5_000,
)  # fmt: skip
"""Before the nth transition without a quiet minute; the last one repeats. The original's table."""

QUIET_S = 60.0
"""Without a transition for this long, the next one is not slowed down."""

RESTART_S = 5.0
"""Before a watcher that failed by a bug runs again."""


class Machine:
    """One machine, from its manifest and its folder."""

    def __init__(self, manifest: Manifest, folder: Path, services: Services, *, resume: bool = True) -> None:
        self.manifest = manifest
        self.folder = folder.absolute()
        self.services = services
        self.machine_id = str(uuid.uuid4())
        self.started_unix_s = 0.0
        self.entered_unix_s = time.time()
        self._store = MachineStore(self.folder, self.report)
        self._data = self._store.load_data()
        saved = self._store.load_state(manifest.name)
        names = {each.name for each in manifest.watchers}
        # Watchers with a change that no transition has followed yet; a change outlives the version that saw it.
        self._unfired = names.intersection(saved.unfired if saved else ())
        if not resume or (saved is not None and saved.version != manifest.version):
            saved = None
        self._states = StateMachine(manifest, saved.state if saved else "")
        self._is_resumed = saved is not None and saved.state == self._states.state
        if saved is not None and self._is_resumed:
            self.entered_unix_s = saved.entered_unix_s
        self._lock = asyncio.Lock()
        # One writer of the data at a time, so that no value is lost between two of them.
        self._data_lock = asyncio.Lock()
        self._save_lock = asyncio.Lock()
        self._fast_transitions = 0
        self._last_transition_s = 0.0
        self._watchers: list[Watcher] = [watcher_of(each, self) for each in manifest.watchers]

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def state(self) -> str:
        return self._states.state

    @property
    def data(self) -> dict[str, Any]:
        """A copy of the data."""
        return dict(self._data)

    def report(self, level: str, text: str) -> None:
        self.services.report(level, f"{self.manifest.name}: {text}")

    def describe(self) -> dict[str, Any]:
        """Return the record by which the original describes a machine."""
        return {
            "name": self.name,
            "version": self.manifest.version,
            "state": self.state,
            "path": str(self.folder),
            "id": self.machine_id,
            "start_time": int(self.started_unix_s),
            "available_transitions": self._states.events(),
        }

    async def run(self) -> None:
        """Run all watchers until cancelled."""
        if self.manifest.splay_start_s:
            await asyncio.sleep(random.uniform(0, self.manifest.splay_start_s))
        self.started_unix_s = time.time()
        if not self._is_resumed:
            await self._save_state()
        self.report(
            "info",
            f"version {self.manifest.version} from {self.folder} {'resumes' if self._is_resumed else 'starts'} in "
            f"state {self.state}",
        )
        tasks = [asyncio.create_task(self._keep_running(watcher.run, watcher.name)) for watcher in self._watchers]
        tasks += [
            asyncio.create_task(self._keep_running(watcher.announce_regularly, watcher.name))
            for watcher in self._watchers
            if watcher.manifest.announce_interval_s
        ]
        if self._is_resumed:
            # What was under way when the agent ended may not have been done.
            for watcher in self._watchers:
                watcher.note_state_change()
        try:
            await asyncio.gather(*tasks)
        finally:
            await cancel(*tasks)

    def forget(self) -> None:
        """Remove what outlives the machine elsewhere: its folder is gone."""
        self.services.text_files.remove(self.name)

    # Transitions

    def can(self, event: str) -> bool:
        return self._states.can(event)

    def knows(self, event: str) -> bool:
        return self._states.knows(event)

    async def fire(self, event: str, *, change_of: str = "") -> StateChange | None:
        """Enter the state that an event leads to; None, and a warning, if that is not possible now.

        `change_of` is the watcher whose noted change this transition follows.
        """
        if not event:
            return None
        async with self._lock:
            if not self._states.can(event):
                self.report("warning", f"Could not fire '{event}' event while in {self.state}")
                return None
            await self._slow_down(event)
            change = self._states.fire(event)
            if change is None:
                return None
            self.entered_unix_s = time.time()
            self._unfired.discard(change_of)
            await self._save_state()
            self._tell_change(change)
        return change

    async def hear(self, machine: str, event: str) -> None:
        """Fire what subscribes to an event of another machine."""
        for transition in self.manifest.transitions:
            if any((each.machine, each.event) == (machine, event) for each in transition.subscriptions):
                await self.fire(transition.name)

    async def _slow_down(self, event: str) -> None:
        if time.monotonic() - self._last_transition_s > QUIET_S:
            self._fast_transitions = 0
        wait_s = jittered(SLOW_DOWN_MS[min(self._fast_transitions, len(SLOW_DOWN_MS) - 1)] / 1_000)
        if wait_s > 1.0:
            self.report("info", f"slowing down {event} by {wait_s:.1f} s: {self._fast_transitions} fast transitions")
        if wait_s:
            await asyncio.sleep(wait_s)
        self._fast_transitions += 1
        self._last_transition_s = time.monotonic()

    def _tell_change(self, change: StateChange) -> None:
        self.report("info", f"{change.event}: {change.from_state} => {change.to_state}")
        self.services.on_change(self.name, change)
        for watcher in self._watchers:
            watcher.note_state_change()
        self.services.events.tell(
            transition_body(
                identity=self.services.identity,
                machine=self.name,
                version=self.manifest.version,
                machine_id=self.machine_id,
                transition=change.event,
                from_state=change.from_state,
                to_state=change.to_state,
            )
        )

    async def _save_state(self) -> None:
        async with self._save_lock:
            saved = SavedState(
                name=self.name,
                version=self.manifest.version,
                state=self.state,
                entered_unix_s=self.entered_unix_s,
                unfired=tuple(sorted(self._unfired)),
            )
            try:
                await finish(asyncio.to_thread(self._store.save_state, saved))
            except ConfigurationError as error:
                # The machine goes on: doing its work matters more than where it would resume.
                self.report("error", f"the state is not kept: {error}")

    # What watchers use

    def has_noted_change(self, watcher: str) -> bool:
        """Return whether no transition has followed a change of a watcher yet."""
        return watcher in self._unfired

    async def note_change(self, watcher: str) -> None:
        """Remember the change of a watcher until a transition follows it. To be called before the data shows it."""
        if watcher not in self._unfired:
            self._unfired.add(watcher)
            await self._save_state()

    async def drop_change(self, watcher: str) -> None:
        """Forget the change of a watcher: no transition can follow it."""
        if watcher in self._unfired:
            self._unfired.discard(watcher)
            await self._save_state()

    async def put_data(self, values: dict[str, Any]) -> None:
        """Set data. Raises `ConfigurationError` if it cannot be kept."""
        async with self._data_lock:
            await self._replace_data({**self._data, **values})

    async def delete_data(self, key: str) -> None:
        """Remove data; harmless if there is none. Raises `ConfigurationError` if the disk refuses."""
        async with self._data_lock:
            if key in self._data:
                await self._replace_data({name: value for name, value in self._data.items() if name != key})

    async def _replace_data(self, data: dict[str, Any]) -> None:
        await finish(asyncio.to_thread(self._store.save_data, data))
        self._data = data

    def render(self, text: str, overrides: "Callable[[str], Any] | None" = None) -> str:
        """Return a template with facts and data filled in. Raises `TemplateError`."""
        if "{{" not in text:
            return text
        return parse_template(text).render(self.scope(), overrides)

    def scope(self) -> dict[str, Any]:
        """Return what lookups see."""
        return {
            "facts": self.services.facts(),
            "data": self._data,
            "node": {"identity": self.services.identity, "collective": self.services.collective},
            "machine": {"name": self.name, "version": self.manifest.version, "state": self.state},
        }

    def announce(self, watcher: Watcher) -> None:
        """Tell the state of a watcher."""
        self.services.events.tell(
            watcher_body(
                watcher.manifest.kind,
                identity=self.services.identity,
                machine=self.name,
                version=self.manifest.version,
                machine_id=self.machine_id,
                name=watcher.name,
                **watcher.state_fields(),
            )
        )

    async def _keep_running(self, work: Callable[[], Awaitable[None]], name: str) -> None:
        while True:
            try:
                await work()
                return
            except JetlakeError as error:
                self.report("error", f"{name}: {error}")
            except Exception as error:  # noqa: BLE001 - a bug in one watcher must not end the others
                self.report("error", f"{name}: a bug, please report it: {type(error).__name__}: {error}")
            await asyncio.sleep(RESTART_S)
