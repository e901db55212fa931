"""The description of a stream in answers: its configuration, since when it is there, and its state.

The order of the keys is nats-server's. What is left out differs from answer to answer:

| answer   | versions in the metadata | domain | leader |
|----------|--------------------------|--------|--------|
| CREATE   | yes                      | no     | no     |
| UPDATE   | yes                      | yes    | no     |
| INFO     | yes                      | yes    | yes    |
| LIST     | no                       | yes    | no     |
"""

from itertools import chain, repeat
from typing import Any

from jetlake.management.streams.config import STREAM_SOURCE, StreamConfig, StreamSource
from jetlake.management.streams.required_level import with_server_versions
from jetlake.management.streams.state import OriginState, StreamState
from jetlake.management.streams.stream import Stream
from jetlake.management.wire.paging import SUBJECTS_MAX, page_of
from jetlake.management.wire.replies import ZERO_TIME
from jetlake.shared.go_text import time_text

LOST_MAX = 100_000
"""Damaged messages are listed up to here; `jetlake check` lists them all."""

_FIRST_KEYS = ("name", "external")
_LAST_KEYS = ("filter_subject", "subject_transforms")


def describe(
    stream: Stream,
    state: StreamState,
    now_ns: int,
    *,
    shows_versions: bool = True,
    domain: str = "",
    leader: str = "",
    subjects: dict[str, int] | None = None,
    consumers: int = 0,
) -> dict[str, Any]:
    """Return the description of a stream as what `write_json` takes."""
    config = with_server_versions(stream.config) if shows_versions else stream.config
    described: dict[str, Any] = {
        "config": config.to_json(),
        "created": stream.created,
        "state": describe_state(stream, state, subjects, consumers=consumers),
    }
    if domain:
        described["domain"] = domain
    if leader:
        described["cluster"] = {"leader": leader}
    described |= _describe_origins(config, state)
    described["ts"] = time_text(now_ns)
    return described


def count_subjects(state: StreamState, offset: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return the numbers of the page and the subjects on it, with the count of each.

    Unlike elsewhere the offset is returned as requested, and without any subject all numbers are zero.
    """
    counts = state.subject_counts or []
    if not counts:
        return {"total": 0, "offset": 0, "limit": 0}, {}
    first = max(offset, 0)
    total = state.subject_counts_total or len(counts)
    return {"total": total, "offset": first, "limit": SUBJECTS_MAX}, dict(page_of(counts, first, SUBJECTS_MAX).items)


def describe_state(
    stream: Stream, state: StreamState, subjects: dict[str, int] | None = None, *, consumers: int = 0
) -> dict[str, Any]:
    """Return the state of a stream as what `write_json` takes."""
    is_new = not (state.last_sequence or stream.config.first_seq)
    described: dict[str, Any] = {
        "messages": state.messages,
        "bytes": state.bytes,
        # A stream that never had a message begins nowhere; one that lost them begins at the next.
        "first_seq": 0 if is_new else state.first_sequence,
        "first_ts": _time_text(state.first_time_ns),
        "last_seq": state.last_sequence,
        "last_ts": _time_text(state.last_time_ns),
    }
    if state.subjects:
        described["num_subjects"] = state.subjects
    if subjects:
        described["subjects"] = subjects
    if state.deleted_count:
        described["num_deleted"] = state.deleted_count
    if state.deleted:
        described["deleted"] = state.deleted
    if state.lost:
        described["lost"] = {"msgs": _lost_sequences(state.lost), "bytes": state.lost_bytes}
    described["consumer_count"] = consumers
    return described


def _lost_sequences(ranges: list[tuple[int, int]]) -> list[int]:
    sequences: list[int] = []
    for first, last in ranges:
        room = LOST_MAX - len(sequences)
        sequences += range(first, min(last + 1, first + room))
    return sequences


def _describe_origins(config: StreamConfig, state: StreamState) -> dict[str, Any]:
    described: dict[str, Any] = {}
    # The engine may know of a change before or after the caller.
    states = chain(state.origins, repeat(OriginState()))
    if config.mirror is not None:
        described["mirror"] = _describe_origin(config.mirror, next(states))
    elif config.sources:
        described["sources"] = [_describe_origin(source, next(states)) for source in config.sources]
    return described


def _describe_origin(source: StreamSource, state: OriginState) -> dict[str, Any]:
    written = STREAM_SOURCE.write(source)
    described: dict[str, Any] = {key: written[key] for key in _FIRST_KEYS if key in written}
    described["lag"] = state.lag
    if state.sequence:
        described["seq"] = state.sequence
    described["active"] = state.active_ns
    if state.error is not None:
        code, error_code, description = state.error
        described["error"] = {"code": code, "err_code": error_code, "description": description}
    return described | {key: written[key] for key in _LAST_KEYS if key in written}


def _time_text(time_ns: int) -> str:
    return time_text(time_ns) if time_ns else ZERO_TIME
