"""Events: what nodes and brokers say about themselves: lifecycle, machine and Scout events.

An event is a body, an object with a `protocol`. It travels as it is (raw), or as the `data` of a CloudEvent 1.0;
readers take both.

```python
body = lifecycle_body("startup", identity="web1", component="server", version="0.23.0")
publish(subject_of(body), encode(body))
describe(decode(payload))                 # "[startup] web1: server version 0.23.0"
```

Pure functions; ids and times are arguments for those who want the same events twice.
"""

import time
import uuid
from typing import Any

import msgspec

from jetlake.choria.subjects import token_text
from jetlake.choria.times import go_duration, rfc3339_s

__all__ = [
    "LIFECYCLE",
    "LIFECYCLE_KINDS",
    "MACHINE",
    "decode",
    "describe",
    "encode",
    "is_lifecycle",
    "is_machine",
    "lifecycle_body",
    "subject_of",
    "transition_body",
    "watcher_body",
]

LIFECYCLE = "io.choria.lifecycle"
MACHINE = "io.choria.machine"
"""Sources of CloudEvents, and beginnings of protocols."""

LIFECYCLE_KINDS = ("startup", "shutdown", "alive", "provisioned", "upgraded", "governor")
LIFECYCLE_SUBJECT = "choria.lifecycle.event"
MACHINE_SUBJECT = "choria.machine"
OLD_LIFECYCLE = "choria:lifecycle:"
"""The protocols before 2020: `choria:lifecycle:startup:1`."""

GOVERNOR_WORDS = {
    "enter": ("obtained slot {} on", "obtained a slot on"),
    "exit": ("vacated slot {} on", "vacated a slot on"),
    "timeouts": ("failed to obtain a slot on", "failed to obtain a slot on"),
    "eviction": ("evicted from slot {} on", "evicted from"),
}
"""What happened at a governor, with the number of the slot and without."""

STATUS_NAMES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")


