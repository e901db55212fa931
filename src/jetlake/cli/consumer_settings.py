"""The flags that are fields of a consumer's configuration."""

from typing import Any

import typer

from jetlake.presentation.moments import before_now, read_moment
from jetlake.presentation.quantities import SECOND, read_duration
from jetlake.presentation.settings import Kind, Setting

BACKOFF_STEPS = 10
BACKOFF_MIN_NS = 60 * SECOND
BACKOFF_MAX_NS = 20 * 60 * SECOND

UNCHANGEABLE = (
    Setting(
        "--ack",
        "ack_policy",
        Kind.CHOICE,
        "Acknowledgement policy: each message, all up to one, or none.",
        (("explicit", "explicit"), ("all", "all"), ("none", "none"), ("flow_control", "flow_control")),
    ),
    Setting("--deliver", "_deliver", Kind.TEXT, "Where to start: all, new, last, subject, a sequence, or 1h ago."),
    Setting("--pull", "_pull", Kind.SWITCH, "Create a pull consumer; the default unless --target is given."),
    Setting("--ephemeral", "_ephemeral", Kind.SWITCH, "Remove the consumer when it is no longer used."),
    Setting("--replay", "replay_policy", Kind.CHOICE, "Deliver as fast as possible, or at the original pace.",
            (("instant", "instant"), ("original", "original"))),
    Setting("--deliver-group", "deliver_group", Kind.TEXT, "Queue group that shares the messages sent to --target."),
    Setting("--flow-control", "flow_control", Kind.SWITCH, "Slow down for a slow --target."),
    Setting("--heartbeat", "idle_heartbeat", Kind.TIME, "Interval of idle heartbeats to --target."),
    Setting("--max-waiting", "max_waiting", Kind.NUMBER, "Largest number of waiting pull requests."),
    Setting("--memory", "mem_storage", Kind.SWITCH, "Keep its state in memory only."),
    Setting("--pause", "_pause", Kind.TEXT, "Start paused for this long, or until this time."),
    Setting("--pinned-groups", "_pinned", Kind.TEXTS, "Groups in which one pinned client gets all messages."),
    Setting("--pinned-ttl", "priority_timeout", Kind.TIME, "Time after which a silent pinned client is replaced."),
    Setting("--overflow-groups", "_overflow", Kind.TEXTS, "Groups that receive messages when others are overloaded."),
    Setting("--prioritized-groups", "_prioritized", Kind.TEXTS, "Groups whose requests have priorities."),
    Setting("--bps", "rate_limit_bps", Kind.SIZE, "Largest rate to --target, in bits per second."),
)  # fmt: skip
"""What a consumer keeps as it was made."""

EDIT_SETTINGS = (
    Setting("--filter", "_filter", Kind.TEXTS, "Only these subjects; repeat it, or use commas."),
    Setting("--description", "description", Kind.TEXT, "What it is for."),
    Setting("--wait", "ack_wait", Kind.TIME, "Time to wait for an acknowledgement before redelivery."),
    Setting("--max-deliver", "max_deliver", Kind.NUMBER, "Largest number of deliveries of a message (-1: unlimited)."),
    Setting("--max-pending", "max_ack_pending", Kind.NUMBER, "Largest number of unacknowledged messages."),
    Setting("--backoff", "_backoff", Kind.TEXT, "Waits between deliveries: 1s,10s,1m, or linear, or none."),
    Setting("--backoff-steps", "_backoff_steps", Kind.NUMBER, "Number of steps of a linear back-off, 10 unless given."),
    Setting("--backoff-min", "_backoff_min", Kind.TIME, "Shortest wait of a linear back-off, 1m unless given."),
    Setting("--backoff-max", "_backoff_max", Kind.TIME, "Longest wait of a linear back-off, 20m unless given."),
    Setting("--headers-only", "headers_only", Kind.SWITCH, "Deliver no payloads."),
    Setting("--max-pull-batch", "max_batch", Kind.NUMBER, "Largest batch of a pull request."),
    Setting("--max-pull-expire", "max_expires", Kind.TIME, "Longest time a pull request may wait."),
    Setting("--max-pull-bytes", "max_bytes", Kind.SIZE, "Largest number of bytes of a pull request."),
    Setting("--sample", "_sample", Kind.NUMBER, "Percentage of acknowledgements published as metrics."),
    Setting("--target", "deliver_subject", Kind.TEXT, "Subject to deliver messages to; makes it a push consumer."),
    Setting(
        "--inactive-threshold", "inactive_threshold", Kind.TIME, "Remove the consumer after this time without use."
    ),
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
