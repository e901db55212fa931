"""The difference between two configurations, field by field."""

from typing import Any

from jetlake.presentation.cells import safe
from jetlake.presentation.quantities import shown_duration, shown_size

TIMES = {
    "ack_wait",
    "backoff",
    "duplicate_window",
    "idle_heartbeat",
    "inactive_threshold",
    "max_age",
    "max_expires",
    "priority_timeout",
    "subject_delete_marker_ttl",
}
SIZES = {"max_bytes", "max_msg_size"}

Change = tuple[str, Any, Any]
"""The dotted name of a field, what it was and what it becomes; None where it is not there."""


def changes(before: dict[str, Any], after: dict[str, Any], prefix: str = "") -> list[Change]:
    """Return the fields that differ, sorted by name."""
    found: list[Change] = []
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            found += changes(old, new, f"{prefix}{key}.")
        else:
            found.append((f"{prefix}{key}", old, new))
    return found


def shown_value(path: str, value: Any) -> str:
    """Return the value of a field with its unit."""
    name = path.rpartition(".")[2]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "[" + ", ".join(shown_value(path, part) for part in value) + "]"
    if isinstance(value, int):
        if value <= 0 and (name in TIMES or name in SIZES or name.startswith("max_")):
            return "unlimited"
        if name in TIMES:
            return shown_duration(value)
        if name in SIZES:
            return shown_size(value)
        return f"{value:,}"
    return safe(str(value))
