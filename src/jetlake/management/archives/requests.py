"""Restore, from the bytes of the request to the configuration of the stream to create.

The request is decided twice: when the restore begins, so that no client sends an archive for nothing, and when it is
complete, because other streams may have been created meanwhile.

Invariant: `begin` and `check` return or raise `RequestError`, whatever the bytes.
"""

from typing import Any

import msgspec

from jetlake.management.streams.config import STREAM_CONFIG, StreamConfig
from jetlake.management.streams.context import StreamContext
from jetlake.management.streams.requests import check_limits, check_replicas, check_written
from jetlake.management.streams.required_level import with_required_level
from jetlake.management.streams.sources import check_filters
from jetlake.management.streams.subjects import check_others
from jetlake.management.streams.validation import validated
from jetlake.management.wire import json_syntax
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.management.wire.json_dialect import read_request
from jetlake.management.wire.json_types import Integer, JsonSpan, ListOf, NotPlainError, Record, RecordField, Time
from jetlake.management.wire.times import Timestamp

_INT = Integer("int", -(2**63), 2**63 - 1)
_UINT64 = Integer("uint64", 0, 2**64 - 1)


class LostData(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream had lost when its snapshot was made."""

    msgs: tuple[int, ...] | None = None
    bytes: int = 0


class RestoredState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a stream when its snapshot was made. The archive says it once more, and that counts."""

    messages: int = 0
    bytes: int = 0
    first_seq: int = 0
    first_ts: Timestamp | None = None
    last_seq: int = 0
    last_ts: Timestamp | None = None
    num_subjects: int = 0
    subjects: dict[str, int] | None = None
    num_deleted: int = 0
    deleted: tuple[int, ...] | None = None
    lost: LostData | None = None
    consumer_count: int = 0


class RestoreRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The stream to restore; a configuration without a name gets that of the subject."""

    config: StreamConfig = STREAM_CONFIG.make()
    state: RestoredState = RestoredState()


class _Counts:
    """Numbers by texts; None is a map that was never given."""

    name = "map[string]uint64"
    zero = None

    def read(self, span: JsonSpan, current: dict[str, int] | None) -> dict[str, int] | None:
        if span.kind == "null":
            return None
        if span.kind != "object":
            raise span.mismatch(self.name)
        counts = dict(current or {})
        for key, start, end in json_syntax.members_at(span.source.data, span.start):
            counts[key] = _UINT64.read(JsonSpan(span.source, start, end, (*span.path, key)), 0)
        return counts

    def from_plain(self, value: Any) -> dict[str, int]:
        if type(value) is not dict:
            raise NotPlainError
        return {key: _UINT64.from_plain(count) for key, count in value.items()}

    def write(self, value: dict[str, int]) -> Any:
        return value


_LOST = Record(
    "server.LostStreamData",
    LostData,
    (RecordField("msgs", ListOf(_UINT64, "[]uint64")), RecordField("bytes", _UINT64)),
    can_be_absent=True,
)
_STATE = Record(
    "server.StreamState",
    RestoredState,
    (
        RecordField("messages", _UINT64),
        RecordField("bytes", _UINT64),
        RecordField("first_seq", _UINT64),
        RecordField("first_ts", Time()),
        RecordField("last_seq", _UINT64),
        RecordField("last_ts", Time()),
        RecordField("num_subjects", _INT),
        RecordField("subjects", _Counts()),
        RecordField("num_deleted", _INT),
        RecordField("deleted", ListOf(_UINT64, "[]uint64")),
        RecordField("lost", _LOST),
        RecordField("consumer_count", _INT),
    ),
    can_be_absent=False,
)
RESTORE_REQUEST = Record(
    "server.JSApiStreamRestoreRequest",
    RestoreRequest,
    (RecordField("config", STREAM_CONFIG), RecordField("state", _STATE)),
    can_be_absent=False,
)
"""How a request for a restore is read."""


class RestoreDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What a request leads to. Archives that nats-server made before 2.15 do not say the sequences themselves."""

    config: StreamConfig
    first_sequence: int
    last_sequence: int


def begin(name: str, body: bytes, context: StreamContext, *, is_strict: bool = True) -> RestoreDecision:
    """Decide a request to restore the stream that the API's subject names."""
    wanted: RestoreRequest = read_request(RESTORE_REQUEST, body, is_strict=is_strict).value
    config = wanted.config if wanted.config.name else msgspec.structs.replace(wanted.config, name=name)
    if config.name != name:
        raise RequestError(ErrorCode.STREAM_MISMATCH)
    if {"/", "\\"} & set(name):
        raise RequestError(ErrorCode.STREAM_NAME_CONTAINS_PATH_SEPARATORS)
    config = validated(with_required_level(config), context)
    check_limits(config, context)
    if name in context.streams:
        raise RequestError(ErrorCode.STREAM_NAME_EXIST_RESTORE_FAILED)
    check_written(config)
    return RestoreDecision(config=config, first_sequence=wanted.state.first_seq, last_sequence=wanted.state.last_seq)


def check(config: StreamConfig, context: StreamContext) -> None:
    """Raise `RequestError` unless a stream that was restored may be there now."""
    if config.name in context.streams:
        raise RequestError(ErrorCode.STREAM_NAME_EXIST_RESTORE_FAILED)
    check_limits(config, context)
    try:
        check_replicas(config)
        check_filters(config)
        check_others(config, context.streams)
    except RequestError as error:
        # An error that shows only when the stream is added is reported as a failure of the restore.
        reason = f"error adding stream: {error.description} ({error.code.number})"
        raise RequestError(ErrorCode.STREAM_RESTORE, err=reason) from error
