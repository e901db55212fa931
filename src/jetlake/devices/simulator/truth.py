"""What really happened in a simulation: counts and final states, to check a pipeline against."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from jetlake.devices.simulator.device import SimulatedDevice
from jetlake.errors import ConfigurationError, reason_of


class Truth:
    """The account of one simulation."""

    def __init__(self) -> None:
        # Events by type, without snapshots, which record nothing new.
        self.events: Counter[str] = Counter()
        # Commands by outcome: ok, error, canceled; what is left is open or its time is over.
        self.commands: Counter[str] = Counter()
        self.sessions = 0
        # Readings that said what was known.
        self.unchanged = 0
        self.open_commands: dict[str, str] = {}

    def as_json(self, devices: list[SimulatedDevice]) -> dict[str, Any]:
        """Return the account with the final state of each device."""
        return {
            "events": dict(sorted(self.events.items())),
            "commands": dict(sorted(self.commands.items())) | {"open": len(self.open_commands)},
            "sessions": self.sessions,
            "unchanged": self.unchanged,
            "devices": {
                device.device_id: {
                    "name": device.name,
                    "model": device.model.name,
                    "online": device.is_online,
                    "connection": device.connection_id,
                    "open_commands": sorted(
                        name for name, device_id in self.open_commands.items() if device_id == device.device_id
                    ),
                    "values": device.values,
                }
                for device in devices
            },
        }

    def write(self, path: Path, devices: list[SimulatedDevice]) -> None:
        """Write the account. Raises `ConfigurationError`."""
        try:
            path.write_text(json.dumps(self.as_json(devices), indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"cannot write {path}: {reason_of(error)}") from error
