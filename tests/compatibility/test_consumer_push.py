"""Push consumers: to whom they deliver and when, heartbeats, flow control, and what is counted without a subscriber."""

from __future__ import annotations

import itertools
import re
import time
from typing import Any

import pytest

from tests.compatibility import consumer_watch, jetstream
from tests.compatibility.consumer_watch import (
    Delivery,
    Inbox,
    Watch,
    consumer_info,
    create_consumer,
    create_consumer_error,
    create_durable,
    delivery_of,
    numbers_of,
    publish_many,
    sequences_of,
    wait_for_consumer,
)
from tests.compatibility.jetstream import MILLISECOND_NS, SECOND_NS, JetStream, Json, Message, header_block
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import TIMEOUT_SECONDS

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream
watch = consumer_watch.watch

FLOW_CONTROL_REQUEST = b"NATS/1.0 100 FlowControl Request\r\n\r\n"
HEARTBEAT_NS = 100 * MILLISECOND_NS

# The bytes that may be unanswered at first; it doubles with every answer. With such payloads, which are a sixteenth of
# it, the subjects of each message make the difference between "just full" and "too full".
WINDOW_BYTES = 2 * 1024 * 1024
PAYLOAD_BYTES = WINDOW_BYTES // 16


def is_bound(info: Json) -> bool:
    return bool(info.get("push_bound", False))


def wait_until_bound(js: JetStream, stream: str, name: str) -> Json:
    return wait_for_consumer(js, stream, name, is_bound)


def wait_until_unbound(js: JetStream, stream: str, name: str) -> Json:
    return wait_for_consumer(js, stream, name, lambda info: not is_bound(info))


def heartbeat(consumer_sequence: int, stream_sequence: int, stalled: str = "") -> bytes:
    lines = f"Nats-Last-Consumer: {consumer_sequence}\r\nNats-Last-Stream: {stream_sequence}\r\n"
    lines += f"Nats-Consumer-Stalled: {stalled}\r\n" if stalled else ""
    return f"NATS/1.0 100 Idle Heartbeat\r\n{lines}\r\n".encode()


# Delivery


def test_message_is_delivered_as_it_was_stored_and_the_reply_is_its_ack_subject(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream)
    watch.raw.send(f"SUB to.{stream} 7\r\n".encode())
    watch.flush()
    js.publish(f"{stream}.a", b"hello", {"A": "b"})
    js.publish(f"{stream}.b", b"plain")
    times = [js.get(stream, seq=sequence)["time"] for sequence in (1, 2)]

    create_consumer(js, stream, "C", deliver_subject=f"to.{stream}")

    first, second = watch.raw.read_line(), watch.raw.read_line()
    ack = rf"\$JS\.ACK\.{stream}\.C\.1"
    block = r"NATS/1\.0\r\nA: b\r\n\r\n"
    expected = rf"HMSG {stream}\.a 7 {ack}\.1\.1\.\d{{19}}\.1 18 23\r\n{block}hello\r\n"
    assert re.fullmatch(expected.encode(), first), first
    assert re.fullmatch(rf"MSG {stream}\.b 7 {ack}\.2\.2\.\d{{19}}\.0 5\r\nplain\r\n".encode(), second), second
    for line, stored_at in zip((first, second), times, strict=True):
        nanoseconds = re.search(rb"\.(\d{19})\.", line)
        fraction = stored_at.removesuffix("Z").partition(".")[2].ljust(9, "0")
        assert nanoseconds is not None
        assert nanoseconds[1].decode()[-9:] == fraction


