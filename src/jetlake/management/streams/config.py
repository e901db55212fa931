"""The configuration of a stream as a value, with the names it has on the wire.

Durations are in nanoseconds. A value read from a request has zeros where the request says nothing;
`validation` puts the defaults in. The order of the fields below is the order on the wire.

Invariant: writing a configuration and reading it again gives an equal one, as long as every moment in it can be
written; lists that are empty are then lists that were never given.
"""

from typing import Any

import msgspec

from jetlake.management.wire.json_dialect import read_request
from jetlake.management.wire.json_types import (
    Boolean,
    Choice,
    Compression,
    Integer,
    ListOf,
    Record,
    RecordField,
    Text,
    TextMap,
    Time,
)
from jetlake.management.wire.times import Timestamp

_INT64 = Integer("int64", -(2**63), 2**63 - 1)
_INT32 = Integer("int32", -(2**31), 2**31 - 1)
_INT = Integer("int", -(2**63), 2**63 - 1)
_UINT64 = Integer("uint64", 0, 2**64 - 1)
_DURATION = Integer("time.Duration", -(2**63), 2**63 - 1)
_TEXT = Text()
_FLAG = Boolean()


class SubjectTransform(msgspec.Struct, frozen=True, kw_only=True):
    """What subjects become; of a source also which ones are taken."""

    src: str = ""
    dest: str = ""


class StreamRepublish(msgspec.Struct, frozen=True, kw_only=True):
    """What is published again once it is stored, and where."""

    src: str = ""
    dest: str = ""
    headers_only: bool = False


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Where in a cluster a stream should be; kept and shown, but without effect on a single server."""

    cluster: str = ""
    tags: tuple[str, ...] | None = None
    preferred: str = ""


class ConsumerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What consumers of a stream get by default, and may not exceed."""

    inactive_threshold: int = 0
    max_ack_pending: int = 0


class ExternalStream(msgspec.Struct, frozen=True, kw_only=True):
    """How another account or domain is reached."""

    api: str = ""
    deliver: str = ""


class SourceConsumer(msgspec.Struct, frozen=True, kw_only=True):
    """A durable consumer of the origin that was made for this purpose."""

    name: str = ""
    deliver_subject: str = ""


class StreamSource(msgspec.Struct, frozen=True, kw_only=True):
    """Another stream whose messages are taken over, as a mirror or as one of several sources."""

    name: str = ""
    opt_start_seq: int = 0
    opt_start_time: Timestamp | None = None
    filter_subject: str = ""
    subject_transforms: tuple[SubjectTransform, ...] | None = None
    external: ExternalStream | None = None
    consumer: SourceConsumer | None = None


class StreamConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a stream."""

    name: str = ""
    description: str = ""
    subjects: tuple[str, ...] | None = None
    retention: str = "limits"
    max_consumers: int = 0
    max_msgs: int = 0
    max_bytes: int = 0
    max_age: int = 0
    max_msgs_per_subject: int = 0
    max_msg_size: int = 0
    discard: str = "old"
    storage: str = "file"
    num_replicas: int = 0
    no_ack: bool = False
    duplicate_window: int = 0
    placement: Placement | None = None
    mirror: StreamSource | None = None
    # An item is None where a request says `null`; validation refuses it.
    sources: tuple[StreamSource, ...] | None = None
    compression: str = "none"
    first_seq: int = 0
    subject_transform: SubjectTransform | None = None
    republish: StreamRepublish | None = None
    allow_direct: bool = False
    mirror_direct: bool = False
    discard_new_per_subject: bool = False
    sealed: bool = False
    deny_delete: bool = False
    deny_purge: bool = False
    allow_rollup_hdrs: bool = False
    consumer_limits: ConsumerLimits = ConsumerLimits()
    allow_msg_ttl: bool = False
    subject_delete_marker_ttl: int = 0
    allow_msg_counter: bool = False
    allow_atomic: bool = False
    allow_msg_schedules: bool = False
    persist_mode: str = ""
    allow_batched: bool = False
    metadata: dict[str, str] | None = None

    @staticmethod
    def from_json(body: bytes) -> "StreamConfig":
        """Read a configuration that was written, as it is; `RequestError` tells what is wrong with it."""
        config: StreamConfig = read_request(STREAM_CONFIG, body).value
        return config

    def to_json(self) -> dict[str, Any]:
        """Return what `json.dumps` takes, in order and without what is left out."""
        return STREAM_CONFIG.write(self)


class StreamConfigRequest(StreamConfig, frozen=True, kw_only=True):
    """What a request for a stream says: a configuration, and whether the server may adjust it."""

    pedantic: bool = False

    @property
    def config(self) -> StreamConfig:
        return StreamConfig(**{name: getattr(self, name) for name in StreamConfig.__struct_fields__})


_TRANSFORM_FIELDS = (
    RecordField("src", _TEXT, is_always_written=True),
    RecordField("dest", _TEXT, is_always_written=True),
)
_TRANSFORM = Record("server.SubjectTransformConfig", SubjectTransform, _TRANSFORM_FIELDS, can_be_absent=True)
_LISTED_TRANSFORM = Record("server.SubjectTransformConfig", SubjectTransform, _TRANSFORM_FIELDS, can_be_absent=False)
_REPUBLISH = Record(
    "server.RePublish",
    StreamRepublish,
    (RecordField("src", _TEXT), RecordField("dest", _TEXT, is_always_written=True), RecordField("headers_only", _FLAG)),
    can_be_absent=True,
)
_PLACEMENT = Record(
    "server.Placement",
    Placement,
    (RecordField("cluster", _TEXT), RecordField("tags", ListOf(_TEXT, "[]string")), RecordField("preferred", _TEXT)),
    can_be_absent=True,
)
_CONSUMER_LIMITS = Record(
    "server.StreamConsumerLimits",
    ConsumerLimits,
    (RecordField("inactive_threshold", _DURATION), RecordField("max_ack_pending", _INT)),
    can_be_absent=False,
)
_EXTERNAL = Record(
    "server.ExternalStream",
    ExternalStream,
    (RecordField("api", _TEXT, is_always_written=True), RecordField("deliver", _TEXT, is_always_written=True)),
    can_be_absent=True,
)
_SOURCE_CONSUMER = Record(
    "server.StreamConsumerSource",
    SourceConsumer,
    (RecordField("name", _TEXT), RecordField("deliver_subject", _TEXT)),
    can_be_absent=True,
)
STREAM_SOURCE = Record(
    "server.StreamSource",
    StreamSource,
    (
        RecordField("name", _TEXT, is_always_written=True),
        RecordField("opt_start_seq", _UINT64),
        RecordField("opt_start_time", Time()),
        RecordField("filter_subject", _TEXT),
        RecordField("subject_transforms", ListOf(_LISTED_TRANSFORM, "[]server.SubjectTransformConfig")),
        RecordField("external", _EXTERNAL),
        RecordField("consumer", _SOURCE_CONSUMER),
    ),
    can_be_absent=True,
)
"""How a mirror or a source is written."""

_RETENTION = Choice({word: word for word in ("limits", "interest", "workqueue")}, "limits")
_DISCARD = Choice({word: word for word in ("old", "new")}, "old", ignores_case=True)
_STORAGE = Choice({word: word for word in ("file", "memory")}, "file")
_PERSIST_MODE = Choice({"": "", "default": "", "async": "async"}, "")

_FIELDS = (
    RecordField("name", _TEXT, is_always_written=True),
    RecordField("description", _TEXT),
    RecordField("subjects", ListOf(_TEXT, "[]string")),
    RecordField("retention", _RETENTION, is_always_written=True),
    RecordField("max_consumers", _INT, is_always_written=True),
    RecordField("max_msgs", _INT64, is_always_written=True),
    RecordField("max_bytes", _INT64, is_always_written=True),
    RecordField("max_age", _DURATION, is_always_written=True),
    RecordField("max_msgs_per_subject", _INT64, is_always_written=True),
    RecordField("max_msg_size", _INT32),
    RecordField("discard", _DISCARD, is_always_written=True),
    RecordField("storage", _STORAGE, is_always_written=True),
    RecordField("num_replicas", _INT, is_always_written=True),
    RecordField("no_ack", _FLAG),
    RecordField("duplicate_window", _DURATION),
    RecordField("placement", _PLACEMENT),
    RecordField("mirror", STREAM_SOURCE),
    RecordField("sources", ListOf(STREAM_SOURCE, "[]*server.StreamSource")),
    RecordField("compression", Compression(), is_always_written=True),
    RecordField("first_seq", _UINT64),
    RecordField("subject_transform", _TRANSFORM),
    RecordField("republish", _REPUBLISH),
    RecordField("allow_direct", _FLAG, is_always_written=True),
    RecordField("mirror_direct", _FLAG, is_always_written=True),
    RecordField("discard_new_per_subject", _FLAG),
    RecordField("sealed", _FLAG, is_always_written=True),
    RecordField("deny_delete", _FLAG, is_always_written=True),
    RecordField("deny_purge", _FLAG, is_always_written=True),
    RecordField("allow_rollup_hdrs", _FLAG, is_always_written=True),
    RecordField("consumer_limits", _CONSUMER_LIMITS, is_always_written=True),
    RecordField("allow_msg_ttl", _FLAG, is_always_written=True),
    RecordField("subject_delete_marker_ttl", _DURATION),
    RecordField("allow_msg_counter", _FLAG),
    RecordField("allow_atomic", _FLAG),
    RecordField("allow_msg_schedules", _FLAG),
    RecordField("persist_mode", _PERSIST_MODE),
    RecordField("allow_batched", _FLAG),
    RecordField("metadata", TextMap()),
)

STREAM_CONFIG = Record("server.StreamConfig", StreamConfig, _FIELDS, can_be_absent=False)
"""How a configuration is written, and read again."""

STREAM_CONFIG_REQUEST = Record(
    "server.StreamConfigRequest", StreamConfigRequest, (*_FIELDS, RecordField("pedantic", _FLAG)), can_be_absent=False
)
"""How a request for a stream is read."""
