"""Fast batches: many messages with few acknowledgements, told by the reply subject of each message."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.compatibility import jetstream
from tests.compatibility.jetstream import JetStream, Json
from tests.compatibility.server_process import ServerProcess

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream
start_jetstream = jetstream.start_jetstream

# What a message of a batch does.
START, APPEND, COMMIT, END, PING = 0, 1, 2, 3, 4

DISABLED = {"code": 400, "err_code": 10205, "description": "batch publish is disabled"}
INVALID_PATTERN = {"code": 400, "err_code": 10206, "description": "batch publish pattern is invalid"}
INVALID_ID = {"code": 400, "err_code": 10207, "description": "batch publish ID is invalid"}
UNKNOWN_ID = {"code": 400, "err_code": 10208, "description": "batch publish ID unknown"}
TOO_MANY = {"code": 429, "err_code": 10211, "description": "batch publish too many inflight"}
API_LEVEL = {"code": 412, "err_code": 10185, "description": "JetStream minimum api level required"}
WRONG_SEQUENCE = {"Nats-Expected-Last-Sequence": "99"}

_prefix_numbers = itertools.count(1)


class FastBatch:
    """One batch of one client: sends messages and collects the answers with the tail of their subject."""

    def __init__(
        self, js: JetStream, stream: str, batch: str = "u", flow: int | str = 10, gap: str = "fail", prefix: str = ""
    ) -> None:
        self.js = js
        self.stream = stream
        self.prefix = prefix or f"fast.{next(_prefix_numbers)}"
        self.middle = f"{batch}.{flow}.{gap}"
        js.subscribe(f"{self.prefix}.>")

    def send(
        self, sequence: int | str, operation: int | str, headers: Mapping[str, str] | None = None, payload: bytes = b"x"
    ) -> list[tuple[str, Json]]:
        """Send one message and return all answers: the tail `<sequence>.<operation>` of their subject, and the text."""
        reply = f"{self.prefix}.{self.middle}.{sequence}.{operation}.$FI"
        self.js.send(f"{self.stream}.a", payload, headers, reply)
        # A stream takes messages in order, so that the answer to one it refuses comes after all others.
        self.js.publish(f"{self.stream}.a", b"", {"Nats-Expected-Stream": "OTHER"})
        answers = self.js.received(f"{self.prefix}.>")
        return [(".".join(answer.subject.split(".")[-3:-1]), answer.json()) for answer in answers]


def ack(sequence: int, messages: int) -> Json:
    return {"type": "ack", "seq": sequence, "msgs": messages}


def gap(expected: int, received: int) -> Json:
    return {"type": "gap", "last_seq": expected, "seq": received}


def refusal(stream: str, error: Json) -> Json:
    return {"error": error, "stream": stream, "seq": 0}


def committed(stream: str, sequence: int, count: int, batch: str = "u") -> Json:
    return {"stream": stream, "seq": sequence, "batch": batch, "count": count}


def wrong_sequence(last: int) -> Json:
    return {"code": 400, "err_code": 10071, "description": f"wrong last sequence: {last}"}


# A batch from start to end


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_messages_are_stored_at_once_and_acknowledged_at_the_end(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, allow_batched=True)
    batch = FastBatch(js, stream)

    assert batch.send(1, START) == [("1.0", ack(0, 10))]
    assert js.state(stream)["messages"] == 1
    assert batch.send(2, APPEND) == []
    assert batch.send(3, COMMIT) == [("3.2", committed(stream, 3, 3))]
    assert js.sequences(stream) == [1, 2, 3]
    assert "hdrs" not in js.get(stream, seq=1)


def test_answers_have_these_bytes(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)
    js.subscribe(f"{stream}-reply.>")

    js.send(f"{stream}.a", b"", None, f"{stream}-reply.u.10.ok.1.0.$FI")
    js.send(f"{stream}.a", b"", WRONG_SEQUENCE, f"{stream}-reply.u.10.ok.2.1.$FI")
    js.send(f"{stream}.a", b"", None, f"{stream}-reply.u.10.ok.4.1.$FI")
    js.send(f"{stream}.a", b"", None, f"{stream}-reply.u.10.ok.5.2.$FI")

    answers = [js.next(f"{stream}-reply.>").data for _ in range(4)]
    assert answers == [
        b'{"type":"ack","seq":0,"msgs":10}',
        b'{"type":"err","seq":2,"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 1"}}',
        b'{"type":"gap","last_seq":3,"seq":4}',
        f'{{"stream":"{stream}","seq":3,"batch":"u","count":5}}'.encode(),
    ]


def test_end_of_the_batch_is_not_stored(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)
    batch = FastBatch(js, stream)

    batch.send(1, START)
    batch.send(2, APPEND)

    assert batch.send(3, END) == [("3.3", committed(stream, 2, 2))]
    assert js.sequences(stream) == [1, 2]


def test_batch_of_one_message_commits_at_once(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)

    assert FastBatch(js, stream).send(1, COMMIT) == [("1.2", committed(stream, 1, 1))]


def test_batch_is_forgotten_after_its_end_and_its_id_free(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)
    batch = FastBatch(js, stream)
    batch.send(1, START)
    batch.send(2, COMMIT)

    assert batch.send(3, APPEND) == [("3.1", refusal(stream, UNKNOWN_ID))]
    assert batch.send(1, START) == [("1.0", ack(0, 10))]


# Flow


@pytest.mark.parametrize(
    ("flow", "granted"), [(0, 10), (-3, 10), ("x", 10), (7, 7), (500, 500), (501, 500), (70000, 500)]
)
def test_server_grants_the_flow(js: JetStream, stream: str, flow: int | str, granted: int) -> None:
    js.create(stream, allow_batched=True)

    assert FastBatch(js, stream, flow=flow).send(1, START) == [("1.0", ack(0, granted))]


def test_acknowledgement_comes_after_every_flow_of_messages(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)
    batch = FastBatch(js, stream, flow=2)

    answers = [batch.send(1, START)] + [batch.send(sequence, APPEND) for sequence in (2, 3, 4)]

    assert answers == [[("1.0", ack(0, 2))], [("2.1", ack(2, 2))], [], [("4.1", ack(4, 2))]]


def test_flow_of_one_acknowledges_every_message(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)
    batch = FastBatch(js, stream, flow=1)

    assert batch.send(1, START) == [("1.0", ack(0, 1)), ("1.0", ack(1, 1))]
    assert batch.send(2, APPEND) == [("2.1", ack(2, 1))]
    assert batch.send(3, COMMIT) == [("3.2", committed(stream, 3, 3))]


def test_ping_repeats_the_last_acknowledgement(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)
    batch = FastBatch(js, stream, flow=2)
    batch.send(1, START)

    assert batch.send(1, PING) == [("1.4", ack(0, 2))]
    batch.send(2, APPEND)
    batch.send(3, APPEND)
    assert batch.send(3, PING) == [("3.4", ack(2, 2))]
    assert js.sequences(stream) == [1, 2, 3]


def test_ping_ahead_of_the_messages_tells_a_gap(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)
    batch = FastBatch(js, stream)
    batch.send(1, START)

    assert batch.send(2, PING) == [("2.4", gap(2, 3)), ("2.4", committed(stream, 1, 1))]
    assert batch.send(2, APPEND) == [("2.1", refusal(stream, UNKNOWN_ID))]


# Gaps


def test_gap_ends_the_batch_when_it_may_not_be(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)
    batch = FastBatch(js, stream, gap="fail")
    batch.send(1, START)

    assert batch.send(3, APPEND) == [("3.1", gap(2, 3)), ("3.1", committed(stream, 1, 1))]
    assert batch.send(4, COMMIT) == [("4.2", refusal(stream, UNKNOWN_ID))]
    assert js.sequences(stream) == [1]


def test_gap_is_told_and_the_batch_goes_on_when_it_may_be(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)
    batch = FastBatch(js, stream, gap="ok")
    batch.send(1, START)

    assert batch.send(3, APPEND) == [("3.1", gap(2, 3))]
    assert batch.send(4, APPEND) == []
    assert batch.send(5, COMMIT) == [("5.2", committed(stream, 4, 5))]


@pytest.mark.parametrize("mode", ["ok", "fail"])
def test_repeated_message_ends_the_batch(js: JetStream, stream: str, mode: str) -> None:
    js.create(stream, allow_batched=True)
    batch = FastBatch(js, stream, gap=mode)
    batch.send(1, START)
    batch.send(2, APPEND)

    assert batch.send(2, APPEND) == [("2.1", gap(3, 2)), ("2.1", committed(stream, 2, 2))]
    assert batch.send(3, COMMIT) == [("3.2", refusal(stream, UNKNOWN_ID))]


def test_second_start_ends_the_batch(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)
    batch = FastBatch(js, stream)
    batch.send(1, START)

    assert batch.send(1, START) == [("1.0", gap(2, 1)), ("1.0", committed(stream, 1, 1))]


# Messages that are refused


def test_refused_message_ends_the_batch_when_gaps_may_not_be(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)
    batch = FastBatch(js, stream, gap="fail")
    batch.send(1, START)

    error = {"type": "err", "seq": 2, "error": wrong_sequence(1)}
    assert batch.send(2, APPEND, WRONG_SEQUENCE) == [("2.1", error), ("2.1", committed(stream, 1, 1))]
    assert batch.send(3, APPEND) == [("3.1", refusal(stream, UNKNOWN_ID))]


def test_refused_message_is_told_when_gaps_may_be(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)
    batch = FastBatch(js, stream, gap="ok")
    batch.send(1, START)

    error = {"type": "err", "seq": 2, "error": wrong_sequence(1)}
    assert batch.send(2, APPEND, WRONG_SEQUENCE) == [("2.1", error)]
    assert batch.send(3, APPEND) == []
    assert batch.send(4, COMMIT) == [("4.2", committed(stream, 3, 4))]


def test_first_message_refused_gives_a_plain_refusal(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)
    batch = FastBatch(js, stream, gap="fail")

    answers = batch.send(1, START, WRONG_SEQUENCE)

    assert answers == [("1.0", ack(0, 10)), ("1.0", refusal(stream, wrong_sequence(0)))]
    assert batch.send(2, APPEND) == [("2.1", refusal(stream, UNKNOWN_ID))]


def test_first_message_refused_is_told_when_gaps_may_be(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)
    batch = FastBatch(js, stream, gap="ok")

    answers = batch.send(1, START, WRONG_SEQUENCE)

    assert answers == [("1.0", ack(0, 10)), ("1.0", {"type": "err", "seq": 1, "error": wrong_sequence(0)})]
    assert batch.send(2, COMMIT) == [("2.2", committed(stream, 1, 2))]


def test_commit_refused_acknowledges_what_was_stored(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)
    batch = FastBatch(js, stream)
    batch.send(1, START)

    error = {"type": "err", "seq": 2, "error": wrong_sequence(1)}
    assert batch.send(2, COMMIT, WRONG_SEQUENCE) == [("2.2", error), ("2.2", committed(stream, 1, 1))]


def test_full_stream_ends_the_batch(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True, discard="new", max_msgs=1)
    batch = FastBatch(js, stream)
    batch.send(1, START)

    full = {"code": 503, "err_code": 10077, "description": "maximum messages exceeded"}
    error = {"type": "err", "seq": 2, "error": full}
    assert batch.send(2, APPEND) == [("2.1", error), ("2.1", committed(stream, 1, 1))]


@pytest.mark.parametrize("operation", [APPEND, COMMIT])
def test_duplicate_is_left_out_silently(js: JetStream, stream: str, operation: int) -> None:
    js.create(stream, allow_batched=True)
    js.publish(f"{stream}.a", b"", {"Nats-Msg-Id": "1"})
    batch = FastBatch(js, stream)
    batch.send(1, START)

    answers = batch.send(2, operation, {"Nats-Msg-Id": "1"})

    assert answers == ([] if operation == APPEND else [("2.2", committed(stream, 2, 2))])
    assert js.sequences(stream) == [1, 2]


# Patterns


@pytest.mark.parametrize(
    ("sequence", "operation", "error"),
    [
        (2, START, INVALID_PATTERN),
        (0, START, INVALID_PATTERN),
        ("x", START, INVALID_PATTERN),
        (1, APPEND, INVALID_PATTERN),
        (1, END, INVALID_PATTERN),
        (1, 9, INVALID_PATTERN),
        (1, "x", INVALID_PATTERN),
        (2, APPEND, UNKNOWN_ID),
        (2, COMMIT, UNKNOWN_ID),
        (2, END, UNKNOWN_ID),
        (1, PING, UNKNOWN_ID),
    ],
)
def test_message_that_starts_no_batch_is_refused(
    js: JetStream, stream: str, sequence: int | str, operation: int | str, error: Json
) -> None:
    js.create(stream, allow_batched=True)

    answers = FastBatch(js, stream).send(sequence, operation)

    assert answers == [(f"{sequence}.{operation}", refusal(stream, error))]
    assert js.state(stream)["last_seq"] == 0


@pytest.mark.parametrize("reply", ["~.$FI", "~.a.1.$FI", "~.u.10.maybe.1.0.$FI"])
def test_reply_subject_of_another_form_is_refused(js: JetStream, stream: str, reply: str) -> None:
    js.create(stream, allow_batched=True)
    subject = reply.replace("~", f"{stream}-reply")
    js.subscribe(subject)

    js.send(f"{stream}.a", b"", None, subject)

    assert js.next(subject).json() == refusal(stream, INVALID_PATTERN)


@pytest.mark.parametrize(("batch", "answer"), [("u" * 64, ack(0, 10)), ("u" * 65, {"error": INVALID_ID, "seq": 0})])
def test_id_of_a_batch_has_at_most_64_bytes(js: JetStream, stream: str, batch: str, answer: Json) -> None:
    js.create(stream, allow_batched=True)

    answers = FastBatch(js, stream, batch=batch).send(1, START)

    assert answers == [("1.0", answer if "type" in answer else {**answer, "stream": stream})]


def test_batch_needs_permission(js: JetStream, stream: str) -> None:
    js.create(stream)

    assert FastBatch(js, stream).send(1, START) == [("1.0", refusal(stream, DISABLED))]


def test_needed_api_level_is_checked_and_not_stored(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)

    refused = FastBatch(js, stream).send(1, START, {"Nats-Required-Api-Level": "9"})
    accepted = FastBatch(js, stream).send(1, START, {"Nats-Required-Api-Level": "4"})

    assert refused == [("1.0", refusal(stream, API_LEVEL))]
    assert accepted == [("1.0", ack(0, 10))]
    assert "hdrs" not in js.get(stream, seq=1)


def test_counters_count_within_a_batch(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True, allow_msg_counter=True)
    batch = FastBatch(js, stream)

    batch.send(1, START, {"Nats-Incr": "1"}, b"")
    answers = batch.send(2, COMMIT, {"Nats-Incr": "2"}, b"")

    assert answers == [("2.2", committed(stream, 2, 2))]
    assert base64.b64decode(js.get(stream, seq=2)["data"]) == b'{"val":"3"}'


def test_reply_subject_decides_before_headers_of_an_atomic_batch(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)
    batch = FastBatch(js, stream)

    assert batch.send(1, START, {"Nats-Batch-Id": "x"}) == [("1.0", ack(0, 10))]
    assert js.state(stream)["messages"] == 1


def test_several_batches_share_the_flow(js: JetStream, stream: str) -> None:
    js.create(stream, allow_batched=True)
    FastBatch(js, stream, batch="one").send(1, START)
    other = FastBatch(js, stream, batch="two")

    assert other.send(1, START)[0] == ("1.0", ack(0, 1))
    assert other.send(2, COMMIT)[-1] == ("2.2", committed(stream, 3, 2, "two"))


def test_limit_of_open_batches_is_that_of_the_configuration(start_jetstream: Callable[..., Any]) -> None:
    server: ServerProcess = start_jetstream(jetstream="limits { batch { max_inflight_per_stream: 1 } }")
    with JetStream(server) as js:
        js.create("S", allow_batched=True)
        FastBatch(js, "S", batch="one").send(1, START)

        assert FastBatch(js, "S", batch="two").send(1, START) == [("1.0", refusal("S", TOO_MANY))]
