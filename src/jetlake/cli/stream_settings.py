"""The flags that are fields of a stream's configuration, and the configuration as a person reads it."""

from typing import Any

from jetlake.cli.moments import shown_moment
from jetlake.cli.output import Bytes, Cell, Nanoseconds, as_dict
from jetlake.cli.settings import Kind, Setting

UNLIMITED = "unlimited"

STREAM_SETTINGS = (
    Setting("--subjects", "subjects", Kind.TEXTS, "Subjects it listens on; repeat it, or use commas."),
    Setting("--description", "description", Kind.TEXT, "What it is for."),
    Setting("--storage", "storage", Kind.CHOICE, "Where messages are kept.", (("file", "file"), ("memory", "memory"))),
    Setting(
        "--retention",
        "retention",
        Kind.CHOICE,
        "Retention: limits, interest (until all consumers have it), or work (until one has).",
        (("limits", "limits"), ("interest", "interest"), ("work", "workqueue")),
    ),
    Setting(
        "--discard",
        "discard",
        Kind.CHOICE,
        "Discard old or new messages when a limit is reached.",
        (("old", "old"), ("new", "new")),
    ),
    Setting("--discard-per-subject", "discard_new_per_subject", Kind.SWITCH, "Apply --discard new to each subject."),
    Setting("--max-msgs", "max_msgs", Kind.NUMBER, "Largest number of messages (-1: unlimited)."),
    Setting("--max-msgs-per-subject", "max_msgs_per_subject", Kind.NUMBER, "Largest number of messages per subject."),
    Setting("--max-bytes", "max_bytes", Kind.SIZE, "Largest size, such as 10GiB (-1: unlimited)."),
    Setting("--max-age", "max_age", Kind.TIME, "Longest age, such as 30s, 1d, 1w or 1y (0: unlimited)."),
    Setting("--max-msg-size", "max_msg_size", Kind.SIZE, "Largest message (-1: unlimited)."),
    Setting("--max-consumers", "max_consumers", Kind.NUMBER, "Largest number of consumers (-1: unlimited)."),
    Setting("--dupe-window", "duplicate_window", Kind.TIME, "How long message ids are remembered to find duplicates."),
    Setting("--replicas", "num_replicas", Kind.NUMBER, "Copies in a cluster."),
    Setting(
        "--compression",
        "compression",
        Kind.CHOICE,
        "Compress stored files: none or s2.",
        (("none", "none"), ("s2", "s2")),
    ),
    Setting("--ack", "no_ack", Kind.OPPOSITE, "Acknowledge published messages."),
    Setting("--first-sequence", "first_seq", Kind.NUMBER, "Sequence of the first message."),
    Setting("--allow-direct", "allow_direct", Kind.SWITCH, "Allow direct get."),
    Setting("--allow-mirror-direct", "mirror_direct", Kind.SWITCH, "Allow a mirror to answer direct gets."),
    Setting("--allow-rollup", "allow_rollup_hdrs", Kind.SWITCH, "Allow a message to replace all before it."),
    Setting("--allow-batch", "allow_atomic", Kind.SWITCH, "Allow atomic batches."),
    Setting("--allow-fast", "allow_batched", Kind.SWITCH, "Allow fast batches."),
    Setting("--allow-counter", "allow_msg_counter", Kind.SWITCH, "Make it a distributed counter."),
    Setting("--allow-msg-ttl", "allow_msg_ttl", Kind.SWITCH, "Allow messages with a TTL of their own."),
    Setting("--allow-schedules", "allow_msg_schedules", Kind.SWITCH, "Allow scheduled messages."),
    Setting("--subject-del-markers-ttl", "subject_delete_marker_ttl", Kind.TIME, "How long delete markers are kept."),
    Setting("--deny-delete", "deny_delete", Kind.SWITCH, "Refuse to delete single messages."),
    Setting("--deny-purge", "deny_purge", Kind.SWITCH, "Refuse to purge."),
    Setting("--mirror", "mirror.name", Kind.TEXT, "Stream to mirror."),
    Setting("--external", "mirror.external.api", Kind.TEXT, "API prefix of the mirror's account, as $JS.hub.API."),
    Setting("--external-deliver", "mirror.external.deliver", Kind.TEXT, "Subject prefix its messages come on."),
    Setting("--source", "sources", Kind.TEXTS, "Stream to copy messages from; may be repeated."),
    Setting("--transform-source", "subject_transform.src", Kind.TEXT, "Subjects to transform on arrival."),
    Setting("--transform-destination", "subject_transform.dest", Kind.TEXT, "Subject to transform them to."),
    Setting("--republish-source", "republish.src", Kind.TEXT, "Subjects to republish once stored."),
    Setting("--republish-destination", "republish.dest", Kind.TEXT, "Subject to republish to."),
    Setting("--republish-headers", "republish.headers_only", Kind.SWITCH, "Republish headers only."),
    Setting(
        "--limit-consumer-inactive",
        "consumer_limits.inactive_threshold",
        Kind.TIME,
        "Longest inactive_threshold a consumer may set.",
    ),
    Setting(
        "--limit-consumer-max-pending",
        "consumer_limits.max_ack_pending",
        Kind.NUMBER,
        "Largest max_ack_pending a consumer may set.",
    ),
    Setting(
        "--persist-mode",
        "persist_mode",
        Kind.TEXT,
        "Persist mode: default (synced before the acknowledgement) or async.",
    ),
    Setting("--cluster", "placement.cluster", Kind.TEXT, "The cluster to place it in."),
    Setting("--tag", "placement.tags", Kind.TEXTS, "Tags of servers to place it on."),
    Setting("--metadata", "metadata", Kind.PAIRS, "Metadata, KEY=VALUE; may be repeated."),
)

