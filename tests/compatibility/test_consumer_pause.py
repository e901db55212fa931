"""Paused consumers: they deliver nothing until a time or until they are resumed, and otherwise live on.

A pull request that waits while its consumer is resumed may be served at once or with the next event; so these tests
publish or pull again where they resume.
"""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.compatibility import consumer_watch, jetstream
from tests.compatibility.consumer_watch import (
    Watch,
    consumer_info,
    create_durable,
    delivery_of,
    numbers_of,
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
    normal,
)

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream
watch = consumer_watch.watch

LATER = "2050-01-01T00:00:00Z"
EARLIER = "2020-01-01T00:00:00Z"

# Longer than a test takes to set up what must happen during the pause, on a busy machine as well.
SHORT_SECONDS = 5.0

RESUMED = {"type": f"{TYPE}consumer_pause_response", "paused": False, "pause_until": ZERO_TIME}


def soon() -> str:
    """A time in a moment, as the server writes it."""
    moment = datetime.now(UTC) + timedelta(seconds=SHORT_SECONDS)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".") + "Z"


def pause(js: JetStream, stream: str, until: str = LATER) -> Json:
    answer = js.api(f"CONSUMER.PAUSE.{stream}.C", {"pause_until": until})
    assert "error" not in answer, answer
    return answer


def resume(js: JetStream, stream: str) -> None:
    assert js.api(f"CONSUMER.PAUSE.{stream}.C") == RESUMED


def pause_of(info: Json) -> tuple[bool, str | None, bool]:
    """Return whether it is paused, until when by its configuration, and whether it tells the remaining time."""
    return info.get("paused", False), info["config"].get("pause_until"), "pause_remaining" in info


# The interface


