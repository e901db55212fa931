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
        "When messages go: by limits, when all consumers have them, when one has.",
        (("limits", "limits"), ("interest", "interest"), ("work", "workqueue")),
    ),
    Setting("--discard", "discard", Kind.CHOICE, "What goes when it is full.", (("old", "old"), ("new", "new"))),
    Setting("--discard-per-subject", "discard_new_per_subject", Kind.SWITCH, "Refuse new ones subject by subject."),
    Setting("--max-msgs", "max_msgs", Kind.NUMBER, "Messages at most; -1 is no limit."),
    Setting("--max-msgs-per-subject", "max_msgs_per_subject", Kind.NUMBER, "Messages of one subject at most."),
    Setting("--max-bytes", "max_bytes", Kind.SIZE, "Bytes at most, as 10GiB; -1 is no limit."),
    Setting("--max-age", "max_age", Kind.TIME, "Age at most, as 30s, 1d, 1w, 1y; 0 is no limit."),
    Setting("--max-msg-size", "max_msg_size", Kind.SIZE, "Bytes of one message at most; -1 is no limit."),
    Setting("--max-consumers", "max_consumers", Kind.NUMBER, "Consumers at most; -1 is no limit."),
    Setting("--dupe-window", "duplicate_window", Kind.TIME, "How long ids of messages are remembered."),
    Setting("--replicas", "num_replicas", Kind.NUMBER, "Copies in a cluster."),
    Setting(
        "--compression",
        "compression",
        Kind.CHOICE,
        "Compress stored files: none or s2.",
        (("none", "none"), ("s2", "s2")),
    ),
    Setting("--ack", "no_ack", Kind.OPPOSITE, "Acknowledge what is published."),
    Setting("--first-sequence", "first_seq", Kind.NUMBER, "Sequence of the first message."),
    Setting("--allow-direct", "allow_direct", Kind.SWITCH, "Allow reading messages directly."),
    Setting("--allow-mirror-direct", "mirror_direct", Kind.SWITCH, "Allow a mirror to answer such reads."),
    Setting("--allow-rollup", "allow_rollup_hdrs", Kind.SWITCH, "Allow a message to replace all before it."),
    Setting("--allow-batch", "allow_atomic", Kind.SWITCH, "Allow atomic batches."),
    Setting("--allow-fast", "allow_batched", Kind.SWITCH, "Allow fast batches."),
    Setting("--allow-counter", "allow_msg_counter", Kind.SWITCH, "Make it a distributed counter."),
    Setting("--allow-msg-ttl", "allow_msg_ttl", Kind.SWITCH, "Allow messages to say how long they live."),
    Setting("--allow-schedules", "allow_msg_schedules", Kind.SWITCH, "Allow messages to be published later."),
    Setting("--subject-del-markers-ttl", "subject_delete_marker_ttl", Kind.TIME, "How long markers of deletes live."),
    Setting("--deny-delete", "deny_delete", Kind.SWITCH, "Refuse to delete single messages."),
    Setting("--deny-purge", "deny_purge", Kind.SWITCH, "Refuse to purge."),
    Setting("--mirror", "mirror.name", Kind.TEXT, "The stream it is a mirror of."),
    Setting("--external", "mirror.external.api", Kind.TEXT, "API prefix of the mirror's account, as $JS.hub.API."),
    Setting("--external-deliver", "mirror.external.deliver", Kind.TEXT, "Subject prefix its messages come on."),
    Setting("--source", "sources", Kind.TEXTS, "A stream whose messages it takes too; may be repeated."),
    Setting("--transform-source", "subject_transform.src", Kind.TEXT, "Subjects that are changed on arrival."),
    Setting("--transform-destination", "subject_transform.dest", Kind.TEXT, "What they become."),
    Setting("--republish-source", "republish.src", Kind.TEXT, "Subjects that are published again once stored."),
    Setting("--republish-destination", "republish.dest", Kind.TEXT, "Where to."),
    Setting("--republish-headers", "republish.headers_only", Kind.SWITCH, "Without payloads."),
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
    Setting("--persist-mode", "persist_mode", Kind.TEXT, "How it is written: default or async."),
    Setting("--cluster", "placement.cluster", Kind.TEXT, "The cluster to place it in."),
    Setting("--tag", "placement.tags", Kind.TEXTS, "Tags of servers to place it on."),
    Setting("--metadata", "metadata", Kind.PAIRS, "Key and value of your own; may be repeated."),
)

REMOVALS = (
    Setting("--no-mirror", "mirror", Kind.REMOVE, "It is no mirror any more."),
    Setting("--no-transform", "subject_transform", Kind.REMOVE, "Subjects are not changed any more."),
    Setting("--no-republish", "republish", Kind.REMOVE, "Nothing is published again any more."),
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
