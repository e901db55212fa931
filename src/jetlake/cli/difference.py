"""The difference between two configurations, field by field, as a person reads it.

```text
- max_age: unlimited
+ max_age: 1d
```
"""

from typing import Any

import typer

from jetlake.cli.output import confirm, console, is_terminal, print_json, print_note
from jetlake.presentation.changes import Change, changes, shown_value


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
    """Show what an edit of `what` would change, and ask; return whether to do it."""
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
