"""What is told of consumers: their creation and end, messages that were not acknowledged as hoped, and ack times.

Pauses and pins have their advisories beside the rest of their tests; here is one look at each, for its schema.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.compatibility import consumer_watch, jetstream
from tests.compatibility.consumer_watch import (
    Watch,
    create_consumer,
    create_consumer_error,
    create_durable,
    delete_consumer,
    publish_many,
    wait_for_consumer,
)
from tests.compatibility.jetstream import (
    ADVISORY,
    ADVISORY_TYPE,
    API,
    MILLISECOND_NS,
    SECOND_NS,
    JetStream,
    Json,
    Message,
    normal,
)
from tests.compatibility.server_process import ServerProcess
from tests.management import schemas

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream
start_jetstream, watch = jetstream.start_jetstream, consumer_watch.watch

METRIC = "$JS.EVENT.METRIC.CONSUMER.ACK."
METRIC_TYPE = "io.nats.jetstream.metric.v1."

# The published schemas have this sequence as a text, and a field for pins that nats-server does not tell.
MISTAKES_OF_SCHEMAS = (".consumer_seq: ", "pinned: server is missing")

DELETED_REASON = "Unacknowledged message was deleted"

# What must come before a pause or the time to acknowledge ends may be late on a busy machine.
PATIENT_SECONDS = 4


def listen(js: JetStream, stream: str) -> None:
    """Subscribe to all that is told of the consumers of a stream."""
    js.subscribe(f"{ADVISORY}CONSUMER.*.{stream}.*")
    js.subscribe(f"{METRIC}{stream}.*")


def next_told(js: JetStream, word: str, stream: str, name: str = "C") -> Json:
    """Return the next advisory of this kind as a normal object, without what all of its consumer have."""
    subject = f"{METRIC}{stream}.{name}" if word == "ACK" else f"{ADVISORY}CONSUMER.{word}.{stream}.{name}"
    return checked(js.next(subject), stream, name)


def told(js: JetStream, stream: str) -> list[tuple[str, Json]]:
    """Return all that was told until now, each with its word."""
    messages = [message for message in js.received("$JS.EVENT.>") if message.subject.split(".")[-2] == stream]
    return [
        (message.subject.split(".")[-3], checked(message, stream, message.subject.split(".")[-1]))
        for message in messages
    ]


def checked(message: Message, stream: str, name: str) -> Json:
    advisory = message.json()
    assert (message.reply, message.headers) == ("", b"")
    assert len(advisory["id"]) == 22
    assert problems_by_schema(advisory) == []
    normalised: Json = normal(advisory)
    common = {"id": "...", "timestamp": "TIME", "stream": stream, "consumer": name}
    assert {key: normalised.pop(key) for key in common} == common
    return normalised


def problems_by_schema(advisory: Json) -> list[str]:
    """Return what is wrong by the published schema, where there is one among the fixtures."""
    name = advisory["type"].rpartition(".")[2]
    if not (schemas.FOLDER / f"{name}.json").is_file():
        return []
    problems = schemas.problems_of(advisory, name)
    return [problem for problem in problems if not any(mistake in problem for mistake in MISTAKES_OF_SCHEMAS)]


def action(name: str) -> Json:
    return {"type": f"{ADVISORY_TYPE}consumer_action", "action": name}


def about_message(kind: str, consumer_sequence: int, stream_sequence: int, deliveries: int = 1, **more: Any) -> Json:
    numbers = {"consumer_seq": consumer_sequence, "stream_seq": stream_sequence, "deliveries": deliveries}
    return {"type": ADVISORY_TYPE + kind, **numbers, **more}


def exhausted(stream_sequence: int, deliveries: int) -> Json:
    return {"type": f"{ADVISORY_TYPE}max_deliver", "stream_seq": stream_sequence, "deliveries": deliveries}


def soon() -> str:
    return (datetime.now(UTC) + timedelta(seconds=PATIENT_SECONDS)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# Creation and end


def test_creation_and_deletion_are_told_and_updates_are_not(js: JetStream, stream: str) -> None:
    js.create(stream)
    listen(js, stream)

    create_durable(js, stream, "C")
    create_durable(js, stream, "C")
    create_durable(js, stream, "C", description="changed")
    delete_consumer(js, stream, "C")

    assert next_told(js, "CREATED", stream) == action("create")
    assert next_told(js, "DELETED", stream) == action("delete")
    assert told(js, stream) == []


def test_refused_consumer_is_not_told(js: JetStream, stream: str) -> None:
    js.create(stream)
    listen(js, stream)

    create_consumer_error(js, stream, "C", deliver_subject=f"{stream}.x")
    js.error(f"CONSUMER.DELETE.{stream}.C")

    assert told(js, stream) == []


def test_consumer_without_a_name_is_told_with_the_one_it_was_given(js: JetStream, stream: str) -> None:
    js.create(stream)
    listen(js, stream)

    name = js.api(f"CONSUMER.CREATE.{stream}", {"stream_name": stream, "config": {}})["name"]

    assert next_told(js, "CREATED", stream, name) == action("create")


def test_end_of_an_unused_consumer_is_told(js: JetStream, stream: str) -> None:
    js.create(stream)
    listen(js, stream)

    create_consumer(js, stream, "C", deliver_subject="to.nobody", inactive_threshold=100 * MILLISECOND_NS)

    assert next_told(js, "CREATED", stream) == action("create")
    assert next_told(js, "DELETED", stream) == action("delete")


def test_consumers_are_told_before_their_stream_is_deleted(js: JetStream, stream: str) -> None:
    js.create(stream)
    for name in ("ONE", "TWO"):
        create_durable(js, stream, name)
    listen(js, stream)
    js.subscribe(f"{ADVISORY}STREAM.DELETED.{stream}")

    js.api(f"STREAM.DELETE.{stream}")

    subjects = [js.next("$JS.EVENT.>").subject.removeprefix(ADVISORY) for _ in range(3)]
    consumers = {f"CONSUMER.DELETED.{stream}.ONE", f"CONSUMER.DELETED.{stream}.TWO"}
    assert set(subjects[:2]) == consumers
    assert subjects[2] == f"STREAM.DELETED.{stream}"


def test_pause_and_its_end_are_told(js: JetStream, stream: str) -> None:
    js.create(stream)
    listen(js, stream)

    create_durable(js, stream, "C", pause_until=soon())

    pause = {"type": f"{ADVISORY_TYPE}consumer_pause", "pause_until": "TIME"}
    assert next_told(js, "PAUSE", stream) == {**pause, "paused": True}
    assert next_told(js, "PAUSE", stream) == {**pause, "paused": False}


def test_pin_and_its_end_are_told(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "a")
    create_durable(js, stream, "C", priority_policy="pinned_client", priority_groups=["g"])
    listen(js, stream)

    pin = watch.pull(stream, "C", {"batch": 1, "group": "g"}).next().header("Nats-Pin-Id")
    js.api(f"CONSUMER.UNPIN.{stream}.C", {"group": "g"})

    group = {"account": "$G", "group": "g"}
    pinned = {"type": f"{ADVISORY_TYPE}consumer_group_pinned", **group, "pinned_id": pin}
    assert next_told(js, "PINNED", stream) == pinned
    unpinned = {"type": f"{ADVISORY_TYPE}consumer_group_unpinned", **group, "reason": "admin"}
    assert next_told(js, "UNPINNED", stream) == unpinned


def test_domain_is_told(start_jetstream: Callable[..., ServerProcess]) -> None:
    server = start_jetstream(jetstream="domain: hub")
    with JetStream(server) as js, Watch(server) as watch:
        js.create("S")
        publish_many(js, "S", "abc")
        js.subscribe("$JS.EVENT.ADVISORY.CONSUMER.>")
        js.subscribe("$JS.EVENT.METRIC.>")
        options = {"priority_policy": "pinned_client", "priority_groups": ["g"], "sample_freq": "100"}
        create_durable(js, "S", "C", max_deliver=1, pause_until="2020-01-01T00:00:00Z", **options)
        inbox = watch.pull("S", "C", {"batch": 3, "group": "g"})
        for body in (b"+ACK", b"-NAK", b"+TERM"):
            watch.acknowledge(inbox.next(), body)
        js.api("CONSUMER.UNPIN.S.C", {"group": "g"})
        watch.pull("S", "C", {"batch": 1, "group": "g"})
        js.next("$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.S.C")
        js.api("CONSUMER.PAUSE.S.C")
        delete_consumer(js, "S", "C")

        advisories = [message.json() for message in js.received("$JS.EVENT.>")]

    kinds = [advisory["type"].rpartition(".")[2] for advisory in advisories]
    expected = ["consumer_action", "consumer_group_pinned", "consumer_ack", "nak", "terminated"]
    assert kinds == [*expected, "consumer_group_unpinned", "consumer_pause", "consumer_action"]
    assert {advisory.get("domain") for advisory in advisories} == {"hub"}


# Messages that were not acknowledged


@pytest.mark.parametrize("body", [b"-NAK", b'-NAK {"delay": 60000000000}', b"-NAK 1m", b"-NAK nonsense"])
def test_negative_acknowledgement_is_told(js: JetStream, watch: Watch, stream: str, body: bytes) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    create_durable(js, stream, "C")
    _, message = watch.fetch(stream, "C", 2)
    listen(js, stream)

    watch.acknowledge(message, body)

    assert next_told(js, "MSG_NAKED", stream) == about_message("nak", 2, 2)


def test_negative_acknowledgement_of_a_redelivery_has_its_numbers(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    create_durable(js, stream, "C")
    first, _ = watch.fetch(stream, "C", 2)
    listen(js, stream)

    watch.acknowledge(first, b"-NAK")
    watch.acknowledge(watch.fetch(stream, "C", 1)[0], b"-NAK")

    assert next_told(js, "MSG_NAKED", stream) == about_message("nak", 1, 1, 1)
    assert next_told(js, "MSG_NAKED", stream) == about_message("nak", 3, 1, 2)


@pytest.mark.parametrize(
    ("body", "more"),
    [
        (b"+TERM", {}),
        (b"+TERM ", {}),
        (b"+TERM it is over", {"reason": "it is over"}),
        (b'+TERM   {"a": "<b>"}  ', {"reason": '{"a": "<b>"}'}),
    ],
)
def test_termination_is_told_with_its_reason(js: JetStream, watch: Watch, stream: str, body: bytes, more: Json) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    create_durable(js, stream, "C", sample_freq="100")
    _, message = watch.fetch(stream, "C", 2)
    listen(js, stream)

    watch.acknowledge(message, body)

    assert next_told(js, "MSG_TERMINATED", stream) == about_message("terminated", 2, 2, **more)
    assert told(js, stream) == []


def test_what_is_over_is_not_told_as_naked(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    create_durable(js, stream, "C")
    acknowledged, terminated = watch.fetch(stream, "C", 2)
    watch.acknowledge(acknowledged)
    watch.acknowledge(terminated, b"+TERM")
    listen(js, stream)

    for message in (acknowledged, terminated):
        watch.acknowledge(message, b"-NAK")
        watch.acknowledge(message, b"+WPI")

    assert told(js, stream) == []


@pytest.mark.parametrize("body", [b"+ACK", b"+WPI", b"nonsense"])
def test_nothing_is_told_of_other_answers(js: JetStream, watch: Watch, stream: str, body: bytes) -> None:
    js.create(stream)
    publish_many(js, stream, "a")
    create_durable(js, stream, "C")
    listen(js, stream)

    watch.acknowledge(watch.fetch(stream, "C", 1)[0], body)

    assert told(js, stream) == []


# Messages that were delivered too often


def test_message_that_may_be_delivered_once_is_told_after_the_ack_wait(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    create_durable(js, stream, "C", max_deliver=1, ack_wait=PATIENT_SECONDS * SECOND_NS)
    listen(js, stream)

    watch.acknowledge(watch.fetch(stream, "C", 2)[0])

    assert next_told(js, "MAX_DELIVERIES", stream) == exhausted(2, 1)
    wait_for_consumer(js, stream, "C", lambda info: info["num_ack_pending"] == 0)
    assert told(js, stream) == []


def test_message_that_was_delivered_too_often_is_told_when_it_would_be_delivered_again(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream)
    publish_many(js, stream, "a")
    create_durable(js, stream, "C", max_deliver=2, ack_wait=100 * MILLISECOND_NS)
    listen(js, stream)

    for _ in range(2):
        watch.fetch(stream, "C", 1)
    inbox = watch.pull(stream, "C", {"batch": 1})

    assert next_told(js, "MAX_DELIVERIES", stream) == exhausted(1, 2)
    assert inbox.settled() == []
    assert told(js, stream) == []


def test_negative_acknowledgement_of_the_last_delivery_is_told_before(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "a")
    create_durable(js, stream, "C", max_deliver=1)
    listen(js, stream)

    watch.acknowledge(watch.fetch(stream, "C", 1)[0], b"-NAK")
    watch.pull(stream, "C", {"batch": 1})

    assert next_told(js, "MSG_NAKED", stream) == about_message("nak", 1, 1)
    assert next_told(js, "MAX_DELIVERIES", stream) == exhausted(1, 1)


def test_push_consumer_tells_what_was_delivered_too_often(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "a")
    inbox = watch.subscribe(f"to.{stream}")
    listen(js, stream)

    options = {"deliver_subject": f"to.{stream}", "ack_wait": 100 * MILLISECOND_NS}
    create_durable(js, stream, "C", max_deliver=3, **options)

    assert next_told(js, "MAX_DELIVERIES", stream) == exhausted(1, 3)
    assert len(inbox.received()) == 3


# Messages that went away


@pytest.mark.parametrize(
    ("config", "remove"),
    [
        ({}, lambda js, stream: js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 1})),
        ({"max_msgs": 2}, lambda js, stream: js.publish(f"{stream}.c")),
        ({"max_msgs_per_subject": 1}, lambda js, stream: js.publish(f"{stream}.a")),
        ({"allow_rollup_hdrs": True}, lambda js, stream: js.publish(f"{stream}.a", b"", {"Nats-Rollup": "sub"})),
    ],
    ids=["deleted", "limit", "subject-limit", "rollup"],
)
def test_removal_of_an_unacknowledged_message_is_told_as_a_termination(
    js: JetStream, watch: Watch, stream: str, config: Json, remove: Callable[[JetStream, str], Json]
) -> None:
    js.create(stream, **config)
    publish_many(js, stream, "ab")
    create_durable(js, stream, "C")
    watch.fetch(stream, "C", 2)
    listen(js, stream)

    remove(js, stream)

    expected = about_message("terminated", 1, 1, reason=DELETED_REASON)
    assert next_told(js, "MSG_TERMINATED", stream) == expected
    wait_for_consumer(js, stream, "C", lambda info: info["num_ack_pending"] == 1)


def test_removal_of_what_is_not_waited_for_is_not_told(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "abc")
    create_durable(js, stream, "C")
    watch.acknowledge(watch.fetch(stream, "C", 2)[0])
    listen(js, stream)

    for sequence in (1, 3):
        js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": sequence})
    wait_for_consumer(js, stream, "C", lambda info: info["num_pending"] == 0)

    assert told(js, stream) == []


def test_purge_is_not_told_as_terminations(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    create_durable(js, stream, "C")
    watch.fetch(stream, "C", 2)
    listen(js, stream)

    js.api(f"STREAM.PURGE.{stream}")
    wait_for_consumer(js, stream, "C", lambda info: info["num_ack_pending"] == 0)

    assert told(js, stream) == []


# The metric of acknowledgements


def acknowledged(js: JetStream, stream: str) -> Json:
    """Return the next metric without its time, which must be that of a moment."""
    metric = next_told(js, "ACK", stream)
    assert 0 < metric.pop("ack_time") < 60 * SECOND_NS
    return metric


def ack_metric(consumer_sequence: int, stream_sequence: int, deliveries: int) -> Json:
    numbers = about_message("", consumer_sequence, stream_sequence, deliveries)
    return {**numbers, "type": f"{METRIC_TYPE}consumer_ack"}


@pytest.mark.parametrize("frequency", ["100", "100%", "1000"])
def test_every_acknowledgement_is_measured_when_all_are_sampled(
    js: JetStream, watch: Watch, stream: str, frequency: str
) -> None:
    js.create(stream)
    publish_many(js, stream, "abc")
    assert create_durable(js, stream, "C", sample_freq=frequency)["config"]["sample_freq"] == frequency
    first, second, third = watch.fetch(stream, "C", 3)
    listen(js, stream)

    watch.acknowledge(second, b"-NAK")
    watch.acknowledge(watch.fetch(stream, "C", 1)[0])
    watch.acknowledge(third, b"")
    watch.acknowledge(first, b"+OK")
    watch.acknowledge(first)

    assert acknowledged(js, stream) == ack_metric(4, 2, 2)
    assert acknowledged(js, stream) == ack_metric(3, 3, 1)
    assert acknowledged(js, stream) == ack_metric(1, 1, 1)
    assert [word for word, _ in told(js, stream)] == ["MSG_NAKED"]


def test_acknowledgement_that_asks_for_more_is_measured(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    create_durable(js, stream, "C", sample_freq="100")
    listen(js, stream)
    inbox = watch.new_inbox()

    watch.send(watch.fetch(stream, "C", 1)[0].reply, b"+NXT", reply=inbox.subject)

    inbox.next()
    assert acknowledged(js, stream) == ack_metric(1, 1, 1)


@pytest.mark.parametrize(
    "config", [{}, {"sample_freq": "0"}, {"sample_freq": "100", "ack_policy": "all"}], ids=["none", "never", "all"]
)
def test_acknowledgement_is_not_measured(js: JetStream, watch: Watch, stream: str, config: Json) -> None:
    js.create(stream)
    publish_many(js, stream, "a")
    create_durable(js, stream, "C", **config)
    listen(js, stream)

    watch.acknowledge(watch.fetch(stream, "C", 1)[0])

    assert told(js, stream) == []


def test_measuring_can_be_switched_on(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "a")
    create_durable(js, stream, "C")
    listen(js, stream)

    create_durable(js, stream, "C", sample_freq="100")
    watch.acknowledge(watch.fetch(stream, "C", 1)[0])

    assert acknowledged(js, stream) == ack_metric(1, 1, 1)


@pytest.mark.parametrize("frequency", ["-1", "x", "50.5", "%", "5%%", " 5"])
def test_frequency_must_be_a_number(js: JetStream, stream: str, frequency: str) -> None:
    js.create(stream)

    refused = create_consumer_error(js, stream, "C", ack_policy="explicit", sample_freq=frequency)

    assert refused[:2] == (400, 10095)
    assert refused[2].startswith("failed to parse consumer sampling configuration: ")


# The audit of requests


def test_requests_about_consumers_are_audited_except_those_for_messages_and_resets(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream)
    publish_many(js, stream, "a")
    js.subscribe(f"{ADVISORY}API")

    create_durable(js, stream, "C")
    for name in ("INFO", "RESET", "PAUSE", "UNPIN", "DELETE"):
        js.api(f"CONSUMER.{name}.{stream}.C")
        if name == "INFO":
            watch.fetch(stream, "C", 1)
    for name in ("NAMES", "LIST"):
        js.api(f"CONSUMER.{name}.{stream}")

    names = ("CREATE", "INFO", "PAUSE", "UNPIN", "DELETE")
    subjects = [f"{API}CONSUMER.{name}.{stream}.C" for name in names]
    subjects += [f"{API}CONSUMER.{name}.{stream}" for name in ("NAMES", "LIST")]
    audits = [js.next(f"{ADVISORY}API").json() for _ in subjects]
    assert sorted(audit["subject"] for audit in audits) == sorted(subjects)
    assert [schemas.problems_of(audit, "api_audit") for audit in audits] == [[]] * len(audits)
