"""`NagiosWatcher`: runs a check of Nagios' kind; its exit code is the status, and the status is the event it fires.

Scout's checks are machines with one such watcher. The state `FORCE_CHECK` runs the check at once.
"""

import json
import random
import time
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jetlake.agents.machines.commands import words_of
from jetlake.agents.machines.perfdata import parse_performance_data
from jetlake.agents.machines.templates import MISSING, TemplateError, lookup
from jetlake.agents.machines.watcher_options import NagiosOptions
from jetlake.agents.machines.watchers.environment import base_environment
from jetlake.agents.machines.watchers.watcher import Watcher
from jetlake.choria.events import STATUS_NAMES
from jetlake.errors import ClientError, ConfigurationError

if TYPE_CHECKING:
    from jetlake.agents.machines.machine import Machine
    from jetlake.agents.machines.manifest import WatcherManifest

__all__ = ["NagiosWatcher"]

OK, CRITICAL, UNKNOWN = 0, 2, 3
HISTORY_MAX = 15
"""Checks that an event reports, as in the original."""

OUTPUT_MAX = 16 * 1024
"""Characters of a check's output in its event: it must fit into a message."""

FORCE_CHECK = "FORCE_CHECK"


class NagiosWatcher(Watcher):
    """Runs one check."""

    def __init__(self, manifest: "WatcherManifest", machine: "Machine") -> None:
        super().__init__(manifest, machine)
        assert isinstance(manifest.options, NagiosOptions)
        self._options = manifest.options
        self._plugin = manifest.options.plugin or manifest.options.builtin
        self._status = UNKNOWN
        self._output = ""
        self._performance: list[dict[str, Any]] = []
        self._checked_unix_s = 0
        self._runtime_s = 0.0
        self._history: deque[dict[str, Any]] = deque(maxlen=HISTORY_MAX)

    def state_fields(self) -> dict[str, Any]:
        return {
            "plugin": self._plugin,
            "status": STATUS_NAMES[self._status],
            "status_code": self._status,
            "output": self._output,
            "check_time": self._checked_unix_s,
            "perfdata": self._performance,
            "runtime": self._runtime_s,
            "history": list(self._history),
            "annotations": self._options.annotations,
        }

    async def run(self) -> None:
        interval_s = self.manifest.interval_s
        due_s = time.monotonic() + random.uniform(0, interval_s) if interval_s else None
        while True:
            left_s = None if due_s is None else max(due_s - time.monotonic(), 0.0)
            is_forced = await self.wait(left_s)
            if is_forced and self.machine.state != FORCE_CHECK:
                continue
            if self.is_active or (is_forced and self.machine.state == FORCE_CHECK):
                await self._check()
            if due_s is not None:
                due_s = time.monotonic() + interval_s

    async def _check(self) -> None:
        began = datetime.now(UTC)
        began_s = time.monotonic()
        self._checked_unix_s = int(began.timestamp())
        status, output = await self._run_plugin() if self._options.plugin else self._run_builtin()
        self._runtime_s = time.monotonic() - began_s
        self._status = status
        self._output = output.strip()[:OUTPUT_MAX]
        self._performance = parse_performance_data(output)
        execution: dict[str, Any] = {"execute": began.isoformat().replace("+00:00", "Z"), "status": status}
        if self._performance:
            execution["perfdata"] = self._performance
        self._history.append(execution)
        self.announce()
        self.machine.services.text_files.set_check(self.machine.name, status)
        # Most checks find what they found before; then the event is not possible, and there is nothing to report.
        if self.machine.can(STATUS_NAMES[status]):
            await self.machine.fire(STATUS_NAMES[status])

    async def _run_plugin(self) -> tuple[int, str]:
        try:
            self._plugin = self.machine.render(self._options.plugin, self._override)
            words = words_of(self._plugin)
        except ConfigurationError as error:
            self.report("error", str(error))
            return UNKNOWN, str(error)
        result = await self.machine.services.commands.run(
            words,
            folder=self.machine.folder,
            environment=base_environment(self),
            timeout_s=self._options.timeout_s,
        )
        if result.failure:
            self.report("error", f"{self._plugin}: {result.failure}")
            return UNKNOWN, result.failure
        return result.exit_code if OK <= result.exit_code <= UNKNOWN else UNKNOWN, result.text

    def _run_builtin(self) -> tuple[int, str]:
        if self._options.builtin == "heartbeat":
            return OK, str(int(time.time()))
        try:
            connected = self.machine.services.api().connection.is_connected
        except ClientError:
            connected = False
        return (OK, "OK: connected") if connected else (CRITICAL, "CRITICAL: Not connected to any server")

    def _override(self, path: str) -> Any:
        """Return what the overrides say about this check. Raises `TemplateError` if they cannot be read."""
        file = self.machine.services.overrides_file
        if file is None:
            return MISSING
        try:
            overrides = json.loads(file.read_bytes())
        except OSError:
            return MISSING
        except (ValueError, RecursionError) as error:
            raise TemplateError(f"the overrides in {file} are not JSON: {error}") from error
        return lookup(overrides.get(self.machine.name) if isinstance(overrides, dict) else None, path, MISSING)
