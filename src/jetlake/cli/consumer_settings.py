"""The flags that are fields of a consumer's configuration, and a consumer as a person reads it."""

from typing import Any

import typer

from jetlake.cli.moments import before_now, read_moment, shown_moment
from jetlake.cli.output import Cell, Nanoseconds, as_dict
from jetlake.cli.quantities import SECOND, read_duration, shown_duration
from jetlake.cli.settings import Kind, Setting

BACKOFF_STEPS = 10
BACKOFF_MIN_NS = 60 * SECOND
BACKOFF_MAX_NS = 20 * 60 * SECOND

UNCHANGEABLE = (
    Setting(
        "--ack",
        "ack_policy",
        Kind.CHOICE,
        "What is acknowledged: every message, all up to one, nothing.",
        (("explicit", "explicit"), ("all", "all"), ("none", "none"), ("flow_control", "flow_control")),
    ),
    Setting("--deliver", "_deliver", Kind.TEXT, "Where it begins: all, new, last, subject, a sequence, or 1h ago."),
    Setting("--pull", "_pull", Kind.SWITCH, "Messages are asked for; so it is unless --target is given."),
    Setting("--ephemeral", "_ephemeral", Kind.SWITCH, "It goes away when nobody uses it."),
    Setting("--replay", "replay_policy", Kind.CHOICE, "As fast as it goes, or as fast as messages came.",
            (("instant", "instant"), ("original", "original"))),
    Setting("--deliver-group", "deliver_group", Kind.TEXT, "The group that shares what is sent to --target."),
    Setting("--flow-control", "flow_control", Kind.SWITCH, "Slow down for a slow --target."),
    Setting("--heartbeat", "idle_heartbeat", Kind.TIME, "Send a sign of life to --target so often."),
    Setting("--max-waiting", "max_waiting", Kind.NUMBER, "Requests that may wait."),
    Setting("--memory", "mem_storage", Kind.SWITCH, "Keep its state in memory only."),
    Setting("--pause", "_pause", Kind.TEXT, "Begin after so long, or at a time."),
    Setting("--pinned-groups", "_pinned", Kind.TEXTS, "Groups in which one client gets everything."),
    Setting("--pinned-ttl", "priority_timeout", Kind.TIME, "How long such a client may say nothing."),
    Setting("--overflow-groups", "_overflow", Kind.TEXTS, "Groups that get what is too much for others."),
    Setting("--prioritized-groups", "_prioritized", Kind.TEXTS, "Groups whose requests have priorities."),
    Setting("--bps", "rate_limit_bps", Kind.SIZE, "Bits per second to --target at most."),
)  # fmt: skip
"""What a consumer keeps as it was made."""

EDIT_SETTINGS = (
    Setting("--filter", "_filter", Kind.TEXTS, "Only these subjects; repeat it, or use commas."),
    Setting("--description", "description", Kind.TEXT, "What it is for."),
    Setting("--wait", "ack_wait", Kind.TIME, "How long an acknowledgement may take."),
    Setting("--max-deliver", "max_deliver", Kind.NUMBER, "How often a message is delivered; -1 is no limit."),
    Setting("--max-pending", "max_ack_pending", Kind.NUMBER, "Messages that may be unacknowledged."),
    Setting("--backoff", "_backoff", Kind.TEXT, "Waits between deliveries: 1s,10s,1m, or linear, or none."),
    Setting("--backoff-steps", "_backoff_steps", Kind.NUMBER, "Of --backoff linear, 10 unless given."),
    Setting("--backoff-min", "_backoff_min", Kind.TIME, "The shortest of them, 1m unless given."),
    Setting("--backoff-max", "_backoff_max", Kind.TIME, "The longest of them, 20m unless given."),
    Setting("--headers-only", "headers_only", Kind.SWITCH, "Deliver no payloads."),
    Setting("--max-pull-batch", "max_batch", Kind.NUMBER, "Messages one request may ask for."),
    Setting("--max-pull-expire", "max_expires", Kind.TIME, "How long one request may wait."),
    Setting("--max-pull-bytes", "max_bytes", Kind.SIZE, "Bytes one request may ask for."),
    Setting("--sample", "_sample", Kind.NUMBER, "Percent of acknowledgements that are told as metrics."),
    Setting("--target", "deliver_subject", Kind.TEXT, "The subject messages are sent to."),
    Setting("--inactive-threshold", "inactive_threshold", Kind.TIME, "It goes away when unused for so long."),
    Setting("--replicas", "num_replicas", Kind.NUMBER, "Copies in a cluster."),
    Setting("--metadata", "metadata", Kind.PAIRS, "Key and value of your own; may be repeated."),
)

CONSUMER_SETTINGS = (*EDIT_SETTINGS, *UNCHANGEABLE)

_POLICY_OF_GROUPS = {"_pinned": "pinned_client", "_overflow": "overflow", "_prioritized": "prioritized"}
_DELIVER_WORDS = {"all": "all", "new": "new", "last": "last", "subject": "last_per_subject", "1st": "all"}


