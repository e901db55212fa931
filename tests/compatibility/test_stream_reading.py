"""Reading messages of a stream one by one and in batches, deleting one, and purging many."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.compatibility import jetstream
from tests.compatibility.jetstream import (
    API,
    TYPE,
    Body,
    JetStream,
    Json,
    Message,
    encode_body,
    header_block,
    normal,
)
from tests.compatibility.server_process import ServerProcess

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream

PAST = "2020-01-01T00:00:00Z"
FUTURE = "2099-01-01T00:00:00Z"

NO_MESSAGE = (404, 10037, "no message found")
BAD_REQUEST = (400, 10003, "bad request")

# What each stream of `kept` holds, by sequence; the third was deleted.
KEPT = {
    1: ("a", b"one", None),
    2: ("b", b"two", b"H: 1\r\n"),
    4: ("c", b"", None),
    5: ("b", b"five", None),
    6: ("d.e", b"six", b"Nats-Msg-Id: 6\r\n"),
}


@pytest.fixture(scope="module", params=["file", "memory"])
def kept(request: pytest.FixtureRequest, js_server: ServerProcess) -> str:
    """A stream that is only read."""
    name = f"KEPT-{request.param}"
    with JetStream(js_server) as js:
        js.create(name, storage=request.param, allow_direct=True)
        for sequence in range(1, 7):
            tail, payload, headers = KEPT.get(sequence, ("a", b"three", None))
            js.publish(f"{name}.{tail}", payload, headers)
        js.api(f"STREAM.MSG.DELETE.{name}", {"seq": 3})
    return name


def for_stream(value: Any, name: str) -> Any:
    """Return `value` with the stream's name in place of `~`."""
    if isinstance(value, str):
        return value.replace("~", name)
    if isinstance(value, list):
        return [for_stream(item, name) for item in value]
    if isinstance(value, dict):
        return {key: for_stream(item, name) for key, item in value.items()}
    return value


# STREAM.MSG.GET


def stored_message(stream: str, sequence: int, no_headers: bool = False) -> Json:
    tail, payload, headers = KEPT[sequence]
    message: Json = {"subject": f"{stream}.{tail}", "seq": sequence}
    if headers and not no_headers:
        message["hdrs"] = base64.b64encode(header_block(headers)).decode()
    if payload:
        message["data"] = base64.b64encode(payload).decode()
    return {**message, "time": "TIME"}


@pytest.mark.parametrize(
    ("request_body", "sequence"),
    [
        ({"seq": 1}, 1),
        ({"seq": 2}, 2),
        ({"seq": 4}, 4),
        ({"seq": 1, "batch": 0, "max_bytes": 0}, 1),
        ({"seq": 1, "multi_last": ["x"]}, 1),
        ({"seq": 1, "up_to_seq": 9}, 1),
        ({"last_by_subj": "~.a"}, 1),
        ({"last_by_subj": "~.*"}, 5),
        ({"last_by_subj": "~.>"}, 6),
        ({"next_by_subj": "~.b"}, 2),
        ({"next_by_subj": "~.b", "seq": 2}, 2),
        ({"next_by_subj": "~.b", "seq": 3}, 5),
        ({"next_by_subj": "~.>", "seq": 3}, 4),
        ({"next_by_subj": "~.b", "start_time": PAST}, 2),
        ({"start_time": PAST}, 1),
    ],
)
def test_message_is_found(js: JetStream, kept: str, request_body: dict[str, Any], sequence: int) -> None:
    answer = js.api(f"STREAM.MSG.GET.{kept}", for_stream(request_body, kept))

    assert normal(answer) == {"type": f"{TYPE}stream_msg_get_response", "message": stored_message(kept, sequence)}


def test_message_is_found_by_its_time(js: JetStream, kept: str) -> None:
    fourth_time = js.get(kept, seq=4)["time"]

    assert js.get(kept, start_time=fourth_time)["seq"] == 4
    assert js.get(kept, start_time=fourth_time, next_by_subj=f"{kept}.>")["seq"] == 4


def test_headers_may_be_left_out(js: JetStream, kept: str) -> None:
    message = js.get(kept, seq=2, no_hdr=True)

    assert normal(message) == stored_message(kept, 2, no_headers=True)


