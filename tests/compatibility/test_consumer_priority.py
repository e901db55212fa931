"""Priority groups: which of the waiting pull requests gets a message, and which requests are refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.compatibility import consumer_watch, jetstream
from tests.compatibility.consumer_watch import (
    Inbox,
    Watch,
    consumer_info,
    create_consumer_error,
    create_durable,
    delivery_of,
    publish_many,
    sequences_of,
    wait_for_consumer,
)
from tests.compatibility.jetstream import (
    ADVISORY,
    ADVISORY_TYPE,
    MILLISECOND_NS,
    SECOND_NS,
    TYPE,
    ZERO_TIME,
    Body,
    JetStream,
    Json,
    Message,
    normal,
)

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream
watch = consumer_watch.watch

PIN_HEADER = "Nats-Pin-Id"
PIN = re.compile("[0-9A-Za-z]{22}")

# What must happen while a client is pinned may be late on a busy machine.
PIN_TIMEOUT_NS = 4 * SECOND_NS

INVALID_GROUP = (
    400,
    10162,
    "Valid priority group name must match A-Z, a-z, 0-9, -_/=)+ and may not exceed 16 characters",
)


def create_group(js: JetStream, stream: str, policy: str, **config: Any) -> Json:
    return create_durable(js, stream, "C", priority_policy=policy, priority_groups=["g"], **config)


def request(**fields: Any) -> Json:
    return {"batch": 1, "group": "g", **fields}


def wait_for_requests(js: JetStream, stream: str, count: int) -> None:
    """Wait until so many requests are queued, which they are some time after the server has read them."""
    wait_for_consumer(js, stream, "C", lambda info: info["num_waiting"] == count)


def pin_of(message: Message) -> str:
    """Return the id in a message to the pinned client, whose headers have nothing else."""
    pin = message.header(PIN_HEADER)
    assert pin is not None, message
    assert PIN.fullmatch(pin), pin
    assert message.headers == f"NATS/1.0\r\nNats-Pin-Id: {pin}\r\n\r\n".encode()
    return pin


def wrong_pin(messages: int, max_bytes: int = 0) -> bytes:
    pending = f"Nats-Pending-Messages: {messages}\r\nNats-Pending-Bytes: {max_bytes}\r\n"
    return f"NATS/1.0 423 Nats-Wrong-Pin-Id\r\n{pending}\r\n".encode()


def pinned_id(info: Json) -> str:
    return str(info["priority_groups"][0].get("pinned_client_id", ""))


# Configuration


@pytest.mark.parametrize(
    ("config", "error"),
    [
        (
            {"priority_policy": "overflow"},
            (400, 10159, "Setting PriorityPolicy requires at least one PriorityGroup to be set"),
        ),
        (
            {"priority_policy": "overflow", "priority_groups": []},
            (400, 10159, "Setting PriorityPolicy requires at least one PriorityGroup to be set"),
        ),
        (
            {"priority_policy": "overflow", "priority_groups": [""]},
            (400, 10161, "Group name cannot be an empty string"),
        ),
        ({"priority_policy": "overflow", "priority_groups": ["a b"]}, INVALID_GROUP),
        ({"priority_policy": "overflow", "priority_groups": ["a" * 17]}, INVALID_GROUP),
        ({"priority_policy": "overflow", "priority_groups": ["a", "b.c"]}, INVALID_GROUP),
        ({"priority_groups": ["a"]}, (400, 10196, "consumer can not have priority groups when policy is none")),
        ({"priority_timeout": SECOND_NS}, (400, 10197, "PinnedTTL cannot be set when PriorityPolicy is none")),
        (
            {"priority_policy": "overflow", "priority_groups": ["a"], "deliver_subject": "to"},
            (400, 10178, "priority groups can not be used with push consumers"),
        ),
    ],
)
def test_groups_need_a_policy_a_name_and_a_pull_consumer(
    js: JetStream, stream: str, config: dict[str, Any], error: tuple[int, int, str]
) -> None:
    js.create(stream)

    assert create_consumer_error(js, stream, "C", ack_policy="explicit", **config) == error


def test_policy_of_another_name_is_refused(js: JetStream, stream: str) -> None:
    js.create(stream)

    refused = create_consumer_error(js, stream, "C", priority_policy="bogus", priority_groups=["a"])

    assert refused[:2] == (400, 10025)


@pytest.mark.parametrize(
    ("policy", "groups", "timeout", "shown_timeout"),
    [
        ("overflow", ["g"], None, None),
        ("overflow", ["g", "h"], SECOND_NS, SECOND_NS),
        ("prioritized", ["A/b_c=-9"], None, None),
        ("pinned_client", ["g"], None, 120 * SECOND_NS),
        ("pinned_client", ["g"], -1, 120 * SECOND_NS),
        ("pinned_client", ["g"], SECOND_NS, SECOND_NS),
    ],
)
def test_info_shows_the_first_group(
    js: JetStream, stream: str, policy: str, groups: list[str], timeout: int | None, shown_timeout: int | None
) -> None:
    js.create(stream)
    more = {} if timeout is None else {"priority_timeout": timeout}

    created = create_durable(js, stream, "C", priority_policy=policy, priority_groups=groups, **more)

    config = created["config"]
    shown = (config["priority_policy"], config["priority_groups"], config.get("priority_timeout"))
    assert shown == (policy, groups, shown_timeout)
    assert created["priority_groups"] == [{"group": groups[0], "pinned_ts": ZERO_TIME}]
    assert config["metadata"]["_nats.req.level"] == "1"


def test_policy_can_be_changed(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    assert "priority_groups" not in create_durable(js, stream, "C")

    updated = create_group(js, stream, "overflow")

    assert updated["priority_groups"] == [{"group": "g", "pinned_ts": ZERO_TIME}]
    assert watch.pull(stream, "C", {"batch": 1}).next().status == "400 Bad Request - Priority Group missing"


# Refused requests

NO_GROUP = "400 Bad Request - Priority Group missing"
OTHER_GROUP = "400 Bad Request - Invalid Priority Group"
NO_OVERFLOW = "400 Bad Request - Not a Overflow Priority consumer"
NO_PIN = "400 Bad Request - Not a Pinned Client Priority consumer"
PRIORITY = "400 Bad Request - Priority must be between 0 and 9"


@pytest.mark.parametrize(
    ("policy", "body", "status"),
    [
        *[(policy, {}, NO_GROUP) for policy in ("overflow", "pinned_client", "prioritized")],
        ("overflow", {"group": ""}, NO_GROUP),
        ("overflow", {"group": "other"}, OTHER_GROUP),
        ("overflow", {"group": "g", "id": "x"}, NO_PIN),
        ("prioritized", {"group": "g", "id": "x"}, NO_PIN),
        ("prioritized", {"group": "g", "min_pending": 1}, NO_OVERFLOW),
        ("pinned_client", {"group": "g", "min_pending": -1}, NO_OVERFLOW),
        ("pinned_client", {"group": "g", "min_ack_pending": 1}, NO_OVERFLOW),
        ("prioritized", {"group": "g", "priority": 10}, PRIORITY),
        ("overflow", {"group": "g", "priority": -1}, PRIORITY),
        # The fields are looked at before the group, in this order.
        ("prioritized", {"min_pending": 1, "id": "x", "priority": 10}, NO_OVERFLOW),
        ("prioritized", {"id": "x", "priority": 10}, NO_PIN),
        ("prioritized", {"priority": 10}, PRIORITY),
        ("none", {"min_pending": 1}, NO_OVERFLOW),
        ("none", {"min_ack_pending": 1}, NO_OVERFLOW),
        ("none", {"id": "x"}, NO_PIN),
        ("none", {"priority": 10}, PRIORITY),
    ],
)
def test_request_with_fields_that_do_not_fit_the_policy_is_refused(
    js: JetStream, watch: Watch, stream: str, policy: str, body: Json, status: str
) -> None:
    js.create(stream)
    publish_many(js, stream, "a")
    if policy == "none":
        create_durable(js, stream, "C")
    else:
        create_group(js, stream, policy)

    answer = watch.pull(stream, "C", {"batch": 1, **body}).next()

    assert answer.headers == f"NATS/1.0 {status}\r\n\r\n".encode()
    assert consumer_info(js, stream, "C")["num_waiting"] == 0


@pytest.mark.parametrize(
    ("policy", "body"),
    [
        ("none", {"group": "any", "priority": 5}),
        ("overflow", request(priority=5)),
        ("overflow", request(min_pending=-1, min_ack_pending=-1)),
        ("pinned_client", request(priority=9)),
    ],
)
def test_fields_without_a_meaning_for_the_policy_are_ignored(
    js: JetStream, watch: Watch, stream: str, policy: str, body: Json
) -> None:
    js.create(stream)
    publish_many(js, stream, "a")
    if policy == "none":
        create_durable(js, stream, "C")
    else:
        create_group(js, stream, policy)

    assert delivery_of(watch.pull(stream, "C", body).next()).stream_sequence == 1


@pytest.mark.parametrize("body", [None, b"1"])
@pytest.mark.parametrize("policy", ["overflow", "prioritized", "pinned_client"])
def test_request_that_is_no_object_needs_no_group(
    js: JetStream, watch: Watch, stream: str, policy: str, body: Body
) -> None:
    js.create(stream)
    publish_many(js, stream, "a")
    create_group(js, stream, policy)

    message = watch.pull(stream, "C", body).next()

    assert delivery_of(message).stream_sequence == 1
    assert message.headers == (b"NATS/1.0\r\nNats-Pin-Id: \r\n\r\n" if policy == "pinned_client" else b"")
    assert pinned_id(consumer_info(js, stream, "C")) == ""


# Overflow


def test_overflow_request_is_served_while_enough_messages_are_pending(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    create_group(js, stream, "overflow")
    inbox = watch.pull(stream, "C", request(batch=10, min_pending=3))

    publish_many(js, stream, "ab")
    assert inbox.settled() == []

    publish_many(js, stream, "c")
    assert sequences_of([inbox.next(), *inbox.settled()]) == [1]
    publish_many(js, stream, "d")
    assert sequences_of([inbox.next(), *inbox.settled()]) == [2]


def test_overflow_request_is_served_while_enough_messages_are_unacknowledged(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream)
    create_group(js, stream, "overflow")
    publish_many(js, stream, "abcd")
    first, _ = watch.pull(stream, "C", request(batch=2)).take(2)
    inbox = watch.pull(stream, "C", request(batch=1, min_ack_pending=2))
    assert sequences_of(inbox.take(1)) == [3]

    inbox = watch.pull(stream, "C", request(batch=1, min_ack_pending=4))
    assert inbox.settled() == []

    watch.acknowledge(first)
    inbox = watch.pull(stream, "C", request(batch=1, min_ack_pending=3))
    assert inbox.settled() == []


def test_one_of_two_conditions_of_an_overflow_request_is_enough(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    create_group(js, stream, "overflow")
    publish_many(js, stream, "abc")

    assert watch.pull(stream, "C", request(min_pending=4, min_ack_pending=1)).settled() == []
    assert sequences_of(watch.pull(stream, "C", request(min_pending=3, min_ack_pending=9)).take(1)) == [1]


def test_plain_request_is_served_though_an_overflow_request_came_first(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream)
    create_group(js, stream, "overflow")
    overflow = watch.pull(stream, "C", request(batch=10, min_pending=100))
    plain = watch.pull(stream, "C", request(batch=10))
    wait_for_requests(js, stream, 2)

    publish_many(js, stream, "abc")

    assert sequences_of(plain.take(3)) == [1, 2, 3]
    assert overflow.received() == []
    assert consumer_info(js, stream, "C")["num_waiting"] == 2


@pytest.mark.parametrize(
    ("fields", "headers"),
    [
        ({"no_wait": True}, b"NATS/1.0 404 No Messages\r\n\r\n"),
        (
            {"expires": 200 * MILLISECOND_NS},
            b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 2\r\nNats-Pending-Bytes: 0\r\n\r\n",
        ),
    ],
)
def test_overflow_request_that_is_not_served_ends_as_any_other(
    js: JetStream, watch: Watch, stream: str, fields: Json, headers: bytes
) -> None:
    js.create(stream)
    create_group(js, stream, "overflow")
    publish_many(js, stream, "abc")

    assert watch.pull(stream, "C", request(batch=2, min_pending=100, **fields)).next().headers == headers


def test_overflow_request_counts_a_redelivery_as_one_pending_message(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    create_group(js, stream, "overflow")
    publish_many(js, stream, "a")
    watch.acknowledge(watch.pull(stream, "C", request()).next(), b"-NAK")

    assert watch.pull(stream, "C", request(min_pending=2)).settled() == []
    assert delivery_of(watch.pull(stream, "C", request(min_pending=1)).next()).deliveries == 2


# A pinned client


def test_first_request_is_pinned_and_gets_all_messages(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    create_group(js, stream, "pinned_client")
    first = watch.pull(stream, "C", request(batch=10))
    second = watch.pull(stream, "C", request(batch=10))
    wait_for_requests(js, stream, 2)
    assert pinned_id(consumer_info(js, stream, "C")) == ""

    publish_many(js, stream, "abc")

    pins = {pin_of(message) for message in first.take(3)}
    assert len(pins) == 1
    assert second.received() == []
    group = consumer_info(js, stream, "C")["priority_groups"][0]
    assert normal(group) == {"group": "g", "pinned_client_id": pins.pop(), "pinned_ts": "TIME"}


def test_pinned_client_goes_on_with_its_id(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    create_group(js, stream, "pinned_client")
    publish_many(js, stream, "abc")
    pin = pin_of(watch.pull(stream, "C", request()).next())
    other = watch.pull(stream, "C", request())

    assert pin_of(watch.pull(stream, "C", request(id=pin)).next()) == pin
    assert other.settled() == []


def test_pinned_client_without_its_id_waits_like_all_others(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    create_group(js, stream, "pinned_client")
    publish_many(js, stream, "ab")
    pin_of(watch.pull(stream, "C", request()).next())

    timeout = watch.pull(stream, "C", request(expires=200 * MILLISECOND_NS)).next()
    no_wait = watch.pull(stream, "C", request(no_wait=True)).next()
    number = watch.pull(stream, "C", b"1")

    assert timeout.status == "408 Request Timeout"
    assert no_wait.status == "404 No Messages"
    assert number.settled() == []


def test_other_id_is_refused_at_once_while_a_client_is_pinned(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    create_group(js, stream, "pinned_client")
    publish_many(js, stream, "ab")
    pin_of(watch.pull(stream, "C", request()).next())

    refused = watch.pull(stream, "C", request(id="other")).next()

    assert refused.headers == b"NATS/1.0 423 Nats-Pin-Id mismatch\r\n\r\n"


def test_id_is_refused_when_a_message_comes_while_nobody_is_pinned(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    create_group(js, stream, "pinned_client")
    stale = watch.pull(stream, "C", request(batch=3, max_bytes=1000, id="stale"))
    assert stale.settled() == []
    fresh = watch.pull(stream, "C", request())

    publish_many(js, stream, "a")

    assert stale.next().headers == wrong_pin(3, 1000)
    pin_of(fresh.next())


def test_unpinned_client_is_told_when_the_next_one_is_pinned(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    create_group(js, stream, "pinned_client")
    publish_many(js, stream, "a")
    first = watch.pull(stream, "C", request(batch=5))
    pin = pin_of(first.next())
    again = watch.pull(stream, "C", request(batch=7, id=pin))
    second = watch.pull(stream, "C", request(batch=5))

    assert js.api(f"CONSUMER.UNPIN.{stream}.C", {"group": "g"}) == {"type": f"{TYPE}consumer_unpin_response"}
    assert consumer_info(js, stream, "C")["priority_groups"] == [{"group": "g", "pinned_ts": ZERO_TIME}]
    assert first.settled() == []

    publish_many(js, stream, "b")
    assert pin_of(second.next()) != pin
    assert first.next().headers == wrong_pin(4)
    assert again.next().headers == wrong_pin(7)


def test_pin_ends_without_requests_of_its_client(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    create_group(js, stream, "pinned_client", priority_timeout=PIN_TIMEOUT_NS)
    publish_many(js, stream, "ab")
    pin = pin_of(watch.pull(stream, "C", request()).next())
    second = watch.pull(stream, "C", request())

    # The message that is there goes to the other as soon as the pin has ended.
    assert pin_of(second.next()) != pin
    refused = watch.pull(stream, "C", request(id=pin)).next()
    assert refused.status == "423 Nats-Pin-Id mismatch"


def test_request_of_the_pinned_client_that_waits_does_not_keep_the_pin(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream)
    create_group(js, stream, "pinned_client", priority_timeout=300 * MILLISECOND_NS)
    publish_many(js, stream, "a")
    waiting = watch.pull(stream, "C", request(batch=10))
    pin_of(waiting.next())

    wait_for_consumer(js, stream, "C", lambda info: pinned_id(info) == "")
    publish_many(js, stream, "b")

    assert waiting.next().headers == wrong_pin(9)
    assert pin_of(watch.pull(stream, "C", request()).next())


def test_request_that_a_message_is_too_large_for_is_not_pinned(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    create_group(js, stream, "pinned_client")
    publish_many(js, stream, "a")

    refused = watch.pull(stream, "C", request(max_bytes=1)).next()

    assert refused.status == "409 Message Size Exceeds MaxBytes"
    assert pinned_id(consumer_info(js, stream, "C")) == ""
    assert pin_of(watch.pull(stream, "C", request()).next())


def test_all_groups_of_a_consumer_share_one_pin(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    create_durable(js, stream, "C", priority_policy="pinned_client", priority_groups=["g", "h"])
    publish_many(js, stream, "ab")
    pin = pin_of(watch.pull(stream, "C", request()).next())
    other = watch.pull(stream, "C", request(group="h"))
    assert other.settled() == []

    js.api(f"CONSUMER.UNPIN.{stream}.C", {"group": "h"})

    assert pin_of(other.next()) != pin
    assert consumer_info(js, stream, "C")["priority_groups"][0]["group"] == "g"


def test_pin_id_is_the_last_header(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    create_group(js, stream, "pinned_client", headers_only=True)
    js.publish(f"{stream}.a", b"hello", {"A": "b"})

    message = watch.pull(stream, "C", request()).next()

    pin = message.header(PIN_HEADER)
    assert message.headers == f"NATS/1.0\r\nA: b\r\nNats-Msg-Size: 5\r\nNats-Pin-Id: {pin}\r\n\r\n".encode()


def test_pins_are_told_of(js: JetStream, watch: Watch, stream: str) -> None:
    js.subscribe(f"{ADVISORY}CONSUMER.*.{stream}.C")
    js.create(stream)
    create_group(js, stream, "pinned_client", priority_timeout=PIN_TIMEOUT_NS)
    js.next(f"{ADVISORY}CONSUMER.CREATED.{stream}.C")
    publish_many(js, stream, "ab")
    pins = [pin_of(watch.pull(stream, "C", request()).next())]
    js.api(f"CONSUMER.UNPIN.{stream}.C", {"group": "g"})
    pins.append(pin_of(watch.pull(stream, "C", request()).next()))

    advisories = [js.next(f"{ADVISORY}CONSUMER.>") for _ in range(4)]

    common = {"id": "...", "timestamp": "TIME", "account": "$G", "stream": stream, "consumer": "C", "group": "g"}
    assert [normal(advisory.json()) for advisory in advisories] == [
        {"type": f"{ADVISORY_TYPE}consumer_group_pinned", **common, "pinned_id": pins[0]},
        {"type": f"{ADVISORY_TYPE}consumer_group_unpinned", **common, "reason": "admin"},
        {"type": f"{ADVISORY_TYPE}consumer_group_pinned", **common, "pinned_id": pins[1]},
        {"type": f"{ADVISORY_TYPE}consumer_group_unpinned", **common, "reason": "timeout"},
    ]
    words = [advisory.subject.split(".")[-3] for advisory in advisories]
    assert words == ["PINNED", "UNPINNED"] * 2


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (None, 10025),
        (b"{}", 10025),
        (b"junk", 10025),
        ({"group": ""}, 10025),
        ({"group": "bad name"}, 10162),
        ({"group": "other"}, 10160),
    ],
)
def test_unpin_needs_a_group_of_the_consumer(js: JetStream, stream: str, body: Body, code: int) -> None:
    js.create(stream)
    create_group(js, stream, "pinned_client")

    assert js.error(f"CONSUMER.UNPIN.{stream}.C", body)[:2] == (400, code)


def test_unpin_needs_a_consumer_with_the_group(js: JetStream, stream: str) -> None:
    js.create(stream)
    create_durable(js, stream, "PLAIN")
    create_group(js, stream, "overflow")
    body = {"group": "g"}

    no_group = (400, 10160, "Provided priority group does not exist for this consumer")
    assert js.error(f"CONSUMER.UNPIN.{stream}.PLAIN", body) == no_group
    assert js.error(f"CONSUMER.UNPIN.{stream}.NONE", body) == (404, 10014, "consumer not found")
    assert js.error(f"CONSUMER.UNPIN.{stream}NONE.C", body) == (404, 10059, "stream not found")
    assert js.error(f"CONSUMER.UNPIN.{stream}.C")[:2] == (400, 10025)
    assert js.api(f"CONSUMER.UNPIN.{stream}.C", {**body, "unknown": 1}) == {"type": f"{TYPE}consumer_unpin_response"}


# Prioritized


def test_requests_are_served_by_priority_and_in_turn_within_one(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    create_group(js, stream, "prioritized")
    number = watch.pull(stream, "C", b"2")
    requests = [watch.pull(stream, "C", request(batch=3, priority=priority)) for priority in (5, 1, 1, 0)]
    wait_for_requests(js, stream, 5)

    publish_many(js, stream, "a" * 14)

    received = [sequences_of(inbox.take(3)) for inbox in requests]
    assert received == [[10, 11, 12], [4, 6, 8], [5, 7, 9], [1, 2, 3]]
    assert sequences_of(number.take(2)) == [13, 14]


def test_better_request_that_comes_later_is_served_first(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    create_group(js, stream, "prioritized")
    first = watch.pull(stream, "C", request(batch=3, priority=2))
    publish_many(js, stream, "a")
    assert sequences_of(first.take(1)) == [1]

    better = watch.pull(stream, "C", request(batch=1))
    wait_for_requests(js, stream, 2)
    publish_many(js, stream, "bc")

    assert sequences_of(better.take(1)) == [2]
    assert sequences_of(first.take(1)) == [3]


def test_redelivery_goes_to_the_best_request(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    create_group(js, stream, "prioritized")
    publish_many(js, stream, "a")
    message = watch.pull(stream, "C", request()).next()
    worse = watch.pull(stream, "C", request(priority=3))
    better = watch.pull(stream, "C", request(priority=2))
    wait_for_requests(js, stream, 2)

    watch.acknowledge(message, b"-NAK")

    assert delivery_of(better.next()).deliveries == 2
    assert worse.settled() == []


# Messages that were delivered too often

EXCEEDED_ACK_WAIT_NS = 300 * MILLISECOND_NS


def exceeded_by(watch: Watch, stream: str) -> Inbox:
    return watch.subscribe(f"{ADVISORY}CONSUMER.MAX_DELIVERIES.{stream}.C")


def test_message_of_a_pinned_client_is_given_up_while_only_others_wait(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream)
    create_group(js, stream, "pinned_client", ack_wait=EXCEEDED_ACK_WAIT_NS, max_deliver=2)
    exceeded = exceeded_by(watch, stream)
    publish_many(js, stream, "a")
    pinned = watch.pull(stream, "C", request(batch=2))
    other = watch.pull(stream, "C", request(batch=2))

    assert [delivery_of(message).deliveries for message in pinned.take(2)] == [1, 2]

    assert exceeded.next().json()["stream_seq"] == 1
    wait_for_consumer(js, stream, "C", lambda info: info["num_ack_pending"] == 0)
    assert other.received() == []


@pytest.mark.parametrize("bound", [{"min_pending": 50}, {"min_ack_pending": 50}])
def test_message_is_given_up_while_only_requests_wait_that_overflow_gives_nothing(
    js: JetStream, watch: Watch, stream: str, bound: Json
) -> None:
    js.create(stream)
    create_group(js, stream, "overflow", ack_wait=EXCEEDED_ACK_WAIT_NS, max_deliver=2)
    exceeded = exceeded_by(watch, stream)
    publish_many(js, stream, "a")
    served = watch.pull(stream, "C", request(batch=2))
    assert [delivery_of(message).deliveries for message in served.take(2)] == [1, 2]

    waiting = watch.pull(stream, "C", request(batch=2, **bound))

    assert exceeded.next().json()["stream_seq"] == 1
    wait_for_consumer(js, stream, "C", lambda info: info["num_ack_pending"] == 0)
    assert waiting.received() == []


def test_message_is_given_up_though_one_before_it_waits_for_the_pinned_client(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream)
    create_group(js, stream, "pinned_client", ack_wait=SECOND_NS, max_deliver=2, priority_timeout=60 * SECOND_NS)
    exceeded = exceeded_by(watch, stream)
    publish_many(js, stream, "ab")
    pinned = watch.pull(stream, "C", request(batch=3))
    second = pinned.take(2)[1]
    watch.acknowledge(second, b"-NAK")
    assert sequences_of([pinned.next()]) == [2]
    other = watch.pull(stream, "C", request())

    # nats-server looks at what stands behind the first one when something else happens.
    advisory = None
    for _ in range(20):
        publish_many(js, stream, "c")
        if advisory := next(iter(exceeded.settled(0.2)), None):
            break
    assert advisory is not None
    assert advisory.json()["stream_seq"] == 2
    wait_for_consumer(js, stream, "C", lambda info: info["num_ack_pending"] == 1)
    assert other.received() == []


@pytest.mark.parametrize("policy", ["overflow", "prioritized", "pinned_client"])
def test_message_that_nobody_asks_for_is_not_given_up(js: JetStream, watch: Watch, stream: str, policy: str) -> None:
    js.create(stream)
    create_group(js, stream, policy, ack_wait=EXCEEDED_ACK_WAIT_NS, max_deliver=2)
    exceeded = exceeded_by(watch, stream)
    publish_many(js, stream, "a")
    watch.pull(stream, "C", request(batch=2)).take(2)

    assert exceeded.settled(3 * EXCEEDED_ACK_WAIT_NS / SECOND_NS) == []
    assert consumer_info(js, stream, "C")["num_ack_pending"] == 1
