"""Every field of streams, consumers, buckets, governors and templates, with its kind, its default and its other names.

The names are those of the JetStream API. A declaration may spell them as Go and Kubernetes do: `MaxAge`, `maxAge` and
`max-age` are `max_age`; where those worlds use another word it stands among the other names.

Invariant: no two fields of a table answer to the same word.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from typing import Any

DEAD_LETTERS_KEY = "jetlake.dead_letters"
"""The metadata by which a stream names its subject for dead letters."""

SECOND_NS = 1_000_000_000
UNLIMITED = -1


class Kind(Enum):
    """What a field holds."""

    TEXT = auto()
    INTEGER = auto()
    SIZE = auto()
    DURATION = auto()
    FLAG = auto()
    CHOICE = auto()
    TIMESTAMP = auto()
    PERCENTAGE = auto()
    TEXTS = auto()
    DURATIONS = auto()
    MAP = auto()
    RECORD = auto()
    RECORDS = auto()


@dataclass(frozen=True, eq=False)
class Field:
    """One field; `fields` are those of a record, `choices` the words of a choice."""

    name: str
    kind: Kind
    default: Any = None
    also: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    fields: "tuple[Field, ...]" = ()


def word_of(name: str) -> str:
    """Return what is compared of a name: small letters and digits."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


@cache
def by_word(fields: tuple[Field, ...]) -> dict[str, Field]:
    """Return the fields by every word they answer to."""
    words: dict[str, Field] = {}
    for field in fields:
        for name in (field.name, *field.also):
            assert word_of(name) not in words, f"{name} names two fields"
            words[word_of(name)] = field
    return words


def _text(name: str, *also: str) -> Field:
    return Field(name, Kind.TEXT, "", also)


def _integer(name: str, *also: str, default: int = 0) -> Field:
    return Field(name, Kind.INTEGER, default, also)


def _duration(name: str, *also: str) -> Field:
    return Field(name, Kind.DURATION, 0, also)


def _flag(name: str, *also: str) -> Field:
    return Field(name, Kind.FLAG, False, also)


def _choice(name: str, *choices: str, also: tuple[str, ...] = ()) -> Field:
    return Field(name, Kind.CHOICE, choices[0], also, choices)


TRANSFORM = (_text("src", "source"), _text("dest", "destination"))

SOURCE = (
    _text("name"),
    _integer("opt_start_seq", "start_seq", "start_sequence"),
    Field("opt_start_time", Kind.TIMESTAMP, "", ("start_time",)),
    _text("filter_subject"),
    Field("subject_transforms", Kind.RECORDS, [], ("subject_transform",), fields=TRANSFORM),
    Field("external", Kind.RECORD, fields=(_text("api", "api_prefix"), _text("deliver", "deliver_prefix"))),
    Field("consumer", Kind.RECORD, fields=(_text("name"), _text("deliver_subject"))),
)

REPUBLISH = (*TRANSFORM, _flag("headers_only"))
PLACEMENT = (_text("cluster"), Field("tags", Kind.TEXTS, []), _text("preferred"))
CONSUMER_LIMITS = (_duration("inactive_threshold"), _integer("max_ack_pending"))

_SHARED = (
    _text("description"),
    _choice("storage", "file", "memory", also=("storage_type",)),
    _integer("num_replicas", "replicas", default=1),
    Field("placement", Kind.RECORD, fields=PLACEMENT),
    Field("metadata", Kind.MAP, {}),
)
"""What streams and buckets have in common."""

_MIRROR = Field("mirror", Kind.RECORD, fields=SOURCE)
_SOURCES = Field("sources", Kind.RECORDS, [], ("source",), fields=SOURCE)
_REPUBLISH = Field("republish", Kind.RECORD, fields=REPUBLISH)
_COMPRESSION = _choice("compression", "none", "s2")
_MAX_BYTES = Field("max_bytes", Kind.SIZE, UNLIMITED, ("max_bucket_size",))