@pytest.mark.parametrize(
    "request_body",
    [
        {"seq": 3},
        {"seq": 7},
        {"seq": 2**64 - 1},
        {"last_by_subj": "none"},
        {"last_by_subj": "~..x"},
        {"next_by_subj": "~.a", "seq": 2},
        {"next_by_subj": "~.>", "seq": 7},
        {"next_by_subj": "~.b", "start_time": FUTURE},
        {"start_time": FUTURE},
    ],
)
def test_message_is_not_found(js: JetStream, kept: str, request_body: dict[str, Any]) -> None:
    assert js.error(f"STREAM.MSG.GET.{kept}", for_stream(request_body, kept)) == NO_MESSAGE


CONFLICTS: list[dict[str, Any]] = [
    {"seq": 1, "last_by_subj": "x"},
    {"seq": 1, "start_time": PAST},
    {"start_time": PAST, "last_by_subj": "x"},
    {"last_by_subj": "x", "next_by_subj": "x"},
]


@pytest.mark.parametrize(
    "request_body",
    [
        *CONFLICTS,
        {"seq": 0},
        {"no_hdr": True},
        {"seq": 1, "batch": 1},
        {"seq": 1, "max_bytes": 1},
        {"multi_last": ["x"]},
    ],
)
def test_request_that_asks_for_two_things_or_none_is_bad(
    js: JetStream, kept: str, request_body: dict[str, Any]
) -> None:
    assert js.error(f"STREAM.MSG.GET.{kept}", request_body) == BAD_REQUEST


@pytest.mark.parametrize("request_body", [{"seq": -1}, {"seq": "1"}, {"unknown": 1, "seq": 1}, {"start_time": "x"}])
def test_request_that_cannot_be_read_is_invalid_json(js: JetStream, kept: str, request_body: dict[str, Any]) -> None:
    assert js.error(f"STREAM.MSG.GET.{kept}", request_body)[:2] == (400, 10025)


# DIRECT.GET


def direct(js: JetStream, stream: str, body: Body, headers: dict[str, str] | None = None) -> Message:
    return js.request(f"{API}DIRECT.GET.{stream}", encode_body(for_stream(body, stream)), headers)


def direct_batch(js: JetStream, stream: str, body: Body) -> list[Message]:
    return js.request_many(f"{API}DIRECT.GET.{stream}", encode_body(for_stream(body, stream)))


def direct_block(js: JetStream, stream: str, sequence: int, more: str = "") -> bytes:
    """The header block with which a message is answered."""
    tail, _, headers = KEPT[sequence]
    time = js.get(stream, seq=sequence)["time"]
    added = f"Nats-Stream: {stream}\r\nNats-Subject: {stream}.{tail}\r\nNats-Sequence: {sequence}\r\n"
    return header_block((headers or b"") + f"{added}Nats-Time-Stamp: {time}\r\n{more}".encode())


@pytest.mark.parametrize(
    ("body", "sequence"),
    [
        ({"seq": 1}, 1),
        ({"seq": 2}, 2),
        ({"seq": 4}, 4),
        ({"seq": 1, "max_bytes": 1}, 1),
        ({"seq": 1, "unknown": 1}, 1),
        ({"SEQ": 1, "batch": None}, 1),
        ({"last_by_subj": "~.*"}, 5),
        ({"next_by_subj": "~.b"}, 2),
        ({"next_by_subj": "~.b", "seq": 3}, 5),
        ({"start_time": PAST}, 1),
    ],
)
def test_direct_answer_has_the_stored_headers_first(
    js: JetStream, kept: str, body: dict[str, Any], sequence: int
) -> None:
    message = direct(js, kept, body)

    assert message.headers == direct_block(js, kept, sequence)
    assert message.data == KEPT[sequence][1]


@pytest.mark.parametrize(("tail", "sequence"), [("~.a", 1), ("~.*", 5), ("~.d.e", 6), ("~.>", 6)])
@pytest.mark.parametrize("body", [None, {}, {"max_bytes": 1}])
def test_direct_answer_by_subject_is_the_last_message(
    js: JetStream, kept: str, tail: str, sequence: int, body: Body
) -> None:
    message = js.request(f"{API}DIRECT.GET.{kept}.{for_stream(tail, kept)}", encode_body(body))

    assert message.headers == direct_block(js, kept, sequence)


