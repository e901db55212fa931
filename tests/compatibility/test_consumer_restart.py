"""What a consumer still knows after its server was stopped or killed and started again with the same store.

A killed server may forget what it was told last; so some time passes between the last acknowledgement and the kill.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.compatibility.consumer_watch import (
    Delivery,
    Watch,
    consumer_info,
    create_consumer,
    create_durable,
    delete_consumer,
    delivery_of,
    numbers_of,
    publish_many,
    sequences_of,
    wait_for_consumer,
    wait_until_deleted,
)
from tests.compatibility.jetstream import (
    MILLISECOND_NS,
    SECOND_NS,
    ZERO_TIME,
    Body,
    JetStream,
    Json,
    Message,
    start_jetstream_server,
)

# A server that is killed has written everything that is older; a busy machine may come late with it.
WRITTEN_SECONDS = 2.0

# Longer than it takes from here to the restart, and from there to the look at what is there.
ENDING_NS = 12 * SECOND_NS

LATER = "2050-01-01T00:00:00Z"

# The consumers of stream S, which are durable unless they say otherwise; `use` does something with each.
CONSUMERS: dict[str, dict[str, Any]] = {
    "IDLE": {},
    "PENDING": {"ack_wait": 60 * SECOND_NS, "max_deliver": 7, "backoff": [60 * SECOND_NS], "sample_freq": "50%"},
    "DONE": {},
    "FILTERED": {"filter_subjects": ["S.b", "S.c"], "description": "filtered", "metadata": {"a": "b"}},
    "ALL": {"ack_policy": "all"},
    "NONE": {"ack_policy": "none"},
    "NEW": {"deliver_policy": "new"},
    "SEQUENCE": {"deliver_policy": "by_start_sequence", "opt_start_seq": 5},
    "LAST": {"deliver_policy": "last_per_subject", "filter_subject": "S.>"},
    "TERMINATED": {},
    "REDELIVERED": {"filter_subject": "S.c", "ack_wait": 500 * MILLISECOND_NS},
    "EXPIRED": {"filter_subject": "S.c", "ack_wait": 500 * MILLISECOND_NS},
    "EXHAUSTED": {"filter_subject": "S.c", "max_deliver": 1, "ack_wait": 100 * MILLISECOND_NS},
    "EPHEMERAL": {"durable_name": "", "inactive_threshold": 60 * SECOND_NS},
    "ENDING": {"durable_name": "", "inactive_threshold": 60 * SECOND_NS},
    "PAUSED": {"pause_until": LATER},
    "RESUMED": {"pause_until": LATER},
    "PUSH": {"deliver_subject": "to.S", "max_ack_pending": 3, "idle_heartbeat": 100 * MILLISECOND_NS},
    "UPDATED": {},
    "RESET": {},
    "PINNED": {"priority_policy": "pinned_client", "priority_groups": ["g"]},
    "WAITED": {"filter_subject": "S.none"},
    "MEMORY": {"mem_storage": True},
    "DELETED": {},
}

LOST = {"S.MEMORY", "S.DELETED", "MEMORY.C"}


def wait_until_written(js: JetStream) -> None:
    """Give a server that is killed next the time to write, though it stands still for a part of that time."""
    for _ in range(2):
        time.sleep(WRITTEN_SECONDS)
        js.api("INFO")


@dataclass(frozen=True)
class Restarted:
    """Connections to the server after its restart, and the infos of consumers before and after it."""

    js: JetStream
    watch: Watch
    before: dict[str, Json]
    after: dict[str, Json]
    farewells: list[Message]


def fill(js: JetStream, watch: Watch) -> None:
    js.create("S")
    js.create("MEMORY", storage="memory")
    publish_many(js, "S", "cabababab")
    for name, config in CONSUMERS.items():
        create_durable(js, "S", name, **config)
    create_durable(js, "MEMORY", "C")
    for name, retention in (("QUEUE", "workqueue"), ("INTEREST", "interest")):
        js.create(name, retention=retention)
        create_durable(js, name, "C")
        publish_many(js, name, "abcd")
        messages = watch.fetch(name, "C", 3)
        for index in (0, 2):
            watch.acknowledge(messages[index])


def use(js: JetStream, watch: Watch) -> None:
    def fetch(name: str, count: int) -> list[Message]:
        return watch.fetch("S", name, count)

    for index, message in enumerate(fetch("PENDING", 5)):
        if index in (0, 1, 3):
            watch.acknowledge(message)
    for message in fetch("DONE", 9):
        watch.acknowledge(message)
    watch.acknowledge(fetch("FILTERED", 3)[0])
    watch.acknowledge(fetch("ALL", 4)[2])
    for name, count in (("NONE", 4), ("SEQUENCE", 2), ("LAST", 1), ("EXHAUSTED", 1), ("EXPIRED", 1), ("RESET", 4)):
        fetch(name, count)
    watch.acknowledge(fetch("TERMINATED", 2)[0], b"+TERM")
    watch.acknowledge(fetch("REDELIVERED", 1)[0], b"-NAK")
    fetch("REDELIVERED", 1)
    watch.acknowledge(fetch("EPHEMERAL", 1)[0])
    inbox = watch.subscribe("to.S")
    watch.acknowledge(inbox.next_delivered())
    wait_for_consumer(js, "S", "PUSH", lambda info: info["delivered"]["consumer_seq"] == 4)
    watch.pull("S", "PINNED", {"group": "g", "batch": 1}).next()
    js.api("CONSUMER.PAUSE.S.RESUMED")
    create_durable(js, "S", "UPDATED", description="after", max_ack_pending=2)
    create_consumer(js, "S", "ENDING", ack_policy="explicit", inactive_threshold=ENDING_NS)
    js.api("CONSUMER.RESET.S.RESET", {"seq": 3})
    delete_consumer(js, "S", "DELETED")
    wait_for_consumer(js, "S", "EXHAUSTED", lambda info: info["num_ack_pending"] == 0)


def consumer_infos(js: JetStream) -> dict[str, Json]:
    return {
        f"{stream}.{info['name']}": info
        for stream in js.api("STREAM.NAMES")["streams"]
        for info in js.api(f"CONSUMER.LIST.{stream}")["consumers"]
    }


@pytest.fixture(scope="module", params=[signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def restarted(
    request: pytest.FixtureRequest, server_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Restarted]:
    store = tmp_path_factory.mktemp("store")
    farewells: list[Message] = []
    server = start_jetstream_server(server_kind, tmp_path_factory.mktemp(server_kind), store)
    try:
        with JetStream(server) as js, Watch(server) as watch:
            fill(js, watch)
            use(js, watch)
            bodies: list[Body] = [{"batch": 3}, {"batch": 2, "max_bytes": 100, "expires": 60 * SECOND_NS}, b"4"]
            waiting = [watch.pull("S", "WAITED", body) for body in bodies]
            before = consumer_infos(js)
            if request.param == signal.SIGKILL:
                wait_until_written(js)
            server.signal(request.param)
            if request.param == signal.SIGTERM:
                farewells = [inbox.next() for inbox in waiting]
            server.wait_for_exit()
    finally:
        server.stop()

    server = start_jetstream_server(server_kind, tmp_path_factory.mktemp(server_kind), store)
    try:
        with JetStream(server) as js, Watch(server) as watch:
            yield Restarted(js, watch, before, consumer_infos(js), farewells)
    finally:
        server.stop()


def test_waiting_requests_are_told_of_the_shutdown(restarted: Restarted) -> None:
    if not restarted.farewells:
        return  # A killed server tells nothing.

    assert [message.headers for message in restarted.farewells] == [
        f"NATS/1.0 409 Server Shutdown\r\nNats-Pending-Messages: {count}\r\n"
        f"Nats-Pending-Bytes: {max_bytes}\r\n\r\n".encode()
        for count, max_bytes in ((3, 0), (2, 100), (4, 0))
    ]


def test_consumers_in_files_are_there_and_others_are_not(restarted: Restarted) -> None:
    expected = {f"S.{name}" for name in CONSUMERS} | {"QUEUE.C", "INTEREST.C"}

    assert restarted.after.keys() == expected - LOST
    assert restarted.js.error("CONSUMER.INFO.S.MEMORY") == (404, 10014, "consumer not found")
    assert restarted.watch.pull("S", "MEMORY").next().status == "503"


def test_configurations_and_creation_times_are_the_same(restarted: Restarted) -> None:
    for name, info in restarted.after.items():
        before = restarted.before[name]

        assert info["config"] == before["config"]
        assert info["created"] == before["created"]
        assert info["name"] == before["name"]


def test_numbers_are_the_same(restarted: Restarted) -> None:
    after = {name: (numbers_of(info), info["num_redelivered"]) for name, info in restarted.after.items()}
    before = {name: (numbers_of(info), info["num_redelivered"]) for name, info in restarted.before.items()}

    assert after == {name: numbers for name, numbers in before.items() if name not in LOST}
    assert after["S.PENDING"] == ((5, 5, 2, 2, 2, 4), 0)
    assert after["S.REDELIVERED"] == ((2, 1, 0, 0, 1, 0), 1)


def test_times_of_activity_waiting_requests_and_pins_are_forgotten(restarted: Restarted) -> None:
    for info in restarted.after.values():
        assert "last_active" not in info["delivered"]
        assert "last_active" not in info["ack_floor"]
        assert info["num_waiting"] == 0
    assert restarted.before["S.WAITED"]["num_waiting"] == 3
    assert "pinned_client_id" in restarted.before["S.PINNED"]["priority_groups"][0]
    assert restarted.after["S.PINNED"]["priority_groups"] == [{"group": "g", "pinned_ts": ZERO_TIME}]


def test_pause_goes_on(restarted: Restarted) -> None:
    assert restarted.after["S.PAUSED"]["paused"] is True
    assert "paused" not in restarted.after["S.RESUMED"]
    assert restarted.watch.pull("S", "PAUSED", {"batch": 1, "no_wait": True}).next().status == "404 No Messages"
    assert sequences_of(restarted.watch.fetch("S", "RESUMED", 1)) == [1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("IDLE", Delivery("S", "IDLE", 1, 1, 1, 8)),
        ("PENDING", Delivery("S", "PENDING", 1, 6, 6, 3)),
        ("FILTERED", Delivery("S", "FILTERED", 1, 7, 4, 1)),
        ("ALL", Delivery("S", "ALL", 1, 5, 5, 4)),
        ("NONE", Delivery("S", "NONE", 1, 5, 5, 4)),
        ("SEQUENCE", Delivery("S", "SEQUENCE", 1, 7, 3, 2)),
        ("TERMINATED", Delivery("S", "TERMINATED", 1, 3, 3, 6)),
        ("EPHEMERAL", Delivery("S", "EPHEMERAL", 1, 2, 2, 7)),
        ("RESET", Delivery("S", "RESET", 1, 3, 1, 6)),
    ],
)
def test_next_message_is_the_one_after_the_last(restarted: Restarted, name: str, expected: Delivery) -> None:
    assert delivery_of(restarted.watch.fetch("S", name, 1)[0]) == expected


def test_unacknowledged_messages_can_be_acknowledged(restarted: Restarted) -> None:
    reply = f"$JS.ACK.S.PENDING.1.{{}}.{{}}.{time.time_ns()}.0"

    for sequence in (3, 5):
        answer = restarted.watch.request(reply.format(sequence, sequence))
        assert (answer.status, answer.data) == ("", b"")

    floor = consumer_info(restarted.js, "S", "PENDING")["ack_floor"]
    assert floor["stream_seq"] == 5


@pytest.mark.parametrize(("name", "deliveries"), [("REDELIVERED", 3), ("EXPIRED", 2)])
def test_unacknowledged_message_is_delivered_again_with_its_count(
    restarted: Restarted, name: str, deliveries: int
) -> None:
    message = restarted.watch.fetch("S", name, 1)[0]

    assert delivery_of(message) == Delivery("S", name, deliveries, 1, deliveries, 0)


def test_message_that_was_delivered_too_often_does_not_come_again(restarted: Restarted) -> None:
    inbox = restarted.watch.pull("S", "EXHAUSTED", {"batch": 1})

    assert inbox.settled(0.3) == []


def test_push_consumer_goes_on_when_it_is_subscribed_to(restarted: Restarted) -> None:
    assert "push_bound" not in restarted.after["S.PUSH"]
    assert numbers_of(restarted.after["S.PUSH"]) == (4, 4, 1, 1, 3, 5)

    inbox = restarted.watch.subscribe("to.S")

    heartbeat = b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 4\r\nNats-Last-Stream: 4\r\n\r\n"
    assert inbox.next().headers == heartbeat
    restarted.watch.request(f"$JS.ACK.S.PUSH.1.2.2.{time.time_ns()}.0")
    assert delivery_of(inbox.next_delivered()) == Delivery("S", "PUSH", 1, 5, 5, 4)


@pytest.mark.parametrize("name", ["QUEUE", "INTEREST"])
def test_messages_that_were_acknowledged_stay_removed(restarted: Restarted, name: str) -> None:
    assert restarted.js.sequences(name) == [2, 4]

    restarted.watch.request(f"$JS.ACK.{name}.C.1.2.2.{time.time_ns()}.0")

    restarted.js.wait_for_state(name, lambda state: state["first_seq"] == 4)
    assert sequences_of(restarted.watch.fetch(name, "C", 1)) == [4]


def test_update_was_the_last_word(restarted: Restarted) -> None:
    config = consumer_info(restarted.js, "S", "UPDATED")["config"]

    assert (config["description"], config["max_ack_pending"]) == ("after", 2)


def test_creation_of_the_same_durable_is_the_same_consumer(restarted: Restarted) -> None:
    create_durable(restarted.js, "S", "FILTERED", **CONSUMERS["FILTERED"])

    info = consumer_info(restarted.js, "S", "FILTERED")
    assert info["created"] == restarted.before["S.FILTERED"]["created"]
    assert info["delivered"]["consumer_seq"] >= restarted.before["S.FILTERED"]["delivered"]["consumer_seq"]


def test_ephemeral_consumer_ends_when_nobody_uses_it(restarted: Restarted) -> None:
    wait_until_deleted(restarted.js, "S", "ENDING")


def test_message_that_was_acknowledged_does_not_come_again_and_a_new_one_does(restarted: Restarted) -> None:
    inbox = restarted.watch.pull("S", "DONE", {"batch": 5})
    assert inbox.settled() == []

    sequence = restarted.js.publish("S.new")["seq"]

    assert sequences_of(inbox.take(1)) == [sequence]
    assert sequences_of(restarted.watch.fetch("S", "NEW", 1)) == [sequence]


def test_names_of_lost_consumers_are_free(restarted: Restarted) -> None:
    for name in ("MEMORY", "DELETED"):
        created = create_durable(restarted.js, "S", name)

        assert numbers_of(created)[:5] == (0, 0, 0, 0, 0)
