"""`ExecWatcher`: runs a command, on changes of the state and in intervals.

Exit code 0 is a success; everything else is a failure: another code, the end of its time, no slot of its governor, a
template that cannot be filled in.
"""

import json
import random
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from jetlake.agents.machines.commands import CommandResult, words_of
from jetlake.agents.machines.watcher_options import ExecOptions
from jetlake.agents.machines.watchers.environment import base_environment, data_files, read_environment_file
from jetlake.agents.machines.watchers.watcher import Watcher
from jetlake.client.uninterrupted import finish
from jetlake.errors import ConfigurationError, JetlakeError

if TYPE_CHECKING:
    from jetlake.agents.machines.machine import Machine
    from jetlake.agents.machines.manifest import WatcherManifest

__all__ = ["ExecWatcher"]

INITIAL_SPLAY_S_MAX = 30.0
"""With `gather_initial_state` the first run comes after a random part of this."""

OUTPUT_SHOWN_MAX = 200
"""Characters of a failed command's output in the log."""


class ExecWatcher(Watcher):
    """Runs one command."""

    def __init__(self, manifest: "WatcherManifest", machine: "Machine") -> None:
        super().__init__(manifest, machine)
        assert isinstance(manifest.options, ExecOptions)
        self._options = manifest.options
        self._previous_outcome = "unknown"
        self._previous_run_time_ns = 0

    def state_fields(self) -> dict[str, Any]:
        return {
            "command": self._options.command,
            "previous_outcome": self._previous_outcome,
            "previous_run_time": self._previous_run_time_ns,
        }

    async def run(self) -> None:
        interval_s = self.manifest.interval_s or None
        wait_s = interval_s
        if interval_s and self._options.gather_initial_state:
            wait_s = random.uniform(0, min(INITIAL_SPLAY_S_MAX, interval_s))
        while True:
            await self.wait(wait_s)
            await self._look()
            wait_s = interval_s

    async def _look(self) -> None:
        if not self.is_active:
            self._previous_outcome = "skipped"
            return
        try:
            await self._execute()
        except JetlakeError as error:
            self._previous_outcome = "error"
            self.report("error", f"{self._options.command}: {error}")
            self.announce()
            await self.fail()
            return
        self._previous_outcome = "success"
        if not self._options.suppress_success_announce:
            self.announce()
        await self.succeed()

    async def _execute(self) -> None:
        """Run the command, with a slot if it needs one. Raises `JetlakeError` for everything but a success."""
        async with AsyncExitStack() as stack:
            if self._options.governor:
                await self._enter_governor(stack)
            began_ns = time.monotonic_ns()
            try:
                result = await self._run_command()
            finally:
                self._previous_run_time_ns = time.monotonic_ns() - began_ns
        if not result.is_success:
            said = " ".join(result.text.split())[:OUTPUT_SHOWN_MAX]
            reason = result.failure or f"exit code {result.exit_code}"
            raise ConfigurationError(f"{reason}{f', it said: {said}' if said else ''}")
        if self._options.parse_as_data:
            await self._store_output(result)

    async def _enter_governor(self, stack: AsyncExitStack) -> None:
        from jetlake.governor import Governor

        services, machine = self.machine.services, self.machine
        name, timeout_s = machine.render(self._options.governor), self._options.governor_timeout_s
        began_s = time.monotonic()
        api = await services.wait_for_api(timeout_s)
        governor = await stack.enter_async_context(Governor(api, name, collective=services.collective))
        await stack.enter_async_context(
            governor.slot(
                # Two blanks, as the original writes it.
                holder=f"Auto Agent  {machine.name}#{self.name} @ {services.identity}",
                identity=services.identity,
                max_wait_s=max(timeout_s - (time.monotonic() - began_s), 0.0),
                component=machine.name,
                end_on_sigterm=False,
            )
        )

    async def _run_command(self) -> CommandResult:
        options, machine = self._options, self.machine
        words = words_of(machine.render(options.command))
        environment = base_environment(self)
        if options.environment_file:
            environment |= read_environment_file(machine.folder / options.environment_file)
        for each in options.environment:
            name, _, value = machine.render(each).partition("=")
            environment[name] = value
        with data_files(machine.data, machine.services.facts()) as files:
            return await machine.services.commands.run(
                words,
                folder=machine.folder,
                environment=environment | files,
                timeout_s=options.timeout_s,
                disown=options.disown,
            )

    async def _store_output(self, result: CommandResult) -> None:
        try:
            found = json.loads(result.output)
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(f"its output is not JSON, as parse_as_data wants it: {error}") from error
        if not isinstance(found, dict):
            raise ConfigurationError("its output is not a JSON object, as parse_as_data wants it")
        await finish(self.machine.put_data(found))