def test_direct_answer_without_headers_has_only_the_payload(js: JetStream, kept: str) -> None:
    by_sequence = direct(js, kept, {"seq": 2, "no_hdr": True})
    by_subject = js.request(f"{API}DIRECT.GET.{kept}.{kept}.b", b'{"no_hdr":true}')

    assert (by_sequence.headers, by_sequence.data) == (b"", b"two")
    assert (by_subject.headers, by_subject.data) == (b"", b"five")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (None, "408 Empty Request"),
        ({}, "408 Empty Request"),
        ({"batch": 3}, "408 Empty Request"),
        ({"seq": 0}, "408 Empty Request"),
        ({"multi_last": []}, "408 Empty Request"),
        ({"up_to_seq": 1, "up_to_time": PAST}, "408 Empty Request"),
        ("x", "408 Malformed Request"),
        ("[]", "408 Malformed Request"),
        ({"seq": -1}, "408 Malformed Request"),
        ({"start_time": "x"}, "408 Malformed Request"),
        *[(conflict, "408 Bad Request") for conflict in CONFLICTS],
        ({"last_by_subj": "x", "batch": 1}, "408 Bad Request"),
        ({"last_by_subj": "x", "multi_last": ["x"]}, "408 Bad Request"),
        ({"next_by_subj": "x", "multi_last": ["x"]}, "408 Bad Request"),
        ({"multi_last": ["x"], "up_to_seq": 1, "up_to_time": PAST}, "408 Bad Request"),
        ({"seq": 3}, "404 Message Not Found"),
        ({"seq": 7}, "404 Message Not Found"),
        ({"last_by_subj": "none"}, "404 Message Not Found"),
        ({"next_by_subj": "~.>", "seq": 7}, "404 Message Not Found"),
        ({"start_time": FUTURE}, "404 Message Not Found"),
        ({"seq": 7, "batch": 2}, "404 Message Not Found"),
        ({"next_by_subj": "none", "batch": 2}, "404 Message Not Found"),
        ({"multi_last": ["none"]}, "404 No Results"),
        ({"multi_last": ["~.*"], "up_to_time": PAST}, "404 No Results"),
    ],
)
def test_direct_answer_is_a_status(js: JetStream, kept: str, body: Body, status: str) -> None:
    message = direct(js, kept, body)

    assert message.headers == f"NATS/1.0 {status}\r\n\r\n".encode()
    assert message.data == b""


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("x", "408 Malformed Request"),
        ({"seq": 1}, "408 Bad Request"),
        ({"last_by_subj": "~.a"}, "408 Bad Request"),
        ({"batch": 1}, "408 Bad Request"),
    ],
)
def test_direct_request_by_subject_takes_no_other_choice(js: JetStream, kept: str, body: Body, status: str) -> None:
    subject = f"{API}DIRECT.GET.{kept}.{kept}.a"

    assert js.request(subject, encode_body(for_stream(body, kept))).status == status
    assert js.request(f"{API}DIRECT.GET.{kept}.none").status == "404 Message Not Found"


@pytest.mark.parametrize("level", ["6", "x"])
def test_direct_request_may_need_an_api_level(js: JetStream, kept: str, level: str) -> None:
    refused = direct(js, kept, "{x", {"Nats-Required-Api-Level": level})
    answered = direct(js, kept, {"seq": 1}, {"Nats-Required-Api-Level": "5"})

    assert refused.headers == b"NATS/1.0 412 Required Api Level\r\n\r\n"
    assert answered.data == b"one"


def test_direct_requests_are_answered_while_they_are_allowed(js: JetStream, stream: str) -> None:
    js.create(stream)
    js.publish(f"{stream}.a", b"1")
    no_responders = f"NATS/1.0 503\r\nNats-Subject: {API}DIRECT.GET.{stream}\r\n\r\n".encode()

    assert direct(js, stream, {"seq": 1}).headers == no_responders
    js.update(stream, allow_direct=True)
    assert direct(js, stream, {"seq": 1}).data == b"1"
    js.update(stream, allow_direct=False)
    assert direct(js, stream, {"seq": 1}).headers == no_responders


# DIRECT.GET in batches


