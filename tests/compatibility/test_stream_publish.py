"""Publishing into a stream: acknowledgements to the byte, the headers with a meaning, and the order of checks."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from tests.compatibility import jetstream
from tests.compatibility.jetstream import MILLISECOND_NS, SECOND_NS, JetStream, header_block
from tests.compatibility.server_process import ServerProcess

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream
start_jetstream = jetstream.start_jetstream

EXPECTED_LAST = "Nats-Expected-Last-Sequence"
EXPECTED_SUBJECT = "Nats-Expected-Last-Subject-Sequence"
EXPECTED_SUBJECT_SUBJECT = "Nats-Expected-Last-Subject-Sequence-Subject"
EXPECTED_ID = "Nats-Expected-Last-Msg-Id"

FULL = (503, 10077, "maximum messages exceeded")
FULL_BYTES = (503, 10077, "maximum bytes exceeded")
FULL_SUBJECT = (503, 10077, "maximum messages per subject exceeded")
TOO_LARGE = (400, 10054, "message size exceeds maximum allowed")


def wrong_sequence(last: int) -> tuple[int, int, str]:
    return 400, 10071, f"wrong last sequence: {last}"


def wrong_id(last: str) -> tuple[int, int, str]:
    return 400, 10070, f"wrong last msg ID: {last}"


def refusal(stream: str, error: tuple[int, int, str]) -> bytes:
    """The bytes of an acknowledgement that refuses."""
    code, err_code, description = error
    return (
        f'{{"error":{{"code":{code},"err_code":{err_code},"description":"{description}"}},"stream":"{stream}","seq":0}}'
    ).encode()


def send_block(js: JetStream, subject: str, block: bytes, payload: bytes = b"") -> bytes:
    """Publish with a whole header block and return the acknowledgement."""
    inbox = js.new_inbox()
    sizes = f"{len(block)} {len(block) + len(payload)}"
    js.raw.send(f"HPUB {subject} {inbox} {sizes}\r\n".encode() + block + payload + b"\r\n")
    return js.next(inbox).data


def stored_headers(js: JetStream, stream: str, sequence: int) -> bytes:
    return base64.b64decode(js.get(stream, seq=sequence).get("hdrs", ""))


# Acknowledgements


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_acknowledgement_names_stream_and_sequence(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage)

    assert js.publish_bytes(f"{stream}.a", b"1") == f'{{"stream":"{stream}","seq":1}}'.encode()
    assert js.publish_bytes(f"{stream}.b") == f'{{"stream":"{stream}","seq":2}}'.encode()
    assert js.publish_message(f"{stream}.c").headers == b""


def test_acknowledgement_names_the_domain_and_a_refusal_does_not(
    start_jetstream: Callable[..., ServerProcess],
) -> None:
    with JetStream(start_jetstream(jetstream="domain: hub")) as js:
        js.create("S")

        assert js.publish_bytes("S.a") == b'{"stream":"S","domain":"hub","seq":1}'
        assert js.publish_bytes("S.a", b"", {EXPECTED_LAST: "7"}) == refusal("S", wrong_sequence(1))


def test_duplicate_is_acknowledged_with_the_first_sequence(js: JetStream, stream: str) -> None:
    js.create(stream)
    js.publish(f"{stream}.a", b"1", {"Nats-Msg-Id": "x"})
    js.publish(f"{stream}.a", b"2")

    again = js.publish_bytes(f"{stream}.b", b"3", {"Nats-Msg-Id": "x"})

    assert again == f'{{"stream":"{stream}","seq":1,"duplicate": true}}'.encode()
    assert js.state(stream)["messages"] == 2


def test_refusal_has_sequence_zero_and_no_type(js: JetStream, stream: str) -> None:
    js.create(stream)

    refused = js.publish_bytes(f"{stream}.a", b"", {EXPECTED_LAST: "7"})

    assert refused == refusal(stream, wrong_sequence(0))
    assert js.state(stream)["last_seq"] == 0


def test_message_without_a_reply_subject_is_stored(js: JetStream, stream: str) -> None:
    js.create(stream)

    js.send(f"{stream}.a", b"1")

    assert js.wait_for_state(stream, lambda state: state["messages"] == 1)["last_seq"] == 1


def test_stream_without_acknowledgements_stores_and_refuses_silently(js: JetStream, stream: str) -> None:
    js.create(stream, no_ack=True)
    inbox = js.new_inbox()

    js.send(f"{stream}.a", b"1", {"Nats-Expected-Stream": "OTHER"}, inbox)
    js.send(f"{stream}.a", b"2", None, inbox)
    js.wait_for_state(stream, lambda state: state["messages"] == 1)

    assert js.received(inbox) == []
    assert base64.b64decode(js.get(stream, seq=1)["data"]) == b"2"


def test_subject_outside_of_all_streams_has_no_responders(js: JetStream, stream: str) -> None:
    js.create(stream)

    assert js.request(f"{stream}").status == "503"


# What is stored


@pytest.mark.parametrize(
    ("block", "stored"),
    [
        (b"NATS/1.0\r\nA: b\r\n\r\n", None),
        (b"NATS/1.0\r\n\r\n", None),
        (b"NATS/1.0\r\nA:b\r\na:   c \r\nA: d\r\n\r\n", None),
        (b"NATS/1.0 503 No Responders\r\nA: b\r\n\r\n", b"NATS/1.0\r\nA: b\r\n\r\n"),
        (b"NATS/1.0 503\r\n\r\n", b""),
        (b"NATS/1.0\r\nNats-Request-Info: {}\r\nA: b\r\n\r\n", b"NATS/1.0\r\nA: b\r\n\r\n"),
        (b"NATS/1.0\r\nNats-Request-Info: {}\r\n\r\n", b""),
        (b"NATS/1.0\r\nNats-Required-Api-Level: 99\r\n\r\n", None),
        (b"NATS/1.0\r\nNats-Batch-Sequence: 7\r\nNats-Batch-Commit: 1\r\n\r\n", None),
        (b"NATS/1.0\r\nNats-Msg-Id: 7\r\nNats-Expected-Last-Sequence: 0\r\n\r\n", None),
        (b"NATS/1.0\r\nNats-Marker-Reason: MaxAge\r\n\r\n", None),
        (b"NATS/1.0\r\nNats-Schedule-Target: x\r\n\r\n", None),
        (
            b"NATS/1.0\r\nNats-Trace-Dest: t.d\r\nA: b\r\n\r\n",
            b"NATS/1.0\r\nNats-Trace-Dest: trace disabled\r\nA: b\r\n\r\n",
        ),
    ],
)
@pytest.mark.parametrize("storage", ["file", "memory"])
def test_headers_are_stored_as_they_came(
    js: JetStream, stream: str, storage: str, block: bytes, stored: bytes | None
) -> None:
    js.create(stream, storage=storage)

    send_block(js, f"{stream}.a", block, b"payload")

    message = js.get(stream, seq=1)
    assert base64.b64decode(message.get("hdrs", "")) == (block if stored is None else stored)
    assert base64.b64decode(message["data"]) == b"payload"


def test_interest_stream_without_consumers_gives_the_sequence_and_stores_nothing(js: JetStream, stream: str) -> None:
    js.create(stream, retention="interest")

    first = js.publish_bytes(f"{stream}.a", b"1", {"Nats-Msg-Id": "1"})
    again = js.publish_bytes(f"{stream}.a", b"1", {"Nats-Msg-Id": "1"})

    state = js.state(stream)
    assert first == f'{{"stream":"{stream}","seq":1}}'.encode()
    assert again == f'{{"stream":"{stream}","seq":1,"duplicate": true}}'.encode()
    assert (state["messages"], state["first_seq"], state["last_seq"]) == (0, 2, 1)
    assert state["last_ts"] > "2000"


def test_work_queue_without_consumers_keeps_messages(js: JetStream, stream: str) -> None:
    js.create(stream, retention="workqueue")

    js.publish(f"{stream}.a", b"1")

    assert js.state(stream)["messages"] == 1


# The order of checks

# Each makes the same publish fail, in the order in which the server looks; the payload is not a header.
FAILING_CHECKS: list[tuple[dict[str, str], tuple[int, int, str]]] = [
    ({"payload": "y" * 70000}, TOO_LARGE),
    ({"Long": "y" * 65536}, (400, 10097, "header size exceeds maximum allowed of 64k")),
    ({"Nats-Incr": "1"}, (400, 10168, "message counters is disabled")),
    ({"Nats-Expected-Stream": "OTHER"}, (400, 10060, "expected stream does not match")),
    ({"Nats-TTL": "5s"}, (400, 10166, "per-message TTL is disabled")),
    ({EXPECTED_SUBJECT: "99"}, wrong_sequence(2)),
    ({EXPECTED_LAST: "98"}, wrong_sequence(3)),
    ({"Nats-Schedule": "@hourly"}, (400, 10188, "message schedules is disabled")),
    ({"Nats-Stream-Source": "x"}, (400, 10227, "message stream source header is not allowed")),
    ({"Nats-Msg-Id": "id2"}, (0, 0, "duplicate")),
    ({EXPECTED_ID: "id9"}, wrong_id("id3")),
    ({"Nats-Rollup": "sub"}, (500, 10111, "rollup not permitted")),
    ({"Nats-TTL": "x"}, (400, 10165, "invalid per-message TTL")),
    ({}, FULL),
]


@pytest.fixture(scope="module")
def full_stream(js_server: ServerProcess) -> str:
    """A stream in which every check fails if it can."""
    with JetStream(js_server) as js:
        js.create("FULL", max_msg_size=70000, max_msgs=3, discard="new")
        for sequence, tail in enumerate("aba", start=1):
            js.publish(f"FULL.{tail}", b"", {"Nats-Msg-Id": f"id{sequence}"})
    return "FULL"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(first, second, id=f"{first}-{second}")
        for first, second in itertools.combinations(range(len(FAILING_CHECKS)), 2)
        if not FAILING_CHECKS[first][0].keys() & FAILING_CHECKS[second][0].keys()
    ],
)
def test_first_failing_check_is_told(js: JetStream, full_stream: str, first: int, second: int) -> None:
    (first_headers, expected), (second_headers, _) = FAILING_CHECKS[first], FAILING_CHECKS[second]
    headers = {**second_headers, **first_headers}
    payload = headers.pop("payload", "").encode()

    answer = js.publish_bytes(f"{full_stream}.b", payload, headers)

    duplicate = b'{"stream":"FULL","seq":2,"duplicate": true}'
    assert answer == (duplicate if expected[2] == "duplicate" else refusal(full_stream, expected))


def test_sealed_stream_refuses_before_all_else(js: JetStream, stream: str) -> None:
    js.create(stream, max_msg_size=50)
    js.update(stream, sealed=True)

    sealed = (400, 10109, "invalid operation on sealed stream")
    for payload, headers in [(b"x", None), (b"x" * 51, None), (b"", {"Nats-Incr": "1"})]:
        assert js.publish_error(f"{stream}.a", payload, headers) == sealed


def test_subject_of_an_expectation_without_its_sequence_is_refused(js: JetStream, stream: str) -> None:
    js.create(stream)
    missing = (400, 10193, "missing sequence for expected last sequence per subject")

    assert js.publish_error(f"{stream}.a", b"", {EXPECTED_SUBJECT_SUBJECT: "x", EXPECTED_LAST: "9"}) == missing
    assert js.publish_code(f"{stream}.a", b"", {EXPECTED_SUBJECT_SUBJECT: "x", "Nats-TTL": "1s"}) == 10166


def test_rollup_is_refused_before_a_missing_counter(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_counter=True)

    assert js.publish_code(f"{stream}.a", b"", {"Nats-Rollup": "sub"}) == 10111
    assert js.publish_code(f"{stream}.a") == 10169


@pytest.mark.parametrize("headers", [{"Nats-Scheduler": "x"}, {"Nats-Schedule-Next": "purge"}])
def test_headers_of_the_scheduler_are_refused(js: JetStream, stream: str, headers: dict[str, str]) -> None:
    js.create(stream)

    assert js.publish_error(f"{stream}.a", b"", headers) == (400, 10212, "message schedules invalid scheduler")


# Sizes


def test_size_of_a_message_is_that_of_headers_and_payload(js: JetStream, stream: str) -> None:
    js.create(stream, max_msg_size=20)

    assert js.publish_code(f"{stream}.a", b"x" * 20) == 0
    assert js.publish_error(f"{stream}.a", b"x" * 21) == TOO_LARGE
    assert len(header_block(b"")) == 12
    assert js.publish_code(f"{stream}.a", b"x" * 8, b"") == 0
    assert js.publish_error(f"{stream}.a", b"x" * 9, b"") == TOO_LARGE


def test_header_block_has_less_than_64_kibibytes(js: JetStream, stream: str) -> None:
    js.create(stream)
    value_bytes = 65535 - len(header_block({"X": ""}))

    assert js.publish_code(f"{stream}.a", b"", {"X": "y" * value_bytes}) == 0
    assert js.publish_code(f"{stream}.a", b"", {"X": "y" * (value_bytes + 1)}) == 10097


# Expectations


@pytest.mark.parametrize("value", ["1", "x", "-1", "1.5", "3 ", "+3", "18446744073709551616", "0"])
@pytest.mark.parametrize("header", [EXPECTED_LAST, EXPECTED_SUBJECT])
def test_expected_sequence_that_is_not_the_last_is_refused(js: JetStream, stream: str, header: str, value: str) -> None:
    js.create(stream)
    for _ in range(3):
        js.publish(f"{stream}.a")

    assert js.publish_error(f"{stream}.a", b"", {header: value}) == wrong_sequence(3)


@pytest.mark.parametrize("value", ["3", "  3", "03", ""])
@pytest.mark.parametrize("header", [EXPECTED_LAST, EXPECTED_SUBJECT])
def test_expected_sequence_that_is_the_last_is_fine(js: JetStream, stream: str, header: str, value: str) -> None:
    js.create(stream)
    for _ in range(3):
        js.publish(f"{stream}.a")

    assert js.publish(f"{stream}.a", b"", {header: value})["seq"] == 4


def test_expected_last_sequence_survives_a_purge_and_that_of_a_subject_does_not(js: JetStream, stream: str) -> None:
    js.create(stream)
    js.publish(f"{stream}.a")
    js.api(f"STREAM.PURGE.{stream}")

    assert js.publish_error(f"{stream}.a", b"", {EXPECTED_LAST: "0"}) == wrong_sequence(1)
    assert js.publish_error(f"{stream}.a", b"", {EXPECTED_SUBJECT: "1"}) == wrong_sequence(0)
    assert js.publish(f"{stream}.a", b"", {EXPECTED_LAST: "1", EXPECTED_SUBJECT: "0"})["seq"] == 2


def test_expected_sequence_of_a_subject_counts_that_subject_only(js: JetStream, stream: str) -> None:
    js.create(stream)
    js.publish(f"{stream}.a")
    js.publish(f"{stream}.b")

    assert js.publish(f"{stream}.a", b"", {EXPECTED_SUBJECT: "1"})["seq"] == 3
    assert js.publish(f"{stream}.c", b"", {EXPECTED_SUBJECT: "0"})["seq"] == 4
    assert js.publish_error(f"{stream}.c", b"", {EXPECTED_SUBJECT: "0"}) == wrong_sequence(4)


@pytest.mark.parametrize(("tail", "last"), [("a", 1), ("b", 2), ("*", 3), (">", 3), ("none", 0), ("..", 0)])
def test_expected_sequence_may_be_of_another_subject(js: JetStream, stream: str, tail: str, last: int) -> None:
    js.create(stream)
    for name in "abc":
        js.publish(f"{stream}.{name}")
    headers = {EXPECTED_SUBJECT_SUBJECT: f"{stream}.{tail}"}

    assert js.publish_error(f"{stream}.d", b"", {**headers, EXPECTED_SUBJECT: "9"}) == wrong_sequence(last)
    assert js.publish(f"{stream}.d", b"", {**headers, EXPECTED_SUBJECT: str(last)})["seq"] == 4


def test_expected_message_id_is_that_of_the_very_last_message(js: JetStream, stream: str) -> None:
    js.create(stream)
    js.publish(f"{stream}.a", b"", {"Nats-Msg-Id": "x"})

    assert js.publish_error(f"{stream}.a", b"", {EXPECTED_ID: "y"}) == wrong_id("x")
    assert js.publish(f"{stream}.a", b"", {EXPECTED_ID: "x"})["seq"] == 2
    assert js.publish_error(f"{stream}.a", b"", {EXPECTED_ID: "x"}) == wrong_id("")


# Duplicates


@pytest.mark.parametrize(
    ("lines", "is_duplicate"),
    [
        (b"Nats-Msg-Id:x\r\n", True),
        (b"Nats-Msg-Id:    x\r\n", True),
        (b"Nats-Msg-Id: x\r\nNats-Msg-Id: y\r\n", True),
        (b"Other: y\r\nNats-Msg-Id: x\r\n", True),
        (b"Nats-Msg-Id: x \r\n", False),
        (b"Nats-Msg-Id:\tx\r\n", False),
        (b"Nats-Msg-Id: y\r\nNats-Msg-Id: x\r\n", False),
        (b"nats-msg-id: x\r\n", False),
        (b"X-Nats-Msg-Id: x\r\n", False),
        (b"X: Nats-Msg-Id: x\r\n", False),
        (b"Nats-Msg-Id: \r\n", False),
    ],
)
def test_message_id_is_read_from_its_first_line(js: JetStream, stream: str, lines: bytes, is_duplicate: bool) -> None:
    js.create(stream)
    js.publish(f"{stream}.a", b"", b"Nats-Msg-Id: x\r\n")

    assert ("duplicate" in js.publish(f"{stream}.a", b"", lines)) == is_duplicate


def test_message_ids_survive_purge_and_deletion(js: JetStream, stream: str) -> None:
    js.create(stream)
    js.publish(f"{stream}.a", b"", {"Nats-Msg-Id": "x"})
    js.publish(f"{stream}.a", b"", {"Nats-Msg-Id": "y"})
    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 1})
    js.api(f"STREAM.PURGE.{stream}")

    assert js.publish(f"{stream}.a", b"", {"Nats-Msg-Id": "x"}) == {"stream": stream, "seq": 1, "duplicate": True}
    assert js.publish(f"{stream}.a", b"", {"Nats-Msg-Id": "y"}) == {"stream": stream, "seq": 2, "duplicate": True}


def test_refused_message_does_not_take_its_id(js: JetStream, stream: str) -> None:
    js.create(stream)

    assert js.publish_code(f"{stream}.a", b"", {"Nats-Msg-Id": "x", EXPECTED_ID: "y"}) == 10070
    assert js.publish(f"{stream}.a", b"", {"Nats-Msg-Id": "x"}) == {"stream": stream, "seq": 1}


def test_message_id_is_forgotten_after_the_window(js: JetStream, stream: str) -> None:
    js.create(stream, duplicate_window=100 * MILLISECOND_NS)
    js.publish(f"{stream}.a", b"", {"Nats-Msg-Id": "x"})

    while "duplicate" in (again := js.publish(f"{stream}.a", b"", {"Nats-Msg-Id": "x"})):
        pass

    assert again == {"stream": stream, "seq": 2}


def test_window_made_longer_keeps_the_ids_that_are_known(js: JetStream, stream: str) -> None:
    js.create(stream, duplicate_window=30 * SECOND_NS)
    js.publish(f"{stream}.a", b"", {"Nats-Msg-Id": "x"})

    js.update(stream, duplicate_window=60 * SECOND_NS)

    assert "duplicate" in js.publish(f"{stream}.a", b"", {"Nats-Msg-Id": "x"})


# Rollups


@pytest.mark.parametrize(
    ("value", "kept"),
    [("sub", [2, 4]), ("SUB", [2, 4]), ("all", [4]), ("All", [4]), ("", [1, 2, 3, 4])],
)
@pytest.mark.parametrize("storage", ["file", "memory"])
def test_rollup_replaces_what_is_older(js: JetStream, stream: str, storage: str, value: str, kept: list[int]) -> None:
    js.create(stream, allow_rollup_hdrs=True, storage=storage)
    for tail in "aba":
        js.publish(f"{stream}.{tail}")

    js.publish(f"{stream}.a", b"", {"Nats-Rollup": value})

    assert js.sequences(stream) == kept


def test_rollup_of_another_kind_is_refused(js: JetStream, stream: str) -> None:
    js.create(stream, allow_rollup_hdrs=True)

    invalid = (500, 10111, 'rollup value invalid: "xx"')
    assert js.publish_error(f"{stream}.a", b"", {"Nats-Rollup": "xx"}) == invalid


def test_rollup_header_stays_with_the_message(js: JetStream, stream: str) -> None:
    js.create(stream, allow_rollup_hdrs=True)

    js.publish(f"{stream}.a", b"", {"Nats-Rollup": "ALL"})

    assert stored_headers(js, stream, 1) == b"NATS/1.0\r\nNats-Rollup: ALL\r\n\r\n"


# Discard policies


def publish_all(js: JetStream, stream: str, tails: str, payload: bytes = b"") -> list[Any]:
    """Publish to each subject and return the error of each, None when it was stored."""
    answers = [js.publish(f"{stream}.{tail}", payload) for tail in tails]
    return [answer["error"]["description"] if "error" in answer else None for answer in answers]


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_discard_new_refuses_what_exceeds_the_count(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, discard="new", max_msgs=2)

    assert publish_all(js, stream, "abc") == [None, None, FULL[2]]
    assert js.sequences(stream) == [1, 2]


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_discard_new_still_replaces_within_a_subject(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, discard="new", max_msgs=2, max_msgs_per_subject=1)

    assert publish_all(js, stream, "abac") == [None, None, None, FULL[2]]
    assert js.sequences(stream) == [2, 3]


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_discard_new_per_subject_refuses_within_a_subject_first(js: JetStream, stream: str, storage: str) -> None:
    limits = {"max_msgs": 2, "max_msgs_per_subject": 1, "discard": "new", "discard_new_per_subject": True}
    js.create(stream, storage=storage, allow_rollup_hdrs=True, **limits)

    assert publish_all(js, stream, "aabac") == [None, FULL_SUBJECT[2], None, FULL_SUBJECT[2], FULL[2]]
    assert js.publish(f"{stream}.a", b"", {"Nats-Rollup": "sub"})["seq"] == 3
    assert js.sequences(stream) == [2, 3]


def test_discard_new_refuses_what_exceeds_the_bytes(js: JetStream, stream: str) -> None:
    message_bytes = 16 + len(f"{stream}.a") + 20
    js.create(stream, storage="memory", discard="new", max_bytes=2 * message_bytes)

    assert js.publish_error(f"{stream}.a", b"x" * (21 + message_bytes)) == FULL_BYTES
    assert js.publish_code(f"{stream}.a", b"x" * 20) == 0
    assert js.publish_error(f"{stream}.a", b"x" * 21) == FULL_BYTES
    assert js.publish_code(f"{stream}.a", b"x" * 20) == 0
    assert js.publish_error(f"{stream}.a") == FULL_BYTES
    assert js.state(stream)["bytes"] == 2 * message_bytes


def test_discard_new_replaces_within_a_subject_when_the_message_is_not_larger(js: JetStream, stream: str) -> None:
    js.create(stream, storage="memory", discard="new", max_bytes=100, max_msgs_per_subject=1)

    codes = [js.publish_code(f"{stream}.a", b"x" * size) for size in (70, 60, 71, 20)]

    assert codes == [0, 0, 10077, 0]
    assert js.sequences(stream) == [3]


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_message_larger_than_the_stream_takes_all_others_and_itself_away(
    js: JetStream, stream: str, storage: str
) -> None:
    js.create(stream, storage=storage, max_bytes=60)
    js.publish(f"{stream}.a", b"x")

    assert js.publish(f"{stream}.a", b"x" * 100) == {"stream": stream, "seq": 2}

    state = js.state(stream)
    assert (state["messages"], state["bytes"], state["first_seq"], state["last_seq"]) == (0, 0, 3, 2)
