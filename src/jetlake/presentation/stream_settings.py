"""The settings of a stream: what flags and forms ask for, and what is chosen unless they say so."""

from typing import Any

from jetlake.presentation.settings import Kind, Setting

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
