"""Requests for a restore: what is decided before anything is sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.management.archives import requests as restore_requests
from jetlake.management.archives.requests import RestoreDecision
from jetlake.management.streams.account_streams import AccountStreams
from jetlake.management.streams.config import StreamConfig
from jetlake.management.streams.context import StreamAccountLimits, StreamContext
from jetlake.management.wire.error_codes import RequestError as ApiError

EXISTING = StreamContext(streams=AccountStreams([StreamConfig(name="OLD", subjects=("old",))]))

STATE = {
    "messages": 1,
    "bytes": 40,
    "first_seq": 1,
    "first_ts": "2026-01-01T00:00:00Z",
    "last_seq": 1,
    "last_ts": "0001-01-01T00:00:00Z",
    "num_subjects": 1,
    "subjects": {"a": 1},
    "num_deleted": 1,
    "deleted": [7],
    "lost": {"msgs": [3], "bytes": 9},
    "consumer_count": 2,
}


def decide(request: Any, name: str = "NEW", context: StreamContext = EXISTING) -> RestoreDecision:
    body = request if isinstance(request, bytes) else json.dumps(request).encode()
    return restore_requests.begin(name, body, context)


def begin(request: Any, **options: Any) -> StreamConfig:
    return decide(request, **options).config


def error(request: Any, **options: Any) -> str:
    with pytest.raises(ApiError) as raised:
        begin(request, **options)
    return f"{raised.value.code.number} {raised.value}"


def test_what_a_snapshot_says_is_read():
    config = begin({"config": {"name": "NEW", "subjects": ["a"], "sealed": True}, "state": STATE})

    assert config.name == "NEW"
    assert config.sealed
    assert config.max_msgs == -1


def test_sequences_are_taken_from_the_state():
    decision = decide({"config": {}, "state": {**STATE, "first_seq": 7, "last_seq": 9}})

    assert (decision.first_sequence, decision.last_sequence) == (7, 9)


def test_name_may_be_missing_but_not_another():
    assert begin({"config": {}}).name == "NEW"
    assert begin({"state": STATE}).name == "NEW"
    assert error({"config": {"name": "OTHER"}}).startswith("10056")


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"x": 1}, 'unknown field "x"'),
        ({"messages": -1}, "cannot unmarshal number -1"),
        ({"deleted": [1.5]}, "cannot unmarshal number 1.5"),
        ({"subjects": {"a": "b"}}, "cannot unmarshal string"),
        ({"subjects": []}, "cannot unmarshal array"),
        ({"first_ts": "now"}, "parsing time"),
        ([], "cannot unmarshal array"),
    ],
)
def test_state_must_be_one(state, reason):
    problem = error({"config": {}, "state": state})

    assert problem.startswith("10025")
    assert reason in problem


def test_rules_of_streams_hold():
    assert error({"config": {"subjects": ["a..b"]}}).startswith("10052")
    assert error({"config": {"name": "a/b"}}, name="a/b").startswith("10128")
    assert error({"config": {"name": "OLD"}}, name="OLD").startswith("10130")
    full = StreamContext(streams=EXISTING.streams, account=StreamAccountLimits(max_streams=1))
    assert error({"config": {}}, context=full).startswith("10027")
    small = StreamContext(account=StreamAccountLimits(max_storage=100))
    assert error({"config": {"max_bytes": 101}}, context=small).startswith("10047")


def test_what_only_adding_finds_out_is_a_failure_of_the_restore():
    for config, reason in (
        ({"subjects": ["old"]}, "subjects overlap with an existing stream (10065)"),
        ({"num_replicas": 3}, "replicas > 1 not supported in non-clustered mode (10074)"),
    ):
        decided = begin({"config": config})

        with pytest.raises(ApiError) as raised:
            restore_requests.check(decided, EXISTING)
        assert str(raised.value) == f"restore failed: error adding stream: {reason}"


@given(st.binary(max_size=60))
def test_any_body_is_decided(body):
    try:
        begin(body)
    except ApiError:
        return
