"""A plan as people read it: what is added, changed, replaced and removed, and what is lost by it.

```text
~ stream ORDERS
    ~ max_age: 30d → 7d  (deletes messages)
    ! max_age becomes shorter: older ones of 1,200 messages go
```

Buckets, object stores and governors are streams to a server. Here they have the names and fields of the files that
declare them; what every one of them has is not repeated.

Lines come with a style each, which the command line turns into colours where there are any.
"""

from typing import Any, Literal, NamedTuple

from jetlake.iac.fields import CONSUMER, STREAM, Field, Kind
from jetlake.iac.plan import Action, Change, Plan, Step
from jetlake.units import write_duration, write_size

Style = Literal["add", "change", "remove", "danger", "note", "title", ""]

_SIGNS: dict[Action, tuple[str, Style]] = {
    "create": ("+", "add"),
    "update": ("~", "change"),
    "replace": ("-/+", "danger"),
    "delete": ("-", "remove"),
}
_VERBS: dict[Action, str] = {"create": "create", "update": "change", "replace": "replace", "delete": "remove"}

_WORDS: dict[str, dict[str, str]] = {
    "bucket": {
        "allow_msg_ttl": "key_ttl",
        "max_age": "ttl",
        "max_msg_size": "max_value_size",
        "max_msgs_per_subject": "history",
        "subject_delete_marker_ttl": "limit_marker_ttl",
    },
    "object store": {"max_age": "ttl"},
    "governor": {"max_age": "expires", "max_msgs": "capacity"},
}
"""The fields of streams that have other names in files, by the label of a step."""

_BUCKET_FIELDS = frozenset(
    ("allow_direct", "allow_rollup_hdrs", "deny_delete", "discard", "duplicate_window", "subjects")
)
_IMPLIED: dict[str, frozenset[str]] = {
    "bucket": _BUCKET_FIELDS,
    "object store": _BUCKET_FIELDS,
    "governor": frozenset(("description", "discard", "max_bytes", "retention", "storage", "subjects")),
}
"""The fields that nobody declares, because they make a stream what it is; a new one is shown without them."""

ITEMS_SHOWN_MAX = 20
"""Of a list; a stream may have thousands of subjects."""


class Line(NamedTuple):
    """One line of text and how it looks."""

    text: str
    style: Style = ""


def render(plan: Plan) -> list[Line]:
    """Return the plan as lines."""
    lines: list[Line] = []
    for step in plan.steps:
        lines += [*render_step(step), Line("")]
    for orphan in plan.orphans:
        lines.append(
            Line(f"? {orphan} was made by {plan.project} and is no longer declared; --prune removes it", "note")
        )
    if plan.orphans:
        lines.append(Line(""))
    lines.append(Line(summary(plan), "title"))
    return lines


def render_step(step: Step) -> list[Line]:
    """Return one step as lines."""
    sign, style = _SIGNS[step.action]
    lines = [Line(f"{sign} {step.title}", style)]
    if step.action != "delete":
        implied = _IMPLIED.get(step.label, frozenset()) if step.action == "create" else frozenset()
        lines += [_change_line(step, change) for change in step.changes if change.field not in implied]
    lines += [Line(f"    # {note}", "note") for note in step.notes]
    lines += [Line(f"    ! {loss}", "danger") for loss in step.destroys]
    return lines


def summary(plan: Plan) -> str:
    """Return the plan in one sentence."""
    unchanged = f"{len(plan.unchanged)} unchanged"
    if plan.is_empty:
        return f"Nothing to do, {unchanged}."
    counts = [f"{plan.count(action)} to {verb}" for action, verb in _VERBS.items() if plan.count(action)]
    verb = "destroys" if len(plan.destructive) == 1 else "destroy"
    lost = f"; {len(plan.destructive)} of them {verb} something" if plan.destructive else ""
    return f"{', '.join(counts)}, {unchanged}{lost}."


def shown(field: str, value: Any) -> str:
    """Return the value of a field as it would be written in a file."""
    kind = _KINDS.get(field.rpartition(".")[2])
    if value is None:
        return "(none)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        items = [shown(field, item) for item in value[:ITEMS_SHOWN_MAX]]
        left = len(value) - len(items)
        return f"[{', '.join(items)}{f', and {left:,} more' if left > 0 else ''}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {shown(key, inner)}' for key, inner in value.items())}}}"
    if isinstance(value, int):
        name = field.rpartition(".")[2]
        if name.startswith("max_") and (value < 0 or (value == 0 and name == "max_age")):
            return "unlimited"
        if kind in (Kind.DURATION, Kind.DURATIONS):
            return write_duration(value)
        return str(write_size(value)) if kind is Kind.SIZE else str(value)
    text = str(value)
    # Several lines, or orders to a terminal, are shown as what they are.
    return text if text and text.isprintable() else repr(text)


def _change_line(step: Step, change: Change) -> Line:
    note = f"  ({change.note})" if change.note else ""
    style: Style = "danger" if change.note.startswith(("needs", "deletes")) else "change"
    word = _WORDS.get(step.label, {}).get(change.field, change.field)
    if step.action == "create":
        return Line(f"    + {word}: {shown(change.field, change.after)}", "add")
    if change.after is None:
        return Line(f"    - {word}: {shown(change.field, change.before)}{note}", "remove")
    if change.before is None:
        return Line(f"    + {word}: {shown(change.field, change.after)}{note}", "add")
    before, after = shown(change.field, change.before), shown(change.field, change.after)
    return Line(f"    ~ {word}: {before} → {after}{note}", style)


def _kinds(fields: tuple[Field, ...]) -> dict[str, Kind]:
    found = {field.name: field.kind for field in fields}
    for field in fields:
        found |= {name: kind for name, kind in _kinds(field.fields).items() if name not in found}
    return found


# A name means the same kind of value wherever it stands.
_KINDS = {**_kinds(CONSUMER), **_kinds(STREAM)}