def normalised(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields as the API has them: what is written in one flag may be two fields, and the other way round."""
    made = {key: value for key, value in fields.items() if not key.startswith("_")}
    if "_filter" in fields:
        subjects = fields["_filter"]
        single = subjects[0] if len(subjects) == 1 else None
        made |= {"filter_subject": single, "filter_subjects": None if single is not None or not subjects else subjects}
    if "_deliver" in fields:
        made |= _start(fields["_deliver"])
    if "_sample" in fields:
        made["sample_freq"] = str(fields["_sample"])
    if "_pause" in fields:
        try:
            made["pause_until"] = read_moment(fields["_pause"])
        except ValueError as error:
            raise typer.BadParameter(f"--pause: {error}") from error
    for key, policy in _POLICY_OF_GROUPS.items():
        if key in fields:
            made |= {"priority_groups": fields[key], "priority_policy": policy}
    if any(key.startswith("_backoff") for key in fields):
        made["backoff"] = _backoff(fields)
    return made


def _start(text: str) -> dict[str, Any]:
    if text in _DELIVER_WORDS:
        return {"deliver_policy": _DELIVER_WORDS[text]}
    if text.isdecimal():
        return {"deliver_policy": "by_start_sequence", "opt_start_seq": int(text)}
    try:
        return {"deliver_policy": "by_start_time", "opt_start_time": before_now(read_duration(text))}
    except ValueError as error:
        words = ", ".join(list(_DELIVER_WORDS)[:4])
        raise typer.BadParameter(
            f"--deliver is {text!r}: write {words}, a sequence, or a time ago such as 1h"
        ) from error


def _backoff(fields: dict[str, Any]) -> list[int] | None:
    mode = fields.get("_backoff", "linear")
    if mode == "none":
        return None
    if mode != "linear":
        try:
            return [read_duration(part.strip()) for part in mode.split(",")]
        except ValueError as error:
            raise typer.BadParameter(f"--backoff is {mode!r}: write linear, none, or times as 1s,10s,1m") from error
    steps = max(1, fields.get("_backoff_steps", BACKOFF_STEPS))
    low, high = fields.get("_backoff_min", BACKOFF_MIN_NS), fields.get("_backoff_max", BACKOFF_MAX_NS)
    return [low + (high - low) * step // max(1, steps - 1) for step in range(steps)]


def consumer_facts(info: dict[str, Any]) -> dict[str, dict[str, Cell]]:
    """Return the sections of a consumer's description."""
    config = info["config"]
    return {
        "Configuration": {
            "description": config.get("description"),
            "mode": mode(config),
            "target": config.get("deliver_subject"),
            "group": config.get("deliver_group"),
            "begins": _begins(config),
            "filter": filters(config) or None,
            "acknowledgement": config.get("ack_policy"),
            "ack wait": Nanoseconds(config["ack_wait"]) if config.get("ack_wait") else None,
            "backoff": ", ".join(shown_duration(step) for step in config.get("backoff") or []) or None,
            "deliveries at most": config["max_deliver"] if config.get("max_deliver", -1) > 0 else None,
            "replay": config.get("replay_policy"),
            "headers only": config.get("headers_only") or None,
            "rate limit in bits": config.get("rate_limit_bps") or None,
            "sampled": f"{config['sample_freq']} %" if config.get("sample_freq") else None,
            "flow control": config.get("flow_control") or None,
            "heartbeat": Nanoseconds(config["idle_heartbeat"]) if config.get("idle_heartbeat") else None,
            "inactive at most": Nanoseconds(config["inactive_threshold"]) if config.get("inactive_threshold") else None,
            "priority": config.get("priority_policy"),
            "groups": ", ".join(config.get("priority_groups") or []) or None,
            "in memory": config.get("mem_storage") or None,
        },
        "Metadata": {key: value for key, value in as_dict(config.get("metadata")).items() if key[:1] != "_"},
        "State": {
            "last delivered": _position(info.get("delivered")),
            "acknowledged up to": _position(info.get("ack_floor")),
            "outstanding": _of(info.get("num_ack_pending", 0), config.get("max_ack_pending")),
            "redelivered": info.get("num_redelivered", 0),
            "unprocessed": info.get("num_pending", 0),
            "waiting requests": _of(info.get("num_waiting", 0), config.get("max_waiting"))
            if not config.get("deliver_subject")
            else None,
            "somebody listens": bool(info.get("push_bound")) if config.get("deliver_subject") else None,
            "paused until": shown_moment(config.get("pause_until")) if info.get("paused") else None,
        },
    }


def mode(config: dict[str, Any]) -> str:
    """Return how messages leave a consumer."""
    return "push" if config.get("deliver_subject") else "pull"


def filters(config: dict[str, Any]) -> str:
    """Return the subjects a consumer is limited to."""
    return ", ".join(
        config.get("filter_subjects") or ([config["filter_subject"]] if config.get("filter_subject") else [])
    )


def _begins(config: dict[str, Any]) -> str:
    policy = str(config.get("deliver_policy", "all"))
    if policy == "by_start_sequence":
        return f"at sequence {config.get('opt_start_seq', 0):,}"
    if policy == "by_start_time":
        return f"at {config.get('opt_start_time')}"
    return policy.replace("_", " ")


def _position(value: Any) -> str:
    position = as_dict(value)
    return f"stream {position.get('stream_seq', 0):,}, consumer {position.get('consumer_seq', 0):,}"


def _of(count: int, most: Any) -> str:
    return f"{count:,} of at most {most:,}" if isinstance(most, int) and most > 0 else f"{count:,}"