def test_consumer_can_be_created_paused(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")

    created = create_durable(js, stream, "C", pause_until=LATER)

    assert pause_of(created) == (True, LATER, True)
    assert created["pause_remaining"] > 0
    assert created["config"]["metadata"]["_nats.req.level"] == "1"
    assert watch.pull(stream, "C", b"2").settled() == []
    assert numbers_of(consumer_info(js, stream, "C")) == (0, 0, 0, 0, 0, 2)


def test_answer_to_a_pause_tells_until_when(js: JetStream, stream: str) -> None:
    js.create(stream)
    assert pause_of(create_durable(js, stream, "C")) == (False, None, False)

    answer = pause(js, stream)

    remaining_ns = answer.pop("pause_remaining")
    assert answer == {"type": f"{TYPE}consumer_pause_response", "paused": True, "pause_until": LATER}
    info = consumer_info(js, stream, "C")
    assert pause_of(info) == (True, LATER, True)
    assert 0 < info["pause_remaining"] < remaining_ns


def test_resumed_consumer_shows_no_pause(js: JetStream, stream: str) -> None:
    js.create(stream)
    create_durable(js, stream, "C", pause_until=LATER)

    for _ in range(2):
        resume(js, stream)

        assert pause_of(consumer_info(js, stream, "C")) == (False, None, False)


def test_pause_that_is_over_is_kept_in_the_configuration(js: JetStream, stream: str) -> None:
    js.create(stream)
    created = create_durable(js, stream, "C", pause_until=EARLIER)
    assert pause_of(created) == (False, EARLIER, False)

    answer = pause(js, stream, "2021-01-01T00:00:00Z")

    assert answer == {**RESUMED, "pause_until": "2021-01-01T00:00:00Z"}
    assert pause_of(consumer_info(js, stream, "C")) == (False, "2021-01-01T00:00:00Z", False)


def test_time_of_a_pause_is_kept_in_universal_time(js: JetStream, stream: str) -> None:
    js.create(stream)
    create_durable(js, stream, "C")

    answer = pause(js, stream, "2050-01-01T02:30:00.5+02:00")

    assert answer["pause_until"] == "2050-01-01T00:30:00.5Z"
    assert consumer_info(js, stream, "C")["config"]["pause_until"] == "2050-01-01T00:30:00.5Z"


@pytest.mark.parametrize("body", [None, b"{}", b"junk", {"pause_until": None}, {"pause_until": ZERO_TIME}])
def test_request_without_a_time_resumes(js: JetStream, stream: str, body: Body) -> None:
    js.create(stream)
    create_durable(js, stream, "C", pause_until=LATER)

    assert js.api(f"CONSUMER.PAUSE.{stream}.C", body) == RESUMED


@pytest.mark.parametrize("body", [{"pause_until": "tomorrow"}, {"unknown": 1}, b"[]", b'{"pause_until":'])
def test_request_that_is_not_understood_changes_nothing(js: JetStream, stream: str, body: Body) -> None:
    js.create(stream)
    create_durable(js, stream, "C", pause_until=LATER)

    answer = js.api(f"CONSUMER.PAUSE.{stream}.C", body)

    assert (answer["error"]["code"], answer["error"]["err_code"]) == (400, 10025)
    assert (answer["paused"], answer["pause_until"]) == (False, ZERO_TIME)
    assert pause_of(consumer_info(js, stream, "C")) == (True, LATER, True)


def test_only_a_consumer_that_is_there_can_be_paused(js: JetStream, stream: str) -> None:
    js.create(stream)

    assert js.error(f"CONSUMER.PAUSE.{stream}.C", {"pause_until": LATER}) == (404, 10014, "consumer not found")
    assert js.error(f"CONSUMER.PAUSE.{stream}X.C", {"pause_until": LATER}) == (404, 10059, "stream not found")


@pytest.mark.parametrize("changes", [{"description": "new"}, {"pause_until": "2060-01-01T00:00:00Z"}])
def test_update_keeps_the_pause(js: JetStream, stream: str, changes: dict[str, Any]) -> None:
    js.create(stream)
    create_durable(js, stream, "C", pause_until=LATER)

    updated = create_durable(js, stream, "C", **changes)

    assert pause_of(updated) == (True, LATER, True)


def test_update_does_not_pause(js: JetStream, stream: str) -> None:
    js.create(stream)
    create_durable(js, stream, "C")

    updated = create_durable(js, stream, "C", pause_until=LATER)

    assert pause_of(updated) == (False, None, False)


def test_list_shows_the_pause(js: JetStream, stream: str) -> None:
    js.create(stream)
    create_durable(js, stream, "C", pause_until=LATER)

    assert pause_of(js.api(f"CONSUMER.LIST.{stream}")["consumers"][0]) == (True, LATER, True)


# Pull requests


@pytest.mark.parametrize(
    ("fields", "statuses"),
    [
        ({"no_wait": True}, ["404 No Messages"]),
        ({"no_wait": True, "expires": 150 * MILLISECOND_NS}, ["408 Request Timeout"]),
        ({"expires": 150 * MILLISECOND_NS}, ["408 Request Timeout"]),
        (
            # There is time for heartbeats though the server comes late with some of them.
            {"expires": 4 * SECOND_NS, "idle_heartbeat": 250 * MILLISECOND_NS},
            ["100 Idle Heartbeat", "408 Request Timeout"],
        ),
    ],
)
def test_requests_to_a_paused_consumer_end_as_if_there_was_nothing(
    js: JetStream, watch: Watch, stream: str, fields: Json, statuses: list[str]
) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    create_durable(js, stream, "C", pause_until=LATER)

    inbox = watch.pull(stream, "C", {"batch": 2, **fields})

    received = [inbox.next().status]
    while received[-1] == "100 Idle Heartbeat":
        received.append(inbox.next().status)
    # How many heartbeats there are depends on the time.
    assert [status for status, _ in itertools.groupby(received)] == statuses
    assert inbox.received() == []


def test_request_waits_until_the_pause_is_over(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    create_durable(js, stream, "C")
    publish_many(js, stream, "a")
    until = soon()
    pause(js, stream, until)
    inbox = watch.pull(stream, "C", {"batch": 5})
    publish_many(js, stream, "bc")
    assert inbox.settled() == []

    assert sequences_of(inbox.take(3)) == [1, 2, 3]
    assert pause_of(consumer_info(js, stream, "C")) == (False, until, False)


def test_waiting_requests_are_served_after_the_resume(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "a")
    create_durable(js, stream, "C", pause_until=LATER)
    inbox = watch.pull(stream, "C", {"batch": 5})
    publish_many(js, stream, "b")
    assert inbox.settled() == []

    resume(js, stream)
    publish_many(js, stream, "c")

    assert sequences_of(inbox.take(3)) == [1, 2, 3]


def test_request_that_was_there_before_the_pause_gets_nothing_during_it(
    js: JetStream, watch: Watch, stream: str
) -> None:
    js.create(stream)
    create_durable(js, stream, "C")
    inbox = watch.pull(stream, "C", {"batch": 5})
    publish_many(js, stream, "a")
    assert sequences_of(inbox.take(1)) == [1]

    pause(js, stream)
    publish_many(js, stream, "b")

    assert inbox.settled() == []
    info = consumer_info(js, stream, "C")
    assert (info["num_waiting"], info["num_pending"]) == (1, 1)


def test_acknowledgements_are_taken_during_a_pause(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    create_durable(js, stream, "C")
    message = watch.fetch(stream, "C", 1)[0]
    pause(js, stream)

    watch.acknowledge(message)

    assert numbers_of(consumer_info(js, stream, "C")) == (1, 1, 1, 1, 0, 1)


def test_redelivery_waits_for_the_end_of_the_pause(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    create_durable(js, stream, "C", ack_wait=100 * MILLISECOND_NS)
    watch.fetch(stream, "C", 1)
    pause(js, stream)
    inbox = watch.pull(stream, "C", {"batch": 2})

    assert inbox.settled(0.3) == []
    assert numbers_of(consumer_info(js, stream, "C")) == (1, 1, 0, 0, 1, 1)

    resume(js, stream)
    publish_many(js, stream, "c")
    assert delivery_of(inbox.next()).deliveries == 2


# Push consumers


def test_paused_push_consumer_sends_heartbeats_only(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    publish_many(js, stream, "ab")
    inbox = watch.subscribe(f"to.{stream}")
    options = {"deliver_subject": f"to.{stream}", "idle_heartbeat": 100 * MILLISECOND_NS}
    created = create_durable(js, stream, "C", pause_until=LATER, **options)
    assert created["push_bound"] is True

    heartbeat = b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 0\r\nNats-Last-Stream: 0\r\n\r\n"
    assert [inbox.next().headers for _ in range(2)] == [heartbeat] * 2

    resume(js, stream)
    assert sequences_of([inbox.next_delivered(), inbox.next_delivered()]) == [1, 2]


def test_push_consumer_goes_on_when_the_pause_is_over(js: JetStream, watch: Watch, stream: str) -> None:
    js.create(stream)
    inbox = watch.subscribe(f"to.{stream}")
    create_durable(js, stream, "C", deliver_subject=f"to.{stream}", pause_until=soon())
    publish_many(js, stream, "ab")
    assert inbox.settled() == []

    assert sequences_of(inbox.take(2)) == [1, 2]


# Advisories


def pause_advisory(stream: str, paused: bool, until: str) -> Json:
    """An advisory of `CONSUMER.PAUSE`, whose time is not normal."""
    common = {"type": f"{ADVISORY_TYPE}consumer_pause", "id": "...", "timestamp": "TIME"}
    return {**common, "stream": stream, "consumer": "C", "paused": paused, "pause_until": until}


def next_advisory(js: JetStream, stream: str) -> Json:
    advisory = js.next(f"{ADVISORY}CONSUMER.PAUSE.{stream}.C").json()
    return {**normal(advisory), "pause_until": advisory["pause_until"]}


def test_pause_and_resume_are_told_of(js: JetStream, stream: str) -> None:
    js.subscribe(f"{ADVISORY}CONSUMER.PAUSE.{stream}.*")
    js.create(stream)
    create_durable(js, stream, "C")

    pause(js, stream)
    assert next_advisory(js, stream) == pause_advisory(stream, True, LATER)
    # The same pause once more is no change.
    pause(js, stream)
    resume(js, stream)
    assert next_advisory(js, stream) == pause_advisory(stream, False, ZERO_TIME)
    resume(js, stream)
    assert js.received(f"{ADVISORY}>") == []


def test_pause_at_creation_is_told_after_the_creation(js: JetStream, stream: str) -> None:
    js.subscribe(f"{ADVISORY}CONSUMER.*.{stream}.C")
    js.create(stream)

    create_durable(js, stream, "C", pause_until=LATER)

    words = [js.next(f"{ADVISORY}>").subject.split(".")[4] for _ in range(2)]
    assert words == ["CREATED", "PAUSE"]


def test_end_of_a_pause_is_told_of(js: JetStream, stream: str) -> None:
    js.subscribe(f"{ADVISORY}CONSUMER.PAUSE.{stream}.*")
    js.create(stream)
    create_durable(js, stream, "C")
    until = soon()

    pause(js, stream, until)

    assert next_advisory(js, stream) == pause_advisory(stream, True, until)
    assert next_advisory(js, stream) == pause_advisory(stream, False, until)
    wait_for_consumer(js, stream, "C", lambda info: "paused" not in info)


def test_pause_that_is_over_already_is_told_as_none(js: JetStream, stream: str) -> None:
    js.subscribe(f"{ADVISORY}CONSUMER.PAUSE.{stream}.*")
    js.create(stream)
    create_durable(js, stream, "C")

    pause(js, stream, EARLIER)

    assert next_advisory(js, stream) == pause_advisory(stream, False, EARLIER)
