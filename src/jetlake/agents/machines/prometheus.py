"""`TextFiles`: the results of checks and metrics as files for Prometheus' node exporter, as the original writes them.

Invariant: a reader sees a whole file or none.
"""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from jetlake.errors import reason_of

__all__ = ["TextFiles"]

CHECKS_FILE = "choria_machine_nagios_watcher_status.prom"
METRICS_FILE = "choria_machine_metrics_watcher_status.prom"
FILE_MODE = 0o644

STATUS_NAMES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]")


class TextFiles:
    """The files of one node. Without a folder nothing is written."""

    def __init__(self, folder: str, report: Callable[[str, str], None]) -> None:
        self._folder = Path(folder) if folder else None
        self._report = report
        self._started_unix_s = int(time.time())
        # By machine: status, time of the last check, number of checks.
        self._checks: dict[str, tuple[int, int, int]] = {}
        # By machine and watcher: labels and values.
        self._metrics: dict[tuple[str, str], tuple[dict[str, str], dict[str, float]]] = {}
        self._has_failed = False

    def set_check(self, machine: str, status_code: int) -> None:
        count = self._checks[machine][2] if machine in self._checks else 0
        self._checks[machine] = (status_code, int(time.time()), count + 1)
        self._write(CHECKS_FILE, self._checks_text)

    def set_metrics(self, machine: str, watcher: str, labels: dict[str, str], values: dict[str, float]) -> None:
        self._metrics[machine, watcher] = (dict(labels), dict(values))
        self._write(METRICS_FILE, self._metrics_text)

    def remove(self, machine: str) -> None:
        """Forget a machine that is gone."""
        if self._checks.pop(machine, None) is not None:
            self._write(CHECKS_FILE, self._checks_text)
        gone = [key for key in self._metrics if key[0] == machine]
        for key in gone:
            del self._metrics[key]
        if gone:
            self._write(METRICS_FILE, self._metrics_text)

    def _checks_text(self) -> str:
        prefix = "choria_machine_nagios_watcher"
        lines = _head("choria_machine_nagios_start_time", "Time the agent started in unix seconds", "gauge")
        lines.append(f"choria_machine_nagios_start_time {self._started_unix_s}")
        lines += _head(f"{prefix}_status", "Status of the check", "gauge")
        for name, (status, _, _) in self._checks.items():
            lines.append(f'{prefix}_status{{name={_quoted(name)},status="{STATUS_NAMES[status]}"}} {status}')
        lines += _head(f"{prefix}_last_run_seconds", "Time of the last check in unix seconds", "gauge")
        lines += [
            f"{prefix}_last_run_seconds{{name={_quoted(name)}}} {at}" for name, (_, at, _) in self._checks.items()
        ]
        lines += _head(f"{prefix}_checks_count", "Number of checks", "counter")
        lines += [f"{prefix}_checks_count{{name={_quoted(name)}}} {n}" for name, (_, _, n) in self._checks.items()]
        return "\n".join(lines) + "\n"

    def _metrics_text(self) -> str:
        # The format wants all values of one name together.
        by_name: dict[str, list[str]] = {}
        for (_, watcher), (labels, values) in self._metrics.items():
            shown = ",".join(f"{_name(key)}={_quoted(value)}" for key, value in labels.items())
            for metric, value in values.items():
                name = f"choria_machine_metric_watcher_{_name(watcher.lower())}_{_name(metric)}"
                by_name.setdefault(name, []).append(f"{name}{{{shown}}} {value:f}")
        lines: list[str] = []
        for name, found in by_name.items():
            lines += [*_head(name, "Metric of a machine", "gauge"), *found]
        return "\n".join(lines) + "\n"

    def _write(self, name: str, text: Callable[[], str]) -> None:
        if self._folder is None:
            return
        unfinished = self._folder / f".{name}.new"
        try:
            unfinished.write_text(text(), encoding="utf-8")
            unfinished.chmod(FILE_MODE)
            os.replace(unfinished, self._folder / name)
            self._has_failed = False
        except OSError as error:
            if not self._has_failed:
                self._report("warning", f"cannot write {self._folder / name}: {reason_of(error)}")
            self._has_failed = True


def _head(name: str, text: str, kind: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def _name(text: str) -> str:
    return _NOT_IN_NAMES.sub("_", text)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