@pytest.mark.parametrize(
    ("body", "sequences", "pending"),
    [
        ({"seq": 1, "batch": 10}, [1, 2, 4, 5, 6], [4, 3, 2, 1, 0]),
        ({"seq": 2, "batch": 2}, [2, 4], [3, 2]),
        ({"seq": 3, "batch": 1}, [4], [2]),
        ({"seq": 1, "batch": 10, "up_to_seq": 3}, [1, 2, 4, 5, 6], [4, 3, 2, 1, 0]),
        ({"seq": 1, "batch": 10, "max_bytes": 1}, [1], [4]),
        ({"seq": 1, "batch": -1}, [], [5]),
        ({"next_by_subj": "~.b", "batch": 5}, [2, 5], [1, 0]),
        ({"next_by_subj": "~.>", "seq": 4, "batch": 1}, [4], [2]),
        ({"start_time": PAST, "batch": 2}, [1, 2], [4, 3]),
    ],
)
def test_batch_counts_what_is_pending_and_ends_with_a_status(
    js: JetStream, kept: str, body: dict[str, Any], sequences: list[int], pending: list[int]
) -> None:
    *messages, end = direct_batch(js, kept, body)

    previous = [0, *sequences]
    assert [message.headers for message in messages] == [
        direct_block(js, kept, sequence, f"Nats-Num-Pending: {left}\r\nNats-Last-Sequence: {last}\r\n")
        for sequence, left, last in zip(sequences, pending, previous, strict=False)
    ]
    assert [message.data for message in messages] == [KEPT[sequence][1] for sequence in sequences]
    tail = f"Nats-Num-Pending: {pending[-1]}\r\nNats-Last-Sequence: {previous[-1]}\r\n\r\n"
    assert end.headers == f"NATS/1.0 204 EOB\r\n{tail}".encode()


def test_batch_without_headers_does_not_count_what_is_pending(js: JetStream, kept: str) -> None:
    *messages, end = direct_batch(js, kept, {"seq": 1, "batch": 3, "no_hdr": True})

    assert [(message.headers, message.data) for message in messages] == [(b"", b"one"), (b"", b"two"), (b"", b"")]
    assert end.headers == b"NATS/1.0 204 EOB\r\nNats-Num-Pending: 5\r\nNats-Last-Sequence: 4\r\n\r\n"


@pytest.mark.parametrize(("bytes_max_offset", "count"), [(-1, 2), (0, 2), (1, 3)])
def test_batch_ends_when_subjects_and_contents_reach_the_bytes(
    js: JetStream, stream: str, bytes_max_offset: int, count: int
) -> None:
    js.create(stream, allow_direct=True)
    for _ in range(5):
        js.publish(f"{stream}.a", b"x" * 100, b"A: b\r\n")
    two_messages = 2 * (len(f"{stream}.a") + len(header_block(b"A: b\r\n")) + 100)

    *messages, _ = direct_batch(js, stream, {"seq": 1, "batch": 5, "max_bytes": two_messages + bytes_max_offset})

    assert len(messages) == count


@pytest.mark.parametrize(
    ("body", "sequences", "pending", "up_to"),
    [
        ({"multi_last": ["~.a", "~.b"]}, [1, 5], [1, 0], 6),
        ({"multi_last": ["~.>"]}, [1, 4, 5, 6], [3, 2, 1, 0], 6),
        ({"multi_last": ["~.>"], "no_hdr": True}, [1, 4, 5, 6], [3, 2, 1, 0], 6),
        ({"multi_last": ["~.>"], "start_time": PAST}, [1, 4, 5, 6], [3, 2, 1, 0], 6),
        ({"multi_last": ["~.a", "~.*"]}, [1, 4, 5], [2, 1, 0], 6),
        ({"multi_last": ["~.*"], "up_to_seq": 4}, [1, 2, 4], [2, 1, 0], 4),
        ({"multi_last": ["~.*"], "up_to_seq": 1}, [1], [0], 1),
        ({"multi_last": ["~.*"], "up_to_time": FUTURE}, [1, 4, 5], [2, 1, 0], 6),
        ({"multi_last": ["~.>"], "batch": 2}, [1, 4], [3, 2], 6),
        ({"multi_last": ["~.>"], "max_bytes": 1}, [1], [3], 6),
        ({"multi_last": ["~.>"], "seq": 5}, [5, 6], [1, 0], 6),
        ({"multi_last": ["~.>"], "seq": 50}, [], [0], 6),
    ],
)
def test_last_messages_of_several_subjects_come_in_order(
    js: JetStream, kept: str, body: dict[str, Any], sequences: list[int], pending: list[int], up_to: int
) -> None:
    *messages, end = direct_batch(js, kept, body)

    previous = [0, *sequences]
    assert [message.headers for message in messages] == [
        direct_block(js, kept, sequence, f"Nats-Num-Pending: {left}\r\nNats-Last-Sequence: {last}\r\n")
        for sequence, left, last in zip(sequences, pending, previous, strict=False)
    ]
    tail = f"Nats-Num-Pending: {pending[-1]}\r\nNats-Last-Sequence: {previous[-1]}\r\nNats-UpTo-Sequence: {up_to}\r\n"
    assert end.headers == f"NATS/1.0 204 EOB\r\n{tail}\r\n".encode()


