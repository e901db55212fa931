"""`KvWatcher`: waits for a key of a bucket, and keeps its value in the machine's data.

A value that changes is stored and is a success; so is one that is deleted. The value before a restart is in the data,
so a value that has not changed meanwhile does not fire, unless the agent ended before the transition.

With `mode: watch` the server reports a change; as long as that is not possible, and with `mode: poll`, the key is read
in every interval. While there is no connection nothing is known, and nothing fires. What comes while the machine is in
another state is looked at when it enters a matching one: only the last value counts.
"""

import json
import time
from typing import TYPE_CHECKING, Any

from jetlake.agents.machines.key_watches import KeyWatch
from jetlake.agents.machines.templates import lookup
from jetlake.agents.machines.watcher_options import KvOptions
from jetlake.agents.machines.watchers.watcher import Watcher
from jetlake.errors import JetlakeError
from jetlake.kv import Buckets, Entry

if TYPE_CHECKING:
    from jetlake.agents.machines.machine import Machine
    from jetlake.agents.machines.manifest import WatcherManifest

__all__ = ["KvWatcher"]

CONNECTED_CHECK_S = 0.5
"""How soon a watcher notices that the connection is there."""

_ABSENT = object()


class KvWatcher(Watcher):
    """Waits for one key."""

    def __init__(self, manifest: "WatcherManifest", machine: "Machine") -> None:
        super().__init__(manifest, machine)
        assert isinstance(manifest.options, KvOptions)
        self._options = manifest.options
        self._state = "unknown"
        self._previous_revision = 0
        self._read_at_s = float("-inf")
        self._watch: KeyWatch | None = None

    def state_fields(self) -> dict[str, Any]:
        options = self._options
        return {"state": self._state, "bucket": options.bucket, "key": options.key, "mode": options.mode}

    async def run(self) -> None:
        try:
            while True:
                await self._look()
                await self.wait(self._wait_s())
        finally:
            await self._leave_watch()

    def _wait_s(self) -> float:
        if self._is_unreachable:
            return CONNECTED_CHECK_S
        if self._state == "skipped":
            return self.manifest.interval_s
        return max(self._read_at_s + self.manifest.interval_s - time.monotonic(), 0.0)

    @property
    def _is_live(self) -> bool:
        return self._watch is not None and self._watch.is_live

    @property
    def _is_unreachable(self) -> bool:
        return not self._is_live and not self.machine.services.is_connected()

    async def _look(self) -> None:
        if not self.is_active:
            self._state = "skipped"
            return
        if self._is_unreachable:
            # A server that is away says nothing about the key.
            self._state = "unknown"
            return
        now_s = time.monotonic()
        if self._options.mode == "poll" and now_s < self._read_at_s + self.manifest.interval_s:
            # Entering a state does not make polls more frequent.
            self._state = "unchanged" if self._state == "skipped" else self._state
            return
        self._read_at_s = now_s
        try:
            changed = await self._compare()
        except JetlakeError as error:
            if self._state != "error":
                self.report("error", f"{self._options.bucket}.{self._options.key}: {error}")
            self._state = "error"
            await self.fail()
            return
        self._state = "changed" if changed else "unchanged"
        if changed:
            await self.succeed()

    async def succeed(self) -> None:
        fired = await self.machine.fire(self.manifest.success_transition, change_of=self.name)
        # If another transition was faster, the change waits until the machine is in a matching state again.
        if fired is None and self.is_active:
            await self.machine.drop_change(self.name)

    async def _compare(self) -> bool:
        """Return whether the value is another one than before, or counts as such."""
        options, machine = self._options, self.machine
        key = machine.render(options.key)
        data_key = self._data_key()
        entry = await self._entry(key)
        previous = machine.data.get(data_key, _ABSENT)
        if entry is None or entry.is_deleted:
            if previous is _ABSENT:
                return machine.has_noted_change(self.name)
            await machine.note_change(self.name)
            await machine.delete_data(data_key)
            self._previous_revision = 0
            return True
        value = parsed(entry.value or b"", options.query)
        before, self._previous_revision = self._previous_revision, entry.revision
        if previous is _ABSENT or previous != value:
            await machine.note_change(self.name)
            await machine.put_data({data_key: value})
            return True
        is_newer = options.on_matching_update and 0 < before < entry.revision
        return options.on_successful_get or is_newer or machine.has_noted_change(self.name)

    def _data_key(self) -> str:
        options = self._options
        key = self.machine.render(options.store_key or options.key)
        return f"{options.bucket}_{key}" if options.bucket_prefix else key

    async def _entry(self, key: str) -> Entry[bytes] | None:
        """Return the last entry of the key, from the watch or by a request."""
        services, bucket = self.machine.services, self._options.bucket
        if self._options.mode == "watch":
            if self._watch is None or self._watch.key != key:
                await self._leave_watch()
                self._watch = services.keys.join(bucket, key, self.note_state_change)
            if self._watch.is_live:
                return self._watch.latest
        return await (await Buckets(services.api()).open(bucket)).find(key)

    async def _leave_watch(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            await self.machine.services.keys.leave(watch, self.note_state_change)


def parsed(value: bytes, query: str = "") -> Any:
    """Return a value as machine data: objects and lists of JSON as such, everything else as text."""
    text = value.decode(errors="replace")
    stripped = text.strip()
    if (stripped[:1], stripped[-1:]) not in (("{", "}"), ("[", "]")):
        return text
    try:
        found = json.loads(stripped)
    except (ValueError, RecursionError):
        return text
    return lookup(found, query) if query and isinstance(found, dict) else found
