"""Messages that live for a time of their own, and the markers left by the last message of a subject."""

from __future__ import annotations

import base64

import pytest

from tests.compatibility import jetstream
from tests.compatibility.jetstream import MILLISECOND_NS, SECOND_NS, JetStream, Json

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream

INVALID = (400, 10165, "invalid per-message TTL")
DISABLED = (400, 10166, "per-message TTL is disabled")

MARKER = b"NATS/1.0\r\nNats-Marker-Reason: MaxAge\r\nNats-TTL: %s\r\nNats-Rollup: sub\r\n\r\n"


def stored_headers(js: JetStream, stream: str, sequence: int) -> bytes:
    return base64.b64decode(js.get(stream, seq=sequence).get("hdrs", ""))


# The header


@pytest.mark.parametrize(
    "value",
    [
        "1s",
        "1",
        "1h30m",
        "1.5s",
        "1s500ms",
        "+5s",
        "never",
        "NEVER",
        "",
        "999999999999",
        "9223372036854775807",
        "2562047h",
    ],
)
@pytest.mark.parametrize("storage", ["file", "memory"])
def test_time_to_live_is_stored_as_it_came(js: JetStream, stream: str, storage: str, value: str) -> None:
    js.create(stream, storage=storage, allow_msg_ttl=True)

    acknowledgement = js.publish(f"{stream}.a", b"", {"Nats-TTL": value})

    assert acknowledgement == {"stream": stream, "seq": 1}
    assert stored_headers(js, stream, 1) == f"NATS/1.0\r\nNats-TTL: {value}\r\n\r\n".encode()


@pytest.mark.parametrize(
    "value", ["0", "0s", "500ms", "999ms", "-1", "-1s", "x", "1.5", "5 ", "1d", "+5", "9223372037s", "3000000h"]
)
def test_time_to_live_that_is_none_is_refused(js: JetStream, stream: str, value: str) -> None:
    js.create(stream, allow_msg_ttl=True)

    assert js.publish_error(f"{stream}.a", b"", {"Nats-TTL": value}) == INVALID


@pytest.mark.parametrize(("value", "expected"), [("1s", DISABLED), ("never", DISABLED), ("0", INVALID), ("x", INVALID)])
def test_time_to_live_needs_permission(js: JetStream, stream: str, value: str, expected: tuple[int, int, str]) -> None:
    js.create(stream)

    assert js.publish_error(f"{stream}.a", b"", {"Nats-TTL": value}) == expected
    assert js.publish_code(f"{stream}.a", b"", {"Nats-TTL": ""}) == 0


def test_time_to_live_may_be_permitted_later(js: JetStream, stream: str) -> None:
    js.create(stream)

    config = js.update(stream, allow_msg_ttl=True)["config"]

    assert config["metadata"]["_nats.req.level"] == "1"
    assert js.publish_code(f"{stream}.a", b"", {"Nats-TTL": "1h"}) == 0


# Expiry


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_message_goes_after_its_time_and_others_stay(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, allow_msg_ttl=True)
    js.publish(f"{stream}.a", b"", {"Nats-TTL": "1s"})
    js.publish(f"{stream}.a", b"", {"Nats-TTL": "1h"})
    js.publish(f"{stream}.a")

    state = js.wait_for_state(stream, lambda state: state["messages"] < 3)

    assert js.sequences(stream) == [2, 3]
    assert (state["first_seq"], state["last_seq"]) == (2, 3)


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_age_of_the_stream_applies_except_to_what_lives_for_ever(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, allow_msg_ttl=True, max_age=100 * MILLISECOND_NS)
    js.publish(f"{stream}.a", b"", {"Nats-TTL": "1h"})
    js.publish(f"{stream}.b", b"", {"Nats-TTL": "never"})
    js.publish(f"{stream}.c")

    js.wait_for_state(stream, lambda state: state["messages"] == 1)

    assert js.sequences(stream) == [2]


# Markers


@pytest.mark.parametrize("deny_purge", [False, True])
def test_time_of_markers_permits_what_they_need(js: JetStream, stream: str, deny_purge: bool) -> None:
    config = js.create(stream, subject_delete_marker_ttl=SECOND_NS, deny_purge=deny_purge)["config"]

    assert config["subject_delete_marker_ttl"] == SECOND_NS
    assert (config["allow_msg_ttl"], config["allow_rollup_hdrs"], config["deny_purge"]) == (True, True, False)


