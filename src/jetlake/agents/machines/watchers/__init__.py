"""Watchers: what makes a machine move. Each looks at one thing and fires events.

- `watcher`   `Watcher`, what all of them share
- `environment`  what commands find in their environment
- `exec`      runs a command
- `file`      looks at a file, or keeps its contents
- `kv`        waits for a key of a bucket
- `schedule`  is on and off by the clock
- `timer`     fires some time after a state was entered
- `metric`    runs a command that prints metrics
- `nagios`    runs a check
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jetlake.agents.machines.machine import Machine
    from jetlake.agents.machines.manifest import WatcherManifest
    from jetlake.agents.machines.watchers.watcher import Watcher

__all__ = ["watcher_of"]

CLASS_NAMES = {
    "exec": "ExecWatcher",
    "file": "FileWatcher",
    "kv": "KvWatcher",
    "metric": "MetricWatcher",
    "nagios": "NagiosWatcher",
    "schedule": "ScheduleWatcher",
    "timer": "TimerWatcher",
}
"""The class in the module of each type."""


def watcher_of(manifest: "WatcherManifest", machine: "Machine") -> "Watcher":
    """Return the watcher that a manifest describes; its module is imported when the first one is needed."""
    module = import_module(f"jetlake.agents.machines.watchers.{manifest.kind}")
    watcher: Watcher = getattr(module, CLASS_NAMES[manifest.kind])(manifest, machine)
    return watcher