STREAM = (
    _text("name"),
    *_SHARED,
    Field("subjects", Kind.TEXTS, [], ("subject",)),
    _choice("retention", "limits", "interest", "workqueue"),
    _integer("max_consumers", default=UNLIMITED),
    _integer("max_msgs", "max_messages", default=UNLIMITED),
    _MAX_BYTES,
    _duration("max_age"),
    _integer("max_msgs_per_subject", "max_messages_per_subject", "max_msgs_per", default=UNLIMITED),
    Field("max_msg_size", Kind.SIZE, UNLIMITED, ("max_message_size",)),
    _choice("discard", "old", "new"),
    _flag("no_ack"),
    _duration("duplicate_window", "duplicates"),
    _MIRROR,
    _SOURCES,
    _COMPRESSION,
    _integer("first_seq", "first_sequence"),
    Field("subject_transform", Kind.RECORD, fields=TRANSFORM),
    _REPUBLISH,
    _flag("allow_direct"),
    _flag("mirror_direct"),
    _flag("discard_new_per_subject", "discard_per_subject", "discard_new_per"),
    _flag("sealed"),
    _flag("deny_delete"),
    _flag("deny_purge"),
    _flag("allow_rollup_hdrs", "allow_rollup", "rollup_allowed"),
    Field("consumer_limits", Kind.RECORD, {}, fields=CONSUMER_LIMITS),
    _flag("allow_msg_ttl"),
    _duration("subject_delete_marker_ttl"),
    _flag("allow_msg_counter"),
    _flag("allow_atomic", "allow_atomic_publish"),
    _flag("allow_msg_schedules"),
    _choice("persist_mode", "", "default", "async"),
    _flag("allow_batched", "allow_batch_publish"),
    # Ours: it becomes metadata.
    _text("dead_letters"),
)

CONSUMER = (
    _text("name"),
    _text("durable_name", "durable"),
    _text("stream", "stream_name"),
    _text("description"),
    _choice("deliver_policy", "all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject"),
    _integer("opt_start_seq", "start_seq", "start_sequence"),
    Field("opt_start_time", Kind.TIMESTAMP, "", ("start_time",)),
    _choice("ack_policy", "none", "all", "explicit", "flow_control"),
    _duration("ack_wait"),
    _integer("max_deliver", default=UNLIMITED),
    Field("backoff", Kind.DURATIONS, []),
    _text("filter_subject"),
    Field("filter_subjects", Kind.TEXTS, []),
    _choice("replay_policy", "instant", "original"),
    _integer("rate_limit_bps", "rate_limit"),
    Field("sample_freq", Kind.PERCENTAGE, "", ("sample_frequency",)),
    _integer("max_waiting"),
    _integer("max_ack_pending"),
    _flag("flow_control"),
    _flag("headers_only"),
    _integer("max_batch", "max_request_batch"),
    _duration("max_expires", "max_request_expires"),
    Field("max_bytes", Kind.SIZE, 0, ("max_request_max_bytes",)),
    _text("deliver_subject"),
    _text("deliver_group"),
    _duration("idle_heartbeat", "heartbeat", "heartbeat_interval"),
    _duration("inactive_threshold"),
    _integer("num_replicas", "replicas"),
    _flag("mem_storage", "memory_storage"),
    Field("metadata", Kind.MAP, {}),
    Field("pause_until", Kind.TIMESTAMP, ""),
    Field("priority_groups", Kind.TEXTS, []),
    _choice("priority_policy", "none", "overflow", "pinned_client", "prioritized"),
    _duration("priority_timeout", "pinned_ttl"),
)

KEY_VALUE = (
    _text("bucket", "name"),
    *_SHARED,
    _integer("history", default=1),
    _duration("ttl", "max_age"),
    _MAX_BYTES,
    Field("max_value_size", Kind.SIZE, UNLIMITED),
    _duration("limit_marker_ttl"),
    _flag("key_ttl"),
    _flag("compression"),
    _REPUBLISH,
    _MIRROR,
    _SOURCES,
)

OBJECT_STORE = (_text("bucket", "name"), *_SHARED, _duration("ttl", "max_age"), _MAX_BYTES, _flag("compression"))

GOVERNOR = (
    _text("name"),
    _integer("capacity", "max_msgs"),
    _duration("expires", "expire", "max_age"),
    _integer("num_replicas", "replicas", default=1),
    _text("collective"),
    Field("metadata", Kind.MAP, {}),
)

_OF_TEMPLATES = (
    "name",
    "subjects",
    "retention",
    "max_consumers",
    "max_msgs",
    "max_bytes",
    "max_age",
    "max_msg_size",
    "storage",
    "num_replicas",
    "no_ack",
)
TEMPLATE = (
    _text("name"),
    _integer("max_streams"),
    # Templates are of 2020, and so are the fields their streams can have.
    Field(
        "stream", Kind.RECORD, None, ("config",), fields=tuple(each for each in STREAM if each.name in _OF_TEMPLATES)
    ),
)
