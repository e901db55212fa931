"""`MetricWatcher`: runs a command that prints metrics, as JSON or as performance data of a check.

They go into the event of the watcher's state, into a file for Prometheus, to Graphite, and into the machine's data, as
the manifest asks for.
"""

import asyncio
import json
import math
import random
import time
from typing import TYPE_CHECKING, Any

from jetlake.agents.machines.commands import CommandResult, words_of
from jetlake.agents.machines.perfdata import parse_performance_data
from jetlake.agents.machines.watcher_options import MetricOptions
from jetlake.agents.machines.watchers.environment import base_environment
from jetlake.agents.machines.watchers.watcher import Watcher
from jetlake.errors import ConfigurationError, JetlakeError, reason_of

if TYPE_CHECKING:
    from jetlake.agents.machines.machine import Machine
    from jetlake.agents.machines.manifest import WatcherManifest

__all__ = ["MetricWatcher"]

GRAPHITE_S_MAX = 2.0
"""For one report to Graphite, as in the original."""

METRICS_MAX = 1_000
"""Of one run: they must fit into an event."""

RUNTIME = "choria_runtime_seconds"


class MetricWatcher(Watcher):
    """Gathers metrics by one command."""

    def __init__(self, manifest: "WatcherManifest", machine: "Machine") -> None:
        super().__init__(manifest, machine)
        assert isinstance(manifest.options, MetricOptions)
        self._options = manifest.options
        self._labels: dict[str, str] = {}
        self._metrics: dict[str, float] = {}
        self._gathered_unix_s = 0
        self._runtime_s = 0.0

    def state_fields(self) -> dict[str, Any]:
        return {"metrics": self._result()}

    def _result(self) -> dict[str, Any]:
        return {
            "labels": self._labels,
            "metrics": {**self._metrics, RUNTIME: self._runtime_s},
            "time": self._gathered_unix_s,
        }

    async def run(self) -> None:
        interval_s = self._options.interval_s
        await asyncio.sleep(random.uniform(0, interval_s))
        while True:
            if self.is_active:
                await self._gather()
            await self.wait(interval_s)

    async def _gather(self) -> None:
        try:
            result = await self._run_command()
        except JetlakeError as error:
            # As in the original, only output that cannot be read is a failure of the machine.
            self.report("error", str(error))
            return
        try:
            labels, metrics = read_metrics(result.text)
        except ConfigurationError as error:
            self.report("error", f"{self._options.command}: {error}")
            self.announce()
            await self.fail()
            return
        self._labels = labels | self._options.labels
        self._metrics = metrics
        self._gathered_unix_s = int(time.time())
        await self._pass_on()
        self.announce()

    async def _run_command(self) -> CommandResult:
        command = self.machine.render(self._options.command)
        result = await self.machine.services.commands.run(
            words_of(command),
            folder=self.machine.folder,
            environment=base_environment(self),
            timeout_s=self._options.timeout_s,
        )
        self._runtime_s = result.runtime_ns / 1e9
        if not result.is_success:
            raise ConfigurationError(f"{command}: {result.failure or f'exit code {result.exit_code}'}")
        return result

    async def _pass_on(self) -> None:
        options, machine = self._options, self.machine
        if not options.skip_prometheus:
            values = {**self._metrics, RUNTIME: self._runtime_s}
            machine.services.text_files.set_metrics(machine.name, self.name, self._labels, values)
        try:
            if options.store:
                await machine.put_data({"metric": {**_as_dict(machine.data.get("metric")), self.name: self._result()}})
            if options.graphite_host and options.graphite_port and self._metrics:
                await self._send_to_graphite()
        except (JetlakeError, OSError, TimeoutError) as error:
            reason = (
                reason_of(error) if isinstance(error, OSError) and error.strerror else str(error) or "it took too long"
            )
            self.report("warning", f"metrics could not be passed on: {reason}")

    async def _send_to_graphite(self) -> None:
        render, options = self.machine.render, self._options
        host, port = render(options.graphite_host), render(options.graphite_port)
        if not (port.isdecimal() and port.isascii() and 0 < int(port[:6]) < 65_536):
            raise ConfigurationError(f"graphite_port is {port[:20]!r}: write a number from 1 to 65535")
        prefix = render(options.graphite_prefix) or f"choria.{self.name.replace(' ', '-')}"
        values = {**self._metrics, "runtime": self._runtime_s}
        lines = "".join(f"{prefix}.{key} {value:f} {self._gathered_unix_s}\n" for key, value in values.items())
        async with asyncio.timeout(GRAPHITE_S_MAX):
            _, writer = await asyncio.open_connection(host, int(port))
            try:
                writer.write(lines.encode())
                await writer.drain()
            finally:
                writer.close()


def read_metrics(text: str) -> tuple[dict[str, str], dict[str, float]]:
    """Return labels and metrics of a command's output. Raises `ConfigurationError`."""
    if not text.lstrip().startswith("{"):
        found = parse_performance_data(text)
        return {"format": "nagios"}, {each["label"]: each["value"] for each in found}
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"the output is not JSON: {error}") from error
    labels, metrics = content.get("labels") or {}, content.get("metrics") or {}
    if not isinstance(labels, dict) or not isinstance(metrics, dict) or len(metrics) > METRICS_MAX:
        raise ConfigurationError('the output must be {"labels": {…}, "metrics": {…}}')
    for name, value in metrics.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or abs(value) > 1e300 or not math.isfinite(value):
            raise ConfigurationError(f"the metric {name[:40]!r} is not a number")
    return (
        {"format": "choria"} | {str(key): str(value) for key, value in labels.items()},
        {name: float(value) for name, value in metrics.items()},
    )


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