def test_time_up_to_which_messages_count_is_exclusive(js: JetStream, kept: str) -> None:
    fifth_time = js.get(kept, seq=5)["time"]

    *messages, end = direct_batch(js, kept, {"multi_last": ["~.*"], "up_to_time": fifth_time})

    assert [message.header("Nats-Sequence") for message in messages] == ["1", "2", "4"]
    assert end.header("Nats-UpTo-Sequence") == "4"


@pytest.mark.parametrize(("storage", "statuses"), [("file", ["404 No Results"]), ("memory", ["", "204 EOB"])])
def test_sequence_up_to_which_messages_count_may_be_beyond_the_end_in_memory_only(
    js: JetStream, stream: str, storage: str, statuses: list[str]
) -> None:
    js.create(stream, storage=storage, allow_direct=True)
    js.publish(f"{stream}.a")

    answers = direct_batch(js, stream, {"multi_last": ["~.>"], "up_to_seq": 400})

    assert [message.status for message in answers] == statuses


def test_last_messages_of_more_than_1024_subjects_are_too_many(js: JetStream, stream: str) -> None:
    js.create(stream, storage="memory", allow_direct=True)
    for number in range(1025):
        js.send(f"{stream}.{number}")
    js.wait_for_state(stream, lambda state: state["messages"] == 1025)

    too_many = b"NATS/1.0 413 Too Many Results\r\n\r\n"
    assert direct(js, stream, {"multi_last": ["~.>"]}).headers == too_many
    assert direct(js, stream, {"multi_last": ["~.>"], "batch": 2}).headers == too_many
    assert len(direct_batch(js, stream, {"multi_last": ["~.>"], "up_to_seq": 1024})) == 1025


def test_last_messages_of_an_empty_stream_are_none(js: JetStream, stream: str) -> None:
    js.create(stream, allow_direct=True)

    assert direct(js, stream, {"multi_last": ["~.>"]}).status == "404 No Results"
    assert direct(js, stream, {"multi_last": ["~.>"], "up_to_time": FUTURE}).status == "404 No Results"
    assert direct(js, stream, {"seq": 1, "batch": 2}).status == "404 Message Not Found"


# STREAM.MSG.DELETE

FILE_MISSING = {
    1: (500, 10057, "no message found"),
    4: (400, 10043, "sequence 4 not found"),
    99: (500, 10057, "stream store EOF"),
    0: (500, 10057, "no message found"),
}


@pytest.mark.parametrize("sequence", list(FILE_MISSING))
@pytest.mark.parametrize("storage", ["file", "memory"])
def test_deleting_what_is_not_there_is_refused(js: JetStream, stream: str, storage: str, sequence: int) -> None:
    js.create(stream, storage=storage)
    for _ in range(6):
        js.publish(f"{stream}.a", b"1")
    for deleted in (1, 2, 4):
        js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": deleted})

    refused = js.error(f"STREAM.MSG.DELETE.{stream}", {"seq": sequence, "no_erase": True})

    missing = FILE_MISSING[sequence] if storage == "file" else (400, 10043, f"sequence {sequence} not found")
    assert refused == missing
    assert js.sequences(stream) == [3, 5, 6]


@pytest.mark.parametrize("no_erase", [False, True])
@pytest.mark.parametrize("storage", ["file", "memory"])
def test_deleted_message_is_gone(js: JetStream, stream: str, storage: str, no_erase: bool) -> None:
    js.create(stream, storage=storage)
    for tail in "aba":
        js.publish(f"{stream}.{tail}", b"1")

    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 3, "no_erase": no_erase})

    assert js.error(f"STREAM.MSG.GET.{stream}", {"seq": 3}) == NO_MESSAGE
    assert js.get(stream, last_by_subj=f"{stream}.a")["seq"] == 1
    assert js.state(stream, {"subjects_filter": ">"})["subjects"] == {f"{stream}.a": 1, f"{stream}.b": 1}


