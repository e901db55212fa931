"""What differs between a declared thing and the one a server has, and what making them equal would cost.

| field of a stream                                        | a change of it                                   |
|----------------------------------------------------------|--------------------------------------------------|
| storage, persist_mode, allow_msg_counter                 | needs a new stream                               |
| retention to or from workqueue, another mirror           | needs a new stream                               |
| sealed, deny_delete, deny_purge, allow_msg_ttl, schedules | cannot be undone: taking it back needs a new one |
| max_age, max_msgs_per_subject lower                      | deletes messages that are beyond it              |
| max_msgs, max_bytes, discard                             | deletes messages that are beyond the limits,     |
|                                                          | unless `discard` is to be `new`                  |
| retention limits to interest                             | deletes messages that no consumer waits for      |

Of a consumer the way of delivery and of acknowledgement need a new one, which begins where its policy says. Filters
that leave something out delete messages of a stream with retention interest that no other consumer waits for.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from jetlake.iac.actual import ActualResource
from jetlake.iac.declaration import OWNER_KEY, Resource
from jetlake.iac.fields import CONSUMER, STREAM
from jetlake.iac.normal import may_differ, normal_consumer, normal_stream, normal_template
from jetlake.iac.plan import Change
from jetlake.iac.times import canonical_timestamp, parse_timestamp
from jetlake.shared.subjects import ANY_TAIL, covers

_NEW_STREAM = ("storage", "persist_mode", "allow_msg_counter")
_ONE_WAY = ("sealed", "deny_delete", "deny_purge", "allow_msg_ttl", "allow_msg_schedules")
_NEW_CONSUMER = (
    "deliver_policy",
    "opt_start_seq",
    "opt_start_time",
    "ack_policy",
    "replay_policy",
    "idle_heartbeat",
    "flow_control",
    "max_waiting",
    "mem_storage",
)
_KNOWN = {"stream": {field.name for field in STREAM}, "consumer": {field.name for field in CONSUMER}}
_PAUSE = "pause_until"
"""Whether a consumer pauses is its operator's business, unless it is declared."""


@dataclass
class Differences:
    """The fields that differ, why they need a new thing, and what is lost by changing them."""

    changes: list[Change] = field(default_factory=list)
    replaces: list[str] = field(default_factory=list)
    destroys: list[str] = field(default_factory=list)
    # Fields of the server to send along, so that they stay.
    kept: dict[str, Any] = field(default_factory=dict)


def compare(
    resource: Resource, found: ActualResource, stream: dict[str, Any], project: str, now: datetime
) -> Differences:
    """Return what differs; `stream` is the normal configuration of a consumer's stream."""
    wanted, actual = normal(resource.kind, resource.config, stream), normal(resource.kind, found.config, stream)
    known = _KNOWN.get(resource.kind, found.config)
    # No file can declare what a newer server has, so an update leaves it as it is.
    differences = Differences(kept={name: value for name, value in found.config.items() if name not in known})
    for name in wanted:
        if wanted[name] == actual[name]:
            continue
        if _is_left(resource, name, wanted[name], actual[name]):
            if name in found.config:
                differences.kept[name] = found.config[name]
            continue
        lost = _lost(found, name, wanted, actual, now) if resource.kind == "stream" else ""
        if name == "filter_subjects" and stream.get("retention") == "interest":
            lost = _lost_by_filters(found, wanted[name], actual[name])
        note = _note(resource, name, wanted, actual, lost, differences)
        differences.changes += _changes(name, actual[name], wanted[name], note)
    if resource.kind == "consumer" and found.is_ephemeral:
        differences.changes.append(
            Change(field="durable_name", before="", after=resource.name, note="needs a new consumer")
        )
        differences.replaces.append("durable_name")
    if resource.kind != "template" and project and found.owner != project:
        differences.changes.append(Change(field=f"metadata.{OWNER_KEY}", before=found.owner or None, after=project))
    return differences


