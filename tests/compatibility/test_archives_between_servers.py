"""Archives of one server restored by the other, in all directions, and what Jetlake leaves of those it refuses."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
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
from tests.compatibility.consumers import Consumer, Numbers, Puller, add, create, sequences
from tests.compatibility.jetstream import JetStream, error_of, start_jetstream_server
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import TIMEOUT_SECONDS

stream = jetstream.stream

KINDS = ("nats-server", "jetlake")
NEIGHBOUR = "NEIGHBOUR"
"""A stream that is always there."""

DIRECTIONS = [(origin, target) for origin in KINDS for target in KINDS]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ServerProcess]]:
    processes = {kind: start_jetstream_server(kind, tmp_path_factory.mktemp(kind)) for kind in KINDS}
    for process in processes.values():
        with JetStream(process) as js:
            # nats-server tidies up behind its last stream, and then may fail to create another.
            js.create(NEIGHBOUR)
    yield processes
    for process in processes.values():
        process.stop()


@pytest.fixture(params=DIRECTIONS, ids=lambda direction: f"{direction[0]} to {direction[1]}")
def pair(request: pytest.FixtureRequest, servers: dict[str, ServerProcess]) -> Iterator[tuple[JetStream, JetStream]]:
    """The server that a stream leaves, and the one it comes to; both without streams of other tests."""
    origin, target = request.param
    with JetStream(servers[origin]) as one, JetStream(servers[target]) as other:
        for js in (one, other):
            delete_all(js)
        yield one, other


def delete_all(js: JetStream) -> None:
    for name in set(js.api("STREAM.NAMES")["streams"] or []) - {NEIGHBOUR}:
        delete(js, name)


@pytest.fixture
def jetlake(servers: dict[str, ServerProcess]) -> Iterator[JetStream]:
    with JetStream(servers["jetlake"]) as js:
        yield js


def move(pair: tuple[JetStream, JetStream], stream: str, **request: Any) -> None:
    """Restore a stream on the target, and delete it at the origin before, should they be one."""
    origin, target = pair
    snapshot = take_snapshot(origin, stream, **request)
    delete(origin, stream)
    answer = restore(target, stream, snapshot)
    assert "error" not in answer, answer


def contents(js: JetStream, stream: str) -> list[dict[str, Any]]:
    return [js.get(stream, seq=sequence) for sequence in js.sequences(stream)]


def shown_state(js: JetStream, stream: str) -> dict[str, Any]:
    return js.state(stream, {"deleted_details": True, "subjects_filter": ">"})


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_messages_headers_and_gaps_arrive(pair: tuple[JetStream, JetStream], stream: str, storage: str) -> None:
    origin, target = pair
    origin.create(stream, storage=storage, first_seq=500)
    for number in range(50):
        headers = {"Number": str(number), "Nats-Msg-Id": f"id-{number}"} if number % 2 else None
        origin.publish(f"{stream}.{number % 5}.x", b"\x00\xff" * number, headers)
    for sequence in (500, 501, 510, 520, 521, 522, 548, 549):
        origin.api("STREAM.MSG.DELETE.S", {"seq": sequence})
    before, state = contents(origin, stream), shown_state(origin, stream)

    move(pair, stream)

    assert contents(target, stream) == before
    # The last one was deleted, and its time is in no archive.
    assert {**shown_state(target, stream), "last_ts": state["last_ts"]} == state
    assert target.publish(f"{stream}.new")["seq"] == 550


def test_ten_thousand_messages_arrive_in_many_chunks(pair: tuple[JetStream, JetStream], stream: str) -> None:
    origin, target = pair
    origin.create(stream)
    chance = random.Random(7)
    for number in range(10_000):
        # Some compress well, some not at all, and some are larger than a block.
        payload = chance.choice((b"the same words again and again " * 5, chance.randbytes(60)))
        origin.send(f"{stream}.{number % 11}", chance.randbytes(100_000) if number % 2_500 == 7 else payload)
    origin.wait_for_state(stream, lambda state: state["last_seq"] == 10_000)
    for sequence in range(3, 10_000, 500):
        origin.api("STREAM.MSG.DELETE.S", {"seq": sequence})
    samples = [1, 2, 4, 8, 2_508, 5_000, 9_999, 10_000]
    before, state = [origin.get(stream, seq=each) for each in samples], shown_state(origin, stream)

    move(pair, stream, chunk_size=16 * 1024)

    assert [target.get(stream, seq=each) for each in samples] == before
    assert shown_state(target, stream) == state


@pytest.mark.parametrize("purged", [False, True])
def test_empty_stream_arrives(pair: tuple[JetStream, JetStream], stream: str, purged: bool) -> None:
    origin, target = pair
    origin.create(stream, first_seq=10)
    if purged:
        origin.publish(f"{stream}.a")
        origin.api(f"STREAM.PURGE.{stream}")

    move(pair, stream)

    assert target.state(stream)["messages"] == 0
    assert target.publish(f"{stream}.a")["seq"] == 11 if purged else 10


def test_times_to_live_arrive(pair: tuple[JetStream, JetStream], stream: str) -> None:
    origin, target = pair
    origin.create(stream, allow_msg_ttl=True, max_age=3_600_000_000_000)
    origin.publish(f"{stream}.never", b"", {"Nats-TTL": "never"})
    origin.publish(f"{stream}.soon", b"", {"Nats-TTL": "6s"})
    origin.publish(f"{stream}.plain")

    move(pair, stream)

    assert target.sequences(stream) == [1, 2, 3]
    target.wait_for_state(stream, lambda state: state["messages"] == 2)
    assert target.sequences(stream) == [1, 3]


def test_configuration_of_every_kind_arrives(pair: tuple[JetStream, JetStream], stream: str) -> None:
    origin, target = pair
    config = {
        "description": "all of it",
        "max_msgs_per_subject": 2,
        "max_msg_size": 5_000,
        "discard": "new",
        "discard_new_per_subject": True,
        "max_msgs": 100,
        "compression": "s2",
        "allow_direct": True,
        "allow_rollup_hdrs": True,
        "deny_delete": True,
        "allow_msg_counter": False,
        "metadata": {"own": "value"},
        "republish": {"src": f"{stream}.>", "dest": "copy.>"},
    }
    origin.create(stream, **config)
    origin.publish(f"{stream}.a", b"1")
    before = origin.config(stream)

    move(pair, stream)

    after = target.config(stream)
    for each in (before, after):
        each["metadata"] = {key: value for key, value in each["metadata"].items() if not key.startswith("_nats.")}
    assert after == before


# What only Jetlake does


def snapshot_of_many(js: JetStream) -> Snapshot:
    delete_all(js)
    js.create("S")
    chance = random.Random(11)
    for number in range(300):
        js.publish(f"S.{number % 3}", chance.randbytes(50) + b"text text text text text " * 4, {"N": str(number)})
    return take_snapshot(js, "S")


def folders(server: ServerProcess) -> list[str]:
    return sorted(path.name for path in (Path(server.folder) / "store").rglob("streams/*"))


def test_damaged_archives_are_refused_and_leave_nothing(servers: dict[str, ServerProcess], jetlake: JetStream) -> None:
    with JetStream(servers["nats-server"]) as origin:
        made = [snapshot_of_many(origin), snapshot_of_many(jetlake)]
        stored = [contents(origin, "S"), contents(jetlake, "S")]
    before = folders(servers["jetlake"])
    chance = random.Random(5)

    for round_number in range(120):
        data = bytearray(made[round_number % 2].data)
        match chance.randrange(4):
            case 0:
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            case 1:
                del data[chance.randrange(len(data)) :]
            case 2:
                start = chance.randrange(len(data))
                data[start : start + chance.randrange(1, 200)] = chance.randbytes(chance.randrange(200))
            case _:
                start = chance.randrange(len(data))
                del data[start : start + chance.randrange(1, 50)]
        answer = restore(jetlake, "T", Snapshot({"name": "T", "subjects": ["T"]}, {}, bytes(data)))

        if "error" not in answer:
            # Zeros can be copied from many places: the bytes are others, and what they say is not.
            assert contents(jetlake, "T") == stored[round_number % 2]
            delete(jetlake, "T")
            continue
        assert error_of(answer)[1] == 10062, answer
        assert folders(servers["jetlake"]) == before

    assert jetlake.publish("S.0")["seq"] == 301
    assert "error" not in restore(jetlake, "T", made[0].renamed("T", subjects=["T"]))


def test_archive_that_stops_coming_leaves_nothing(servers: dict[str, ServerProcess], jetlake: JetStream) -> None:
    made = snapshot_of_many(jetlake)
    before = folders(servers["jetlake"])
    subject = begin_restore(jetlake, "T", made.renamed("T", subjects=["T"]))
    send_chunks(jetlake, subject, made.data[:-10])
    assert len(folders(servers["jetlake"])) == len(before) + 1

    deadline = time.monotonic() + TIMEOUT_SECONDS
    while folders(servers["jetlake"]) != before:
        assert time.monotonic() < deadline, folders(servers["jetlake"])
        time.sleep(0.1)


def test_killed_server_forgets_a_restore(tmp_path: Path) -> None:
    folder = tmp_path / "first"
    folder.mkdir()
    server = start_jetstream_server("jetlake", folder)
    with JetStream(server) as js:
        made = snapshot_of_many(js)
        subject = begin_restore(js, "T", made.renamed("T", subjects=["T"]))
        send_chunks(js, subject, made.data)
    server.process.kill()
    server.process.wait()
    again = tmp_path / "again"
    again.mkdir()

    server = start_jetstream_server("jetlake", again, store=folder / "store")

    try:
        with JetStream(server) as js:
            assert js.api("STREAM.NAMES")["streams"] == ["S"]
            assert js.state("S")["messages"] == 300
        assert sorted(path.name for path in (folder / "store").rglob("streams/*")) == ["S"]
    finally:
        server.stop()


def test_restored_stream_survives_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "first"
    folder.mkdir()
    server = start_jetstream_server("jetlake", folder)
    with JetStream(server) as js:
        made = snapshot_of_many(js)
        assert "error" not in restore(js, "T", made.renamed("T", subjects=["T"]))
        expected = contents(js, "T")
    server.process.kill()
    server.process.wait()
    again = tmp_path / "again"
    again.mkdir()

    server = start_jetstream_server("jetlake", again, store=folder / "store")

    try:
        with JetStream(server) as js:
            assert contents(js, "T") == expected
    finally:
        server.stop()


def test_message_ids_of_a_restored_stream_are_remembered(jetlake: JetStream) -> None:
    snapshot_of_many(jetlake)
    jetlake.publish("S.0", b"once", {"Nats-Msg-Id": "once"})

    restore(jetlake, "T", take_snapshot(jetlake, "S").renamed("T", subjects=["T"]))

    assert jetlake.publish("T", b"once", {"Nats-Msg-Id": "once"})["duplicate"]


@pytest.fixture(params=DIRECTIONS, ids=lambda direction: f"{direction[0]} to {direction[1]}")
def pullers(request: pytest.FixtureRequest, servers: dict[str, ServerProcess]) -> Iterator[tuple[Puller, Puller]]:
    """As `pair`, for clients that pull."""
    origin, target = request.param
    with Puller(servers[origin]) as one, Puller(servers[target]) as other:
        for js in (one, other):
            delete_all(js)
        yield one, other


def settled_numbers(consumer: Consumer, pending: int) -> Numbers:
    """Return the numbers of a consumer once the server has taken all acknowledgements in."""
    return consumer.wait_for(lambda numbers: numbers.ack_pending == pending)


def test_consumers_go_on_where_they_were(pullers: tuple[Puller, Puller], stream: str) -> None:
    origin, target = pullers
    worked = create(origin, stream, "a" * 20, ack_policy="explicit", ack_wait=60 * 1_000_000_000, max_deliver=9)
    fresh = add(origin, stream, "fresh", ack_policy="explicit")
    add(origin, stream, "pushed", ack_policy="none", deliver_subject=f"to.{stream}")
    fetched = worked.take(8)
    for message in (fetched[0], fetched[1], fetched[4]):
        worked.acknowledge(message)
    before = settled_numbers(worked, 5)

    move(pullers, stream)

    arrived = Consumer(target, stream, worked.name)
    assert sorted(target.api(f"CONSUMER.NAMES.{stream}")["consumers"]) == sorted([worked.name, "fresh", "pushed"])
    assert arrived.numbers() == before
    assert arrived.info()["config"]["max_deliver"] == 9
    assert sequences(arrived.take(3)) == [9, 10, 11]
    assert sequences(Consumer(target, stream, fresh.name).take(2)) == [1, 2]


def test_a_snapshot_without_consumers_has_none(pullers: tuple[Puller, Puller], stream: str) -> None:
    origin, target = pullers
    create(origin, stream, "a", ack_policy="explicit")

    move(pullers, stream, no_consumers=True)

    assert target.state(stream)["consumer_count"] == 0
    assert target.sequences(stream) == [1]


def test_a_consumer_of_an_archive_that_could_not_be_made_is_the_reason_of_a_refusal(jetlake: JetStream) -> None:
    consumer = Entry(b"consumers/C", payload=b'{"config":{"filter_subject":"a","filter_subjects":["b"]},"state":{}}')
    data = frame(archive(consumer, state=b'{"first_seq":1,"consumer_count":1}'))

    answer = restore(jetlake, "REFUSED", Snapshot({"name": "REFUSED"}, {}, data))

    assert answer["error"]["err_code"] == 10062
    assert "consumer C: " in answer["error"]["description"]
    assert error_of(jetlake.api("STREAM.INFO.REFUSED"))[1] == 10059


def test_a_consumer_of_an_archive_whose_state_makes_no_sense_leaves_nothing_behind(jetlake: JetStream) -> None:
    consumer = Entry(b"consumers/C", payload=b'{"config":{"ack_policy":"explicit"},"state":{"delivered":5}}')
    data = frame(archive(consumer, state=b'{"first_seq":1,"consumer_count":1}'))

    answer = restore(jetlake, "REFUSED", Snapshot({"name": "REFUSED"}, {}, data))

    assert answer["error"]["err_code"] == 10062
    assert error_of(jetlake.api("STREAM.INFO.REFUSED"))[1] == 10059


ARCHIVES = Path(__file__).parents[1] / "fixtures" / "archives"


@pytest.mark.parametrize("version", ["2_14_6", "2_11_11"])
@pytest.mark.parametrize("kind", KINDS)
def test_archive_of_an_older_server_is_restored(servers: dict[str, ServerProcess], kind: str, version: str) -> None:
    kept = json.loads((ARCHIVES / f"nats_server_{version}.json").read_text())
    data = (ARCHIVES / f"nats_server_{version}.s2").read_bytes()
    with JetStream(servers[kind]) as js:
        delete(js, "ORDERS")

        answer = restore(js, "ORDERS", Snapshot(kept["config"], kept["state"], data))

        assert answer["created"] == kept["created"]
        assert contents(js, "ORDERS") == kept["messages"]
        assert js.state("ORDERS")["last_seq"] == kept["state"]["last_seq"]
        assert js.publish("orders.new")["seq"] == kept["state"]["last_seq"] + 1


def test_archive_of_an_older_server_belongs_to_its_name(jetlake: JetStream) -> None:
    data = (ARCHIVES / "nats_server_2_14_6.s2").read_bytes()

    answer = restore(jetlake, "OTHER", Snapshot({"name": "OTHER"}, {}, data))

    assert error_of(answer) == (500, 10062, "restore failed: stream names do not match")
