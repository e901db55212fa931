"""The configuration of a consumer as a value, with the names it has on the wire.

Durations are in nanoseconds. A value read from a request has zeros where the request says nothing;
`defaults` puts the defaults in. The order of the fields below is the order on the wire.

Invariant: writing a configuration and reading it again gives an equal one, as long as every moment in it can be
written; lists that are empty are then lists that were never given.
"""

from typing import Any

import msgspec

from jetlake.management.wire.json_dialect import read_request
from jetlake.management.wire.json_types import (
    Boolean,
    Choice,
    Integer,
    ListOf,
    Record,
    RecordField,
    Text,
    TextMap,
    Time,
)
from jetlake.management.wire.times import Timestamp

_INT = Integer("int", -(2**63), 2**63 - 1)
_UINT64 = Integer("uint64", 0, 2**64 - 1)
_DURATION = Integer("time.Duration", -(2**63), 2**63 - 1)
_TEXT = Text()
_FLAG = Boolean()


class ConsumerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a consumer."""

    durable_name: str = ""
    name: str = ""
    description: str = ""
    deliver_policy: str = "all"
    opt_start_seq: int = 0
    opt_start_time: Timestamp | None = None
    ack_policy: str = "none"
    ack_wait: int = 0
    max_deliver: int = 0
    backoff: tuple[int, ...] | None = None
    filter_subject: str = ""
    filter_subjects: tuple[str, ...] | None = None
    replay_policy: str = "instant"
    rate_limit_bps: int = 0
    sample_freq: str = ""
    max_waiting: int = 0
    max_ack_pending: int = 0
    flow_control: bool = False
    headers_only: bool = False
    # Of one request for messages.
    max_batch: int = 0
    max_expires: int = 0
    max_bytes: int = 0
    # Empty = the messages are asked for.
    deliver_subject: str = ""
    deliver_group: str = ""
    idle_heartbeat: int = 0
    # 0 = it stays without being used.
    inactive_threshold: int = 0
    # 0 = as many as the stream has.
    num_replicas: int = 0
    mem_storage: bool = False
    # Made by a stream that copies this one, and not shown to others.
    direct: bool = False
    sourcing: bool = False
    metadata: dict[str, str] | None = None
    pause_until: Timestamp | None = None
    priority_groups: tuple[str, ...] | None = None
    # Empty = none.
    priority_policy: str = ""
    priority_timeout: int = 0

    @staticmethod
    def from_json(body: bytes) -> "ConsumerConfig":
        """Read a configuration that was written, as it is; `RequestError` tells what is wrong with it."""
        config: ConsumerConfig = read_request(CONSUMER_CONFIG, body).value
        return config

    def to_json(self) -> dict[str, Any]:
        """Return what `json.dumps` takes, in order and without what is left out."""
        return CONSUMER_CONFIG.write(self)

    @property
    def is_durable(self) -> bool:
        return bool(self.durable_name)

    @property
    def is_pull(self) -> bool:
        return not self.deliver_subject

    @property
    def is_internal(self) -> bool:
        """Whether a stream that copies this one has made it: limits do not count it."""
        return self.direct or self.sourcing

    @property
    def filters(self) -> tuple[str, ...]:
        """The subjects it takes; none = all."""
        return (*(self.filter_subjects or ()), *((self.filter_subject,) if self.filter_subject else ()))


_DELIVER_POLICIES = ("all", "last", "last_per_subject", "new", "by_start_sequence", "by_start_time")
_DELIVER_POLICY = Choice({**{word: word for word in _DELIVER_POLICIES}, "undefined": "all"}, "all")
_ACK_POLICY = Choice({word: word for word in ("none", "all", "explicit", "flow_control")}, "none")
_REPLAY_POLICY = Choice({word: word for word in ("instant", "original")}, "instant")
_PRIORITY_POLICY = Choice(
    {"none": "", **{word: word for word in ("overflow", "pinned_client", "prioritized")}},
    "",
    unknown="priority policy",
)

CONSUMER_CONFIG = Record(
    "server.ConsumerConfig",
    ConsumerConfig,
    (
        RecordField("durable_name", _TEXT),
        RecordField("name", _TEXT),
        RecordField("description", _TEXT),
        RecordField("deliver_policy", _DELIVER_POLICY, is_always_written=True),
        RecordField("opt_start_seq", _UINT64),
        RecordField("opt_start_time", Time()),
        RecordField("ack_policy", _ACK_POLICY, is_always_written=True),
        RecordField("ack_wait", _DURATION),
        RecordField("max_deliver", _INT),
        RecordField("backoff", ListOf(_DURATION, "[]time.Duration")),
        RecordField("filter_subject", _TEXT),
        RecordField("filter_subjects", ListOf(_TEXT, "[]string")),
        RecordField("replay_policy", _REPLAY_POLICY, is_always_written=True),
        RecordField("rate_limit_bps", _UINT64),
        RecordField("sample_freq", _TEXT),
        RecordField("max_waiting", _INT),
        RecordField("max_ack_pending", _INT),
        RecordField("flow_control", _FLAG),
        RecordField("headers_only", _FLAG),
        RecordField("max_batch", _INT),
        RecordField("max_expires", _DURATION),
        RecordField("max_bytes", _INT),
        RecordField("deliver_subject", _TEXT),
        RecordField("deliver_group", _TEXT),
        RecordField("idle_heartbeat", _DURATION),
        RecordField("inactive_threshold", _DURATION),
        RecordField("num_replicas", _INT, is_always_written=True),
        RecordField("mem_storage", _FLAG),
        RecordField("direct", _FLAG),
        RecordField("sourcing", _FLAG),
        RecordField("metadata", TextMap()),
        RecordField("pause_until", Time()),
        RecordField("priority_groups", ListOf(_TEXT, "[]string")),
        RecordField("priority_policy", _PRIORITY_POLICY),
        RecordField("priority_timeout", _DURATION),
    ),
    can_be_absent=False,
)
"""How a configuration is written, and read again."""
