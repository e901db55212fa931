"""Subscriptions that end in the middle of what they are sent: the rest was not delivered and goes to the next one.

How many messages a server has sent before it notices is its own affair, so what is compared is what arrives in the end.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compatibility import consumer_watch, jetstream
from tests.compatibility.consumer_watch import (
    Inbox,
    Watch,
    consumer_info,
    create_durable,
    delivery_of,
    publish_many,
    wait_for_consumer,
)
from tests.compatibility.jetstream import API, SECOND_NS, JetStream, Message, encode_body
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.test_consumer_restart import wait_until_written
from tests.compatibility.wire import TIMEOUT_SECONDS

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream
start_jetstream, watch = jetstream.start_jetstream, consumer_watch.watch

STORED = "abcdefghij"
HEARD = 2

ACK_WAIT_NS = SECOND_NS
LATER = "2050-01-01T00:00:00Z"


def short_inbox(watch: Watch, subject: str, count: int = HEARD) -> Inbox:
    """Subscribe for this many messages."""
    inbox = watch.subscribe(subject)
    watch.raw.send(f"UNSUB {inbox.subscription} {count}\r\n".encode())
    watch.flush()
    return inbox


def pull_and_leave(js: JetStream, watch: Watch, stream: str) -> list[Message]:
    """Ask for everything and end the subscription with its second message; return the two."""
    inbox = short_inbox(watch, f"short.{stream}")
    body = encode_body({"batch": len(STORED), "expires": 60 * SECOND_NS})
    watch.send(f"{API}CONSUMER.MSG.NEXT.{stream}.C", body, reply=inbox.subject)
    heard = inbox.take(HEARD)
    wait_for_consumer(js, stream, "C", lambda info: info["num_waiting"] == 0)
    return heard


def take_all(js: JetStream, watch: Watch, stream: str, count: int) -> list[Message]:
    """Pull until this many messages have come, and acknowledge them; return them by their sequences."""
    inbox = watch.pull(stream, "C", {"batch": count, "expires": 30 * SECOND_NS})
    messages = inbox.take(count)
    for message in messages:
        watch.acknowledge(message)
    return sorted(messages, key=lambda message: delivery_of(message).stream_sequence)


def sequences(messages: list[Message]) -> list[int]:
    return [delivery_of(message).stream_sequence for message in messages]


def expect_working(js: JetStream, watch: Watch, stream: str) -> None:
    """Expect that nothing is left, and that new messages come and are counted."""
    info = consumer_info(js, stream, "C")
    assert (info["num_pending"], info["num_ack_pending"]) == (0, HEARD)
    publish_many(js, stream, "yz")
    wait_for_consumer(js, stream, "C", lambda info: info["num_pending"] == 2)
    last = js.state(stream)["last_seq"]
    assert sequences(take_all(js, watch, stream, 2)) == [last - 1, last]
    assert consumer_info(js, stream, "C")["num_pending"] == 0


def test_rest_goes_to_the_next_request(js: JetStream, watch: Watch, stream: str, server_kind: str) -> None:
    js.create(stream)
    publish_many(js, stream, STORED)
    create_durable(js, stream, "C")

    heard = pull_and_leave(js, watch, stream)

    assert sequences(heard) == [1, 2]
    rest = take_all(js, watch, stream, 8)
    assert sequences(rest) == list(range(3, 11))
    # nats-server counts a delivery that reached nobody.
    assert {delivery_of(message).deliveries for message in rest} == {1 if server_kind == "jetlake" else 2}
    expect_working(js, watch, stream)


def test_rest_goes_to_a_request_that_waits_already(js: JetStream, watch: Watch, stream: str, server_kind: str) -> None:
    js.create(stream)
    publish_many(js, stream, STORED)
    # nats-server counts a delivery that reached nobody, and repeats it when it was not acknowledged in time.
    ack_wait_ns = ACK_WAIT_NS if server_kind == "nats-server" else 600 * SECOND_NS
    create_durable(js, stream, "C", ack_wait=ack_wait_ns, pause_until=LATER)
    leaving = short_inbox(watch, f"short.{stream}", 3)
    staying = watch.new_inbox()
    for inbox, batch in ((leaving, 5), (staying, 30)):
        body = encode_body({"batch": batch, "expires": 120 * SECOND_NS})
        watch.send(f"{API}CONSUMER.MSG.NEXT.{stream}.C", body, reply=inbox.subject)
        waiting = 1 if inbox is leaving else 2
        wait_for_consumer(js, stream, "C", lambda info, waiting=waiting: info["num_waiting"] == waiting)

    # Both are served at once, and nothing is published or acknowledged that would have the consumer look again.
    js.api(f"CONSUMER.PAUSE.{stream}.C", {})
    if server_kind == "nats-server":
        # It notices the end of a pause with the next event.
        publish_many(js, stream, "z")

    found = set(sequences(leaving.take(3)))
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not found >= set(range(1, 11)) and time.monotonic() < deadline:
        found.add(delivery_of(staying.next()).stream_sequence)
    assert found >= set(range(1, 11))


@pytest.mark.parametrize("storage", ["file", "memory"])
@pytest.mark.parametrize("deleted", [(3,), (10,), (5, 4, 6), (3, 4, 5, 6, 7, 8, 9, 10)])
def test_deleted_message_of_the_rest_is_not_waited_for(
    js: JetStream, watch: Watch, stream: str, deleted: tuple[int, ...], storage: str
) -> None:
    js.create(stream, storage=storage)
    publish_many(js, stream, STORED)
    create_durable(js, stream, "C")
    pull_and_leave(js, watch, stream)

    for sequence in deleted:
        assert js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": sequence})["success"]

    left = [sequence for sequence in range(3, 11) if sequence not in deleted]
    assert sequences(take_all(js, watch, stream, len(left)) if left else []) == left
    wait_for_consumer(js, stream, "C", lambda info: info["num_ack_pending"] == HEARD)
    expect_working(js, watch, stream)


@pytest.mark.parametrize("first", [3, 4, 7, 11])
def test_purged_message_of_the_rest_is_not_waited_for(js: JetStream, watch: Watch, stream: str, first: int) -> None:
    js.create(stream)
    publish_many(js, stream, STORED)
    create_durable(js, stream, "C", ack_wait=ACK_WAIT_NS)
    heard = pull_and_leave(js, watch, stream)
    for message in heard:
        watch.acknowledge(message)

    assert js.api(f"STREAM.PURGE.{stream}", {"seq": first})["success"]

    left = list(range(first, 11))
    assert sequences(take_all(js, watch, stream, len(left)) if left else []) == left
    info = wait_for_consumer(js, stream, "C", lambda info: info["num_ack_pending"] == 0)
    assert info["num_pending"] == 0
    publish_many(js, stream, "z")
    assert sequences(take_all(js, watch, stream, 1)) == [11]


@pytest.mark.parametrize("retention", ["limits", "workqueue", "interest"])
def test_rest_is_acknowledged_after_a_restart(
    start_jetstream: Callable[..., ServerProcess], tmp_path: Path, stream: str, retention: str
) -> None:
    server = start_jetstream(store=tmp_path)
    with JetStream(server) as js, Watch(server) as watch:
        js.create(stream, retention=retention)
        create_durable(js, stream, "C", ack_wait=ACK_WAIT_NS)
        publish_many(js, stream, STORED)
        heard = pull_and_leave(js, watch, stream)
        watch.acknowledge(heard[0])
        wait_until_written(js)
    server.signal(signal.SIGKILL)
    server.wait_for_exit()

    server = start_jetstream(store=tmp_path)

    with JetStream(server) as js, Watch(server) as watch:
        watch.acknowledge(heard[1])
        assert sequences(take_all(js, watch, stream, 8)) == list(range(3, 11))
        info = consumer_info(js, stream, "C")
        assert (info["num_pending"], info["num_ack_pending"]) == (0, 0)
        publish_many(js, stream, "z")
        assert sequences(take_all(js, watch, stream, 1)) == [11]


def test_rest_of_a_push_goes_to_the_next_subscriber(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, STORED)
    subject = f"to.{stream}"
    first = short_inbox(watch, subject)
    create_durable(js, stream, "C", deliver_subject=subject, ack_wait=ACK_WAIT_NS)
    for message in first.take(HEARD):
        watch.acknowledge(message)
    assert js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 5})["success"]

    rest = watch.subscribe(subject)
    publish_many(js, stream, "z")

    found: set[int] = set()
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while found != {3, 4, 6, 7, 8, 9, 10, 11} and time.monotonic() < deadline:
        message = rest.next()
        found.add(delivery_of(message).stream_sequence)
        watch.acknowledge(message)
    assert found == {3, 4, 6, 7, 8, 9, 10, 11}
    info = wait_for_consumer(js, stream, "C", lambda info: info["num_ack_pending"] == 0)
    assert info["num_pending"] == 0


def test_rest_stays_in_an_interest_stream_whose_consumer_acknowledges_nothing(
    js: JetStream, watch: Watch, stream: str, server_kind: str
) -> None:
    js.create(stream, retention="interest")
    create_durable(js, stream, "C", ack_policy="none")
    publish_many(js, stream, STORED)

    heard = pull_and_leave(js, watch, stream)

    assert sequences(heard) == [1, 2]
    inbox = watch.pull(stream, "C", {"batch": 10, "no_wait": True})
    rest = []
    while not (message := inbox.next()).status:
        rest.append(message)
    # nats-server counts as read what it has sent to nobody, and removes it.
    assert sequences(rest) == (list(range(3, 11)) if server_kind == "jetlake" else [])


def test_message_that_arrived_is_not_repeated_with_those_around_it_that_did_not(
    js: JetStream, watch: Watch, stream: str, server_kind: str
) -> None:
    js.create(stream)
    publish_many(js, stream, "abcdefgh")
    create_durable(js, stream, "C", ack_policy="none", pause_until=LATER)
    leaving, staying = short_inbox(watch, f"short.{stream}", 1), watch.new_inbox()
    for waiting, inbox in enumerate((staying, leaving), start=1):
        body = encode_body({"batch": 4, "expires": 120 * SECOND_NS})
        watch.send(f"{API}CONSUMER.MSG.NEXT.{stream}.C", body, reply=inbox.subject)
        wait_for_consumer(js, stream, "C", lambda info, waiting=waiting: info["num_waiting"] == waiting)

    # They are served in turns, and the second one takes only one message.
    js.api(f"CONSUMER.PAUSE.{stream}.C", {})
    if server_kind == "nats-server":
        # It notices the end of a pause with the next event.
        publish_many(js, stream, "z")
    first = sequences(staying.take(4)) + sequences(leaving.take(1))
    wait_for_consumer(js, stream, "C", lambda info: info["num_waiting"] == 0)

    inbox = watch.pull(stream, "C", {"batch": 10, "no_wait": True})
    rest = []
    while not (message := inbox.next()).status:
        rest.append(message)
    found = first + sequences(rest)
    assert sorted(found) == sorted(set(found)), "something came twice"
    if server_kind == "jetlake":
        # 4 and 6 count as read, as everything does at nats-server that it has sent.
        assert (sorted(first), sequences(rest)) == ([1, 2, 3, 5, 7], [8])
