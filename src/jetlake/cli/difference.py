"""The difference between two configurations, field by field, as a person reads it.

```text
- max_age: unlimited
+ max_age: 1d
```
"""

from typing import Any

import typer

from jetlake.cli.output import confirm, console, is_terminal, print_json, print_note
from jetlake.cli.quantities import shown_duration, shown_size

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
    return str(value)


def print_changes(found: list[Change]) -> None:
    """Print what differs: red what was, green what becomes."""
    screen = console() if is_terminal() else None
    for path, old, new in found:
        for sign, value, style in (("-", old, "red"), ("+", new, "green")):
            if value is None:
                continue
            line = f"{sign} {path}: {shown_value(path, value)}"
            if screen is None:
                typer.echo(line)
            else:
                screen.print(line, style=style, markup=False)


def is_wanted(
    what: str, before: dict[str, Any], after: dict[str, Any], *, dry_run: bool, force: bool, as_json: bool
) -> bool:
    """Show what an edit of `what` would change, and ask; say whether it is to be done."""
    found = changes(before, after)
    if not found:
        if not as_json:
            print_note(f"{what} is like this already: nothing changes")
        return False
    if not as_json:
        print_changes(found)
    if dry_run:
        if as_json:
            print_json({path: {"before": old, "after": new} for path, old, new in found})
        return False
    confirm(f"Really edit {what[:1].lower()}{what[1:]}?", force=force)
    return True