def normal(kind: str, config: dict[str, Any], stream: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration in the form in which it can be compared."""
    if kind == "stream":
        return normal_stream(config)
    return normal_consumer(config, stream) if kind == "consumer" else normal_template(config)


def created(resource: Resource, project: str) -> tuple[Change, ...]:
    """Return what a new thing says, as changes from nothing."""
    changes = [
        change
        for name, value in resource.config.items()
        if name not in ("name", "durable_name", "config")
        for change in _changes(name, None, value, "")
    ]
    for name, value in resource.config.get("config", {}).items():
        changes += _changes(f"config.{name}", None, value, "")
    if project and resource.kind != "template":
        changes.append(Change(field=f"metadata.{OWNER_KEY}", after=project))
    return tuple(changes)


def _is_left(resource: Resource, name: str, wanted: Any, actual: Any) -> bool:
    if name in resource.unmanaged and name not in resource.config:
        return True
    if name == _PAUSE and name not in resource.config:
        return True
    return may_differ(resource.kind, name, resource.config, wanted, actual)


def _changes(name: str, before: Any, after: Any, note: str) -> list[Change]:
    """Return the changes of a field; of a record those of its fields."""
    if isinstance(before, dict) or isinstance(after, dict):
        one, other = before or {}, after or {}
        keys = [key for key in (*one, *(key for key in other if key not in one)) if one.get(key) != other.get(key)]
        return [change for key in keys for change in _changes(f"{name}.{key}", one.get(key), other.get(key), note)]
    return [Change(field=name, before=before, after=after, note=note)]


def _note(
    resource: Resource,
    name: str,
    wanted: dict[str, Any],
    actual: dict[str, Any],
    lost: str,
    differences: Differences,
) -> str:
    """Return what is special about a change, and put down what it costs."""
    if resource.kind == "template":
        differences.replaces.append(name)
        return ""
    if resource.kind == "consumer":
        needs_new = name in _NEW_CONSUMER or (
            name == "deliver_subject" and not (wanted["deliver_subject"] and actual["deliver_subject"])
        )
    else:
        needs_new = _needs_new_stream(name, wanted[name], actual[name])
    if needs_new:
        differences.replaces.append(name)
        return f"needs a new {resource.kind}"
    if lost:
        differences.destroys.append(lost)
        return "deletes messages"
    if resource.kind == "consumer":
        return ""
    if name in _ONE_WAY:
        return "cannot be undone"
    if name == "allow_direct" and not wanted[name]:
        # The command line creates streams with it; a file that does not name it turns it off.
        return "direct gets will be refused; declare allow_direct: true to keep them"
    return "it becomes a stream of its own" if name == "mirror" else ""


def _needs_new_stream(name: str, wanted: Any, actual: Any) -> bool:
    if name in _NEW_STREAM:
        return True
    if name in _ONE_WAY:
        return bool(actual)
    if name == "retention":
        return "workqueue" in (wanted, actual)
    return name == "mirror" and wanted is not None


def _lost(found: ActualResource, name: str, wanted: dict[str, Any], actual: dict[str, Any], now: datetime) -> str:
    """Return what a change of a stream deletes, as a sentence; nothing if it deletes nothing."""
    if not found.messages:
        return ""
    value, before = wanted[name], actual[name]
    if name == "retention" and value == "interest":
        return f"retention becomes interest: of {found.messages:,} messages those go that no consumer waits for"
    if name in ("max_msgs", "max_bytes", "discard"):
        return _lost_above_limits(found, name, wanted, actual)
    if not _is_lower(value, before):
        return ""
    match name:
        case "max_msgs_per_subject" if found.messages > value:
            return f"max_msgs_per_subject becomes {value:,}: older ones of {found.messages:,} messages go"
        case "max_age" if _oldest(found, now) > timedelta(microseconds=value / 1_000):
            return f"max_age becomes shorter: older ones of {found.messages:,} messages go"
    return ""


def _lost_above_limits(found: ActualResource, name: str, wanted: dict[str, Any], actual: dict[str, Any]) -> str:
    """Return what a change of `max_msgs`, `max_bytes` or `discard` deletes."""
    # A stream that refuses what is new keeps what it has, and takes nothing until it is below its limit.
    if wanted["discard"] == "new":
        return ""
    losses = []
    for limit, there, what in (("max_msgs", found.messages, "messages"), ("max_bytes", found.size_bytes, "bytes")):
        value = wanted[limit]
        # With another `discard` a limit that stays as it is deletes too; one that changes is told of by itself.
        is_told = name == limit or (name == "discard" and value == actual[limit])
        if is_told and 0 < value < there:
            losses.append(f"{there - value:,} of {there:,} {what}")
    shown = f"{wanted[name]:,}" if isinstance(wanted[name], int) else wanted[name]
    return f"{name} becomes {shown}: {' and '.join(losses)} go" if losses else ""


def _lost_by_filters(found: ActualResource, wanted: list[str], actual: list[str]) -> str:
    """Return what other filters of a consumer delete in a stream with retention interest."""
    left_out = [
        before
        for before in actual or [ANY_TAIL]
        if not any(covers(filter_subject, before) for filter_subject in wanted or [ANY_TAIL])
    ]
    if not left_out or not found.messages:
        return ""
    shown = ", ".join(wanted)
    return f"filter_subjects becomes {shown}: of {found.messages:,} messages those go that no consumer waits for"


def _is_lower(value: Any, before: Any) -> bool:
    """Return whether a limit is lower than another one; 0 and negative numbers mean no limit."""
    if not isinstance(value, int) or not isinstance(before, int) or value <= 0:
        return False
    return before <= 0 or value < before


def _oldest(found: ActualResource, now: datetime) -> timedelta:
    first = canonical_timestamp(found.first_time)
    return now - parse_timestamp(first) if first else timedelta.max
