"""Options of `jetlake consumer add`, `edit` and `copy`, and the fields of a configuration that they set.

Invariant: each option is declared once, here; the commands name it in their signatures.
"""

from typing import Annotated, Any

import typer

from jetlake.cli.option_values import given, parse_choice, parse_duration, parse_pairs, parse_size, split_texts
from jetlake.presentation.quantities import SECOND, read_duration
from jetlake.presentation.timestamps import before_now, read_timestamp

BACKOFF_STEPS = 10
BACKOFF_MIN_NS = 60 * SECOND
BACKOFF_MAX_NS = 20 * 60 * SECOND

FilterOption = Annotated[
    list[str] | None, typer.Option("--filter", help="Only these subjects; repeat it, or use commas.")
]
DescriptionOption = Annotated[str | None, typer.Option("--description", help="What it is for.")]
WaitOption = Annotated[
    int | None,
    typer.Option(
        "--wait", help="Time to wait for an acknowledgement before redelivery.", metavar="TIME", parser=parse_duration
    ),
]
MaxDeliverOption = Annotated[
    int | None, typer.Option("--max-deliver", help="Largest number of deliveries of a message (-1: unlimited).")
]
MaxPendingOption = Annotated[
    int | None, typer.Option("--max-pending", help="Largest number of unacknowledged messages.")
]
BackoffOption = Annotated[
    str | None, typer.Option("--backoff", help="Waits between deliveries: 1s,10s,1m, or linear, or none.")
]
BackoffStepsOption = Annotated[
    int | None, typer.Option("--backoff-steps", help="Number of steps of a linear back-off, 10 unless given.")
]
BackoffMinOption = Annotated[
    int | None,
    typer.Option(
        "--backoff-min",
        help="Shortest wait of a linear back-off, 1m unless given.",
        metavar="TIME",
        parser=parse_duration,
    ),
]
BackoffMaxOption = Annotated[
    int | None,
    typer.Option(
        "--backoff-max",
        help="Longest wait of a linear back-off, 20m unless given.",
        metavar="TIME",
        parser=parse_duration,
    ),
]
HeadersOnlyOption = Annotated[
    bool | None, typer.Option("--headers-only/--no-headers-only", help="Deliver no payloads.")
]
MaxPullBatchOption = Annotated[int | None, typer.Option("--max-pull-batch", help="Largest batch of a pull request.")]
MaxPullExpireOption = Annotated[
    int | None,
    typer.Option(
        "--max-pull-expire", help="Longest time a pull request may wait.", metavar="TIME", parser=parse_duration
    ),
]
MaxPullBytesOption = Annotated[
    int | None,
    typer.Option(
        "--max-pull-bytes", help="Largest number of bytes of a pull request.", metavar="SIZE", parser=parse_size
    ),
]
SampleOption = Annotated[
    int | None, typer.Option("--sample", help="Percentage of acknowledgements published as metrics.")
]
TargetOption = Annotated[
    str | None, typer.Option("--target", help="Subject to deliver messages to; makes it a push consumer.")
]
InactiveThresholdOption = Annotated[
    int | None,
    typer.Option(
        "--inactive-threshold",
        help="Remove the consumer after this time without use.",
        metavar="TIME",
        parser=parse_duration,
    ),
]
ReplicasOption = Annotated[int | None, typer.Option("--replicas", help="Copies in a cluster.")]
MetadataOption = Annotated[
    list[str] | None,
    typer.Option("--metadata", help="Key and value of your own; may be repeated.", metavar="KEY=VALUE"),
]

# What a consumer keeps as it was made.
AckOption = Annotated[
    str | None,
    typer.Option(
        "--ack",
        help="Acknowledgement policy: each message, all up to one, or none.",
        metavar="explicit|all|none|flow_control",
    ),
]
DeliverOption = Annotated[
    str | None, typer.Option("--deliver", help="Where to start: all, new, last, subject, a sequence, or 1h ago.")
]
PullOption = Annotated[
    bool | None, typer.Option("--pull/--no-pull", help="Create a pull consumer; the default unless --target is given.")
]
EphemeralOption = Annotated[
    bool | None, typer.Option("--ephemeral/--no-ephemeral", help="Remove the consumer when it is no longer used.")
]
ReplayOption = Annotated[
    str | None,
    typer.Option("--replay", help="Deliver as fast as possible, or at the original pace.", metavar="instant|original"),
]
DeliverGroupOption = Annotated[
    str | None, typer.Option("--deliver-group", help="Queue group that shares the messages sent to --target.")
]
FlowControlOption = Annotated[
    bool | None, typer.Option("--flow-control/--no-flow-control", help="Slow down for a slow --target.")
]
HeartbeatOption = Annotated[
    int | None,
    typer.Option("--heartbeat", help="Interval of idle heartbeats to --target.", metavar="TIME", parser=parse_duration),
]
MaxWaitingOption = Annotated[int | None, typer.Option("--max-waiting", help="Largest number of waiting pull requests.")]
MemoryOption = Annotated[bool | None, typer.Option("--memory/--no-memory", help="Keep its state in memory only.")]
PauseOption = Annotated[str | None, typer.Option("--pause", help="Start paused for this long, or until this time.")]
PinnedGroupsOption = Annotated[
    list[str] | None, typer.Option("--pinned-groups", help="Groups in which one pinned client gets all messages.")
]
PinnedTtlOption = Annotated[
    int | None,
    typer.Option(
        "--pinned-ttl",
        help="Time after which a silent pinned client is replaced.",
        metavar="TIME",
        parser=parse_duration,
    ),
]
OverflowGroupsOption = Annotated[
    list[str] | None, typer.Option("--overflow-groups", help="Groups that receive messages when others are overloaded.")
]
PrioritizedGroupsOption = Annotated[
    list[str] | None, typer.Option("--prioritized-groups", help="Groups whose requests have priorities.")
]
BpsOption = Annotated[
    int | None,
    typer.Option("--bps", help="Largest rate to --target, in bits per second.", metavar="SIZE", parser=parse_size),
]

