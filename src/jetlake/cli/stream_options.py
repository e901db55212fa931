"""Options of `jetlake stream add`, `edit` and `copy`, and the fields of a configuration that they set.

Invariant: each option is declared once, here; the commands name it in their signatures.
"""

from typing import Annotated, Any

import typer

from jetlake.cli.configuration import merged
from jetlake.cli.option_values import given, parse_choice, parse_duration, parse_pairs, parse_size, split_texts

SubjectsOption = Annotated[
    list[str] | None, typer.Option("--subjects", help="Subjects it listens on; repeat it, or use commas.")
]
DescriptionOption = Annotated[str | None, typer.Option("--description", help="What it is for.")]
StorageOption = Annotated[str | None, typer.Option("--storage", help="Where messages are kept.", metavar="file|memory")]
RetentionOption = Annotated[
    str | None,
    typer.Option(
        "--retention",
        help="Retention: limits, interest (until all consumers have it), or work (until one has).",
        metavar="limits|interest|work",
    ),
]
DiscardOption = Annotated[
    str | None,
    typer.Option("--discard", help="Discard old or new messages when a limit is reached.", metavar="old|new"),
]
DiscardPerSubjectOption = Annotated[
    bool | None,
    typer.Option("--discard-per-subject/--no-discard-per-subject", help="Apply --discard new to each subject."),
]
MaxMsgsOption = Annotated[int | None, typer.Option("--max-msgs", help="Largest number of messages (-1: unlimited).")]
MaxMsgsPerSubjectOption = Annotated[
    int | None, typer.Option("--max-msgs-per-subject", help="Largest number of messages per subject.")
]
MaxBytesOption = Annotated[
    int | None,
    typer.Option("--max-bytes", help="Largest size, such as 10GiB (-1: unlimited).", metavar="SIZE", parser=parse_size),
]
MaxAgeOption = Annotated[
    int | None,
    typer.Option(
        "--max-age",
        help="Longest age, such as 30s, 1d, 1w or 1y (0: unlimited).",
        metavar="TIME",
        parser=parse_duration,
    ),
]
MaxMsgSizeOption = Annotated[
    int | None,
    typer.Option("--max-msg-size", help="Largest message (-1: unlimited).", metavar="SIZE", parser=parse_size),
]
MaxConsumersOption = Annotated[
    int | None, typer.Option("--max-consumers", help="Largest number of consumers (-1: unlimited).")
]
DupeWindowOption = Annotated[
    int | None,
    typer.Option(
        "--dupe-window",
        help="How long message ids are remembered to find duplicates.",
        metavar="TIME",
        parser=parse_duration,
    ),
]
ReplicasOption = Annotated[int | None, typer.Option("--replicas", help="Copies in a cluster.")]
CompressionOption = Annotated[
    str | None, typer.Option("--compression", help="Compress stored files: none or s2.", metavar="none|s2")
]
AckOption = Annotated[bool | None, typer.Option("--ack/--no-ack", help="Acknowledge published messages.")]
FirstSequenceOption = Annotated[int | None, typer.Option("--first-sequence", help="Sequence of the first message.")]
AllowDirectOption = Annotated[bool | None, typer.Option("--allow-direct/--no-allow-direct", help="Allow direct get.")]
AllowMirrorDirectOption = Annotated[
    bool | None,
    typer.Option("--allow-mirror-direct/--no-allow-mirror-direct", help="Allow a mirror to answer direct gets."),
]
AllowRollupOption = Annotated[
    bool | None, typer.Option("--allow-rollup/--no-allow-rollup", help="Allow a message to replace all before it.")
]
AllowBatchOption = Annotated[bool | None, typer.Option("--allow-batch/--no-allow-batch", help="Allow atomic batches.")]
AllowFastOption = Annotated[bool | None, typer.Option("--allow-fast/--no-allow-fast", help="Allow fast batches.")]
AllowCounterOption = Annotated[
    bool | None, typer.Option("--allow-counter/--no-allow-counter", help="Make it a distributed counter.")
]
AllowMsgTtlOption = Annotated[
    bool | None, typer.Option("--allow-msg-ttl/--no-allow-msg-ttl", help="Allow messages with a TTL of their own.")
]
AllowSchedulesOption = Annotated[
    bool | None, typer.Option("--allow-schedules/--no-allow-schedules", help="Allow scheduled messages.")
]
SubjectDelMarkersTtlOption = Annotated[
    int | None,
    typer.Option(
        "--subject-del-markers-ttl", help="How long delete markers are kept.", metavar="TIME", parser=parse_duration
    ),
]
DenyDeleteOption = Annotated[
    bool | None, typer.Option("--deny-delete/--no-deny-delete", help="Refuse to delete single messages.")
]
DenyPurgeOption = Annotated[bool | None, typer.Option("--deny-purge/--no-deny-purge", help="Refuse to purge.")]
MirrorOption = Annotated[str | None, typer.Option("--mirror", help="Stream to mirror.")]
ExternalOption = Annotated[
    str | None, typer.Option("--external", help="API prefix of the mirror's account, as $JS.hub.API.")
]
ExternalDeliverOption = Annotated[
    str | None, typer.Option("--external-deliver", help="Subject prefix its messages come on.")
]
SourceOption = Annotated[
    list[str] | None, typer.Option("--source", help="Stream to copy messages from; may be repeated.")
]
TransformSourceOption = Annotated[
    str | None, typer.Option("--transform-source", help="Subjects to transform on arrival.")
]
TransformDestinationOption = Annotated[
    str | None, typer.Option("--transform-destination", help="Subject to transform them to.")
]
RepublishSourceOption = Annotated[
    str | None, typer.Option("--republish-source", help="Subjects to republish once stored.")
]
RepublishDestinationOption = Annotated[
    str | None, typer.Option("--republish-destination", help="Subject to republish to.")
]
RepublishHeadersOption = Annotated[
    bool | None, typer.Option("--republish-headers/--no-republish-headers", help="Republish headers only.")
]
LimitConsumerInactiveOption = Annotated[
    int | None,
    typer.Option(
        "--limit-consumer-inactive",
        help="Longest inactive_threshold a consumer may set.",
        metavar="TIME",
        parser=parse_duration,
    ),
]
LimitConsumerMaxPendingOption = Annotated[
    int | None, typer.Option("--limit-consumer-max-pending", help="Largest max_ack_pending a consumer may set.")
]
PersistModeOption = Annotated[
    str | None,
    typer.Option("--persist-mode", help="Persist mode: default (synced before the acknowledgement) or async."),
]
ClusterOption = Annotated[str | None, typer.Option("--cluster", help="The cluster to place it in.")]
TagOption = Annotated[list[str] | None, typer.Option("--tag", help="Tags of servers to place it on.")]
MetadataOption = Annotated[
    list[str] | None, typer.Option("--metadata", help="Metadata, KEY=VALUE; may be repeated.", metavar="KEY=VALUE")
]

