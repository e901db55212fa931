"""Configurations in the one form in which they can be compared.

A server fills in what a request leaves out and adjusts some of what it says. The same is done here to both sides, so
that a field which was left out and its default are equal, on nats-server and on Jetlake.

Some values come from limits of the server that no request shows; `may_differ` says which of those a difference means
nothing in, as long as the declaration is silent about them.

Invariant: normalising what is normal changes nothing.
"""

from functools import cache
from typing import Any

from jetlake.iac.declaration import OWNER_KEY
from jetlake.iac.fields import CONSUMER, SECOND_NS, STREAM, UNLIMITED, Field, Kind
from jetlake.iac.times import canonical_timestamp

DUPLICATE_WINDOW_NS = 120 * SECOND_NS
ACK_WAIT_NS = 30 * SECOND_NS
MAX_WAITING = 512
MAX_ACK_PENDING = 1_000
PRIORITY_TIMEOUT_NS = 120 * SECOND_NS
FLOW_CONTROL_HEARTBEAT_NS = SECOND_NS

TEMPLATE_KEY = "jetlake.template"
"""The metadata of a stream that a template has made."""

DIALECT_KEY = "jetlake.dialect"
"""The metadata of a stream or consumer that was asked for in the words of 2019 or 2020."""

SERVER_METADATA = ("_nats.", DIALECT_KEY, TEMPLATE_KEY)
"""How the metadata begins that servers write themselves."""

_OURS = ("dead_letters",)
_IDENTITY = ("name", "durable_name", "stream")
_UNLIMITED_AT_ZERO = ("max_consumers", "max_msgs", "max_bytes", "max_msgs_per_subject", "max_msg_size")
_PLAIN = frozenset((Kind.TEXT, Kind.INTEGER, Kind.SIZE, Kind.DURATION, Kind.FLAG, Kind.MAP))
"""Kinds of which a value is spelled in one way only."""

_UNORDERED = ("subjects", "sources", "filter_subjects", "priority_groups")


def normal_stream(config: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of a stream with everything a server would put in."""
    made = _complete(config, STREAM)
    for name in _UNLIMITED_AT_ZERO:
        made[name] = made[name] if made[name] > 0 else UNLIMITED
    made["num_replicas"] = made["num_replicas"] or 1
    made["persist_mode"] = "" if made["persist_mode"] == "default" else made["persist_mode"]
    is_copy = bool(made["mirror"] or made["sources"])
    if not made["subjects"] and not is_copy:
        made["subjects"] = [config.get("name", "")]
    if not made["duplicate_window"] and not is_copy:
        made["duplicate_window"] = min(DUPLICATE_WINDOW_NS, made["max_age"] or DUPLICATE_WINDOW_NS)
    if made["subject_delete_marker_ttl"]:
        made["allow_msg_ttl"] = True
    if made["subject_delete_marker_ttl"] or made["allow_msg_schedules"]:
        made |= {"allow_rollup_hdrs": True, "deny_purge": False}
    if made["republish"]:
        made["republish"] = {"src": ">", **made["republish"]} if made["republish"].get("dest") else None
    if made["sealed"]:
        made |= {"max_age": 0, "discard": "new", "deny_delete": True, "deny_purge": True, "allow_rollup_hdrs": False}
    return _sorted(made)


def normal_consumer(config: dict[str, Any], stream: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of a consumer with everything a server would put in; its stream's is a normal one."""
    made = _complete(config, CONSUMER)
    is_pull = not made["deliver_subject"]
    made["max_deliver"] = made["max_deliver"] if made["max_deliver"] > 0 else UNLIMITED
    if is_pull and made["max_waiting"] <= 0:
        made["max_waiting"] = MAX_WAITING
    if not made["ack_wait"] and made["ack_policy"] in ("explicit", "all"):
        made["ack_wait"] = ACK_WAIT_NS
    if made["backoff"]:
        made["ack_wait"] = made["backoff"][0]
    limits = stream.get("consumer_limits") or {}
    for name in ("max_ack_pending", "inactive_threshold"):
        made[name] = made[name] or limits.get(name, 0)
    if not made["max_ack_pending"] and made["ack_policy"] != "none":
        made["max_ack_pending"] = MAX_ACK_PENDING
    if made["priority_policy"] == "pinned_client" and not made["priority_timeout"]:
        made["priority_timeout"] = PRIORITY_TIMEOUT_NS
    if made["ack_policy"] == "flow_control":
        made |= {"flow_control": True, "idle_heartbeat": FLOW_CONTROL_HEARTBEAT_NS}
    # One filter may be written in either field.
    if made["filter_subject"]:
        made["filter_subjects"] = [made["filter_subject"]]
    del made["filter_subject"]
    return _sorted(made)


def normal_template(config: dict[str, Any]) -> dict[str, Any]:
    """Return a template with its stream as a server would make it."""
    inner = normal_stream({**config.get("config", {}), "name": ""})
    return {
        "max_streams": config.get("max_streams", 0) or 0,
        **{f"config.{key}": value for key, value in inner.items()},
    }


def may_differ(kind: str, field: str, declared: dict[str, Any], wanted: Any, actual: Any) -> bool:
    """Return whether limits of the server explain why it has another value than the default."""
    if field in declared:
        return False
    if kind == "consumer":
        return (field == "max_batch" and actual > 0) or (field == "max_ack_pending" and 0 < actual < wanted)
    return field == "mirror_direct" or (field == "duplicate_window" and 0 < actual < wanted)


def own_metadata(metadata: dict[str, str] | None) -> dict[str, str]:
    """Return the metadata without what servers write, and without the mark of the project."""
    kept = {} if metadata is None else metadata
    return {key: value for key, value in kept.items() if not key.startswith(SERVER_METADATA) and key != OWNER_KEY}


def _complete(config: dict[str, Any], fields: tuple[Field, ...]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for field in _compared(fields):
        value = config.get(field.name)
        if value is None:
            value = field.default
        made[field.name] = value if field.kind in _PLAIN else _value(field, value)
    made["metadata"] = own_metadata(config.get("metadata"))
    return made


@cache
def _compared(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Return the fields that say what a thing is, and not which one it is."""
    return tuple(field for field in fields if field.name not in (*_OURS, *_IDENTITY))


def _value(field: Field, value: Any) -> Any:
    match field.kind:
        case Kind.TIMESTAMP:
            return canonical_timestamp(value) or "" if value else ""
        case Kind.PERCENTAGE:
            bare = str(value).removesuffix("%")
            return "" if bare == "0" else bare
        case Kind.CHOICE:
            return value.lower() or field.default
        case Kind.RECORD:
            return _record(field.fields, value) or (field.default if field.default is not None else None)
        case Kind.RECORDS:
            return [_record(field.fields, item) for item in value]
        case Kind.TEXTS | Kind.DURATIONS:
            return list(value)
        case _:
            return value


def _record(fields: tuple[Field, ...], value: dict[str, Any] | None) -> dict[str, Any]:
    """Return a record without the fields that say nothing."""
    known = {field.name: field for field in fields}
    made = {name: _value(known[name], inner) if name in known else inner for name, inner in (value or {}).items()}
    return {name: inner for name, inner in made.items() if inner not in (None, "", 0, False, [], {})}


def _sorted(made: dict[str, Any]) -> dict[str, Any]:
    """Put lists whose order means nothing into one order."""
    for name in _UNORDERED:
        if name in made:
            made[name] = sorted(made[name], key=repr)
    return made