def lifecycle_body(
    kind: str,
    *,
    identity: str,
    component: str,
    event_id: str = "",
    timestamp_s: int | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Return the body of a lifecycle event; `fields` are those of its kind: version, governor and so on."""
    if kind not in LIFECYCLE_KINDS:
        raise ValueError(f"{kind!r} is not a kind of lifecycle event: there are {', '.join(LIFECYCLE_KINDS)}")
    if not component:
        raise ValueError("a lifecycle event needs a component")
    return {
        "protocol": f"{LIFECYCLE}.v1.{kind}",
        "id": event_id or str(uuid.uuid4()),
        "identity": identity,
        "component": component,
        "timestamp": int(time.time()) if timestamp_s is None else timestamp_s,
        **fields,
    }


def transition_body(
    *,
    identity: str,
    machine: str,
    version: str,
    machine_id: str,
    transition: str,
    from_state: str,
    to_state: str,
    timestamp_s: int | None = None,
) -> dict[str, Any]:
    """Return the body of a machine's transition."""
    return {
        "protocol": f"{MACHINE}.v1.transition",
        "identity": identity,
        "id": machine_id,
        "version": version,
        "timestamp": int(time.time()) if timestamp_s is None else timestamp_s,
        "machine": machine,
        "transition": transition,
        "from_state": from_state,
        "to_state": to_state,
    }


def watcher_body(
    kind: str,
    *,
    identity: str,
    machine: str,
    version: str,
    machine_id: str,
    name: str,
    timestamp_s: int | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Return the body of a watcher's state; `fields` are those of its type. Scout's checks are of the type nagios."""
    return {
        "protocol": f"{MACHINE}.watcher.{kind}.v1.state",
        "identity": identity,
        "id": machine_id,
        "version": version,
        "timestamp": int(time.time()) if timestamp_s is None else timestamp_s,
        "type": kind,
        "machine": machine,
        "name": name,
        **fields,
    }


def subject_of(body: dict[str, Any]) -> str:
    """Return where an event is published."""
    protocol = str(body["protocol"])
    if is_lifecycle(body):
        return f"{LIFECYCLE_SUBJECT}.{_lifecycle_kind(protocol)}.{token_text(str(body['component']))}"
    if protocol == f"{MACHINE}.v1.transition":
        return f"{MACHINE_SUBJECT}.transition"
    return f"{MACHINE_SUBJECT}.watcher.{token_text(str(body['type']))}.state"


def encode(body: dict[str, Any], *, raw: bool = False, event_id: str = "") -> bytes:
    """Return an event as it is sent: as a CloudEvent, or raw. A machine event gets an id of its own."""
    if raw:
        return msgspec.json.encode(body)
    lifecycle = is_lifecycle(body)
    event = {
        "specversion": "1.0",
        "id": event_id or (str(body["id"]) if lifecycle else str(uuid.uuid4())),
        "source": LIFECYCLE if lifecycle else MACHINE,
        "type": body["protocol"],
        "subject": body["identity"],
        "time": rfc3339_s(int(body["timestamp"])),
        "datacontenttype": "application/json",
        "data": body,
    }
    return msgspec.json.encode(event)


def decode(payload: bytes) -> dict[str, Any] | None:
    """Return the body of an event, raw or in a CloudEvent; None = it is not one of Choria's."""
    try:
        event = msgspec.json.decode(payload)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict):
        return None
    if event.get("specversion") == "1.0" and event.get("source") in (LIFECYCLE, MACHINE):
        event = event.get("data")
    if not isinstance(event, dict) or not (is_lifecycle(event) or is_machine(event)):
        return None
    return event


def is_lifecycle(body: dict[str, Any]) -> bool:
    return str(body.get("protocol", "")).startswith((f"{LIFECYCLE}.", OLD_LIFECYCLE))


def is_machine(body: dict[str, Any]) -> bool:
    return str(body.get("protocol", "")).startswith(f"{MACHINE}.")


def describe(body: dict[str, Any]) -> str:
    """Return an event in the original's words, without the time before them."""
    if is_lifecycle(body):
        return _describe_lifecycle(body)
    if body["protocol"] == f"{MACHINE}.v1.transition":
        return (
            f"{_of(body, 'identity')} {_of(body, 'machine')} transitioned via event {_of(body, 'transition')}: "
            f"{_of(body, 'from_state')} => {_of(body, 'to_state')}"
        )
    return _describe_watcher(body)


def _describe_lifecycle(body: dict[str, Any]) -> str:
    kind = _lifecycle_kind(str(body["protocol"]))
    head = f"[{kind}] {_of(body, 'identity')}:"
    component = _of(body, "component")
    match kind:
        case "startup" | "alive":
            return f"{head} {component} version {_of(body, 'version')}"
        case "upgraded":
            return f"{head} {component} version {_of(body, 'version')} to {_of(body, 'new_version')}"
        case "governor":
            sequence = body.get("sequence")
            with_slot, without = GOVERNOR_WORDS.get(_of(body, "event_type"), ("{} on", _of(body, "event_type")))
            words = with_slot.format(sequence) if sequence else without
            return f"{head} {words} {_of(body, 'governor')}"
        case _:
            return f"{head} {component}"


def _describe_watcher(body: dict[str, Any]) -> str:
    identity, place = _of(body, "identity"), f"{_of(body, 'machine')}#{_of(body, 'name')}"
    head = f"{identity} {place}"
    match body.get("type"):
        case "exec":
            ran_s = _number(body.get("previous_run_time")) / 1_000_000_000
            return (
                f"{head} command: {_of(body, 'command')}, previous: {_of(body, 'previous_outcome')} ran: {ran_s:.3f}s"
            )
        case "file":
            return f"{head} path: {_of(body, 'path')}, previous: {_of(body, 'previous_outcome')}"
        case "kv":
            key = f" key: {_of(body, 'key')}" if body.get("key") else ""
            return (
                f"{identity} key-value {place} {_of(body, 'mode')}ing bucket: {_of(body, 'bucket')}{key} "
                f"state: {_of(body, 'state')}"
            )
        case "schedule":
            return f"{head} schedule state: {_of(body, 'state')}"
        case "timer":
            timer = go_duration(int(_number(body.get("timer"))))
            return f"{identity} timer {place} state: {_of(body, 'state')} with {timer} timer"
        case "nagios":
            return f"{head} {_of(body, 'status')}: {_of(body, 'output')}"
        case "metric":
            metrics = body.get("metrics")
            values = metrics.get("metrics") if isinstance(metrics, dict) else None
            listed = values.items() if isinstance(values, dict) else ()
            return f"{head} metrics: {', '.join(f'{name}={_number(value):.3f}' for name, value in listed)}"
        case _:
            return f"{head} state: {_of(body, 'state')}"


def _lifecycle_kind(protocol: str) -> str:
    if protocol.startswith(OLD_LIFECYCLE):
        return protocol.removeprefix(OLD_LIFECYCLE).partition(":")[0]
    return protocol.rpartition(".")[2]


def _of(body: dict[str, Any], key: str) -> str:
    """Return a field as text in one line."""
    text = str(body.get(key, ""))
    return text if text.isprintable() else "".join(each if each.isprintable() else " " for each in text)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