def test_all_plain_subscribers_get_every_message(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    inboxes = [watch.subscribe(f"to.{stream}") for _ in range(2)]

    create_consumer(js, stream, "C", deliver_subject=f"to.{stream}")
    publish_many(js, stream, "ab")

    assert [sequences_of(inbox.take(2)) for inbox in inboxes] == [[1, 2], [1, 2]]
    assert consumer_info(js, stream, "C")["delivered"]["consumer_seq"] == 2


@pytest.mark.parametrize("ack_policy", ["none", "all", "explicit"])
def test_numbers_after_delivery_depend_on_the_ack_policy(
    js: JetStream, watch: Watch, stream: str, ack_policy: str
) -> None:
    js.create(stream)
    publish_many(js, stream, "abc")
    inbox = watch.subscribe(f"to.{stream}")

    create_consumer(js, stream, "C", deliver_subject=f"to.{stream}", ack_policy=ack_policy)

    assert [delivery_of(message) for message in inbox.take(3)] == [
        Delivery(stream, "C", 1, 1, 1, 2),
        Delivery(stream, "C", 1, 2, 2, 1),
        Delivery(stream, "C", 1, 3, 3, 0),
    ]
    expected = (3, 3, 3, 3, 0, 0) if ack_policy == "none" else (3, 3, 0, 0, 3, 0)
    assert numbers_of(consumer_info(js, stream, "C")) == expected


def test_unacknowledged_message_is_delivered_again(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    js.publish(f"{stream}.a")
    inbox = watch.subscribe(f"to.{stream}")

    create_durable(js, stream, "C", deliver_subject=f"to.{stream}", ack_wait=100 * MILLISECOND_NS)

    deliveries = [delivery_of(message) for message in inbox.take(2)]
    assert deliveries == [Delivery(stream, "C", 1, 1, 1, 0), Delivery(stream, "C", 2, 1, 2, 0)]


# Who is a subscriber


def test_without_a_subscriber_nothing_is_delivered_nor_counted(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "abc")

    created = create_durable(js, stream, "C", deliver_subject=f"to.{stream}")

    assert "push_bound" not in created
    assert numbers_of(created) == (0, 0, 0, 0, 0, 3)
    inbox = watch.subscribe(f"to.{stream}")
    assert sequences_of(inbox.take(3)) == [1, 2, 3]
    assert is_bound(wait_until_bound(js, stream, "C"))


def test_consumer_is_bound_at_once_to_a_subscriber_that_was_there(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    watch.subscribe(f"to.{stream}")

    assert create_durable(js, stream, "C", deliver_subject=f"to.{stream}")["push_bound"] is True


@pytest.mark.parametrize("leave", ["unsubscribe", "disconnect"])
def test_delivery_goes_on_where_the_last_subscriber_left(
    js: JetStream, js_server: ServerProcess, watch: Watch, stream: str, leave: str
) -> None:
    js.create(stream)
    create_durable(js, stream, "C", deliver_subject=f"to.{stream}")
    with Watch(js_server) as first:
        inbox = first.subscribe(f"to.{stream}")
        publish_many(js, stream, "ab")
        assert sequences_of(inbox.take(2)) == [1, 2]
        if leave == "unsubscribe":
            inbox.close()
    wait_until_unbound(js, stream, "C")

    publish_many(js, stream, "cd")
    assert numbers_of(consumer_info(js, stream, "C")) == (2, 2, 0, 0, 2, 2)

    again = watch.subscribe(f"to.{stream}")
    assert [delivery_of(message) for message in again.take(2)] == [
        Delivery(stream, "C", 1, 3, 3, 1),
        Delivery(stream, "C", 1, 4, 4, 0),
    ]


def test_redelivery_waits_for_a_subscriber(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    create_durable(js, stream, "C", deliver_subject=f"to.{stream}", ack_wait=100 * MILLISECOND_NS)
    inbox = watch.subscribe(f"to.{stream}")
    js.publish(f"{stream}.a")
    inbox.next()
    inbox.close()
    wait_until_unbound(js, stream, "C")
    before = consumer_info(js, stream, "C")["delivered"]["consumer_seq"]

    inbox.settled(0.4)
    after = consumer_info(js, stream, "C")

    assert after["delivered"]["consumer_seq"] == before
    assert after["num_ack_pending"] == 1
    assert delivery_of(watch.subscribe(f"to.{stream}").next()).consumer_sequence == before + 1


def test_subscription_with_a_wildcard_does_not_bind_but_gets_what_is_delivered(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    wildcard = watch.subscribe(f"to.{stream}.*")
    create_durable(js, stream, "C", deliver_subject=f"to.{stream}.x")
    later_wildcard = watch.subscribe(f"to.{stream}.>")

    assert wildcard.settled() == []
    assert not is_bound(consumer_info(js, stream, "C"))

    literal = watch.subscribe(f"to.{stream}.x")
    for inbox in (literal, wildcard, later_wildcard):
        assert sequences_of(inbox.take(2)) == [1, 2]


def test_member_of_a_queue_group_does_not_bind_a_consumer_without_one(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    create_durable(js, stream, "C", deliver_subject=f"to.{stream}")

    member = watch.subscribe(f"to.{stream}", "workers")

    assert member.settled() == []
    assert not is_bound(consumer_info(js, stream, "C"))


# Deliver groups


def test_only_a_member_of_the_deliver_group_binds(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    created = create_durable(js, stream, "C", deliver_subject=f"to.{stream}", deliver_group="workers")
    assert created["config"]["deliver_group"] == "workers"

    plain = watch.subscribe(f"to.{stream}")
    stranger = watch.subscribe(f"to.{stream}", "others")
    assert plain.settled() == []
    assert not is_bound(consumer_info(js, stream, "C"))

    member = watch.subscribe(f"to.{stream}", "workers")
    for inbox in (member, plain, stranger):
        assert sequences_of(inbox.take(2)) == [1, 2]
    assert is_bound(consumer_info(js, stream, "C"))


def test_each_message_goes_to_one_member_of_the_deliver_group(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    members = [watch.subscribe(f"to.{stream}", "workers") for _ in range(3)]
    create_durable(js, stream, "C", deliver_subject=f"to.{stream}", deliver_group="workers")

    publish_many(js, stream, "a" * 30)
    wait_for_consumer(js, stream, "C", lambda info: info["delivered"]["consumer_seq"] == 30)

    deadline = time.monotonic() + TIMEOUT_SECONDS
    while sum(len(member.messages) for member in members) < 30:
        assert watch.read(deadline), "not everything was delivered"
    received = [sequences_of(member.settled()) for member in members]
    assert sorted(itertools.chain(*received)) == list(range(1, 31))
    assert all(sequences == sorted(sequences) for sequences in received)


def test_consumer_stays_bound_until_the_last_member_leaves(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    first, second = (watch.subscribe(f"to.{stream}", "workers") for _ in range(2))
    create_durable(js, stream, "C", deliver_subject=f"to.{stream}", deliver_group="workers")

    first.close()
    assert first.settled() == []
    assert is_bound(consumer_info(js, stream, "C"))

    second.close()
    wait_until_unbound(js, stream, "C")


# Idle heartbeats


def test_heartbeats_tell_the_last_sequences(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    inbox = watch.subscribe(f"to.{stream}")
    create_consumer(js, stream, "C", deliver_subject=f"to.{stream}", idle_heartbeat=HEARTBEAT_NS)

    assert inbox.next() == Message(f"to.{stream}", "", heartbeat(0, 0), b"")

    publish_many(js, stream, "ab")
    assert sequences_of([inbox.next_delivered(), inbox.next_delivered()]) == [1, 2]
    assert [inbox.next().headers for _ in range(2)] == [heartbeat(2, 2)] * 2


def test_heartbeats_tell_the_last_message_that_was_looked_at(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "abb")
    inbox = watch.subscribe(f"to.{stream}")
    options = {"deliver_subject": f"to.{stream}", "idle_heartbeat": HEARTBEAT_NS, "filter_subject": f"{stream}.a"}
    create_consumer(js, stream, "C", **options)

    assert sequences_of([inbox.next_delivered()]) == [1]
    assert inbox.next().headers == heartbeat(1, 3)
    publish_many(js, stream, "b")
    while (headers := inbox.next().headers) == heartbeat(1, 3):
        pass
    assert headers == heartbeat(1, 4)
    assert numbers_of(consumer_info(js, stream, "C")) == (1, 1, 1, 1, 0, 0)


def test_heartbeats_are_sent_to_subscribers_only(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    wildcard = watch.subscribe(f"to.{stream}.*")
    create_durable(js, stream, "C", deliver_subject=f"to.{stream}.x", idle_heartbeat=HEARTBEAT_NS)

    assert wildcard.settled(0.3) == []
    watch.subscribe(f"to.{stream}.x")
    assert wildcard.next().headers == heartbeat(0, 0)


# Flow control


def create_with_flow_control(js: JetStream, stream: str, **config: Any) -> Json:
    options = {"deliver_subject": f"to.{stream}", "flow_control": True, "idle_heartbeat": HEARTBEAT_NS}
    return create_consumer(js, stream, "C", **{**options, **config})


def until_request(inbox: Inbox) -> tuple[int, str]:
    """Return the number of messages before the next flow control request, and its reply subject."""
    count = 0
    while (message := inbox.next()).status != "100 FlowControl Request":
        count += 0 if message.status else 1
    assert message.headers == FLOW_CONTROL_REQUEST
    assert message.data == b""
    return count, message.reply


def until_heartbeat(inbox: Inbox) -> tuple[int, bytes]:
    """Return the number of messages before the next heartbeat, and its headers."""
    count = 0
    while (message := inbox.next()).status != "100 Idle Heartbeat":
        count += 1
    return count, message.headers


def test_flow_control_asks_at_half_of_the_window_and_stalls_when_it_is_full(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream, storage="memory")
    publish_many(js, stream, "a" * 45, b"x" * PAYLOAD_BYTES)
    inbox = watch.subscribe(f"to.{stream}")
    create_with_flow_control(js, stream)

    count, reply = until_request(inbox)
    assert count == 8
    assert re.fullmatch(rf"\$JS\.FC\.{stream}\.C\.[0-9A-Za-z]{{4}}", reply), reply
    assert until_heartbeat(inbox) == (8, heartbeat(16, 16, reply))
    assert until_heartbeat(inbox) == (0, heartbeat(16, 16, reply))

    # The answer gives back the eight of the request, and the window is twice as large.
    watch.send(reply)
    count, second_reply = until_request(inbox)
    assert count == 8
    assert second_reply != reply
    assert until_heartbeat(inbox) == (16, heartbeat(40, 40, second_reply))

    # An answer to an old request is none.
    watch.send(reply)
    assert until_heartbeat(inbox) == (0, heartbeat(40, 40, second_reply))
    watch.send(second_reply, b"any payload", {"Any": "header"})
    # Further heartbeats of before may be on their way.
    assert sequences_of([inbox.next_delivered()]) == [41]
    assert until_heartbeat(inbox) == (4, heartbeat(45, 45))


@pytest.mark.parametrize(("surplus_bytes", "count"), [(1, 8), (0, 9)])
def test_flow_control_counts_payload_headers_deliver_subject_and_ack_subject(
    js: JetStream, watch: Watch, stream: str, surplus_bytes: int, count: int
) -> None:
    block = header_block({"A": "b"})
    subject_bytes = len(f"to.{stream}") + len(f"$JS.ACK.{stream}.C.1.1.1.{10**18}.19")
    payload = b"x" * (PAYLOAD_BYTES - subject_bytes - len(block) + surplus_bytes)
    js.create(stream, storage="memory")
    for _ in range(20):
        js.publish(f"{stream}.a", payload, {"A": "b"})
    inbox = watch.subscribe(f"to.{stream}")

    create_with_flow_control(js, stream)

    assert until_request(inbox)[0] == count


# Acknowledgement by flow control


def test_flow_control_as_ack_policy_asks_when_too_many_are_unacknowledged(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream)
    publish_many(js, stream, "a" * 8)
    inbox = watch.subscribe(f"to.{stream}")
    created = create_consumer(
        js, stream, "C", deliver_subject=f"to.{stream}", ack_policy="flow_control", max_ack_pending=3
    )
    assert (created["config"]["flow_control"], created["config"]["idle_heartbeat"]) == (True, SECOND_NS)

    count, reply = until_request(inbox)
    assert count == 3
    assert numbers_of(consumer_info(js, stream, "C")) == (3, 3, 0, 0, 3, 5)
    assert until_heartbeat(inbox) == (0, heartbeat(3, 3, reply))

    watch.send(reply, b"", {"Nats-Last-Consumer": "3", "Nats-Last-Stream": "3"})
    count, reply = until_request(inbox)
    assert count == 3
    assert numbers_of(consumer_info(js, stream, "C")) == (6, 6, 3, 3, 3, 2)

    # The client may have received less than was sent.
    watch.send(reply, b"", {"Nats-Last-Consumer": "4", "Nats-Last-Stream": "4"})
    assert sequences_of([inbox.next_delivered()]) == [7]
    assert numbers_of(consumer_info(js, stream, "C")) == (7, 7, 4, 4, 3, 1)


def test_flow_control_as_ack_policy_has_no_ack_subject(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "a")
    inbox = watch.subscribe(f"to.{stream}")
    create_consumer(js, stream, "C", deliver_subject=f"to.{stream}", ack_policy="flow_control", max_ack_pending=3)

    message = inbox.next()

    assert watch.request(message.reply).status == "503"
    assert consumer_info(js, stream, "C")["num_ack_pending"] == 1


def test_flow_control_as_ack_policy_asks_after_a_heartbeat_when_something_is_unacknowledged(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    inbox = watch.subscribe(f"to.{stream}")
    create_consumer(js, stream, "C", deliver_subject=f"to.{stream}", ack_policy="flow_control", max_ack_pending=3)

    assert until_heartbeat(inbox) == (2, heartbeat(2, 2))
    request = inbox.next()
    assert request.headers == FLOW_CONTROL_REQUEST

    watch.send(request.reply, b"", {"Nats-Last-Consumer": "2", "Nats-Last-Stream": "2"})
    wait_for_consumer(js, stream, "C", lambda info: numbers_of(info) == (2, 2, 2, 2, 0, 0))


# Limits


def test_rate_limit_slows_down_and_loses_nothing(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream, max_msg_size=1000)
    publish_many(js, stream, "a" * 12, b"x" * 900)
    inbox = watch.subscribe(f"to.{stream}")

    # So slow that something is still pending though this process comes late with its question.
    created = create_consumer(js, stream, "C", deliver_subject=f"to.{stream}", rate_limit_bps=16_000)

    assert created["config"]["rate_limit_bps"] == 16_000
    first = inbox.next()
    assert consumer_info(js, stream, "C")["num_pending"] > 0
    assert sequences_of([first, *inbox.take(11)]) == list(range(1, 13))


def test_delivery_stops_at_max_ack_pending_and_goes_on_with_every_ack(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "a" * 5)
    inbox = watch.subscribe(f"to.{stream}")
    create_durable(js, stream, "C", deliver_subject=f"to.{stream}", max_ack_pending=2)
    first, second = inbox.take(2)

    assert inbox.settled() == []
    assert numbers_of(consumer_info(js, stream, "C")) == (2, 2, 0, 0, 2, 3)

    watch.acknowledge(second)
    assert delivery_of(inbox.next()) == Delivery(stream, "C", 1, 3, 3, 2)
    watch.acknowledge(first)
    assert delivery_of(inbox.next()) == Delivery(stream, "C", 1, 4, 4, 1)
    assert numbers_of(consumer_info(js, stream, "C")) == (4, 4, 2, 2, 2, 1)


def test_raised_max_ack_pending_lets_delivery_go_on(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "a" * 5)
    inbox = watch.subscribe(f"to.{stream}")
    create_durable(js, stream, "C", deliver_subject=f"to.{stream}", max_ack_pending=2)
    inbox.take(2)

    create_durable(js, stream, "C", deliver_subject=f"to.{stream}", max_ack_pending=4)

    assert sequences_of(inbox.take(2)) == [3, 4]
    assert inbox.settled() == []


def test_negative_acknowledgement_is_delivered_again_though_max_ack_pending_is_reached(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    inbox = watch.subscribe(f"to.{stream}")
    create_durable(js, stream, "C", deliver_subject=f"to.{stream}", max_ack_pending=1)

    watch.acknowledge(inbox.next(), b"-NAK")

    assert delivery_of(inbox.next()) == Delivery(stream, "C", 2, 1, 2, 1)


# The deliver subject


def test_headers_only_tells_the_size_and_leaves_the_payload_out(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    js.publish(f"{stream}.a", b"hello", {"A": "b"})
    publish_many(js, stream, "b")
    inbox = watch.subscribe(f"to.{stream}")

    create_consumer(js, stream, "C", deliver_subject=f"to.{stream}", headers_only=True)

    assert [(message.headers, message.data) for message in inbox.take(2)] == [
        (b"NATS/1.0\r\nA: b\r\nNats-Msg-Size: 5\r\n\r\n", b""),
        (b"NATS/1.0\r\nNats-Msg-Size: 0\r\n\r\n", b""),
    ]


def test_deliver_subject_can_be_changed_while_nobody_listens_and_all_pending_comes_again(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream)
    publish_many(js, stream, "abc")
    old = watch.subscribe(f"old.{stream}")
    create_durable(js, stream, "C", deliver_subject=f"old.{stream}")
    first, _, _ = old.take(3)
    watch.acknowledge(first)

    in_use = create_consumer_error(
        js, stream, "C", durable_name="C", ack_policy="explicit", deliver_subject=f"new.{stream}"
    )
    assert in_use == (400, 10013, "consumer name already in use")

    old.close()
    wait_until_unbound(js, stream, "C")
    updated = create_durable(js, stream, "C", deliver_subject=f"new.{stream}")
    assert updated["config"]["deliver_subject"] == f"new.{stream}"

    new = watch.subscribe(f"new.{stream}")
    assert [delivery_of(message) for message in new.take(2)] == [
        Delivery(stream, "C", 2, 2, 4, 0),
        Delivery(stream, "C", 2, 3, 5, 0),
    ]
    assert old.received() == []


def test_push_consumer_stays_a_push_consumer(js: JetStream, stream: str) -> None:
    js.create(stream)
    create_durable(js, stream, "PUSH", deliver_subject=f"to.{stream}")
    create_durable(js, stream, "PULL")

    to_pull = create_consumer_error(js, stream, "PUSH", durable_name="PUSH", ack_policy="explicit")
    to_push = create_consumer_error(
        js, stream, "PULL", durable_name="PULL", ack_policy="explicit", deliver_subject=f"to.{stream}"
    )

    assert to_pull == (500, 10012, "can not update push consumer to pull based")
    assert to_push == (500, 10012, "can not update pull consumer to push based")


@pytest.mark.parametrize(
    ("subject", "error"),
    [
        ("to.*", (400, 10079, "consumer deliver subject has wildcards")),
        ("to..x", (400, 10112, "invalid push consumer deliver subject")),
        ("to.x y", (400, 10112, "invalid push consumer deliver subject")),
        ("{}.x", (400, 10081, "consumer deliver subject forms a cycle")),
    ],
)
def test_deliver_subject_must_be_one_and_not_of_the_stream(
    js: JetStream, stream: str, subject: str, error: tuple[int, int, str]
) -> None:
    js.create(stream)

    assert create_consumer_error(js, stream, "C", deliver_subject=subject.format(stream)) == error


def test_another_stream_with_the_deliver_subject_stores_messages_under_their_first_subject(
    js: JetStream, stream: str
) -> None:
    js.create(stream)
    js.create(f"{stream}-OTHER", subjects=[f"to.{stream}"])
    publish_many(js, stream, "ab", b"x")

    create_durable(js, stream, "C", deliver_subject=f"to.{stream}")
    js.wait_for_state(f"{stream}-OTHER", lambda state: state["messages"] == 2)

    assert js.get(f"{stream}-OTHER", seq=1)["subject"] == f"{stream}.a"
    info = consumer_info(js, stream, "C")
    assert info["push_bound"] is True
    assert numbers_of(info) == (2, 2, 0, 0, 2, 0)

    js.api(f"STREAM.DELETE.{stream}-OTHER")
    wait_until_unbound(js, stream, "C")


def test_another_stream_with_a_wildcard_does_not_bind(js: JetStream, stream: str) -> None:
    js.create(stream)
    js.create(f"{stream}-OTHER", subjects=[f"to.{stream}.*"])
    publish_many(js, stream, "ab")

    created = create_durable(js, stream, "C", deliver_subject=f"to.{stream}.x")

    assert "push_bound" not in created
    publish_many(js, stream, "c")
    assert js.state(f"{stream}-OTHER")["messages"] == 0
