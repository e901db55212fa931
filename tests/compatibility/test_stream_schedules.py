"""Schedules: stored messages that publish other messages at their time."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest

from tests.compatibility import jetstream
from tests.compatibility.jetstream import JetStream, Json

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream

DISABLED = (400, 10188, "message schedules is disabled")
INVALID_PATTERN = (400, 10189, "message schedules pattern is invalid")
INVALID_TARGET = (400, 10190, "message schedules target is invalid")
INVALID_TTL = (400, 10191, "message schedules invalid per-message TTL")
INVALID_ROLLUP = (400, 10192, "message schedules invalid rollup")
INVALID_SOURCE = (400, 10203, "message schedules source is invalid")
INVALID_SCHEDULER = (400, 10212, "message schedules invalid scheduler")
INVALID_ZONE = (400, 10223, "message schedules time zone is invalid")
TTL_DISABLED = (400, 10166, "per-message TTL is disabled")

LATER = "@at 2999-01-01T00:00:00Z"
LONG_AGO = "@at 2020-01-01T00:00:00Z"


def schedule_headers(stream: str, schedule: str, **headers: str) -> dict[str, str]:
    """Headers of a schedule with target `<stream>.target`; in further names `_` is `-`, in values `~` the stream."""
    further = {name.replace("_", "-"): value.replace("~", stream) for name, value in headers.items()}
    return {"Nats-Schedule": schedule, "Nats-Schedule-Target": f"{stream}.target"} | further


def publish_schedule(js: JetStream, stream: str, schedule: str, **headers: str) -> Json:
    return js.publish(f"{stream}.schedule", b"payload", schedule_headers(stream, schedule, **headers))


def schedule_error(js: JetStream, stream: str, schedule: str, **headers: str) -> tuple[int, int, str]:
    return js.publish_error(f"{stream}.schedule", b"payload", schedule_headers(stream, schedule, **headers))


def stored(js: JetStream, stream: str, sequence: int) -> tuple[str, bytes, bytes]:
    """Subject, headers and payload of a message."""
    message = js.get(stream, seq=sequence)
    return message["subject"], base64.b64decode(message.get("hdrs", "")), base64.b64decode(message.get("data", ""))


def wait_for_sequence(js: JetStream, stream: str, sequence: int) -> None:
    js.wait_for_state(stream, lambda state: state["last_seq"] >= sequence)


# Configuration


def test_schedules_permit_what_they_need(js: JetStream, stream: str) -> None:
    config = js.create(stream, allow_msg_schedules=True, deny_purge=True)["config"]

    assert (config["allow_msg_schedules"], config["allow_rollup_hdrs"], config["deny_purge"]) == (True, True, False)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"discard": "new"}, (500, 10052, "message scheduling cannot use discard new")),
        ({"pedantic": True}, (500, 10052, "message scheduling cannot be set if roll-ups are disabled")),
        ({"mirror": {"name": "NONE"}}, (400, 10186, "stream mirrors can not also schedule messages")),
        ({"sources": [{"name": "NONE"}]}, (400, 10187, "stream source can not also schedule messages")),
    ],
)
def test_schedules_cannot_be_everywhere(
    js: JetStream, stream: str, config: Json, expected: tuple[int, int, str]
) -> None:
    assert js.create_error(stream, allow_msg_schedules=True, **config) == expected


def test_schedule_needs_permission(js: JetStream, stream: str) -> None:
    js.create(stream)

    assert schedule_error(js, stream, LATER) == DISABLED
    assert schedule_error(js, stream, "x") == DISABLED
    assert publish_schedule(js, stream, "") == {"stream": stream, "seq": 1}


# Patterns


@pytest.mark.parametrize(
    "schedule",
    [
        LATER,
        "@at 2999-01-01T00:00:00+02:00",
        "@at 2999-01-01T00:00:00.123Z",
        "@every 1h30m",
        "@every 1000.5s",
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@hourly",
        "0 0 5 1 * *",
        "0 */5 4 1 1 *",
        "0 0 12 ? * MON-FRI",
        "0 0 12 * jan sun",
        "0 0 0 * * 0-6",
        "0 0 0 1,15 * *",
        "0 0 0 * * MON,TUE",
        "",
    ],
)
def test_pattern_is_accepted_and_stored_with_a_rollup(js: JetStream, stream: str, schedule: str) -> None:
    js.create(stream, allow_msg_schedules=True)

    assert publish_schedule(js, stream, schedule) == {"stream": stream, "seq": 1}

    rollup = "Nats-Rollup: sub\r\n" if schedule else ""
    lines = f"Nats-Schedule: {schedule}\r\nNats-Schedule-Target: {stream}.target\r\n{rollup}"
    assert stored(js, stream, 1) == (f"{stream}.schedule", f"NATS/1.0\r\n{lines}\r\n".encode(), b"payload")


@pytest.mark.parametrize(
    "schedule",
    [
        "x",
        "@at",
        "@at x",
        "@at 2020",
        "@at  2999-01-01T00:00:00Z",
        "@AT 2999-01-01T00:00:00Z",
        "@every",
        "@every x",
        "@every 1",
        "@every 500ms",
        "@reboot",
        "@Hourly",
        "0 0 * * *",
        "* * * * * * *",
        "60 0 0 * * *",
        "0 60 0 * * *",
        "0 0 24 * * *",
        "0 0 0 0 * *",
        "0 0 0 31 2 *",
        "0 0 0 * 13 *",
        "0 0 0 * * 7",
        "0 0 0 L * *",
        "0 0 0 * * 1#2",
        "*/0 * * * * *",
    ],
)
def test_pattern_is_refused(js: JetStream, stream: str, schedule: str) -> None:
    js.create(stream, allow_msg_schedules=True)

    assert schedule_error(js, stream, schedule) == INVALID_PATTERN


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Nats_Schedule_Target": ""}, INVALID_TARGET),
        ({"Nats_Schedule_Target": "~.schedule"}, INVALID_TARGET),
        ({"Nats_Schedule_Target": "~.*"}, INVALID_TARGET),
        ({"Nats_Schedule_Target": "other"}, INVALID_TARGET),
        ({"Nats_Schedule_Target": "~..x"}, INVALID_TARGET),
        ({"Nats_Schedule_Source": "~.target"}, INVALID_SOURCE),
        ({"Nats_Schedule_Source": "~.schedule"}, INVALID_SOURCE),
        ({"Nats_Schedule_Source": "~.*"}, INVALID_SOURCE),
        ({"Nats_Schedule_Source": "other"}, INVALID_SOURCE),
        ({"Nats_Schedule_TTL": "x"}, INVALID_TTL),
        ({"Nats_Schedule_TTL": "0"}, INVALID_TTL),
        ({"Nats_Schedule_Rollup": "all"}, INVALID_ROLLUP),
        ({"Nats_Schedule_Rollup": "SUB"}, INVALID_ROLLUP),
        ({"Nats_Rollup": "all"}, INVALID_ROLLUP),
        ({"Nats_Rollup": "x"}, INVALID_ROLLUP),
        ({"Nats_Schedule_Time_Zone": "UTC"}, INVALID_PATTERN),
        ({"Nats_Schedule_Next": "purge"}, INVALID_SCHEDULER),
        ({"Nats_Scheduler": "x"}, INVALID_SCHEDULER),
    ],
)
def test_further_header_is_refused(
    js: JetStream, stream: str, headers: dict[str, str], expected: tuple[int, int, str]
) -> None:
    js.create(stream, allow_msg_schedules=True, allow_msg_ttl=True)

    assert schedule_error(js, stream, LATER, **headers) == expected


@pytest.mark.parametrize(
    "headers",
    [
        {"Nats_Schedule_Source": "~.source"},
        {"Nats_Schedule_Source": ""},
        {"Nats_Schedule_TTL": "5s"},
        {"Nats_Schedule_TTL": "never"},
        {"Nats_Schedule_Rollup": "sub"},
        {"Nats_Schedule_Rollup": ""},
        {"Nats_Rollup": "sub"},
        {"Nats_TTL": "1h"},
    ],
)
def test_further_header_is_accepted(js: JetStream, stream: str, headers: dict[str, str]) -> None:
    js.create(stream, allow_msg_schedules=True, allow_msg_ttl=True)

    assert publish_schedule(js, stream, LATER, **headers) == {"stream": stream, "seq": 1}


def test_target_is_required(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_schedules=True)

    assert js.publish_error(f"{stream}.schedule", b"", {"Nats-Schedule": LATER}) == INVALID_TARGET


def test_time_to_live_of_what_is_published_needs_permission(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_schedules=True)

    assert schedule_error(js, stream, LATER, Nats_Schedule_TTL="5s") == TTL_DISABLED


@pytest.mark.parametrize("schedule", ["0 0 12 1 1 *", "@yearly"])
def test_time_zone_belongs_to_a_calendar(js: JetStream, stream: str, schedule: str) -> None:
    js.create(stream, allow_msg_schedules=True)

    assert publish_schedule(js, stream, schedule, Nats_Schedule_Time_Zone="Europe/Berlin")["seq"] == 1
    assert schedule_error(js, stream, schedule, Nats_Schedule_Time_Zone="No/Where") == INVALID_ZONE
    assert schedule_error(js, stream, schedule, Nats_Schedule_Time_Zone="") == INVALID_ZONE
    assert schedule_error(js, stream, "@every 1h", Nats_Schedule_Time_Zone="UTC") == INVALID_PATTERN


def test_subject_has_one_schedule(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_schedules=True)

    publish_schedule(js, stream, LATER)
    publish_schedule(js, stream, LATER)

    assert js.sequences(stream) == [2]


# Publishing at its time


def test_time_in_the_past_publishes_soon_and_the_schedule_is_gone(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_schedules=True)
    publish_schedule(js, stream, LONG_AGO)

    wait_for_sequence(js, stream, 2)

    lines = f"Nats-Scheduler: {stream}.schedule\r\nNats-Schedule-Next: purge\r\n"
    assert stored(js, stream, 2) == (f"{stream}.target", f"NATS/1.0\r\n{lines}\r\n".encode(), b"payload")
    js.wait_for_state(stream, lambda state: state["messages"] == 1)


def test_published_message_has_only_the_headers_of_its_own(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_schedules=True, allow_msg_ttl=True)
    publish_schedule(
        js,
        stream,
        LONG_AGO,
        Mine="1",
        Nats_Msg_Id="x",
        Nats_TTL="1h",
        Nats_Expected_Stream="~",
        Nats_Expected_Last_Sequence="0",
        Nats_Schedule_TTL="5m",
        Nats_Schedule_Rollup="sub",
    )

    wait_for_sequence(js, stream, 2)

    added = f"Nats-Scheduler: {stream}.schedule\r\nNats-Schedule-Next: purge\r\nNats-TTL: 5m\r\nNats-Rollup: sub\r\n"
    assert stored(js, stream, 2)[1] == f"NATS/1.0\r\nMine: 1\r\n{added}\r\n".encode()


def test_contents_may_be_those_of_another_message(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_schedules=True)
    js.publish(f"{stream}.source", b"older")
    js.publish(f"{stream}.source", b"source", {"From": "source"})
    publish_schedule(js, stream, LONG_AGO, Nats_Schedule_Source="~.source", Mine="1")

    wait_for_sequence(js, stream, 4)

    added = f"Nats-Scheduler: {stream}.schedule\r\nNats-Schedule-Next: purge\r\n"
    _, headers, payload = stored(js, stream, 4)
    assert (headers, payload) == (f"NATS/1.0\r\nFrom: source\r\n{added}\r\n".encode(), b"source")


def test_contents_are_its_own_when_the_other_message_is_missing(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_schedules=True)
    publish_schedule(js, stream, LONG_AGO, Nats_Schedule_Source="~.source", Mine="1")

    wait_for_sequence(js, stream, 2)

    added = f"Nats-Scheduler: {stream}.schedule\r\nNats-Schedule-Next: purge\r\n"
    _, headers, payload = stored(js, stream, 2)
    assert (headers, payload) == (f"NATS/1.0\r\nMine: 1\r\n{added}\r\n".encode(), b"payload")


@pytest.mark.parametrize("schedule", ["@every 1s", "* * * * * *"])
def test_repeated_schedule_tells_its_next_time_and_stays(js: JetStream, stream: str, schedule: str) -> None:
    js.create(stream, allow_msg_schedules=True)
    started = datetime.now(UTC)
    publish_schedule(js, stream, schedule)

    wait_for_sequence(js, stream, 2)

    subject, headers, payload = stored(js, stream, 2)
    name, _, next_text = headers.decode().split("\r\n")[2].partition(": ")
    next_time = datetime.fromisoformat(next_text)
    assert (subject, name, payload) == (f"{stream}.target", "Nats-Schedule-Next", b"payload")
    assert started < next_time < datetime.now(UTC) + timedelta(seconds=3)
    assert next_time.microsecond == 0
    assert js.sequences(stream)[:2] == [1, 2]


def test_published_message_has_the_subject_that_the_stream_gives_it(js: JetStream, stream: str) -> None:
    js.create(
        stream,
        allow_msg_schedules=True,
        subject_transform={"src": f"{stream}.*", "dest": f"{stream}.x.{{{{wildcard(1)}}}}"},
    )
    publish_schedule(js, stream, LONG_AGO)

    wait_for_sequence(js, stream, 2)

    lines = f"Nats-Scheduler: {stream}.x.schedule\r\nNats-Schedule-Next: purge\r\n"
    assert stored(js, stream, 2) == (f"{stream}.x.target", f"NATS/1.0\r\n{lines}\r\n".encode(), b"payload")


# Cancelling


def test_other_message_on_its_subject_cancels_a_schedule(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_schedules=True)
    # Late enough that the message which cancels it comes before, also on a machine that is busy.
    in_a_moment = (datetime.now(UTC) + timedelta(seconds=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    publish_schedule(js, stream, f"@at {in_a_moment}")
    js.publish(f"{stream}.schedule", b"stop")

    # A later schedule that has been published tells that the earlier one was not.
    js.publish(f"{stream}.other", b"", schedule_headers(stream, f"@at {in_a_moment}"))
    wait_for_sequence(js, stream, 4)

    assert js.get(stream, seq=4)["subject"] == f"{stream}.target"
    assert f"Nats-Scheduler: {stream}.other\r\n".encode() in stored(js, stream, 4)[1]
    assert js.sequences(stream)[:2] == [1, 2]


def test_request_of_a_client_removes_a_schedule(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_schedules=True)
    publish_schedule(js, stream, LATER)
    headers = {"Nats-Schedule-Next": "purge", "Nats-Scheduler": f"{stream}.schedule"}

    assert js.publish_error(f"{stream}.schedule", b"", headers) == INVALID_SCHEDULER
    assert js.publish(f"{stream}.other", b"x", headers) == {"stream": stream, "seq": 2}

    assert js.sequences(stream) == [2]
    assert js.publish(f"{stream}.other", b"x", headers)["seq"] == 3


@pytest.mark.parametrize(
    "headers",
    [
        {"Nats-Schedule-Next": "x", "Nats-Scheduler": "~.schedule"},
        {"Nats-Schedule-Next": "2999-01-01T00:00:00Z", "Nats-Scheduler": "~.schedule"},
        {"Nats-Schedule-Next": "purge"},
        {"Nats-Scheduler": "~.schedule"},
        {"Nats-Schedule-Next": "purge", "Nats-Scheduler": "~.plain"},
    ],
)
def test_request_that_removes_no_schedule_is_refused(js: JetStream, stream: str, headers: dict[str, str]) -> None:
    js.create(stream, allow_msg_schedules=True)
    publish_schedule(js, stream, LATER)
    js.publish(f"{stream}.plain")
    named = {name: value.replace("~", stream) for name, value in headers.items()}

    assert js.publish_error(f"{stream}.other", b"", named) == INVALID_SCHEDULER
    assert js.sequences(stream) == [1, 2]
