"""Limits of a stream: what they remove, what an update removes at once, and the numbers of the state."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compatibility import jetstream
from tests.compatibility.jetstream import (
    MILLISECOND_NS,
    SECOND_NS,
    TIME,
    ZERO_TIME,
    JetStream,
    Json,
    error_of,
    header_block,
)

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream

pytestmark = pytest.mark.parametrize("storage", ["file", "memory"])


def message_bytes(storage: str, subject: str, payload: bytes = b"", headers: bytes = b"") -> int:
    """What one message adds to the bytes of a stream; `headers` is the whole block."""
    if storage == "memory":
        return 16 + len(subject) + len(headers) + len(payload)
    return 30 + len(subject) + len(payload) + (4 + len(headers) if headers else 0)


def numbers(state: Json) -> tuple[int, int, int]:
    return state["messages"], state["first_seq"], state["last_seq"]


def publish_to(js: JetStream, stream: str, tails: str, payload: bytes = b"") -> None:
    for tail in tails:
        assert "error" not in js.publish(f"{stream}.{tail}", payload)


# The numbers of the state


def test_new_stream_has_only_zeros(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage)

    assert js.state(stream) == {
        "messages": 0,
        "bytes": 0,
        "first_seq": 0,
        "first_ts": ZERO_TIME,
        "last_seq": 0,
        "last_ts": ZERO_TIME,
        "consumer_count": 0,
    }


@pytest.mark.parametrize(
    ("payload", "headers"),
    [
        (b"", None),
        (b"hello", None),
        (b"x" * 5000, None),
        (b"", b""),
        (b"hello", b"A: b\r\n"),
        (b"", b"Nats-Msg-Id: 1\r\nLong: " + b"y" * 500 + b"\r\n"),
    ],
)
def test_bytes_are_those_of_the_stored_messages(
    js: JetStream, stream: str, storage: str, payload: bytes, headers: bytes | None
) -> None:
    js.create(stream, storage=storage)

    js.publish(f"{stream}.abc", payload, headers)

    expected = message_bytes(storage, f"{stream}.abc", payload, header_block(headers))
    assert js.state(stream)["bytes"] == expected
    js.publish(f"{stream}.abc", payload)
    assert js.state(stream)["bytes"] == expected + message_bytes(storage, f"{stream}.abc", payload)
    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 1})
    assert js.state(stream)["bytes"] == message_bytes(storage, f"{stream}.abc", payload)


def test_times_are_those_of_the_first_and_last_message(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage)
    publish_to(js, stream, "abc")

    state = js.state(stream)

    assert state["first_ts"] == js.get(stream, seq=1)["time"]
    assert state["last_ts"] == js.get(stream, seq=3)["time"]
    assert TIME.fullmatch(state["first_ts"])
    assert state["first_ts"] < state["last_ts"]
    assert state["num_subjects"] == 3


def test_emptied_stream_keeps_its_last_sequence_and_time(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage)
    publish_to(js, stream, "abc")
    before = js.state(stream)

    js.api(f"STREAM.PURGE.{stream}")

    assert js.state(stream) == {
        "messages": 0,
        "bytes": 0,
        "first_seq": 4,
        "first_ts": ZERO_TIME,
        "last_seq": 3,
        "last_ts": before["last_ts"],
        "consumer_count": 0,
    }


def test_deleted_messages_are_counted_and_listed_when_asked(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage)
    publish_to(js, stream, "aaaaaa")

    for sequence in (2, 3, 5):
        js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": sequence})

    state = js.state(stream)
    assert (*numbers(state), state["num_deleted"]) == (3, 1, 6, 3)
    assert "deleted" not in state
    assert js.state(stream, {"deleted_details": True})["deleted"] == [2, 3, 5]


def test_deleted_first_message_moves_the_first_sequence(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage)
    publish_to(js, stream, "aaaa")

    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 2})
    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 1})

    state = js.state(stream)
    assert numbers(state) == (2, 3, 4)
    assert "num_deleted" not in state
    assert state["first_ts"] == js.get(stream, seq=3)["time"]


def test_deleted_last_message_keeps_the_last_sequence(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage)
    publish_to(js, stream, "aaa")

    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 3})

    state = js.state(stream, {"deleted_details": True})
    assert (*numbers(state), state["num_deleted"], state["deleted"]) == (2, 1, 3, 1, [3])
    assert js.publish(f"{stream}.a")["seq"] == 4


def test_only_message_deleted_leaves_an_empty_stream(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage)
    publish_to(js, stream, "a")

    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 1})

    state = js.state(stream)
    assert numbers(state) == (0, 2, 1)
    assert (state["bytes"], state["first_ts"]) == (0, ZERO_TIME)
    assert "num_subjects" not in state


def test_first_sequence_may_be_chosen(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, first_seq=100)

    assert numbers(js.state(stream)) == (0, 100, 99)
    assert js.publish(f"{stream}.a")["seq"] == 100
    assert numbers(js.state(stream)) == (1, 100, 100)


# Limits at work


def test_oldest_message_goes_when_there_are_too_many(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, max_msgs=3)

    publish_to(js, stream, "abcde")

    assert js.sequences(stream) == [3, 4, 5]
    assert js.state(stream)["num_subjects"] == 3


def test_oldest_messages_go_when_there_are_too_many_bytes(js: JetStream, stream: str, storage: str) -> None:
    one = message_bytes(storage, f"{stream}.a", b"x" * 10)
    js.create(stream, storage=storage, max_bytes=3 * one)

    publish_to(js, stream, "aaaa", b"x" * 10)

    assert js.sequences(stream) == [2, 3, 4]
    assert js.state(stream)["bytes"] == 3 * one
    js.publish(f"{stream}.a", b"x" * 11)
    assert js.sequences(stream) == [4, 5]


def test_oldest_message_of_a_subject_goes_when_it_has_too_many(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, max_msgs_per_subject=2)

    publish_to(js, stream, "abaacab")

    assert js.sequences(stream) == [2, 4, 5, 6, 7]


def test_limit_of_a_subject_applies_before_that_of_the_stream(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, max_msgs=3, max_msgs_per_subject=1)

    publish_to(js, stream, "abcbd")

    assert js.sequences(stream) == [3, 4, 5]


def test_messages_go_when_they_are_too_old(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, max_age=100 * MILLISECOND_NS)
    publish_to(js, stream, "ab")

    state = js.wait_for_state(stream, lambda state: state["messages"] == 0)

    assert numbers(state) == (0, 3, 2)
    assert state["bytes"] == 0
    assert js.publish(f"{stream}.a")["seq"] == 3


def test_old_messages_go_also_where_new_ones_are_refused(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, max_age=100 * MILLISECOND_NS, discard="new", max_msgs=1)
    publish_to(js, stream, "a")

    js.wait_for_state(stream, lambda state: state["messages"] == 0)

    assert js.publish(f"{stream}.a")["seq"] == 2


# Updates


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"max_msgs": 2}, [5, 6]),
        ({"max_msgs_per_subject": 1}, [4, 5, 6]),
        ({"max_msgs_per_subject": 2}, [2, 3, 4, 5, 6]),
        ({"max_msgs": 2, "max_msgs_per_subject": 1}, [5, 6]),
        ({"max_msgs": 100}, [1, 2, 3, 4, 5, 6]),
        ({"discard": "new", "max_msgs": 2}, [1, 2, 3, 4, 5, 6]),
        ({"discard": "new", "max_bytes": 50}, [1, 2, 3, 4, 5, 6]),
        ({"discard": "new", "max_msgs_per_subject": 1}, [4, 5, 6]),
    ],
)
def test_lower_limit_removes_the_oldest_at_once(
    js: JetStream, stream: str, storage: str, change: dict[str, Any], kept: list[int]
) -> None:
    js.create(stream, storage=storage)
    publish_to(js, stream, "bbacba")

    js.update(stream, **change)

    assert js.sequences(stream) == kept


def test_fewer_bytes_remove_the_oldest_at_once(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage)
    publish_to(js, stream, "aaaaa", b"x" * 10)

    js.update(stream, max_bytes=2 * message_bytes(storage, f"{stream}.a", b"x" * 10))

    assert js.sequences(stream) == [4, 5]


def test_age_set_later_removes_what_is_old_already(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, duplicate_window=100 * MILLISECOND_NS)
    publish_to(js, stream, "ab")

    js.update(stream, max_age=100 * MILLISECOND_NS)

    assert numbers(js.wait_for_state(stream, lambda state: state["messages"] == 0)) == (0, 3, 2)


def test_age_taken_away_keeps_messages(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, max_age=60 * SECOND_NS)
    publish_to(js, stream, "ab")

    answer = js.update(stream, max_age=0)

    assert answer["config"]["max_age"] == 0
    assert answer["state"]["messages"] == 2


def test_subjects_taken_away_keep_their_messages(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, subjects=[f"{stream}.a", f"{stream}.b"])
    publish_to(js, stream, "ab")

    js.update(stream, subjects=[f"{stream}.b", f"{stream}.c"])

    assert js.request(f"{stream}.a").status == "503"
    assert js.publish(f"{stream}.c")["seq"] == 3
    assert js.sequences(stream) == [1, 2, 3]


def test_sealing_sets_what_keeps_messages_for_ever(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, max_age=3600 * SECOND_NS, allow_rollup_hdrs=True)
    publish_to(js, stream, "ab")

    config = js.update(stream, sealed=True)["config"]

    assert config["sealed"] is True
    assert (config["max_age"], config["discard"], config["allow_rollup_hdrs"]) == (0, "new", False)
    assert (config["deny_delete"], config["deny_purge"]) == (True, True)
    assert js.error(f"STREAM.PURGE.{stream}") == (400, 10109, "invalid operation on sealed stream")
    assert js.error(f"STREAM.MSG.DELETE.{stream}", {"seq": 1}) == (400, 10109, "invalid operation on sealed stream")
    assert js.publish_code(f"{stream}.a") == 10109


def test_sealed_stream_stays_sealed_and_may_be_described(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage)
    js.update(stream, sealed=True)

    assert js.update(stream, description="final")["config"]["description"] == "final"
    unseal = js.try_update(stream, sealed=False)
    assert unseal["error"]["description"] == "stream configuration update can not unseal a sealed stream"


def test_stream_that_becomes_one_of_interest_drops_what_nobody_waits_for(
    js: JetStream, stream: str, storage: str
) -> None:
    js.create(stream, storage=storage)
    publish_to(js, stream, "aaa")

    js.update(stream, retention="interest")

    assert numbers(js.wait_for_state(stream, lambda state: state["messages"] == 0)) == (0, 4, 3)


def test_mirror_becomes_an_ordinary_stream_when_its_origin_is_taken_away(
    js: JetStream, stream: str, storage: str
) -> None:
    js.create(stream, storage=storage)
    publish_to(js, stream, "aaa")
    mirror = f"{stream}-M"
    js.create(mirror, storage=storage, mirror={"name": stream})
    js.wait_for_state(mirror, lambda state: state["messages"] == 3)

    other = js.api(f"STREAM.UPDATE.{mirror}", {"name": mirror, "storage": storage, "mirror": {"name": "OTHER"}})
    config = {"name": mirror, "storage": storage, "subjects": [f"{mirror}.>"]}
    promoted = js.api(f"STREAM.UPDATE.{mirror}", config)["config"]

    assert error_of(other) == (400, 10055, "stream mirror configuration can not be updated")
    assert ("mirror" in promoted, promoted["duplicate_window"]) == (False, 120 * SECOND_NS)
    assert js.publish(f"{mirror}.a")["seq"] == 4


def test_first_sequence_set_later_changes_no_numbers(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage)
    publish_to(js, stream, "a")

    assert js.update(stream, first_seq=50)["config"]["first_seq"] == 50
    assert js.publish(f"{stream}.a")["seq"] == 2


def test_compression_may_change_and_messages_stay(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, compression="s2")
    publish_to(js, stream, "ab", b"x" * 10000)
    before = js.state(stream)

    js.update(stream, compression="none")

    assert js.state(stream) == before


def test_update_without_changes_answers_as_info_does(js: JetStream, stream: str, storage: str) -> None:
    js.create(stream, storage=storage, max_msgs=5)
    publish_to(js, stream, "ab")

    answer = js.update(stream)

    info = js.info(stream)
    assert answer["config"] == info["config"]
    assert answer["state"] == info["state"]
    assert answer["created"] == info["created"]
