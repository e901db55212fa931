"""Counters: streams whose messages add to a number per subject."""

from __future__ import annotations

import base64

import pytest

from tests.compatibility import jetstream
from tests.compatibility.jetstream import API, JetStream, Json

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream

DISABLED = (400, 10168, "message counters is disabled")
MISSING = (400, 10169, "message counter increment is missing")
HAS_PAYLOAD = (400, 10170, "message counter has payload")
INVALID = (400, 10171, "message counter increment is invalid")
TOO_LARGE = (400, 10054, "message size exceeds maximum allowed")


def add(js: JetStream, subject: str, increment: str) -> Json:
    return js.publish(subject, b"", {"Nats-Incr": increment})


def stored(js: JetStream, stream: str, sequence: int) -> tuple[bytes, bytes]:
    """Headers and payload of a message."""
    message = js.get(stream, seq=sequence)
    return base64.b64decode(message["hdrs"]), base64.b64decode(message["data"])


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_increments_add_up_per_subject(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, allow_msg_counter=True)

    values = [add(js, f"{stream}.a", increment)["val"] for increment in ("1", "+2", "-5", "0", "-0", "00010", "  3")]

    assert values == ["1", "3", "-2", "-2", "-2", "8", "11"]
    assert add(js, f"{stream}.b", "5")["val"] == "5"


def test_acknowledgement_tells_the_value(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_counter=True)

    acknowledgement = js.publish_bytes(f"{stream}.a", b"", {"Nats-Incr": "5"})

    assert acknowledgement == f'{{"stream":"{stream}","seq":1,"val":"5"}}'.encode()


def test_value_is_the_payload_and_the_increment_stays_a_header(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_counter=True, allow_direct=True)
    add(js, f"{stream}.a", "1")
    add(js, f"{stream}.a", "+2")

    direct = js.request(f"{API}DIRECT.GET.{stream}.{stream}.a")

    assert stored(js, stream, 1) == (b"NATS/1.0\r\nNats-Incr: 1\r\n\r\n", b'{"val":"1"}')
    assert stored(js, stream, 2) == (b"NATS/1.0\r\nNats-Incr: +2\r\n\r\n", b'{"val":"3"}')
    assert direct.data == b'{"val":"3"}'


def test_value_has_as_many_digits_as_it_needs(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_counter=True)
    large = "9" * 40

    assert add(js, f"{stream}.a", large)["val"] == large
    assert add(js, f"{stream}.a", "1")["val"] == "1" + "0" * 40
    assert add(js, f"{stream}.a", f"-{large}{large}")["val"] == str(10**40 - int(large * 2))


@pytest.mark.parametrize("increment", ["x", "1.5", "3 ", "--1", "0x10", "1_000", "1e3", "+", "-"])
def test_increment_that_is_no_number_is_refused(js: JetStream, stream: str, increment: str) -> None:
    js.create(stream, allow_msg_counter=True)
    js.create(f"{stream}-N")

    assert js.publish_error(f"{stream}.a", b"", {"Nats-Incr": increment}) == INVALID
    assert js.publish_error(f"{stream}-N.a", b"", {"Nats-Incr": increment}) == INVALID


def test_increment_needs_a_stream_that_counts(js: JetStream, stream: str) -> None:
    js.create(stream)

    assert js.publish_error(f"{stream}.a", b"", {"Nats-Incr": "1"}) == DISABLED
    assert js.publish_error(f"{stream}.a", b"payload", {"Nats-Incr": "1"}) == DISABLED
    assert js.publish(f"{stream}.a", b"", {"Nats-Incr": ""}) == {"stream": stream, "seq": 1}


def test_stream_that_counts_takes_nothing_else(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_counter=True)

    assert js.publish_error(f"{stream}.a") == MISSING
    assert js.publish_error(f"{stream}.a", b"payload") == MISSING
    assert js.publish_error(f"{stream}.a", b"", {"Nats-Incr": ""}) == MISSING
    assert js.publish_error(f"{stream}.a", b"payload", {"Nats-Incr": "1"}) == HAS_PAYLOAD
    assert js.state(stream)["last_seq"] == 0


@pytest.mark.parametrize(
    "header",
    [
        "Nats-Rollup",
        "Nats-Expected-Stream",
        "Nats-Expected-Last-Sequence",
        "Nats-Expected-Last-Subject-Sequence",
        "Nats-Expected-Last-Subject-Sequence-Subject",
        "Nats-Expected-Last-Msg-Id",
    ],
)
def test_increment_goes_with_no_expectation_and_no_rollup(js: JetStream, stream: str, header: str) -> None:
    js.create(stream, allow_msg_counter=True, allow_rollup_hdrs=True)

    assert js.publish_error(f"{stream}.a", b"", {"Nats-Incr": "1", header: "sub"}) == INVALID
    assert js.publish(f"{stream}.a", b"", {"Nats-Incr": "1", header: ""})["val"] == "1"


