"""Atomic batches: messages that are stored all together, or none of them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from tests.compatibility import jetstream
from tests.compatibility.jetstream import ADVISORY, ADVISORY_TYPE, JetStream, Json, normal
from tests.compatibility.server_process import ServerProcess

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream
start_jetstream = jetstream.start_jetstream

DISABLED = (400, 10174, "atomic publish is disabled")
NO_SEQUENCE = (400, 10175, "atomic publish sequence is missing")
INCOMPLETE = (400, 10176, "atomic publish batch is incomplete")
INVALID_ID = (400, 10179, "atomic publish batch ID is invalid")
INVALID_COMMIT = (400, 10200, "atomic publish batch commit is invalid")
DUPLICATE = (400, 10201, "atomic publish batch contains duplicate message id")
TOO_LARGE = (400, 10199, "atomic publish batch is too large: 1000")
TOO_MANY = (429, 10210, "atomic publish too many inflight")
API_LEVEL = (412, 10185, "JetStream minimum api level required")
WRONG_SEQUENCE = (400, 10164, "wrong last sequence")


def batch_headers(batch: str, sequence: int | str, commit: str | None = None, **headers: str) -> dict[str, str]:
    """The headers of one message of a batch; in names of further ones `_` stands for `-`."""
    ours = {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(sequence)}
    if commit is not None:
        ours["Nats-Batch-Commit"] = commit
    return ours | {name.replace("_", "-"): value for name, value in headers.items()}


def add(
    js: JetStream, stream: str, sequence: int | str, commit: str | None = None, tail: str = "a", **headers: str
) -> bytes:
    """Publish one message of the batch "x" and return the bytes of the answer."""
    return js.publish_bytes(f"{stream}.{tail}", b"payload", batch_headers("x", sequence, commit, **headers))


def commit_error(js: JetStream, stream: str, first: Json, second: Json) -> tuple[int, int, str]:
    """Publish and commit a batch of two messages with more headers, and return the refusal."""
    assert add(js, stream, 1, tail=first.pop("tail", "a"), **first) == b""
    tail = second.pop("tail", "a")
    return js.publish_error(f"{stream}.{tail}", b"payload", batch_headers("x", 2, "1", **second))


def acknowledgement(stream: str, sequence: int, count: int, batch: str = "x") -> bytes:
    return f'{{"stream":"{stream}","seq":{sequence},"batch":"{batch}","count":{count}}}'.encode()


def stored_headers(js: JetStream, stream: str, sequence: int) -> bytes:
    return base64.b64decode(js.get(stream, seq=sequence)["hdrs"])


# A batch that is committed


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_messages_appear_together_when_the_last_one_commits(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, allow_atomic=True)

    assert add(js, stream, 1) == b""
    assert add(js, stream, 2, tail="b") == b""
    assert js.state(stream)["last_seq"] == 0
    assert add(js, stream, 3, "1") == acknowledgement(stream, 3, 3)
    assert js.sequences(stream) == [1, 2, 3]
    assert js.get(stream, seq=2)["subject"] == f"{stream}.b"


def test_headers_of_the_batch_are_stored(js: JetStream, stream: str) -> None:
    js.create(stream, allow_atomic=True)

    add(js, stream, 1)
    add(js, stream, 2, "1")

    assert stored_headers(js, stream, 1) == b"NATS/1.0\r\nNats-Batch-Id: x\r\nNats-Batch-Sequence: 1\r\n\r\n"
    assert stored_headers(js, stream, 2) == (
        b"NATS/1.0\r\nNats-Batch-Id: x\r\nNats-Batch-Sequence: 2\r\nNats-Batch-Commit: 1\r\n\r\n"
    )


def test_end_of_the_batch_is_not_stored_and_the_message_before_it_commits(js: JetStream, stream: str) -> None:
    js.create(stream, allow_atomic=True)

    add(js, stream, 1)
    add(js, stream, 2)
    committed = add(js, stream, 3, "eob")

    assert committed == acknowledgement(stream, 2, 2)
    assert js.sequences(stream) == [1, 2]
    assert stored_headers(js, stream, 2) == (
        b"NATS/1.0\r\nNats-Batch-Id: x\r\nNats-Batch-Sequence: 2\r\nNats-Batch-Commit: 1\r\n\r\n"
    )


def test_batch_of_one_message_commits_at_once(js: JetStream, stream: str) -> None:
    js.create(stream, allow_atomic=True)

    assert add(js, stream, 1, "1") == acknowledgement(stream, 1, 1)


def test_batches_and_plain_messages_may_be_mixed(js: JetStream, stream: str) -> None:
    js.create(stream, allow_atomic=True)

    add(js, stream, 1)
    js.publish_bytes(f"{stream}.a", b"", batch_headers("y", 1))
    assert js.publish(f"{stream}.a") == {"stream": stream, "seq": 1}
    second = js.publish_bytes(f"{stream}.a", b"", batch_headers("y", 2, "1"))

    assert second == acknowledgement(stream, 3, 2, "y")
    assert add(js, stream, 2, "1") == acknowledgement(stream, 5, 2)


def test_limits_apply_after_the_batch(js: JetStream, stream: str) -> None:
    js.create(stream, allow_atomic=True, max_msgs=2)

    add(js, stream, 1)
    add(js, stream, 2)
    add(js, stream, 3, "1")

    assert js.sequences(stream) == [2, 3]


def test_counters_count_within_a_batch(js: JetStream, stream: str) -> None:
    js.create(stream, allow_atomic=True, allow_msg_counter=True)

    js.publish_bytes(f"{stream}.a", b"", batch_headers("x", 1, Nats_Incr="1"))
    committed = js.publish_bytes(f"{stream}.a", b"", batch_headers("x", 2, "1", Nats_Incr="2"))

    assert committed == acknowledgement(stream, 2, 2)
    assert base64.b64decode(js.get(stream, seq=2)["data"]) == b'{"val":"3"}'


def test_interest_stream_without_consumers_takes_the_sequences(js: JetStream, stream: str) -> None:
    js.create(stream, allow_atomic=True, retention="interest")

    add(js, stream, 1)

    assert add(js, stream, 2, "1") == acknowledgement(stream, 2, 2)
    assert (js.state(stream)["messages"], js.state(stream)["last_seq"]) == (0, 2)


def test_ids_of_a_batch_are_known_afterwards(js: JetStream, stream: str) -> None:
    js.create(stream, allow_atomic=True)
    add(js, stream, 1, **{"Nats-Msg-Id": "1"})
    add(js, stream, 2, "1", **{"Nats-Msg-Id": "2"})

    assert js.publish(f"{stream}.a", b"", {"Nats-Msg-Id": "2"}) == {"stream": stream, "seq": 2, "duplicate": True}


# A message that does not belong to a batch


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (batch_headers("x" * 65, 1), INVALID_ID),
        ({"Nats-Batch-Id": "x"}, NO_SEQUENCE),
        (batch_headers("x", "z"), NO_SEQUENCE),
        (batch_headers("x", "-1"), NO_SEQUENCE),
        (batch_headers("x", 0), INCOMPLETE),
        (batch_headers("x", 2), INCOMPLETE),
        (batch_headers("x", 2, "1"), INCOMPLETE),
        (batch_headers("x", 1, "eob"), INCOMPLETE),
        (batch_headers("x", 1, "2"), INVALID_COMMIT),
        (batch_headers("x", 1, Nats_Required_Api_Level="9"), API_LEVEL),
    ],
)
def test_first_message_is_refused(
    js: JetStream, stream: str, headers: dict[str, str], expected: tuple[int, int, str]
) -> None:
    js.create(stream, allow_atomic=True)

    assert js.publish_error(f"{stream}.a", b"", headers) == expected
    assert js.state(stream)["last_seq"] == 0


def test_batch_needs_permission(js: JetStream, stream: str) -> None:
    js.create(stream)

    assert js.publish_error(f"{stream}.a", b"", batch_headers("x", 1)) == DISABLED
    assert js.publish_error(f"{stream}.a", b"", batch_headers("x" * 65, "z")) == DISABLED


def test_empty_batch_id_is_none(js: JetStream, stream: str) -> None:
    js.create(stream, allow_atomic=True)

    assert js.publish(f"{stream}.a", b"", batch_headers("", 1)) == {"stream": stream, "seq": 1}


def test_needed_api_level_is_not_stored(js: JetStream, stream: str) -> None:
    js.create(stream, allow_atomic=True)

    add(js, stream, 1, "1", **{"Nats-Required-Api-Level": "2"})

    assert b"Nats-Required-Api-Level" not in stored_headers(js, stream, 1)


@pytest.mark.parametrize("second", [1, 3])
def test_gap_ends_the_batch(js: JetStream, stream: str, second: int) -> None:
    js.create(stream, allow_atomic=True)
    add(js, stream, 1)

    assert js.publish_error(f"{stream}.a", b"", batch_headers("x", second)) == INCOMPLETE
    assert js.publish_error(f"{stream}.a", b"", batch_headers("x", 2, "1")) == INCOMPLETE


@pytest.mark.parametrize("commit", ["2", "", "EOB", "true"])
def test_commit_of_another_kind_is_refused(js: JetStream, stream: str, commit: str) -> None:
    js.create(stream, allow_atomic=True)
    add(js, stream, 1)

    assert js.publish_error(f"{stream}.a", b"", batch_headers("x", 2, commit)) == INVALID_COMMIT


# A batch that is refused when it commits


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"Nats_Expected_Stream": "OTHER"}, {}, (400, 10060, "expected stream does not match")),
        ({"Nats_TTL": "1s"}, {}, (400, 10166, "per-message TTL is disabled")),
        ({"Nats_TTL": "x"}, {}, (400, 10166, "per-message TTL is disabled")),
        ({"Nats_Rollup": "sub"}, {}, (500, 10111, "rollup not permitted")),
        ({"Nats_Expected_Last_Sequence": "5"}, {}, (400, 10071, "wrong last sequence: 0")),
        ({}, {"Nats_Expected_Last_Sequence": "1"}, WRONG_SEQUENCE),
        ({}, {"Nats_Expected_Last_Subject_Sequence": "1"}, WRONG_SEQUENCE),
        ({}, {"tail": "b", "Nats_Expected_Last_Subject_Sequence": "9"}, (400, 10071, "wrong last sequence: 0")),
        ({"Nats_Msg_Id": "1"}, {"Nats_Msg_Id": "1"}, DUPLICATE),
        (
            {"Nats_Expected_Last_Msg_Id": "1"},
            {},
            (400, 10177, "atomic publish unsupported header used: Nats-Expected-Last-Msg-Id"),
        ),
    ],
)
def test_one_message_that_fails_refuses_the_whole_batch(
    js: JetStream, stream: str, first: Json, second: Json, expected: tuple[int, int, str]
) -> None:
    js.create(stream, allow_atomic=True)

    assert commit_error(js, stream, dict(first), dict(second)) == expected
    assert js.state(stream)["last_seq"] == 0
    assert js.publish_error(f"{stream}.a", b"", batch_headers("x", 3, "1")) == INCOMPLETE


@pytest.mark.parametrize(
    ("config", "first", "second", "expected"),
    [
        (
            {"allow_rollup_hdrs": True},
            {},
            {"Nats_Rollup": "sub"},
            (500, 10111, "batch rollup sub invalid"),
        ),
        (
            {"allow_rollup_hdrs": True},
            {"tail": "b"},
            {"Nats_Rollup": "all"},
            (500, 10111, "batch rollup all invalid"),
        ),
        (
            {"allow_msg_schedules": True},
            {"Nats_Schedule": "@every 1h", "Nats_Schedule_Target": "~.target"},
            {"Nats_Schedule": "@every 1h", "Nats_Schedule_Target": "~.target"},
            (500, 10111, "batch rollup sub invalid"),
        ),
        ({"discard": "new", "max_msgs": 1}, {}, {}, (503, 10077, "maximum messages exceeded")),
        ({"max_msg_size": 80}, {}, {"Long": "x" * 50}, (400, 10054, "message size exceeds maximum allowed")),
        ({"allow_msg_counter": True}, {}, {}, (400, 10169, "message counter increment is missing")),
    ],
)
def test_limits_of_the_stream_refuse_the_whole_batch(
    js: JetStream, stream: str, config: Json, first: Json, second: Json, expected: tuple[int, int, str]
) -> None:
    js.create(stream, allow_atomic=True, **config)
    first, second = ({name: value.replace("~", stream) for name, value in each.items()} for each in (first, second))

    assert commit_error(js, stream, first, second) == expected
    assert js.state(stream)["last_seq"] == 0


def test_id_of_a_stored_message_refuses_the_whole_batch(js: JetStream, stream: str) -> None:
    js.create(stream, allow_atomic=True)
    js.publish(f"{stream}.a", b"", {"Nats-Msg-Id": "1"})

    assert commit_error(js, stream, {"Nats_Msg_Id": "1"}, {}) == DUPLICATE
    assert js.sequences(stream) == [1]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"Nats_Expected_Last_Sequence": "0"}, {}),
        ({"Nats_Expected_Last_Subject_Sequence": "0"}, {"tail": "b", "Nats_Expected_Last_Subject_Sequence": "0"}),
        ({"Nats_Msg_Id": "1"}, {"Nats_Msg_Id": "2"}),
    ],
)
def test_expectations_that_hold_let_the_batch_pass(js: JetStream, stream: str, first: Json, second: Json) -> None:
    js.create(stream, allow_atomic=True)

    assert add(js, stream, 1, **first) == b""
    assert add(js, stream, 2, "1", **second) == acknowledgement(stream, 2, 2)


@pytest.mark.parametrize(
    ("rollups", "kept"), [(("sub", "sub"), [3, 4, 5]), (("all", ""), [4, 5]), (("sub", ""), [2, 3, 4, 5])]
)
def test_rollups_of_a_batch_replace_what_is_older(
    js: JetStream, stream: str, rollups: tuple[str, str], kept: list[int]
) -> None:
    js.create(stream, allow_atomic=True, allow_rollup_hdrs=True)
    for tail in "abc":
        js.publish(f"{stream}.{tail}")

    add(js, stream, 1, tail="a", **{"Nats-Rollup": rollups[0]})
    add(js, stream, 2, "1", tail="b", **{"Nats-Rollup": rollups[1]})

    assert js.sequences(stream) == kept


# Limits of batches


def test_batch_has_at_most_a_thousand_messages(js: JetStream, stream: str) -> None:
    js.create(stream, storage="memory", allow_atomic=True)
    for batch in "xy":
        for sequence in range(1, 1001):
            js.send(f"{stream}.a", b"", batch_headers(batch, sequence))

    assert js.publish_error(f"{stream}.a", b"", batch_headers("x", 1001)) == TOO_LARGE
    ended = js.publish_bytes(f"{stream}.a", b"", batch_headers("y", 1001, "eob"))
    assert ended == acknowledgement(stream, 1000, 1000, "y")


def test_stream_has_at_most_fifty_open_batches(js: JetStream, stream: str) -> None:
    js.create(stream, storage="memory", allow_atomic=True)
    for number in range(50):
        assert js.publish_bytes(f"{stream}.a", b"", batch_headers(f"b{number}", 1)) == b""

    assert js.publish_error(f"{stream}.a", b"", batch_headers("b50", 1)) == TOO_MANY
    js.publish(f"{stream}.a", b"", batch_headers("b0", 2, "1"))
    assert js.publish_bytes(f"{stream}.a", b"", batch_headers("b50", 1)) == b""


def test_open_batches_are_dropped_when_they_are_forbidden(js: JetStream, stream: str) -> None:
    js.create(stream, allow_atomic=True)
    add(js, stream, 1)

    js.update(stream, allow_atomic=False)
    assert js.publish_error(f"{stream}.a", b"", batch_headers("x", 2, "1")) == DISABLED

    js.update(stream, allow_atomic=True)
    assert js.publish_error(f"{stream}.a", b"", batch_headers("x", 2, "1")) == INCOMPLETE


def test_limits_of_batches_are_those_of_the_configuration(start_jetstream: Callable[..., ServerProcess]) -> None:
    # Long enough for a batch to be still open when the next message comes, also on a machine that is busy.
    limits = "limits { batch { max_inflight_per_stream: 1, max_msgs: 2, timeout: 4s } }"
    with JetStream(start_jetstream(jetstream=limits)) as js:
        js.create("S", allow_atomic=True)
        js.subscribe(f"{ADVISORY}STREAM.BATCH_ABANDONED.S")
        js.publish_bytes("S.a", b"", batch_headers("x", 1))

        assert js.publish_error("S.a", b"", batch_headers("y", 1)) == TOO_MANY
        assert js.next(f"{ADVISORY}STREAM.BATCH_ABANDONED.S").json()["reason"] == "timeout"
        assert js.publish_error("S.a", b"", batch_headers("x", 2, "1")) == INCOMPLETE
        assert js.publish_bytes("S.a", b"", batch_headers("y", 1)) == b""
        assert js.publish_bytes("S.a", b"", batch_headers("y", 2)) == b""
        too_large = (400, 10199, "atomic publish batch is too large: 2")
        assert js.publish_error("S.a", b"", batch_headers("y", 3)) == too_large


# Advisories


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (batch_headers("x", 3), "incomplete"),
        (batch_headers("x", 2, Nats_Required_Api_Level="9"), "unsupported"),
    ],
)
def test_abandoned_batch_is_told(js: JetStream, stream: str, last: dict[str, Any], reason: str) -> None:
    js.create(stream, allow_atomic=True)
    js.subscribe(f"{ADVISORY}STREAM.BATCH_ABANDONED.{stream}")
    add(js, stream, 1)

    js.publish(f"{stream}.a", b"", last)

    advisory = js.next(f"{ADVISORY}STREAM.BATCH_ABANDONED.{stream}").json()
    assert normal(advisory) == {
        "type": f"{ADVISORY_TYPE}stream_batch_abandoned",
        "id": "...",
        "timestamp": "TIME",
        "stream": stream,
        "batch": "x",
        "reason": reason,
    }


@pytest.mark.parametrize(
    ("sequence", "commit", "expected"),
    [
        (1000, None, INCOMPLETE),
        (1001, None, TOO_LARGE),
        (1001, "1", TOO_LARGE),
        (1001, "eob", INCOMPLETE),
        (1002, "eob", TOO_LARGE),
        (18446744073709551615, None, TOO_LARGE),
        (18446744073709551615, "eob", TOO_LARGE),
        (18446744073709551616, None, NO_SEQUENCE),
    ],
)
def test_batch_that_begins_beyond_its_largest_size_is_too_large(
    js: JetStream, stream: str, sequence: int, commit: str | None, expected: tuple[int, int, str]
) -> None:
    js.create(stream, subjects=[f"{stream}.>"], allow_atomic=True)

    assert js.publish_error(f"{stream}.a", b"payload", batch_headers("x", sequence, commit)) == expected