@pytest.mark.parametrize(
    ("config", "description"),
    [
        ({"subject_delete_marker_ttl": 1}, "subject delete marker TTL must be at least 1 second"),
        ({"subject_delete_marker_ttl": -1}, "subject delete marker TTL must not be negative"),
        (
            {"subject_delete_marker_ttl": SECOND_NS, "pedantic": True},
            "subject delete marker cannot be set if message TTLs are disabled",
        ),
        (
            {"subject_delete_marker_ttl": SECOND_NS, "pedantic": True, "allow_msg_ttl": True},
            "subject delete marker cannot be set if roll-ups are disabled",
        ),
        (
            {"subject_delete_marker_ttl": SECOND_NS, "mirror": {"name": "NONE"}},
            "subject delete markers forbidden on mirrors",
        ),
    ],
)
def test_time_of_markers_that_cannot_be_is_refused(js: JetStream, stream: str, config: Json, description: str) -> None:
    assert js.create_error(stream, **config) == (500, 10052, description)


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ("1s", "A: b\r\nNats-TTL: 5\r\n"),
        ("3", "A: b\r\nNats-TTL: 5\r\n"),
        ("5", "Nats-TTL: 5\r\nA: b\r\n"),
        ("7s", "Nats-TTL: 7s\r\nA: b\r\n"),
        ("never", "Nats-TTL: never\r\nA: b\r\n"),
    ],
)
def test_message_lives_at_least_as_long_as_a_marker(js: JetStream, stream: str, value: str, lines: str) -> None:
    js.create(stream, subject_delete_marker_ttl=5 * SECOND_NS)

    js.publish(f"{stream}.a", b"", {"Nats-TTL": value, "A": "b"})

    assert stored_headers(js, stream, 1) == f"NATS/1.0\r\n{lines}\r\n".encode()


def test_message_may_live_shorter_where_a_subject_has_one_message(js: JetStream, stream: str) -> None:
    js.create(stream, subject_delete_marker_ttl=100 * SECOND_NS, max_msgs_per_subject=1)

    js.publish(f"{stream}.a", b"", {"Nats-TTL": "50s"})

    assert stored_headers(js, stream, 1) == b"NATS/1.0\r\nNats-TTL: 50s\r\n\r\n"


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_last_message_that_becomes_too_old_leaves_a_marker(js: JetStream, stream: str, storage: str) -> None:
    window_ns = 500 * MILLISECOND_NS
    js.create(stream, storage=storage, subject_delete_marker_ttl=60 * SECOND_NS, duplicate_window=window_ns)
    js.publish(f"{stream}.a", b"first")
    js.publish(f"{stream}.a", b"second")
    # Only now, so that the first message is never the last one of its subject when it becomes too old.
    js.update(stream, max_age=window_ns)

    js.wait_for_state(stream, lambda state: state["last_seq"] == 3)

    marker = js.get(stream, seq=3)
    assert marker["subject"] == f"{stream}.a"
    assert base64.b64decode(marker["hdrs"]) == MARKER % b"1m0s"
    assert "data" not in marker
    assert js.sequences(stream) == [3]


def test_markers_of_any_kind_leave_no_marker(js: JetStream, stream: str) -> None:
    js.create(stream, subject_delete_marker_ttl=60 * SECOND_NS, max_age=500 * MILLISECOND_NS)
    js.publish(f"{stream}.a", b"", {"KV-Operation": "PURGE"})
    js.publish(f"{stream}.b", b"x", {"Nats-Marker-Reason": "Purge"})
    js.publish(f"{stream}.c", b"", {"KV-Operation": "DEL"})

    state = js.wait_for_state(stream, lambda state: state["last_seq"] > 3)

    assert state["last_seq"] == 4
    assert js.get(stream, seq=4)["subject"] == f"{stream}.c"


def test_marker_is_left_by_a_message_with_its_own_time_and_then_goes(js: JetStream, stream: str) -> None:
    # The marker must still be there when it is read; with one message for a subject, a message may live shorter.
    js.create(stream, subject_delete_marker_ttl=4 * SECOND_NS, max_msgs_per_subject=1)
    js.publish(f"{stream}.b", b"stays")
    js.publish(f"{stream}.a", b"", {"Nats-TTL": "1s"})

    js.wait_for_state(stream, lambda state: state["last_seq"] == 3)
    marker = stored_headers(js, stream, 3)
    js.wait_for_state(stream, lambda state: state["messages"] == 1)

    assert marker == MARKER % b"4s"
    assert js.get(stream, last_by_subj=f"{stream}.>")["seq"] == 1
    assert js.state(stream)["last_seq"] == 3


def test_messages_removed_on_request_leave_no_marker(js: JetStream, stream: str) -> None:
    js.create(stream, subject_delete_marker_ttl=SECOND_NS, max_msgs=2)
    for tail in "abcd":
        js.publish(f"{stream}.{tail}")

    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 3})
    js.api(f"STREAM.PURGE.{stream}")

    assert js.publish(f"{stream}.e")["seq"] == 5
    assert js.sequences(stream) == [5]