REMOVALS = (
    Setting("--no-mirror", "mirror", Kind.REMOVE, "Stop mirroring; make it a stream of its own."),
    Setting("--no-transform", "subject_transform", Kind.REMOVE, "Stop transforming subjects."),
    Setting("--no-republish", "republish", Kind.REMOVE, "Stop republishing."),
)
"""What only an edit can do."""

EDIT_SETTINGS = (*(setting for setting in STREAM_SETTINGS if setting.flag != "--first-sequence"), *REMOVALS)

USUAL: dict[str, Any] = {
    "retention": "limits",
    "max_consumers": -1,
    "max_msgs": -1,
    "max_bytes": -1,
    "max_age": 0,
    "storage": "file",
    "num_replicas": 1,
}
"""What the schema of a configuration wants to be told although servers would choose the same."""

DEFAULTS: dict[str, Any] = USUAL | {"allow_direct": True}
"""What `add` chooses when the flags do not: as NATS' own command line does."""


def normalised(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields as the API has them: the names of sources become objects."""
    if isinstance(fields.get("sources"), list):
        return fields | {
            "sources": [{"name": source} if isinstance(source, str) else source for source in fields["sources"]]
        }
    return fields


def limit(value: Any) -> Cell:
    """Return a limit for a person: 0 and less are none."""
    return value if isinstance(value, int) and value > 0 else UNLIMITED


def config_facts(config: dict[str, Any]) -> dict[str, dict[str, Cell]]:
    """Return the sections of a stream's configuration."""
    return {
        "": {
            "description": config.get("description"),
            "subjects": ", ".join(config.get("subjects") or []) or None,
            "mirror of": as_dict(config.get("mirror")).get("name"),
            "sources": ", ".join(str(source.get("name")) for source in config.get("sources") or []) or None,
            "storage": config.get("storage"),
            "compression": _unless(config.get("compression"), "none"),
            "replicas": config.get("num_replicas"),
        },
        "Options": {
            "retention": config.get("retention"),
            "discard": config.get("discard", "old") + (" per subject" if config.get("discard_new_per_subject") else ""),
            "duplicate window": Nanoseconds(config.get("duplicate_window", 0)),
            "acknowledges": not config.get("no_ack", False),
            "direct get": bool(config.get("allow_direct")),
            "mirror direct get": config.get("mirror_direct") or None,
            "rollups": config.get("allow_rollup_hdrs") or None,
            "atomic batches": config.get("allow_atomic") or None,
            "fast batches": config.get("allow_batched") or None,
            "counters": config.get("allow_msg_counter") or None,
            "time to live": config.get("allow_msg_ttl") or None,
            "schedules": config.get("allow_msg_schedules") or None,
            "deletes denied": config.get("deny_delete") or None,
            "purges denied": config.get("deny_purge") or None,
            "sealed": config.get("sealed") or None,
            "subject transform": _arrow(config.get("subject_transform")),
            "republished": _arrow(config.get("republish")),
        },
        "Limits": {
            "max messages": limit(config.get("max_msgs")),
            "max messages per subject": limit(config.get("max_msgs_per_subject")),
            "max bytes": _limit_of(Bytes, config.get("max_bytes")),
            "max age": _limit_of(Nanoseconds, config.get("max_age")),
            "max message size": _limit_of(Bytes, config.get("max_msg_size")),
            "max consumers": limit(config.get("max_consumers")),
        },
        "Metadata": {key: value for key, value in as_dict(config.get("metadata")).items() if key[:1] != "_"},
    }


def state_facts(info: dict[str, Any]) -> dict[str, dict[str, Cell]]:
    """Return the section about what a stream holds."""
    state = info["state"]
    return {
        "State": {
            "messages": state["messages"],
            "size": Bytes(state["bytes"]),
            "first sequence": state["first_seq"],
            "first time": shown_moment(state.get("first_ts")),
            "last sequence": state["last_seq"],
            "last time": shown_moment(state.get("last_ts")),
            "deleted messages": state.get("num_deleted") or None,
            "subjects held": state.get("num_subjects"),
            "consumers": state.get("consumer_count", 0),
        },
        "Origin": _origin(info),
    }


def _origin(info: dict[str, Any]) -> dict[str, Cell]:
    facts: dict[str, Cell] = {}
    for source in [info["mirror"]] if info.get("mirror") else info.get("sources") or []:
        active = source.get("active", -1)
        seen = "never" if active < 0 else f"{Nanoseconds(active) // 1_000_000_000:,} s ago"
        problem = as_dict(source.get("error")).get("description", "")
        facts[str(source.get("name"))] = f"{source.get('lag', 0):,} behind, heard {seen}" + (
            f": {problem}" if problem else ""
        )
    return facts


def _limit_of(kind: type[int], value: Any) -> Cell:
    return kind(value) if isinstance(value, int) and value > 0 else UNLIMITED


def _unless(value: Any, usual: str) -> Cell:
    return None if value in (None, "", usual) else str(value)


def _arrow(value: Any) -> Cell:
    change = as_dict(value)
    return f"{change.get('src') or '>'} → {change.get('dest', '')}" if change else None
