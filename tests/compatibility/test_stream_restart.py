"""What a stream still knows after its server was stopped or killed and started again with the same store."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.compatibility.jetstream import API, SECOND_NS, JetStream, Json, start_jetstream_server

# The streams that are there before the restart; `fill` puts messages into them.
STREAMS: dict[str, dict[str, Any]] = {
    "PLAIN": {},
    "CONFIGURED": {
        "subjects": ["CONFIGURED.*", "more.>"],
        "description": "before",
        "metadata": {"a": "b"},
        "max_msgs": 100,
        "max_age": 3600 * SECOND_NS,
        "discard": "new",
        "allow_direct": True,
        "republish": {"src": ">", "dest": "out.>"},
        "subject_transform": {"src": "more.>", "dest": "less.>"},
        "placement": {"cluster": "x"},
    },
    "EMPTY": {},
    "MEMORY": {"storage": "memory"},
    "DELETED": {"allow_direct": True},
    "PURGED": {},
    "SKIPPED": {},
    "LIMITED": {"max_msgs_per_subject": 1},
    "COMPRESSED": {"compression": "s2"},
    "COUNTER": {"allow_msg_counter": True},
    "ATOMIC": {"allow_atomic": True},
    "ASYNC": {"persist_mode": "async"},
    "SEALED": {},
    "MORTAL": {"allow_msg_ttl": True},
    "SCHEDULED": {"allow_msg_schedules": True},
    "REMOVED": {},
}


@dataclass(frozen=True)
class Restarted:
    """A connection to the server after its restart, and the infos of streams before and after it."""

    js: JetStream
    before: dict[str, Json]
    after: dict[str, Json]


def fill(js: JetStream) -> None:
    for name, config in STREAMS.items():
        js.create(name, **config)
    for number in range(1, 7):
        tail = "ab"[number % 2]
        for name in ("PLAIN", "DELETED", "PURGED", "LIMITED", "COMPRESSED", "ASYNC"):
            js.publish(f"{name}.{tail}", b"payload %d" % number, {"Nats-Msg-Id": f"id{number}"})
    for name in ("MEMORY", "SEALED", "REMOVED", "CONFIGURED", "SKIPPED"):
        js.publish(f"{name}.a", b"1")
    js.publish("more.a", b"2")
    for sequence in (1, 3, 4):
        js.api("STREAM.MSG.DELETE.DELETED", {"seq": sequence})
    js.api("STREAM.PURGE.PURGED")
    js.api("STREAM.PURGE.SKIPPED", {"seq": 50})
    js.publish("COUNTER.a", b"", {"Nats-Incr": "5"})
    for name in ("committed", "open"):
        js.request("ATOMIC.a", b"", {"Nats-Batch-Id": name, "Nats-Batch-Sequence": "1"})
    js.request("ATOMIC.a", b"", {"Nats-Batch-Id": "committed", "Nats-Batch-Sequence": "2", "Nats-Batch-Commit": "1"})
    js.publish("MORTAL.a", b"", {"Nats-TTL": "1s"})
    js.publish("MORTAL.b", b"", {"Nats-TTL": "1h"})
    js.publish("SCHEDULED.s", b"", {"Nats-Schedule": "@every 1s", "Nats-Schedule-Target": "SCHEDULED.t"})
    js.update("SEALED", sealed=True)
    js.update("CONFIGURED", description="after")
    js.api("STREAM.DELETE.REMOVED")


def stream_infos(js: JetStream) -> dict[str, Json]:
    return {info["config"]["name"]: info for info in js.api("STREAM.LIST")["streams"]}


@pytest.fixture(scope="module", params=[signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def restarted(
    request: pytest.FixtureRequest, server_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Restarted]:
    store = tmp_path_factory.mktemp("store")
    server = start_jetstream_server(server_kind, tmp_path_factory.mktemp(server_kind), store)
    try:
        with JetStream(server) as js:
            fill(js)
            before = stream_infos(js)
        server.signal(request.param)
        server.wait_for_exit()
    finally:
        server.stop()

    server = start_jetstream_server(server_kind, tmp_path_factory.mktemp(server_kind), store)
    try:
        with JetStream(server) as js:
            yield Restarted(js, before, stream_infos(js))
    finally:
        server.stop()


def test_streams_in_files_are_there_and_others_are_not(restarted: Restarted) -> None:
    names = restarted.js.api("STREAM.NAMES")["streams"]

    assert names == sorted(STREAMS.keys() - {"MEMORY", "REMOVED"})
    assert restarted.js.error("STREAM.INFO.MEMORY") == (404, 10059, "stream not found")
    assert restarted.js.request("MEMORY.a").status == "503"


def test_configurations_and_creation_times_are_the_same(restarted: Restarted) -> None:
    for name, info in restarted.after.items():
        before = restarted.before[name]

        assert info["config"] == before["config"]
        assert info["created"] == before["created"]


@pytest.mark.parametrize(
    "name", ["PLAIN", "CONFIGURED", "EMPTY", "DELETED", "PURGED", "SKIPPED", "LIMITED", "COMPRESSED", "ASYNC", "SEALED"]
)
def test_state_is_the_same(restarted: Restarted, name: str) -> None:
    before = dict(restarted.before[name]["state"])
    state = restarted.after[name]["state"]

    # Where no message is left, the time of the last one may be forgotten.
    if before["messages"] == 0:
        before["last_ts"] = state["last_ts"]
    assert state == before


def test_update_was_the_last_word(restarted: Restarted) -> None:
    assert restarted.js.config("CONFIGURED")["description"] == "after"


def test_create_with_the_same_configuration_is_the_same_stream(restarted: Restarted) -> None:
    answer = restarted.js.create("EMPTY")

    assert answer["created"] == restarted.before["EMPTY"]["created"]


def test_messages_are_the_same(restarted: Restarted) -> None:
    for name in ("PLAIN", "COMPRESSED", "ASYNC"):
        for number in range(1, 7):
            message = restarted.js.get(name, seq=number)

            assert message["subject"] == f"{name}.{'ab'[number % 2]}"
            assert restarted.js.get(name, start_time=message["time"])["seq"] == number
    assert restarted.js.request(f"{API}DIRECT.GET.CONFIGURED.less.a").data == b"2"


def test_deleted_messages_stay_deleted(restarted: Restarted) -> None:
    state = restarted.js.state("DELETED", {"deleted_details": True})

    assert state["deleted"] == [3, 4]
    assert restarted.js.sequences("DELETED") == [2, 5, 6]
    assert restarted.js.error("STREAM.MSG.GET.DELETED", {"seq": 3}) == (404, 10037, "no message found")


def test_subjects_are_counted_as_before(restarted: Restarted) -> None:
    state = restarted.js.state("LIMITED", {"subjects_filter": ">"})

    assert state["subjects"] == {"LIMITED.a": 1, "LIMITED.b": 1}


def test_purged_stream_goes_on_with_its_sequence(restarted: Restarted) -> None:
    assert restarted.js.publish("PURGED.a")["seq"] >= 7
    assert restarted.js.publish("SKIPPED.a")["seq"] >= 50


@pytest.mark.parametrize("number", [1, 6])
def test_ids_of_stored_messages_are_known(restarted: Restarted, number: int) -> None:
    again = restarted.js.publish("PLAIN.a", b"", {"Nats-Msg-Id": f"id{number}"})

    assert again == {"stream": "PLAIN", "seq": number, "duplicate": True}


def test_ids_of_removed_messages_are_forgotten(restarted: Restarted) -> None:
    purged = restarted.js.publish("PURGED.a", b"", {"Nats-Msg-Id": "id6"})
    replaced = restarted.js.publish("LIMITED.c", b"", {"Nats-Msg-Id": "id1"})

    assert "duplicate" not in purged
    assert "duplicate" not in replaced


def test_expected_sequences_are_those_of_before(restarted: Restarted) -> None:
    last = restarted.js.publish_error("DELETED.a", b"", {"Nats-Expected-Last-Sequence": "99"})
    last_of_subject = restarted.js.publish_error("DELETED.b", b"", {"Nats-Expected-Last-Subject-Sequence": "99"})
    last_id = restarted.js.publish_error("DELETED.b", b"", {"Nats-Expected-Last-Msg-Id": "99"})

    assert last == (400, 10071, "wrong last sequence: 6")
    assert last_of_subject == (400, 10071, "wrong last sequence: 5")
    assert last_id == (400, 10070, "wrong last msg ID: id6")


def test_counter_goes_on_with_its_value(restarted: Restarted) -> None:
    state = restarted.js.state("COUNTER")

    value = restarted.js.publish("COUNTER.a", b"", {"Nats-Incr": "5"})["val"]

    assert int(value) == 5 * (state["messages"] + 1)


def test_committed_batch_is_there_and_the_open_one_is_not(restarted: Restarted) -> None:
    headers = {"Nats-Batch-Id": "open", "Nats-Batch-Sequence": "2", "Nats-Batch-Commit": "1"}

    refused = restarted.js.publish_error("ATOMIC.a", b"", headers)

    assert refused == (400, 10176, "atomic publish batch is incomplete")
    assert restarted.js.sequences("ATOMIC") == [1, 2]


def test_sealed_stream_is_sealed(restarted: Restarted) -> None:
    assert restarted.js.publish_error("SEALED.a") == (400, 10109, "invalid operation on sealed stream")


def test_message_with_a_time_to_live_still_goes(restarted: Restarted) -> None:
    restarted.js.wait_for_state("MORTAL", lambda state: state["messages"] == 1)

    assert restarted.js.sequences("MORTAL") == [2]


def test_schedule_still_publishes(restarted: Restarted) -> None:
    before = restarted.js.state("SCHEDULED")["last_seq"]

    restarted.js.wait_for_state("SCHEDULED", lambda state: state["last_seq"] > before)
    newest = restarted.js.get("SCHEDULED", last_by_subj="SCHEDULED.t")

    assert newest["seq"] > before


def test_republish_and_direct_answers_go_on(restarted: Restarted) -> None:
    restarted.js.subscribe("out.>")

    restarted.js.publish("CONFIGURED.z", b"new")

    assert restarted.js.next("out.CONFIGURED.z").data == b"new"
    assert restarted.js.request(f"{API}DIRECT.GET.DELETED.DELETED.a").data == b"payload 6"
