"""A stream leaves a server as an archive and comes back: chunks and their flow, what is refused, and what is told."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.compatibility import jetstream
from tests.compatibility.archives import (
    Entry,
    Snapshot,
    archive,
    begin_restore,
    delete,
    frame,
    restore,
    send_chunks,
    take_snapshot,
)
from tests.compatibility.jetstream import ADVISORY, ADVISORY_TYPE, TYPE, JetStream, error_of, normal
from tests.compatibility.server_process import ServerProcess

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream
start_jetstream = jetstream.start_jetstream

BAD_REQUEST = (400, 10003, "bad request")
NOT_FOUND = (404, 10059, "stream not found")
IN_USE = (400, 10130, "stream name already in use, cannot restore")
BAD_DELIVER_SUBJECT = (400, 10015, "deliver subject not valid")

CONTENT = {
    1: ("a", b"one", None),
    2: ("b", b"", {"H": "1", "H2": "ü"}),
    4: ("a.b.c", b"\x00\xff" * 500, None),
    5: ("a", b"five", {"Nats-Msg-Id": "5"}),
}
"""What `fill` stores, by sequence; the third is deleted."""


def fill(js: JetStream, stream: str, **config: Any) -> None:
    js.create(stream, **config)
    for sequence in range(1, 6):
        tail, payload, headers = CONTENT.get(sequence, ("gone", b"gone", None))
        js.publish(f"{stream}.{tail}", payload, headers)
    js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": 3})


def messages(js: JetStream, stream: str) -> list[dict[str, Any]]:
    return [js.get(stream, seq=sequence) for sequence in js.sequences(stream)]


def come_back(js: JetStream, stream: str, **request: Any) -> None:
    """Snapshot a stream, delete it, and restore it."""
    snapshot = take_snapshot(js, stream, **request)
    delete(js, stream)
    answer = restore(js, stream, snapshot)
    assert "error" not in answer, answer


# Snapshots


def test_snapshot_tells_the_stored_configuration_and_the_state(js: JetStream, stream: str) -> None:
    fill(js, stream)
    inbox = f"D.{stream}"
    js.subscribe(inbox)

    answer = js.api(f"STREAM.SNAPSHOT.{stream}", {"deliver_subject": inbox})

    config = js.config(stream)
    config["metadata"] = {"_nats.req.level": "0"}
    assert set(answer) == {"type", "config", "state"}
    assert answer["type"] == f"{TYPE}stream_snapshot_response"
    assert answer["config"] == config
    assert answer["state"] == js.state(stream)


def test_small_snapshot_is_one_chunk_without_reply_and_an_empty_end(js: JetStream, stream: str) -> None:
    fill(js, stream)

    snapshot = take_snapshot(js, stream)

    assert [chunk.reply for chunk in snapshot.chunks] == [""]
    assert snapshot.end is not None
    assert (snapshot.end.headers, snapshot.end.data) == (b"", b"")


def test_full_chunks_carry_their_length_and_number_and_the_end_a_status(js: JetStream, stream: str) -> None:
    js.create(stream)
    for number in range(40):
        js.publish(f"{stream}.a", noise(number, 1000))

    snapshot = take_snapshot(js, stream, chunk_size=4096, window_size=8192)

    *full, last = snapshot.chunks
    assert len(full) > 5
    assert {len(chunk.data) for chunk in full} == {4096}
    assert not last.reply
    prefix, _, _ = full[0].reply.rpartition(".4096.")
    assert prefix.startswith(f"$JS.SNAPSHOT.ACK.{stream}.")
    assert [chunk.reply for chunk in full] == [f"{prefix}.4096.{number}" for number in range(1, len(full) + 1)]
    assert snapshot.end is not None
    assert snapshot.end.headers == b"NATS/1.0 204\r\n\r\n"


@pytest.mark.parametrize(("chunk_size", "shown"), [(1, 1024), (-5, 1024), (2**40, 1024 * 1024), (1500, 1500)])
def test_size_of_chunks_is_kept_within_bounds(js: JetStream, stream: str, chunk_size: int, shown: int) -> None:
    js.create(stream)
    for number in range(max(2 * shown // 500_000, 3)):
        js.publish(f"{stream}.a", noise(number, 500_000 if shown > 500_000 else 1000))

    snapshot = take_snapshot(js, stream, chunk_size=chunk_size)

    assert len(snapshot.chunks[0].data) == shown


def test_no_more_chunks_are_sent_than_the_window_holds(js: JetStream, stream: str) -> None:
    js.create(stream)
    for number in range(40):
        js.publish(f"{stream}.a", noise(number, 1000))
    inbox = f"D.{stream}"
    js.subscribe(inbox)

    js.api(f"STREAM.SNAPSHOT.{stream}", {"deliver_subject": inbox, "chunk_size": 1024, "window_size": 4096})
    first = [js.next(inbox) for _ in range(4)]
    time.sleep(0.2)
    assert js.received(inbox) == []
    js.send(first[0].reply)
    fifth = js.next(inbox)

    assert fifth.reply.endswith(".1024.5")
    time.sleep(0.1)
    assert js.received(inbox) == []


def test_snapshot_ends_when_nothing_is_acknowledged(js: JetStream, stream: str) -> None:
    js.create(stream)
    for number in range(10):
        js.publish(f"{stream}.a", noise(number, 1000))
    js.subscribe(f"{ADVISORY}STREAM.SNAPSHOT_COMPLETE.{stream}")
    inbox = f"D.{stream}"
    js.subscribe(inbox)

    js.api(f"STREAM.SNAPSHOT.{stream}", {"deliver_subject": inbox, "chunk_size": 1024, "window_size": 2048})
    for _ in range(2):
        js.next(inbox)

    end = js.next(inbox)
    assert (end.status, end.data) == ("408 No Flow Response", b"")
    assert js.next(f"{ADVISORY}STREAM.SNAPSHOT_COMPLETE.{stream}").json()["error"] == "no flow response"


def test_snapshot_waits_for_its_receiver(js: JetStream, stream: str) -> None:
    fill(js, stream)
    inbox = f"D.{stream}"

    js.api(f"STREAM.SNAPSHOT.{stream}", {"deliver_subject": inbox})
    time.sleep(0.3)
    js.subscribe(inbox)

    assert js.next(inbox).data
    assert js.next(inbox).data == b""


@pytest.mark.parametrize("deliver_subject", ["", "a.*", "a.>", ">", "a..b", ".a", "a b", "a\tb"])
def test_deliver_subject_must_be_one_to_publish_to(js: JetStream, stream: str, deliver_subject: str) -> None:
    js.create(stream)

    assert js.error(f"STREAM.SNAPSHOT.{stream}", {"deliver_subject": deliver_subject, "jsck": True}) == (
        BAD_DELIVER_SUBJECT
    )


def test_requests_that_make_no_sense_are_refused_in_order(js: JetStream, stream: str) -> None:
    js.create(stream)

    assert js.error("STREAM.SNAPSHOT.NOPE", b"") == BAD_REQUEST
    assert js.error("STREAM.SNAPSHOT.NOPE", b"{}") == BAD_REQUEST
    assert js.error("STREAM.SNAPSHOT.NOPE", b"x") == NOT_FOUND
    assert js.error(f"STREAM.SNAPSHOT.{stream}", b"x")[1] == 10025
    assert js.error(f"STREAM.SNAPSHOT.{stream}", {"deliver_subject": "d", "x": 1})[1] == 10025
    assert js.error(f"STREAM.SNAPSHOT.{stream}", {"deliver_subject": "d", "chunk_size": "1"})[1] == 10025
    assert js.error(f"STREAM.SNAPSHOT.{stream}", {"chunk_size": 5}) == BAD_DELIVER_SUBJECT


def test_messages_that_come_later_are_not_in_the_archive(js: JetStream, stream: str) -> None:
    js.create(stream)
    for number in range(40):
        js.publish(f"{stream}.a", noise(number, 1000))
    inbox = f"D.{stream}"
    js.subscribe(inbox)

    answer = js.api(f"STREAM.SNAPSHOT.{stream}", {"deliver_subject": inbox, "chunk_size": 1024, "window_size": 1024})
    js.publish(f"{stream}.late", b"late")
    data = b""
    while (chunk := js.next(inbox)).data:
        data += chunk.data
        if chunk.reply:
            js.send(chunk.reply)

    delete(js, stream)
    restored = restore(js, stream, Snapshot(answer["config"], answer["state"], data))
    assert restored["state"]["last_seq"] == 40


# There and back


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_messages_come_back_as_they_were(js: JetStream, stream: str, storage: str) -> None:
    fill(js, stream, storage=storage)
    before, state = messages(js, stream), js.state(stream, {"deleted_details": True})

    come_back(js, stream)

    assert messages(js, stream) == before
    assert js.state(stream, {"deleted_details": True}) == state
    assert base64.b64decode(before[1]["hdrs"]) == "NATS/1.0\r\nH: 1\r\nH2: ü\r\n\r\n".encode()
    assert js.publish(f"{stream}.a", b"next")["seq"] == 6


def test_answer_to_a_restore_describes_the_stream(js: JetStream, stream: str) -> None:
    fill(js, stream)
    snapshot = take_snapshot(js, stream)
    delete(js, stream)

    answer = restore(js, stream, snapshot)

    info = js.info(stream)
    assert list(answer) == ["type", "config", "created", "state", "ts"]
    assert answer["type"] == f"{TYPE}stream_create_response"
    assert answer["config"] == info["config"]
    assert answer["state"] == info["state"]


def test_restored_stream_may_have_another_name_and_other_subjects(js: JetStream, stream: str) -> None:
    fill(js, stream)
    other = f"{stream}-2"

    answer = restore(js, other, take_snapshot(js, stream).renamed(other, subjects=[f"{other}.>"]))

    assert answer["config"]["name"] == other
    assert messages(js, other) == messages(js, stream)
    assert js.publish(f"{other}.x")["seq"] == 6


def test_storage_may_change(js: JetStream, stream: str) -> None:
    fill(js, stream)
    other = f"{stream}-2"

    restore(js, other, take_snapshot(js, stream).renamed(other, subjects=[f"{other}.>"], storage="memory"))

    assert js.config(other)["storage"] == "memory"
    assert messages(js, other) == messages(js, stream)


def test_name_in_the_configuration_may_be_missing(js: JetStream, stream: str) -> None:
    fill(js, stream)
    snapshot = take_snapshot(js, stream)
    delete(js, stream)

    answer = restore(js, stream, snapshot.renamed(""))

    assert answer["config"]["name"] == stream


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_empty_stream_that_had_messages_goes_on_where_it_was(js: JetStream, stream: str, storage: str) -> None:
    fill(js, stream, storage=storage)
    js.api(f"STREAM.PURGE.{stream}")

    come_back(js, stream)

    state = js.state(stream)
    assert (state["messages"], state["first_seq"], state["last_seq"]) == (0, 6, 5)
    assert js.publish(f"{stream}.a")["seq"] == 6


@pytest.mark.parametrize("first_seq", [0, 1000])
def test_stream_that_never_had_a_message_comes_back(js: JetStream, stream: str, first_seq: int) -> None:
    js.create(stream, first_seq=first_seq)

    come_back(js, stream)

    assert js.state(stream)["messages"] == 0
    assert js.publish(f"{stream}.a")["seq"] == max(first_seq, 1)


def test_stream_that_begins_late_keeps_its_sequences(js: JetStream, stream: str) -> None:
    js.create(stream, first_seq=1000)
    for number in range(10):
        js.publish(f"{stream}.a", b"%d" % number)
    js.api(f"STREAM.PURGE.{stream}", {"keep": 4})

    come_back(js, stream)

    assert js.sequences(stream) == [1006, 1007, 1008, 1009]
    assert js.publish(f"{stream}.a")["seq"] == 1010


def test_last_messages_that_were_deleted_stay_deleted(js: JetStream, stream: str) -> None:
    js.create(stream)
    for number in range(6):
        js.publish(f"{stream}.a", b"%d" % number)
    for sequence in (5, 6):
        js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": sequence})

    come_back(js, stream)

    assert js.sequences(stream) == [1, 2, 3, 4]
    assert js.state(stream)["last_seq"] == 6
    assert js.publish(f"{stream}.a")["seq"] == 7


def test_many_messages_come_back_in_many_chunks(js: JetStream, stream: str) -> None:
    js.create(stream)
    for number in range(10_000):
        js.send(f"{stream}.{number % 7}", noise(number, 90))
    js.wait_for_state(stream, lambda state: state["last_seq"] == 10_000)
    for sequence in range(5, 10_000, 1_000):
        js.api(f"STREAM.MSG.DELETE.{stream}", {"seq": sequence})
    samples = [1, 2, 4, 6, 4_444, 9_999, 10_000]
    before, state = [js.get(stream, seq=each) for each in samples], js.state(stream, {"deleted_details": True})

    come_back(js, stream)

    assert [js.get(stream, seq=each) for each in samples] == before
    assert js.state(stream, {"deleted_details": True}) == state
    assert state["messages"] == 9_990


def test_messages_expire_after_they_have_come_back(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_ttl=True)
    js.publish(f"{stream}.never", b"", {"Nats-TTL": "never"})
    # Not before it has come back, also on a machine that is busy.
    js.publish(f"{stream}.soon", b"", {"Nats-TTL": "5"})
    js.publish(f"{stream}.late", b"", {"Nats-TTL": "1h"})

    come_back(js, stream)

    assert js.state(stream)["messages"] == 3
    js.wait_for_state(stream, lambda state: state["messages"] == 2)
    assert js.sequences(stream) == [1, 3]


def test_messages_that_have_expired_meanwhile_do_not_come_back(js: JetStream, stream: str) -> None:
    js.create(stream, allow_msg_ttl=True)
    js.publish(f"{stream}.a")
    js.publish(f"{stream}.a", b"", {"Nats-TTL": "1"})
    snapshot = take_snapshot(js, stream)
    delete(js, stream)
    time.sleep(1.1)

    answer = restore(js, stream, snapshot)

    assert (answer["state"]["messages"], answer["state"]["last_seq"]) == (1, 2)
    assert js.publish(f"{stream}.a")["seq"] == 3


def test_limits_of_the_stream_are_kept(js: JetStream, stream: str) -> None:
    fill(js, stream)
    snapshot = take_snapshot(js, stream)
    delete(js, stream)

    restore(js, stream, snapshot.renamed(stream, max_msgs=2))

    assert js.sequences(stream) == [4, 5]


def test_sealed_stream_comes_back_sealed(js: JetStream, stream: str) -> None:
    fill(js, stream)
    js.update(stream, sealed=True)

    come_back(js, stream)

    assert js.config(stream)["sealed"]
    assert js.state(stream)["messages"] == 4


def test_restored_stream_survives_a_restart(start_jetstream: Callable[..., ServerProcess], stream: str) -> None:
    server = start_jetstream()
    store = server.folder / "store"
    with JetStream(server) as js:
        fill(js, stream)
        come_back(js, stream)
        before = messages(js, stream)
    server.stop()

    with JetStream(start_jetstream(store=store)) as js:
        assert messages(js, stream) == before
        assert js.publish(f"{stream}.a")["seq"] == 6


# What is refused


def test_requests_to_restore_are_refused_in_order(js: JetStream, stream: str) -> None:
    js.create(stream)

    assert js.error("STREAM.RESTORE.NEW", b"") == BAD_REQUEST
    assert js.error("STREAM.RESTORE.NEW", b"{}") == BAD_REQUEST
    assert js.error("STREAM.RESTORE.NEW", b"x")[1] == 10025
    assert js.error("STREAM.RESTORE.NEW", {"config": {"x": 1}})[1] == 10025
    assert js.error("STREAM.RESTORE.NEW", {"state": {"x": 1}})[1] == 10025
    assert js.error("STREAM.RESTORE.NEW", {"config": {"name": "OLD"}})[1] == 10056
    assert js.error("STREAM.RESTORE.N/W", {"config": {"name": "N/W"}})[1] == 10128
    assert js.error("STREAM.RESTORE.NEW", {"config": {"subjects": ["a..b"]}})[1] == 10052
    assert js.error(f"STREAM.RESTORE.{stream}", {"config": {"name": stream}}) == IN_USE
    assert js.api(f"STREAM.RESTORE.{stream}", {"config": {"name": stream}})["deliver_subject"] == ""


def test_subject_of_a_restore_names_the_stream(js: JetStream, stream: str) -> None:
    answer = js.api(f"STREAM.RESTORE.{stream}", {"config": {}, "state": {"first_ts": "0001-01-01T00:00:00Z"}})

    assert list(answer) == ["type", "deliver_subject"]
    assert answer["type"] == f"{TYPE}stream_restore_response"
    prefix, _, nuid = answer["deliver_subject"].rpartition(".")
    assert prefix == f"$JS.SNAPSHOT.RESTORE.{stream}"
    assert len(nuid) == 22


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({}, "subjects overlap with an existing stream (10065)"),
        ({"subjects": ["x"], "num_replicas": 3}, "replicas > 1 not supported in non-clustered mode (10074)"),
    ],
)
def test_stream_that_cannot_be_added_is_refused_at_the_end(
    js: JetStream, stream: str, config: dict[str, Any], reason: str
) -> None:
    fill(js, stream)
    other = f"{stream}-2"

    answer = restore(js, other, take_snapshot(js, stream).renamed(other, **config))

    assert error_of(answer) == (500, 10062, f"restore failed: error adding stream: {reason}")
    assert js.error(f"STREAM.INFO.{other}") == NOT_FOUND


def test_name_that_was_taken_meanwhile_is_refused(js: JetStream, stream: str) -> None:
    fill(js, stream)
    snapshot = take_snapshot(js, stream)
    other = f"{stream}-2"
    subject = begin_restore(js, other, snapshot.renamed(other, subjects=[other]))
    js.create(other, subjects=[other])
    js.publish(other)

    send_chunks(js, subject, snapshot.data)

    assert error_of(js.request(subject).json()) == IN_USE
    assert js.state(other)["messages"] == 1


def test_chunks_need_a_reply_subject(js: JetStream, stream: str) -> None:
    subject = begin_restore(js, stream, Snapshot({"name": stream}, {}, b""))

    js.send(subject, b"chunk")
    time.sleep(0.2)

    assert js.request(subject).status.startswith("503")


STATE = b'{"messages":1,"first_seq":1,"last_seq":1}'

HOSTILE = {
    "nothing": b"",
    "garbage": b"garbage that is no archive",
    "only magic": frame(b"NATSARC1"),
    "no magic": frame(b"x" * 600),
    "no state": frame(b"NATSARC1" + Entry(b"a", 1).encode()),
    "state that is no JSON": frame(archive(state=b"x")),
    "no terminator": frame(archive(Entry(b"a", 1), state=STATE, end=b"")),
    "sequence twice": frame(archive(Entry(b"a", 1), Entry(b"a", 1), state=STATE)),
    "sequence that goes back": frame(archive(Entry(b"a", 9), Entry(b"a", 8), state=STATE)),
    "sequence below the first": frame(archive(Entry(b"a", 4), state=b'{"first_seq":5}')),
    "no sequence": frame(archive(Entry(b"a", 0, payload=b"x"), state=STATE)),
    "payload too large": frame(archive(Entry(b"a", 1, lengths=(1, 0, 2**40)), state=STATE)),
    "lengths that overflow": frame(archive(Entry(b"a", 1, lengths=(1, 2**63 - 1, 2**63 - 1)), state=STATE)),
    "name too long": frame(archive(Entry(b"a", 1, lengths=(2**40, 0, 0)), state=STATE)),
    "payload cut off": frame(archive(Entry(b"a", 1, lengths=(1, 0, 500)), state=STATE)),
    "consumer missing": frame(archive(state=b'{"first_seq":1,"consumer_count":1}')),
    "consumer that is no JSON": frame(
        archive(Entry(b"consumers/C", payload=b"x"), state=b'{"first_seq":1,"consumer_count":1}')
    ),
    "consumer without state": frame(
        archive(Entry(b"consumers/C", payload=b'{"config":{}}'), state=b'{"first_seq":1,"consumer_count":1}')
    ),
    "wrong time to live": frame(archive(Entry(b"a", 1, headers=b"NATS/1.0\r\nNats-TTL: x\r\n\r\n"), state=STATE)),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_archive_that_makes_no_sense_is_refused(js: JetStream, stream: str, what: str) -> None:
    answer = restore(js, stream, Snapshot({"name": stream}, {}, HOSTILE[what]))

    code, error_code, description = error_of(answer)
    assert (code, error_code) == (500, 10062)
    assert description.startswith("restore failed: ")
    assert answer["type"] == f"{TYPE}stream_create_response"


@pytest.mark.parametrize("cut", [1, 5, 40, 200])
def test_archive_that_was_cut_off_is_refused(js: JetStream, stream: str, cut: int) -> None:
    fill(js, stream)
    snapshot = take_snapshot(js, stream)
    other = f"{stream}-2"

    answer = restore(js, other, Snapshot({"name": other, "subjects": [other]}, {}, snapshot.data[:-cut]))

    assert error_of(answer)[1] == 10062


def test_message_above_the_limits_is_refused(js: JetStream, stream: str) -> None:
    fill(js, stream)
    snapshot = take_snapshot(js, stream)
    delete(js, stream)

    answer = restore(js, stream, snapshot.renamed(stream, max_msg_size=100))

    assert error_of(answer) == (500, 10062, "restore failed: message sequence 4 exceeds maximum message size")


def test_restore_without_a_chunk_for_long_is_given_up(js: JetStream, stream: str) -> None:
    fill(js, stream)
    snapshot = take_snapshot(js, stream)
    other = f"{stream}-2"
    subject = begin_restore(js, other, snapshot.renamed(other, subjects=[other]))
    assert send_chunks(js, subject, snapshot.data[:100]) is None

    # It is given up after five seconds, and a machine that is busy may need more.
    time.sleep(9)

    assert js.request(subject).status.startswith("503")
    assert js.error(f"STREAM.INFO.{other}") == NOT_FOUND


def test_account_limits_hold_for_restores(start_jetstream: Callable[..., ServerProcess], stream: str) -> None:
    accounts = """
        accounts {
          A: { users: [{user: a, password: a}], jetstream: {max_file: 100000, max_mem: 100000, max_streams: 2} }
        }
        no_auth_user: a
    """
    with JetStream(start_jetstream(config=accounts), user="a", **{"pass": "a"}) as js:
        js.create(stream)
        for number in range(60):
            js.publish(f"{stream}.a", noise(number, 1000))
        other = f"{stream}-2"
        snapshot = take_snapshot(js, stream).renamed(other, subjects=[other])

        answer = restore(js, other, snapshot)

        assert error_of(answer)[1] == 10047
        js.create(other)
        error = js.error("STREAM.RESTORE.THIRD", {"config": {"name": "THIRD", "subjects": ["third"]}})
        assert error[1] == 10027


# What is told


def test_snapshots_and_restores_are_told(js: JetStream, stream: str) -> None:
    fill(js, stream)
    js.subscribe(f"{ADVISORY}STREAM.>")
    snapshot = take_snapshot(js, stream)
    client = {"acc": "$G", "client_type": "nats", "host": "127.0.0.1", "kind": "Client", "start": "TIME"}

    def told(subject: str) -> dict[str, Any]:
        advisory = normal(js.next(f"{ADVISORY}STREAM.{subject}.{stream}").json())
        for key in ("id", "rtt", "server"):
            advisory["client"].pop(key, None)
        return dict(advisory)

    head = {"id": "...", "timestamp": "TIME", "stream": stream}
    created, completed = told("SNAPSHOT_CREATE"), told("SNAPSHOT_COMPLETE")
    state = normal(snapshot.state)
    assert created == {**head, "type": f"{ADVISORY_TYPE}snapshot_create", "state": state, "client": client}
    ended = {"start": "TIME", "end": "TIME", "client": client}
    assert completed == {**head, "type": f"{ADVISORY_TYPE}snapshot_complete", **ended}

    delete(js, stream)
    restore(js, stream, snapshot)

    assert told("RESTORE_CREATE") == {**head, "type": f"{ADVISORY_TYPE}restore_create", "client": client}
    action = {"type": f"{ADVISORY_TYPE}stream_action", "action": "create"}
    assert normal(js.next(f"{ADVISORY}STREAM.CREATED.{stream}").json()) == {**head, **action}
    restored = {**head, "type": f"{ADVISORY_TYPE}restore_complete", "bytes": len(snapshot.data)}
    assert told("RESTORE_COMPLETE") == {**restored, **ended}


def noise(seed: int, count: int) -> bytes:
    """Return bytes that no compression makes shorter."""
    state, out = seed * 2_654_435_761 + 1, bytearray()
    while len(out) < count:
        state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        out += state.to_bytes(8, "little")[3:]
    return bytes(out[:count])
