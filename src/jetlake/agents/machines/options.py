"""Options of a node's machines, from the keys of its configuration.

| YAML                     | key                                           | meaning                              |
|--------------------------|-----------------------------------------------|--------------------------------------|
| `machines.store`         | `plugin.choria.machine.store`                 | folder with a folder of each machine |
| `machines.prometheus`    | `plugin.choria.prometheus_textfile_directory` | folder of Prometheus' node exporter  |
| `machines.overrides`     | `plugin.scout.overrides`                      | JSON file with overrides of checks   |
| `machines.resume`        | `machines.resume`                             | go on in the last state              |
| `machines.requests`      | `machines.requests`                           | answer requests from outside         |
| `machines.scan_interval` | `machines.scan_interval`                      | how often the store is looked at     |
"""

from pathlib import Path

import msgspec

from jetlake.choria.settings import ChoriaSettings

__all__ = ["MachinesOptions", "read_machines_options"]

SCAN_S = 10.0
"""How often the store is looked at, as in the original."""

SCAN_S_MIN = 0.1
"""The store is read in every interval, manifests included."""


class MachinesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a node's host of machines."""

    store: Path | None = None
    # Machines besides those of the store.
    folders: tuple[Path, ...] = ()
    prometheus_folder: str = ""
    overrides_file: str = ""
    resume: bool = True
    requests: bool = True
    scan_s: float = SCAN_S


def read_machines_options(settings: ChoriaSettings) -> MachinesOptions:
    """Return the options that keys make. Raises `ConfigurationError`."""
    store = settings.text("plugin.choria.machine.store")
    scan_s = settings.seconds("machines.scan_interval", SCAN_S)
    if scan_s < SCAN_S_MIN:
        raise settings.refusal("machines.scan_interval", f"give at least {SCAN_S_MIN:g} s")
    return MachinesOptions(
        store=Path(store) if store else None,
        prometheus_folder=settings.text("plugin.choria.prometheus_textfile_directory"),
        overrides_file=settings.text("plugin.scout.overrides"),
        resume=settings.switch("machines.resume", default=True),
        requests=settings.switch("machines.requests", default=True),
        scan_s=scan_s,
    )
