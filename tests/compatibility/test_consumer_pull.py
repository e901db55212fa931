"""Pull requests: every form of the body, the order of checks, each status to the byte, and whose turn it is."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.compatibility import consumers, jetstream
from tests.compatibility.consumers import (
    CONSUMER_DELETED,
    EXPIRES_NS,
    NO_MESSAGES,
    SHORT_NS,
    Consumer,
    Delivery,
    Numbers,
    Puller,
    add,
    cost_bytes,
    create,
    deliveries,
    delivery,
    heartbeat,
    pending_status,
    plain_status,
    publish,
    sequences,
)
from tests.compatibility.jetstream import MILLISECOND_NS, SECOND_NS, Body
from tests.compatibility.server_process import ServerProcess

js, js_server, stream = consumers.js, jetstream.js_server, jetstream.stream
start_jetstream = jetstream.start_jetstream

LEVEL = "Nats-Required-Api-Level"

PUSH_BASED = plain_status("409 Consumer is push based")
REQUIRED_LEVEL = plain_status("412 Required Api Level")
HEARTBEAT_TOO_LARGE = plain_status("400 Bad Request - heartbeat value too large")
REQUESTS_PENDING = plain_status("408 Requests Pending")
MAX_WAITING = plain_status("409 Exceeded MaxWaiting")


# Bodies


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b"", 1),
        (b"2", 2),
        (b" 2 ", 2),
        (b"+2", 2),
        (b"02", 2),
        (b"0", 1),
        (b"-1", 1),
        (b"x", 1),
        (b"2x", 1),
        (b"2.5", 1),
        (b"99999999999999999999", 1),
        (b"[]", 1),
        (b"null", 1),
        (b'"2"', 1),
        (b"{}", 1),
        (b' {"batch":2}\n', 2),
        (b'{"batch":2}', 2),
        (b'{"BATCH":2}', 2),
        (b'{"batch":0}', 1),
        (b'{"batch":-1}', 1),
        (b'{"batch":null}', 1),
        (b'{"batch":0,"no_wait":true}', 1),
        (b'{"batch":-1,"no_wait":true}', 1),
        (b'{"batch":2,"no_wait":true}', 2),
        (b'{"batch":2,"unknown":1}', 2),
        (b'{"batch":2,"max_bytes":-1}', 2),
        (b'{"batch":2,"max_bytes":0}', 2),
        (b'{"batch":2,"idle_heartbeat":-1}', 2),
        (b'{"batch":2,"expires":0}', 2),
        (b'{"batch":2,"expires":30000000000}', 2),
        (b'{"batch":2,"expires":30000000000,"idle_heartbeat":15000000000}', 2),
        (b'{"batch":2,"group":"any"}', 2),
        (b'{"batch":2,"priority":9}', 2),
    ],
)
def test_body_says_how_many_messages_are_wanted(js: Puller, stream: str, body: bytes, count: int) -> None:
    consumer = create(js, stream, "abcde")

    inbox = consumer.request(body)
    messages = consumer.answers(inbox, count)

    assert sequences(messages) == list(range(1, count + 1))
    assert consumer.is_silent(inbox)
    assert consumer.numbers() == Numbers((count, count), ack_pending=count, pending=5 - count)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"batch":"2"}',
        b'{"batch":2.5}',
        b'{"batch":2}x',
        b'{"expires":"1s"}',
        b'{"no_wait":1}',
        b'{"max_bytes":"1"}',
        b'{"idle_heartbeat":"1s"}',
    ],
)
def test_body_that_is_not_understood_is_a_bad_request(js: Puller, stream: str, body: bytes) -> None:
    consumer = create(js, stream, "a")

    # The text behind is that of the server's parser.
    assert consumer.status(body).startswith(b"NATS/1.0 400 Bad Request - ")
    assert consumer.numbers() == Numbers(pending=1)


def test_request_without_a_reply_subject_is_ignored(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "a")

    js.send(consumer.next_subject, b"1")
    js.flush()

    assert deliveries(consumer.take(1)) == [Delivery(1, 1, 1, 0)]


def test_message_is_delivered_with_its_subject_headers_and_an_ack_subject(js: Puller, stream: str) -> None:
    js.create(stream)
    js.publish(f"{stream}.a", b"hello", {"A": "b"})
    js.publish(f"{stream}.b")
    consumer = add(js, stream)

    with_headers, without = consumer.take(2)

    assert (with_headers.subject, with_headers.headers) == (f"{stream}.a", b"NATS/1.0\r\nA: b\r\n\r\n")
    assert (with_headers.data, without.data) == (b"hello", b"")
    assert (without.subject, without.headers) == (f"{stream}.b", b"")
    assert without.reply.startswith(f"$JS.ACK.{stream}.c.1.2.2.")


# The order of checks

# Each makes the same request fail, in the order in which the server looks.
FAILING_CHECKS: list[tuple[dict[str, Any], bytes]] = [
    ({"level": "6"}, REQUIRED_LEVEL),
    ({"idle_heartbeat": 40 * SECOND_NS}, HEARTBEAT_TOO_LARGE),
    ({"batch": 3}, plain_status("409 Exceeded MaxRequestBatch of 2")),
    ({"expires": 2 * SECOND_NS}, plain_status("409 Exceeded MaxRequestExpires of 1.5s")),
    ({"max_bytes": 101}, plain_status("409 Exceeded MaxRequestMaxBytes of 100")),
    ({"min_pending": 1}, plain_status("400 Bad Request - Not a Overflow Priority consumer")),
    ({"id": "x"}, plain_status("400 Bad Request - Not a Pinned Client Priority consumer")),
    ({"priority": 10}, plain_status("400 Bad Request - Priority must be between 0 and 9")),
    ({"no_wait": True}, NO_MESSAGES),
    ({}, MAX_WAITING),
]


@pytest.fixture(scope="module")
def refusing_stream(js_server: ServerProcess) -> Iterator[str]:
    """The stream of a consumer in which every check fails if it can: one request waits already."""
    limits = {"max_batch": 2, "max_expires": 1500 * MILLISECOND_NS, "max_bytes": 100, "max_waiting": 1}
    with Puller(js_server) as waiting:
        create(waiting, "REFUSING", **limits).wait(b"1")
        yield "REFUSING"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(first, second, id=f"{first}-{second}")
        for first, second in itertools.combinations(range(len(FAILING_CHECKS)), 2)
    ],
)
def test_first_failing_check_is_told(js: Puller, refusing_stream: str, first: int, second: int) -> None:
    (first_fields, expected), (second_fields, _) = FAILING_CHECKS[first], FAILING_CHECKS[second]
    fields = {**second_fields, **first_fields}
    # A request that does not want to wait, but says for how long, is not refused for having no messages.
    if "no_wait" in first_fields:
        fields.pop("expires", None)
    headers = {LEVEL: fields.pop("level")} if "level" in fields else None

    assert Consumer(js, refusing_stream, "c").status(fields, headers) == expected


def test_push_consumer_refuses_before_all_else(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "a", deliver_subject=f"deliver.{stream}")

    assert consumer.status() == PUSH_BASED
    assert consumer.status(b"{", {LEVEL: "6"}) == PUSH_BASED
    assert consumer.status({"no_wait": True}) == PUSH_BASED


@pytest.mark.parametrize(("level", "is_refused"), [("5", False), ("-1", False), ("", False), ("6", True), ("x", True)])
def test_required_level_must_be_one_the_server_has(js: Puller, stream: str, level: str, is_refused: bool) -> None:
    consumer = create(js, stream, "a")

    *messages, end = consumer.pull({"batch": 2, "no_wait": True}, {LEVEL: level})

    assert end.headers == (REQUIRED_LEVEL if is_refused else NO_MESSAGES)
    assert len(messages) == (0 if is_refused else 1)


def test_missing_consumer_has_no_responders(js: Puller, stream: str) -> None:
    js.create(stream)

    for name in (stream, f"{stream}MISSING"):
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{name}.c"
        assert Consumer(js, name, "c").status() == f"NATS/1.0 503\r\nNats-Subject: {subject}\r\n\r\n".encode()


@pytest.mark.parametrize("policy", ["overflow", "pinned_client", "prioritized"])
def test_request_must_name_a_priority_group_of_the_consumer(js: Puller, stream: str, policy: str) -> None:
    consumer = create(js, stream, "abc", priority_policy=policy, priority_groups=["g"])

    assert consumer.status({"no_wait": True}) == plain_status("400 Bad Request - Priority Group missing")
    assert consumer.status({"group": "x"}) == plain_status("400 Bad Request - Invalid Priority Group")
    # What is not JSON is not asked for a group.
    assert sequences(consumer.answers(consumer.request(b"2"), 2)) == [1, 2]


def test_request_of_a_client_that_is_not_pinned_is_locked_out(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "ab", priority_policy="pinned_client", priority_groups=["g"])
    pin_id = consumer.answers(consumer.request({"group": "g"}), 1)[0].header("Nats-Pin-Id")

    mismatch = consumer.status({"group": "g", "id": "other"})
    others = consumer.wait({"group": "g"})
    pinned = consumer.request({"group": "g", "id": pin_id, "batch": 3})
    second = consumer.answers(pinned, 1)
    js.api(f"CONSUMER.UNPIN.{stream}.c", {"group": "g"})
    publish(js, stream, "cd")

    assert mismatch == plain_status("423 Nats-Pin-Id mismatch")
    assert second[0].header("Nats-Pin-Id") == pin_id
    assert js.next_at(others).header("Nats-Pin-Id") not in (pin_id, "", None)
    assert js.next_at(pinned).headers == pending_status("423 Nats-Wrong-Pin-Id", 2)


# Limits of the consumer


@pytest.mark.parametrize(
    ("limit_ns", "text"),
    [
        (1_000_000, "1ms"),
        (1_500_000, "1.5ms"),
        (SECOND_NS, "1s"),
        (61 * SECOND_NS, "1m1s"),
        (3600 * SECOND_NS, "1h0m0s"),
        (90_061 * SECOND_NS + 5, "25h1m1.000000005s"),
    ],
)
def test_limit_of_a_life_is_written_with_units(js: Puller, stream: str, limit_ns: int, text: str) -> None:
    consumer = create(js, stream, max_expires=limit_ns)

    refused = consumer.status({"expires": limit_ns + 60 * SECOND_NS})

    assert refused == plain_status(f"409 Exceeded MaxRequestExpires of {text}")


@pytest.mark.parametrize(
    "body", [b"2", {"batch": 2}, {"batch": 2, "max_bytes": 1000}, {"batch": 2, "expires": SECOND_NS}]
)
def test_request_at_the_limits_is_served(js: Puller, stream: str, body: Body) -> None:
    consumer = create(js, stream, "abc", max_batch=2, max_expires=SECOND_NS, max_bytes=1000)

    assert sequences(consumer.answers(consumer.request(body), 2)) == [1, 2]


# Requests that do not wait


@pytest.mark.parametrize("expires_ns", [0, EXPIRES_NS])
def test_request_that_does_not_wait_takes_what_is_there(js: Puller, stream: str, expires_ns: int) -> None:
    consumer = create(js, stream, "ab")

    *messages, end = consumer.pull({"batch": 5, "no_wait": True, "expires": expires_ns})

    assert deliveries(messages) == [Delivery(1, 1, 1, 1), Delivery(1, 2, 2, 0)]
    assert end.headers == NO_MESSAGES
    assert consumer.status({"batch": 5, "no_wait": True}) == NO_MESSAGES
    assert consumer.numbers() == Numbers((2, 2), ack_pending=2)


def test_request_that_does_not_wait_but_has_a_life_waits_for_the_first_message(js: Puller, stream: str) -> None:
    consumer = create(js, stream)
    inbox = consumer.wait({"batch": 5, "no_wait": True, "expires": EXPIRES_NS})

    publish(js, stream, "a")

    (message, end) = consumer.rest(inbox)
    assert delivery(message) == Delivery(1, 1, 1, 0)
    assert end.headers == NO_MESSAGES


@pytest.mark.parametrize("max_bytes", [0, 100])
def test_request_that_does_not_wait_but_has_a_life_times_out(js: Puller, stream: str, max_bytes: int) -> None:
    consumer = create(js, stream)

    status = consumer.status({"batch": 5, "no_wait": True, "expires": SHORT_NS, "max_bytes": max_bytes})

    assert status == pending_status("408 Request Timeout", 5, max_bytes)


def test_request_that_does_not_wait_is_refused_when_others_wait_for_more_than_there_is(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc", max_ack_pending=1)
    consumer.take(1)
    consumer.wait({"batch": 3})

    assert consumer.status({"no_wait": True}) == REQUESTS_PENDING
    assert consumer.status({"no_wait": True, "expires": SHORT_NS}) == REQUESTS_PENDING
    assert consumer.numbers().waiting == 1


def test_request_that_does_not_wait_waits_with_others_that_leave_something(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc", max_ack_pending=1)
    (message,) = consumer.take(1)
    first = consumer.wait({"batch": 2})
    second = consumer.wait({"batch": 2, "no_wait": True})

    consumer.acknowledge(message)
    (message,) = consumer.answers(first, 1)
    consumer.acknowledge(message)

    assert sequences(consumer.answers(second, 1)) == [3]


@pytest.mark.parametrize("ack_policy", ["explicit", "all"])
def test_request_that_does_not_wait_is_answered_if_all_that_is_left_is_given_up(
    js: Puller, stream: str, ack_policy: str
) -> None:
    consumer = create(js, stream, "a", ack_policy=ack_policy, max_deliver=1)
    (message,) = consumer.take(1)
    js.send(message.reply, b"-NAK")

    assert consumer.status({"batch": 5, "no_wait": True}) == NO_MESSAGES


# The end of a life


@pytest.mark.parametrize(
    ("tails", "body", "messages"),
    [("", {"batch": 3}, 3), ("", {}, 0), ("", {"batch": -1}, -1), ("ab", {"batch": 3}, 1)],
)
def test_request_that_times_out_says_what_it_still_waited_for(
    js: Puller, stream: str, tails: str, body: dict[str, Any], messages: int
) -> None:
    consumer = create(js, stream, tails)

    *delivered, end = consumer.pull({**body, "expires": SHORT_NS})

    assert len(delivered) == len(tails)
    assert end.headers == pending_status("408 Request Timeout", messages)
    assert (end.reply, end.data) == ("", b"")


def test_request_that_times_out_says_how_many_bytes_are_left(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "a")

    message, end = consumer.pull({"batch": 3, "expires": SHORT_NS, "max_bytes": 1000})

    assert end.headers == pending_status("408 Request Timeout", 2, 1000 - cost_bytes(message))


def test_request_whose_life_ended_before_it_began_times_out(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "a")

    assert consumer.status({"batch": 2, "expires": -1}) == pending_status("408 Request Timeout", 2)
    assert consumer.numbers() == Numbers(pending=1)


def test_deleting_the_consumer_ends_all_requests(js: Puller, stream: str) -> None:
    consumer = create(js, stream)
    inboxes = [consumer.wait({"batch": 3, "max_bytes": 100}), consumer.wait(b"1")]

    consumer.delete()

    assert [[answer.headers for answer in consumer.rest(inbox)] for inbox in inboxes] == [[CONSUMER_DELETED]] * 2


def test_deleting_the_stream_ends_all_requests(js: Puller, stream: str) -> None:
    consumer = create(js, stream)
    inbox = consumer.wait({"batch": 3})

    js.api(f"STREAM.DELETE.{stream}")

    assert [answer.headers for answer in consumer.rest(inbox)] == [CONSUMER_DELETED]


def test_stopping_the_server_ends_all_requests(start_jetstream: Callable[..., ServerProcess]) -> None:
    server = start_jetstream()
    with Puller(server) as js:
        consumer = create(js, "S", "ab")
        inbox = consumer.request({"batch": 5})
        consumer.answers(inbox, 2)

        server.signal(signal.SIGTERM)

        assert js.next_at(inbox).headers == pending_status("409 Server Shutdown", 3)


# Bytes


@pytest.mark.parametrize(
    ("messages_paid", "bytes_more", "expected", "end"),
    [
        (1, -1, [], "409 Message Size Exceeds MaxBytes"),
        (1, 0, [1], ""),
        (1, 1, [1], "409 Message Size Exceeds MaxBytes"),
        (2, -1, [1], "409 Message Size Exceeds MaxBytes"),
        (2, 0, [1, 2], ""),
        (2, 1, [1, 2], "409 Batch Completed"),
        (9, 0, [1, 2], "409 Batch Completed"),
    ],
)
@pytest.mark.parametrize("no_wait", [False, True])
def test_request_ends_when_its_bytes_are_used_up(
    js: Puller, stream: str, no_wait: bool, messages_paid: int, bytes_more: int, expected: list[int], end: str
) -> None:
    consumer = create(js, stream, "abc", ack_policy="none")
    cost = cost_bytes(add(js, stream, "d", ack_policy="none").take_one())
    max_bytes = messages_paid * cost + bytes_more

    inbox = consumer.request({"batch": 2, "max_bytes": max_bytes, "no_wait": no_wait})
    messages = consumer.answers(inbox, len(expected))

    assert sequences(messages) == expected
    if end:
        (status,) = consumer.rest(inbox)
        left = 2 - len(expected)
        assert status.headers == pending_status(end, left, max_bytes - len(expected) * cost)
    assert consumer.is_silent(inbox)


def test_headers_count_as_bytes(js: Puller, stream: str) -> None:
    js.create(stream)
    js.publish(f"{stream}.a", b"1", {"A": "b"})
    message = add(js, stream, "d").take_one()
    consumer = add(js, stream)

    status = consumer.status({"max_bytes": cost_bytes(message) - 1})

    assert status == pending_status("409 Message Size Exceeds MaxBytes", 0, cost_bytes(message) - 1)


def test_message_too_large_for_one_request_goes_to_the_next(js: Puller, stream: str) -> None:
    consumer = create(js, stream)
    small = consumer.wait({"batch": 2, "max_bytes": 100})
    large = consumer.wait({"batch": 2})

    js.publish(f"{stream}.a", b"x" * 500)

    assert js.next_at(small).headers == pending_status("409 Message Size Exceeds MaxBytes", 2, 100)
    assert delivery(js.next_at(large)) == Delivery(1, 1, 1, 0)
    assert consumer.numbers().waiting == 1


# Heartbeats

# A life with time for heartbeats though the server comes late with some of them.
IDLE_NS = 4 * SECOND_NS


@pytest.mark.parametrize(("expires_ms", "heartbeat_ms"), [(0, 1), (100, 51), (100, 100)])
def test_heartbeat_must_fit_twice_into_a_life(js: Puller, stream: str, expires_ms: int, heartbeat_ms: int) -> None:
    consumer = create(js, stream, "a")

    body = {"expires": expires_ms * MILLISECOND_NS, "idle_heartbeat": heartbeat_ms * MILLISECOND_NS}
    assert consumer.status(body) == HEARTBEAT_TOO_LARGE


@pytest.mark.parametrize("no_wait", [False, True])
def test_idle_request_gets_heartbeats_until_it_times_out(js: Puller, stream: str, no_wait: bool) -> None:
    consumer = create(js, stream)

    body = {"batch": 2, "expires": IDLE_NS, "idle_heartbeat": SHORT_NS, "no_wait": no_wait}
    *heartbeats, end = consumer.pull(body)

    assert heartbeats
    assert {message.headers for message in heartbeats} == {heartbeat(0, 0)}
    assert {(message.reply, message.data) for message in heartbeats} == {("", b"")}
    assert end.headers == pending_status("408 Request Timeout", 2)


def test_heartbeat_tells_how_far_the_consumer_has_looked(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc", filter_subject=f"{stream}.b")

    message, *heartbeats, _ = consumer.pull({"batch": 2, "expires": IDLE_NS, "idle_heartbeat": SHORT_NS})

    assert delivery(message) == Delivery(1, 2, 1, 0)
    assert {message.headers for message in heartbeats} == {heartbeat(1, 3)}


def test_requests_without_heartbeats_get_none(js: Puller, stream: str) -> None:
    consumer = create(js, stream)
    silent = consumer.wait(b"1")

    consumer.pull({"expires": 3 * SHORT_NS, "idle_heartbeat": SHORT_NS})

    assert consumer.is_silent(silent)


# Whose turn it is


def test_requests_take_turns_message_by_message(js: Puller, stream: str) -> None:
    consumer = create(js, stream)
    first, second = consumer.wait(b"3"), consumer.wait(b"3")

    publish(js, stream, "abcdef")

    assert sequences(consumer.answers(first, 3)) == [1, 3, 5]
    assert sequences(consumer.answers(second, 3)) == [2, 4, 6]
    assert consumer.numbers() == Numbers((6, 6), ack_pending=6)


def test_request_that_is_filled_leaves_the_turns_to_the_others(js: Puller, stream: str) -> None:
    consumer = create(js, stream)
    first, second, third = consumer.wait(b"1"), consumer.wait(b"3"), consumer.wait(b"2")

    publish(js, stream, "abcdef")

    assert sequences(consumer.answers(first, 1)) == [1]
    assert sequences(consumer.answers(second, 3)) == [2, 4, 6]
    assert sequences(consumer.answers(third, 2)) == [3, 5]


def test_requests_may_share_an_inbox(js: Puller, stream: str) -> None:
    consumer = create(js, stream)
    inbox = js.open_inbox()
    for _ in range(2):
        js.send(consumer.next_subject, b"1", reply=inbox.subject)
    consumer.wait_for(lambda numbers: numbers.waiting == 2)

    publish(js, stream, "abc")

    assert sequences(consumer.answers(inbox, 2)) == [1, 2]
    assert consumer.wait_for_pending(1) == Numbers((2, 2), ack_pending=2, pending=1)


def test_two_connections_share_a_consumer(js: Puller, js_server: ServerProcess, stream: str) -> None:
    consumer = create(js, stream)
    with Puller(js_server) as other:
        first, second = consumer.wait(b"2"), Consumer(other, stream, "c").wait(b"2")

        publish(js, stream, "abcd")

        assert sequences(consumer.answers(first, 2)) == [1, 3]
        assert sequences(Consumer(other, stream, "c").answers(second, 2)) == [2, 4]


# Interest


def test_request_that_lost_its_inbox_is_forgotten(js: Puller, stream: str) -> None:
    consumer = create(js, stream)
    lost, kept = consumer.wait(b"2"), consumer.wait(b"2")

    js.close_inbox(lost)
    publish(js, stream, "ab")

    assert sequences(consumer.answers(kept, 2)) == [1, 2]
    assert js.received_at(lost) == []
    assert consumer.numbers() == Numbers((2, 2), ack_pending=2)


def test_connection_that_ends_takes_its_requests_with_it(js: Puller, js_server: ServerProcess, stream: str) -> None:
    consumer = create(js, stream)
    with Puller(js_server) as other:
        Consumer(other, stream, "c").wait(b"5")
    consumer.wait_for(lambda numbers: numbers.waiting == 0)

    publish(js, stream, "a")

    assert deliveries(consumer.take(1)) == [Delivery(1, 1, 1, 0)]


def test_request_whose_inbox_nobody_reads_takes_no_message(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "ab")

    js.send(consumer.next_subject, b"1", reply="nobody.reads.this")
    js.flush()

    assert deliveries(consumer.take(2)) == [Delivery(1, 1, 1, 1), Delivery(1, 2, 2, 0)]


# How many may wait


def test_more_requests_than_may_wait_are_refused(js: Puller, stream: str) -> None:
    consumer = create(js, stream, max_waiting=2)
    first, second = consumer.wait(b"1"), consumer.wait(b"1")

    refused = [consumer.status(b"1"), consumer.status({"no_wait": True, "expires": SHORT_NS})]
    publish(js, stream, "ab")

    assert refused == [MAX_WAITING] * 2
    assert sequences([js.next_at(first), js.next_at(second)]) == [1, 2]


def test_request_with_heartbeats_that_may_not_wait_is_refused_silently(js: Puller, stream: str) -> None:
    consumer = create(js, stream, max_waiting=1)
    consumer.wait(b"1")

    silent = consumer.request({"expires": 4 * SHORT_NS, "idle_heartbeat": SHORT_NS})

    assert consumer.status({"expires": SHORT_NS}) == MAX_WAITING
    assert consumer.numbers().waiting == 1
    assert consumer.is_silent(silent)