# What only an edit can do.
NoMirrorOption = Annotated[
    bool, typer.Option("--no-mirror", help="Stop mirroring; make it a stream of its own.", show_default=False)
]
NoTransformOption = Annotated[
    bool, typer.Option("--no-transform", help="Stop transforming subjects.", show_default=False)
]
NoRepublishOption = Annotated[bool, typer.Option("--no-republish", help="Stop republishing.", show_default=False)]

USUAL: dict[str, Any] = {
    "retention": "limits",
    "max_consumers": -1,
    "max_msgs": -1,
    "max_bytes": -1,
    "max_age": 0,
    "storage": "file",
    "num_replicas": 1,
}
"""Fields that the schema of a configuration requires although servers would choose the same."""

DEFAULTS: dict[str, Any] = USUAL | {"allow_direct": True}
"""What `add` chooses when the flags do not: as NATS' own command line does."""


def stream_fields(
    *,
    subjects: list[str] | None = None,
    description: str | None = None,
    storage: str | None = None,
    retention: str | None = None,
    discard: str | None = None,
    discard_per_subject: bool | None = None,
    max_msgs: int | None = None,
    max_msgs_per_subject: int | None = None,
    max_bytes: int | None = None,
    max_age: int | None = None,
    max_msg_size: int | None = None,
    max_consumers: int | None = None,
    dupe_window: int | None = None,
    replicas: int | None = None,
    compression: str | None = None,
    ack: bool | None = None,
    first_sequence: int | None = None,
    allow_direct: bool | None = None,
    allow_mirror_direct: bool | None = None,
    allow_rollup: bool | None = None,
    allow_batch: bool | None = None,
    allow_fast: bool | None = None,
    allow_counter: bool | None = None,
    allow_msg_ttl: bool | None = None,
    allow_schedules: bool | None = None,
    subject_del_markers_ttl: int | None = None,
    deny_delete: bool | None = None,
    deny_purge: bool | None = None,
    mirror: str | None = None,
    external: str | None = None,
    external_deliver: str | None = None,
    source: list[str] | None = None,
    transform_source: str | None = None,
    transform_destination: str | None = None,
    republish_source: str | None = None,
    republish_destination: str | None = None,
    republish_headers: bool | None = None,
    limit_consumer_inactive: int | None = None,
    limit_consumer_max_pending: int | None = None,
    persist_mode: str | None = None,
    cluster: str | None = None,
    tag: list[str] | None = None,
    metadata: list[str] | None = None,
) -> dict[str, Any]:
    """Return the fields that options set, by their dotted names. Raises `BadParameter`."""
    return given(
        {
            "subjects": split_texts(subjects),
            "description": description,
            "storage": parse_choice("--storage", storage, {"file": "file", "memory": "memory"}),
            "retention": parse_choice(
                "--retention", retention, {"limits": "limits", "interest": "interest", "work": "workqueue"}
            ),
            "discard": parse_choice("--discard", discard, {"old": "old", "new": "new"}),
            "discard_new_per_subject": discard_per_subject,
            "max_msgs": max_msgs,
            "max_msgs_per_subject": max_msgs_per_subject,
            "max_bytes": max_bytes,
            "max_age": max_age,
            "max_msg_size": max_msg_size,
            "max_consumers": max_consumers,
            "duplicate_window": dupe_window,
            "num_replicas": replicas,
            "compression": parse_choice("--compression", compression, {"none": "none", "s2": "s2"}),
            "no_ack": None if ack is None else not ack,
            "first_seq": first_sequence,
            "allow_direct": allow_direct,
            "mirror_direct": allow_mirror_direct,
            "allow_rollup_hdrs": allow_rollup,
            "allow_atomic": allow_batch,
            "allow_batched": allow_fast,
            "allow_msg_counter": allow_counter,
            "allow_msg_ttl": allow_msg_ttl,
            "allow_msg_schedules": allow_schedules,
            "subject_delete_marker_ttl": subject_del_markers_ttl,
            "deny_delete": deny_delete,
            "deny_purge": deny_purge,
            "mirror.name": mirror,
            "mirror.external.api": external,
            "mirror.external.deliver": external_deliver,
            "sources": None if source is None else [{"name": name} for name in split_texts(source) or []],
            "subject_transform.src": transform_source,
            "subject_transform.dest": transform_destination,
            "republish.src": republish_source,
            "republish.dest": republish_destination,
            "republish.headers_only": republish_headers,
            "consumer_limits.inactive_threshold": limit_consumer_inactive,
            "consumer_limits.max_ack_pending": limit_consumer_max_pending,
            "persist_mode": persist_mode,
            "placement.cluster": cluster,
            "placement.tags": split_texts(tag),
            "metadata": parse_pairs("--metadata", metadata),
        }
    )


def with_fields(config: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of a stream with fields set; sources that are named again stay what they are."""
    made = merged(config, fields)
    if "sources" in fields:
        before = config.get("sources") or []
        named = [[each for each in before if each.get("name") == source["name"]] for source in fields["sources"]]
        made["sources"] = [
            each for there, source in zip(named, fields["sources"], strict=True) for each in there or [source]
        ]
    return made