def test_deleting_and_purging_may_be_denied(js: JetStream, stream: str) -> None:
    js.create(stream, deny_delete=True, deny_purge=True)
    js.publish(f"{stream}.a")

    assert js.error(f"STREAM.MSG.DELETE.{stream}", {"seq": 1}) == (500, 10057, "message delete not permitted")
    assert js.error(f"STREAM.PURGE.{stream}") == (500, 10110, "stream purge not permitted")
    assert js.sequences(stream) == [1]


# STREAM.PURGE


@pytest.mark.parametrize(
    ("body", "kept_sequences", "first_and_last"),
    [
        (None, [], (7, 6)),
        ({}, [], (7, 6)),
        ("garbage", [], (7, 6)),
        ({"filter": ""}, [], (7, 6)),
        ({"filter": ">"}, [], (7, 6)),
        ({"keep": 0}, [], (7, 6)),
        ({"seq": 1}, [1, 2, 3, 4, 5, 6], (1, 6)),
        ({"seq": 3}, [3, 4, 5, 6], (3, 6)),
        ({"seq": 6}, [6], (6, 6)),
        ({"seq": 7}, [], (7, 6)),
        ({"seq": 20}, [], (20, 19)),
        ({"keep": 2}, [5, 6], (5, 6)),
        ({"keep": 99}, [1, 2, 3, 4, 5, 6], (1, 6)),
        ({"filter": "none"}, [1, 2, 3, 4, 5, 6], (1, 6)),
        ({"filter": "~..x"}, [1, 2, 3, 4, 5, 6], (1, 6)),
        ({"filter": "~.a"}, [2, 4, 5], (2, 6)),
        ({"filter": "~.*"}, [4], (4, 6)),
        ({"filter": "~.>", "keep": 1}, [6], (6, 6)),
        ({"filter": "~.>", "seq": 3}, [3, 4, 5, 6], (3, 6)),
        ({"filter": "~.a", "seq": 3}, [2, 3, 4, 5, 6], (2, 6)),
        ({"filter": "~.a", "seq": 20}, [2, 4, 5], (2, 6)),
        ({"filter": "~.a", "keep": 1}, [2, 4, 5, 6], (2, 6)),
        ({"filter": "~.a", "keep": 9}, [1, 2, 3, 4, 5, 6], (1, 6)),
    ],
)
@pytest.mark.parametrize("storage", ["file", "memory"])
def test_purge_removes_what_is_asked_for(
    js: JetStream, stream: str, storage: str, body: Body, kept_sequences: list[int], first_and_last: tuple[int, int]
) -> None:
    js.create(stream, storage=storage)
    for tail in ("a", "b", "a", "c.d", "b", "a"):
        js.publish(f"{stream}.{tail}", b"x")

    answer = js.api(f"STREAM.PURGE.{stream}", for_stream(body, stream))

    purged = 6 - len(kept_sequences)
    assert answer == {"type": f"{TYPE}stream_purge_response", "success": True, "purged": purged}
    state = js.state(stream)
    assert js.sequences(stream) == kept_sequences
    assert (state["first_seq"], state["last_seq"]) == first_and_last


@pytest.mark.parametrize(("body", "code"), [({"seq": 2, "keep": 2}, 10003), ({"seq": -1}, 10025), ({"x": 1}, 10025)])
def test_purge_that_is_not_understood_removes_nothing(
    js: JetStream, stream: str, body: dict[str, Any], code: int
) -> None:
    js.create(stream)
    js.publish(f"{stream}.a")

    assert js.error(f"STREAM.PURGE.{stream}", body)[1] == code
    assert js.sequences(stream) == [1]


def test_sequence_goes_on_after_a_purge_beyond_the_end(js: JetStream, stream: str) -> None:
    js.create(stream)
    js.publish(f"{stream}.a")
    js.api(f"STREAM.PURGE.{stream}", {"seq": 20})

    assert js.publish(f"{stream}.a")["seq"] == 20
