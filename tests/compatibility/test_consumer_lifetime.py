"""How long consumers live: those that nobody uses end by themselves, and what a deleted one leaves behind."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from tests.compatibility import consumer_watch, jetstream
from tests.compatibility.consumer_watch import (
    Watch,
    consumer_info,
    create_consumer,
    create_consumer_error,
    create_durable,
    delete_consumer,
    numbers_of,
    publish_many,
    sequences_of,
    wait_for_consumer,
    wait_until_deleted,
)
from tests.compatibility.jetstream import (
    ADVISORY,
    API,
    MILLISECOND_NS,
    POLL_SECONDS,
    SECOND_NS,
    TYPE,
    JetStream,
    Message,
)
from tests.compatibility.server_process import ServerProcess

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream
watch = consumer_watch.watch

SHORT_NS = 100 * MILLISECOND_NS

# Of consumers that are used: a machine that is busy may come late with the next use.
PATIENT_NS = 4 * SECOND_NS

# A pull consumer that is not used has ended by then: up to a second is added to its threshold.
ENDED_SECONDS = PATIENT_NS / SECOND_NS + 1.6

CONSUMER_DELETED = b"NATS/1.0 409 Consumer Deleted\r\n\r\n"
NOT_FOUND = (404, 10014, "consumer not found")


def is_no_responders(message: Message, subject: str) -> bool:
    return message.headers == f"NATS/1.0 503\r\nNats-Subject: {subject}\r\n\r\n".encode()


# Thresholds


def test_ephemeral_consumer_has_a_threshold_of_five_seconds(js: JetStream, stream: str) -> None:
    js.create(stream)

    pull = create_consumer(js, stream, "PULL")
    push = create_consumer(js, stream, "PUSH", deliver_subject=f"to.{stream}")
    negative = create_consumer(js, stream, "NEGATIVE", inactive_threshold=-1)

    for created in (pull, push, negative):
        assert created["config"]["inactive_threshold"] == 5 * SECOND_NS
        assert "durable_name" not in created["config"]


def test_durable_consumer_has_no_threshold(js: JetStream, stream: str) -> None:
    js.create(stream)

    assert "inactive_threshold" not in create_durable(js, stream, "C")["config"]


def test_consumer_without_a_name_is_given_one_that_is_not_in_its_configuration(js: JetStream, stream: str) -> None:
    js.create(stream)
    request = {"stream_name": stream, "config": {"ack_policy": "explicit"}}

    created = [js.api(f"CONSUMER.CREATE.{stream}", request) for _ in range(2)]

    assert all(re.fullmatch("[0-9A-Za-z]{8}", info["name"]) for info in created)
    assert all("name" not in info["config"] for info in created)
    assert js.api(f"CONSUMER.NAMES.{stream}")["consumers"] == sorted(info["name"] for info in created)


def test_stream_gives_a_threshold_to_its_consumers(js: JetStream, stream: str) -> None:
    js.create(stream, consumer_limits={"inactive_threshold": SECOND_NS})

    durable = create_durable(js, stream, "DURABLE")
    ephemeral = create_consumer(js, stream, "EPHEMERAL")
    shorter = create_consumer(js, stream, "SHORTER", inactive_threshold=SECOND_NS // 2)

    assert durable["config"]["inactive_threshold"] == SECOND_NS
    assert ephemeral["config"]["inactive_threshold"] == SECOND_NS
    assert shorter["config"]["inactive_threshold"] == SECOND_NS // 2
    refused = create_consumer_error(js, stream, "LONGER", inactive_threshold=2 * SECOND_NS)
    assert refused == (400, 10153, "consumer inactive threshold exceeds system limit of 1s")


# The end of consumers nobody uses


@pytest.mark.parametrize("durable", ["", "C"])
@pytest.mark.parametrize("deliver_subject", ["", "to.nobody"])
@pytest.mark.parametrize("mem_storage", [False, True])
def test_consumer_that_is_not_used_ends(
    js: JetStream, stream: str, durable: str, deliver_subject: str, mem_storage: bool
) -> None:
    js.subscribe(f"{ADVISORY}CONSUMER.DELETED.{stream}.*")
    js.create(stream)
    options = {"durable_name": durable, "deliver_subject": deliver_subject, "mem_storage": mem_storage}

    created = create_consumer(js, stream, "C", inactive_threshold=SHORT_NS, **options)

    assert created["config"]["inactive_threshold"] == SHORT_NS
    assert js.next(f"{ADVISORY}>").json()["consumer"] == "C"
    wait_until_deleted(js, stream, "C")


def test_consumers_that_are_used_stay(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    threshold: dict[str, Any] = {"inactive_threshold": PATIENT_NS}
    create_durable(js, stream, "WAITED", filter_subject=f"{stream}.none", **threshold)
    waiting = watch.pull(stream, "WAITED", {"batch": 1})
    create_durable(js, stream, "UNACKNOWLEDGED", ack_wait=60 * SECOND_NS, **threshold)
    messages = watch.fetch(stream, "UNACKNOWLEDGED", 2)
    create_durable(js, stream, "BOUND", deliver_subject=f"to.{stream}", **threshold)
    subscription = watch.subscribe(f"to.{stream}")
    create_durable(js, stream, "ASKED", filter_subject=f"{stream}.none", **threshold)
    create_durable(js, stream, "UNUSED", **threshold)

    deadline = time.monotonic() + ENDED_SECONDS
    while "error" not in js.api(f"CONSUMER.INFO.{stream}.UNUSED") or time.monotonic() < deadline:
        watch.pull(stream, "ASKED", {"batch": 1, "no_wait": True}).close()
        time.sleep(POLL_SECONDS)

    names = js.api(f"CONSUMER.NAMES.{stream}")["consumers"]
    assert names == ["ASKED", "BOUND", "UNACKNOWLEDGED", "WAITED"]

    # Each ends when it is not used any more.
    waiting.close()
    subscription.close()
    for message in messages:
        watch.acknowledge(message)
    for name in names:
        wait_until_deleted(js, stream, name)


def test_push_consumer_ends_when_its_subscriber_disconnects(
    js: JetStream, js_server: ServerProcess, stream: str
) -> None:
    js.create(stream)
    with Watch(js_server) as gone:
        gone.subscribe(f"to.{stream}")
        create_consumer(js, stream, "C", deliver_subject=f"to.{stream}", inactive_threshold=SHORT_NS)
        gone.subscribe("any").settled(0.3)
        assert consumer_info(js, stream, "C")["push_bound"] is True

    wait_until_deleted(js, stream, "C")


def test_push_consumer_whose_subscriber_comes_back_in_time_stays(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    first = watch.subscribe(f"to.{stream}")
    create_consumer(js, stream, "C", deliver_subject=f"to.{stream}", inactive_threshold=PATIENT_NS)

    first.close()
    second = watch.subscribe(f"to.{stream}")

    assert second.settled(ENDED_SECONDS) == []
    assert consumer_info(js, stream, "C")["push_bound"] is True


def test_threshold_can_be_changed(js: JetStream, stream: str) -> None:
    js.create(stream)
    create_durable(js, stream, "SHORTENED", inactive_threshold=60 * SECOND_NS)
    create_durable(js, stream, "GIVEN")
    create_durable(js, stream, "TAKEN", inactive_threshold=PATIENT_NS)

    for name in ("SHORTENED", "GIVEN"):
        updated = create_durable(js, stream, name, inactive_threshold=SHORT_NS)
        assert updated["config"]["inactive_threshold"] == SHORT_NS
    assert "inactive_threshold" not in create_durable(js, stream, "TAKEN")["config"]

    for name in ("SHORTENED", "GIVEN"):
        wait_until_deleted(js, stream, name)
    time.sleep(ENDED_SECONDS)
    assert js.api(f"CONSUMER.NAMES.{stream}")["consumers"] == ["TAKEN"]


# Deleted consumers


def test_deleted_consumer_answers_waiting_requests(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "a")
    create_durable(js, stream, "C")
    bodies = [
        {"batch": 5},
        {"batch": 5, "expires": 30 * SECOND_NS, "max_bytes": 1000},
        {"batch": 1, "expires": 30 * SECOND_NS, "idle_heartbeat": 10 * SECOND_NS},
    ]
    inboxes = [watch.pull(stream, "C", body) for body in bodies]
    assert sequences_of(inboxes[0].take(1)) == [1]
    wait_for_consumer(js, stream, "C", lambda info: info["num_waiting"] == len(bodies))

    answer = js.api(f"CONSUMER.DELETE.{stream}.C")

    assert answer == {"type": f"{TYPE}consumer_delete_response", "success": True}
    assert [inbox.next() for inbox in inboxes] == [
        Message(inbox.subject, "", CONSUMER_DELETED, b"") for inbox in inboxes
    ]


def test_deleted_consumer_has_no_subjects(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "a")
    create_durable(js, stream, "C")
    message = watch.fetch(stream, "C", 1)[0]

    delete_consumer(js, stream, "C")

    assert is_no_responders(watch.request(message.reply), message.reply)
    next_subject = f"{API}CONSUMER.MSG.NEXT.{stream}.C"
    assert is_no_responders(watch.request(next_subject), next_subject)
    assert js.error(f"CONSUMER.INFO.{stream}.C") == NOT_FOUND
    assert js.error(f"CONSUMER.DELETE.{stream}.C") == NOT_FOUND
    assert js.state(stream)["consumer_count"] == 0


def test_deleted_push_consumer_delivers_nothing_more(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    inbox = watch.subscribe(f"to.{stream}")
    create_durable(js, stream, "C", deliver_subject=f"to.{stream}", idle_heartbeat=SHORT_NS)
    publish_many(js, stream, "a")
    inbox.next_delivered()

    delete_consumer(js, stream, "C")
    inbox.received()
    publish_many(js, stream, "b")

    assert inbox.settled(0.3) == []


def test_name_of_a_deleted_consumer_is_free_for_another_kind(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    create_durable(js, stream, "C")
    first = watch.fetch(stream, "C", 2)
    watch.acknowledge(first[0])
    delete_consumer(js, stream, "C")

    inbox = watch.subscribe(f"to.{stream}")
    created = create_consumer(js, stream, "C", deliver_subject=f"to.{stream}", deliver_policy="last")

    assert numbers_of(created)[:2] == (0, 1)
    assert sequences_of(inbox.take(1)) == [2]


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_new_consumer_with_an_old_name_starts_anew(js: JetStream, watch: Watch, stream: str, storage: str) -> None:
    js.create(stream, storage=storage)
    publish_many(js, stream, "ab")
    create_durable(js, stream, "C")
    for message in watch.fetch(stream, "C", 2):
        watch.acknowledge(message)
    delete_consumer(js, stream, "C")

    created = create_durable(js, stream, "C")

    assert numbers_of(created) == (0, 0, 0, 0, 0, 2)
    assert sequences_of(watch.fetch(stream, "C", 2)) == [1, 2]


def test_name_of_an_ended_consumer_is_free(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "a")
    create_consumer(js, stream, "C", deliver_subject="to.nobody", inactive_threshold=SHORT_NS)
    wait_until_deleted(js, stream, "C")

    create_durable(js, stream, "C")

    assert sequences_of(watch.fetch(stream, "C", 1)) == [1]


# Deleted streams


def test_consumers_end_with_their_stream(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "a")
    create_durable(js, stream, "C")
    message = watch.fetch(stream, "C", 1)[0]
    waiting = watch.pull(stream, "C", {"batch": 5})
    wait_for_consumer(js, stream, "C", lambda info: info["num_waiting"] == 1)

    js.api(f"STREAM.DELETE.{stream}")

    assert waiting.next().headers == CONSUMER_DELETED
    assert is_no_responders(watch.request(message.reply), message.reply)
    assert watch.pull(stream, "C").next().status == "503"
    assert js.error(f"CONSUMER.INFO.{stream}.C") == (404, 10059, "stream not found")


def test_new_stream_with_an_old_name_has_no_consumers(js: JetStream, stream: str) -> None:
    js.create(stream)
    create_durable(js, stream, "C")
    js.api(f"STREAM.DELETE.{stream}")

    js.create(stream)

    assert js.api(f"CONSUMER.NAMES.{stream}")["consumers"] == []
    assert js.state(stream)["consumer_count"] == 0
    assert js.error(f"CONSUMER.INFO.{stream}.C") == NOT_FOUND


# Consumers in memory


@pytest.mark.parametrize("storage", ["file", "memory"])
@pytest.mark.parametrize("mem_storage", [False, True])
def test_consumer_in_memory_works_as_any_other(
    js: JetStream, watch: Watch, stream: str, storage: str, mem_storage: bool
) -> None:
    js.create(stream, storage=storage)
    publish_many(js, stream, "abc")

    created = create_durable(js, stream, "C", mem_storage=mem_storage)

    assert created["config"].get("mem_storage", False) == mem_storage
    messages = watch.fetch(stream, "C", 3)
    watch.acknowledge(messages[1])
    assert numbers_of(consumer_info(js, stream, "C")) == (3, 3, 0, 0, 2, 0)
    watch.acknowledge(messages[0])
    assert numbers_of(consumer_info(js, stream, "C")) == (3, 3, 2, 2, 1, 0)


def test_storage_of_a_consumer_cannot_be_changed(js: JetStream, stream: str) -> None:
    js.create(stream)
    create_durable(js, stream, "C", mem_storage=True)

    refused = create_consumer_error(js, stream, "C", durable_name="C", ack_policy="explicit")

    assert refused == (500, 10012, "storage type can not be updated")
