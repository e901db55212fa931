"""All scenes in order. A feature that can be shown adds its scripts here."""

from jetlake.demo import (
    buckets,
    dashboard,
    devices,
    durability,
    fleet,
    governor,
    messaging,
    pipelines,
    query,
    speed,
    submission,
    workers,
)
from jetlake.demo.scene import Script

__all__ = ["SCENES"]

SCENES: tuple[Script, ...] = (
    *messaging.SCRIPTS,
    *durability.SCRIPTS,
    *dashboard.SCRIPTS,
    *buckets.SCRIPTS,
    *workers.SCRIPTS,
    *governor.SCRIPTS,
    *submission.SCRIPTS,
    *fleet.SCRIPTS,
    *devices.SCRIPTS,
    *speed.SCRIPTS,
    # These read what the others have left.
    *pipelines.SCRIPTS,
    *query.SCRIPTS,
)