_DELIVER_WORDS = {"all": "all", "new": "new", "last": "last", "subject": "last_per_subject", "1st": "all"}


def consumer_fields(
    *,
    filter_subjects: list[str] | None = None,
    description: str | None = None,
    wait: int | None = None,
    max_deliver: int | None = None,
    max_pending: int | None = None,
    backoff: str | None = None,
    backoff_steps: int | None = None,
    backoff_min: int | None = None,
    backoff_max: int | None = None,
    headers_only: bool | None = None,
    max_pull_batch: int | None = None,
    max_pull_expire: int | None = None,
    max_pull_bytes: int | None = None,
    sample: int | None = None,
    target: str | None = None,
    inactive_threshold: int | None = None,
    replicas: int | None = None,
    metadata: list[str] | None = None,
    ack: str | None = None,
    deliver: str | None = None,
    replay: str | None = None,
    deliver_group: str | None = None,
    flow_control: bool | None = None,
    heartbeat: int | None = None,
    max_waiting: int | None = None,
    memory: bool | None = None,
    pause: str | None = None,
    pinned_groups: list[str] | None = None,
    pinned_ttl: int | None = None,
    overflow_groups: list[str] | None = None,
    prioritized_groups: list[str] | None = None,
    bps: int | None = None,
) -> dict[str, Any]:
    """Return the fields that options set: one option may be two fields, and the other way round.

    None takes a field away. Raises `BadParameter`.
    """
    made = given(
        {
            "description": description,
            "ack_wait": wait,
            "max_deliver": max_deliver,
            "max_ack_pending": max_pending,
            "headers_only": headers_only,
            "max_batch": max_pull_batch,
            "max_expires": max_pull_expire,
            "max_bytes": max_pull_bytes,
            "deliver_subject": target,
            "inactive_threshold": inactive_threshold,
            "num_replicas": replicas,
            "metadata": parse_pairs("--metadata", metadata),
            "ack_policy": parse_choice(
                "--ack", ack, {"explicit": "explicit", "all": "all", "none": "none", "flow_control": "flow_control"}
            ),
            "replay_policy": parse_choice("--replay", replay, {"instant": "instant", "original": "original"}),
            "deliver_group": deliver_group,
            "flow_control": flow_control,
            "idle_heartbeat": heartbeat,
            "max_waiting": max_waiting,
            "mem_storage": memory,
            "priority_timeout": pinned_ttl,
            "rate_limit_bps": bps,
        }
    )
    subjects = split_texts(filter_subjects)
    if subjects is not None:
        single = subjects[0] if len(subjects) == 1 else None
        made |= {"filter_subject": single, "filter_subjects": None if single is not None or not subjects else subjects}
    if deliver is not None:
        made |= _start(deliver)
    if sample is not None:
        made["sample_freq"] = str(sample)
    if pause is not None:
        made["pause_until"] = _pause_end(pause)
    groups = {"pinned_client": pinned_groups, "overflow": overflow_groups, "prioritized": prioritized_groups}
    for policy, names in groups.items():
        if names is not None:
            made |= {"priority_groups": split_texts(names), "priority_policy": policy}
    if any(each is not None for each in (backoff, backoff_steps, backoff_min, backoff_max)):
        made["backoff"] = _backoff(backoff, backoff_steps, backoff_min, backoff_max)
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


def _pause_end(text: str) -> str:
    try:
        return read_timestamp(text)
    except ValueError as error:
        raise typer.BadParameter(f"--pause: {error}") from error


def _backoff(mode: str | None, steps: int | None, min_ns: int | None, max_ns: int | None) -> list[int] | None:
    if mode == "none":
        return None
    if mode is not None and mode != "linear":
        try:
            return [read_duration(part.strip()) for part in mode.split(",")]
        except ValueError as error:
            raise typer.BadParameter(f"--backoff is {mode!r}: write linear, none, or times as 1s,10s,1m") from error
    count = max(1, BACKOFF_STEPS if steps is None else steps)
    low = BACKOFF_MIN_NS if min_ns is None else min_ns
    high = BACKOFF_MAX_NS if max_ns is None else max_ns
    return [low + (high - low) * step // max(1, count - 1) for step in range(count)]