@pytest.mark.parametrize(
    ("header", "code"), [("Nats-TTL", 10166), ("Nats-Schedule", 10188), ("Nats-Stream-Source", 10227)]
)
def test_other_headers_are_checked_as_always(js: JetStream, stream: str, header: str, code: int) -> None:
    js.create(stream, allow_msg_counter=True)

    assert js.publish_code(f"{stream}.a", b"", {"Nats-Incr": "1", header: "1"}) == code


def test_duplicate_increment_counts_once_and_tells_no_value(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_counter=True)
    headers = {"Nats-Incr": "1", "Nats-Msg-Id": "x"}

    first = js.publish(f"{stream}.a", b"", headers)
    again = js.publish_bytes(f"{stream}.a", b"", headers)

    assert first == {"stream": stream, "seq": 1, "val": "1"}
    assert again == f'{{"stream":"{stream}","seq":1,"duplicate": true}}'.encode()
    assert add(js, f"{stream}.a", "1")["val"] == "2"


def test_value_is_that_of_the_last_message_that_is_left(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_counter=True)
    for _ in range(3):
        add(js, f"{stream}.a", "1")

    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 3})
    after_deletion = add(js, f"{stream}.a", "10")["val"]
    js.api(f"STREAM.PURGE.{stream}")
    after_purge = add(js, f"{stream}.a", "10")["val"]

    assert (after_deletion, after_purge) == ("12", "10")


def test_one_message_per_subject_is_enough_to_count(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_counter=True, max_msgs_per_subject=1)
    for _ in range(3):
        add(js, f"{stream}.a", "1")

    assert js.sequences(stream) == [3]
    assert add(js, f"{stream}.a", "1")["val"] == "4"


def test_subject_is_counted_as_transformed(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_counter=True, subject_transform={"src": f"{stream}.*", "dest": f"{stream}-all"})

    assert add(js, f"{stream}.a", "1")["val"] == "1"
    assert add(js, f"{stream}.b", "1")["val"] == "2"


def test_republished_message_has_the_value(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_counter=True, republish={"src": ">", "dest": "out.>"})
    js.subscribe(f"out.{stream}.>")

    add(js, f"{stream}.a", "4")

    assert js.next(f"out.{stream}.a").data == b'{"val":"4"}'


def test_size_of_a_message_is_that_of_headers_and_value(js: JetStream, stream: str) -> None:
    message_bytes = len(b"NATS/1.0\r\nNats-Incr: 9\r\n\r\n" + b'{"val":"9"}')
    js.create(stream, allow_msg_counter=True, max_msg_size=message_bytes)

    assert add(js, f"{stream}.a", "9")["val"] == "9"
    assert js.publish_error(f"{stream}.a", b"", {"Nats-Incr": "1"}) == TOO_LARGE


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"discard": "new"}, (500, 10052, "counter stream cannot use discard new")),
        ({"allow_msg_ttl": True}, (500, 10052, "counter stream cannot use message TTLs")),
        ({"allow_msg_schedules": True}, (500, 10052, "counter stream cannot use message schedules")),
        ({"retention": "interest"}, (500, 10052, "counter stream can only use limits retention")),
        ({"retention": "workqueue"}, (500, 10052, "counter stream can only use limits retention")),
        ({"mirror": {"name": "NONE"}}, (400, 10173, "stream mirrors can not also calculate counters")),
    ],
)
def test_stream_that_counts_cannot_be_of_every_kind(
    js: JetStream, stream: str, config: Json, expected: tuple[int, int, str]
) -> None:
    assert js.create_error(stream, allow_msg_counter=True, **config) == expected


def test_sourced_counter_remembers_the_value_of_its_origin(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_counter=True, max_msgs_per_subject=1)
    add(js, f"{stream}.a", "1")
    add(js, f"{stream}.a", "2")
    target = f"{stream}-T"
    js.create(target, subjects=[f"{target}.>"], allow_msg_counter=True, sources=[{"name": stream}])
    js.wait_for_state(target, lambda state: state["messages"] == 1)

    add(js, f"{stream}.a", "7")
    js.wait_for_state(target, lambda state: state["messages"] == 2)

    first_headers, first_value = stored(js, target, 1)
    second_headers, second_value = stored(js, target, 2)
    assert (first_value, second_value) == (b'{"val":"3"}', b'{"val":"10"}')
    assert b"\r\nNats-Incr: 3\r\n" in first_headers
    assert f'\r\nNats-Counter-Sources: {{"{stream}":{{"{stream}.a":"3"}}}}\r\n'.encode() in first_headers
    assert b"\r\nNats-Incr: 7\r\n" in second_headers
    assert f'\r\nNats-Counter-Sources: {{"{stream}":{{"{stream}.a":"10"}}}}\r\n'.encode() in second_headers
