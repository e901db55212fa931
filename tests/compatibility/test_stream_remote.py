"""Mirrors and sources from another server: ours copies from both kinds."""

from __future__ import annotations

import time

import pytest

from tests.compatibility import remotes
from tests.compatibility.jetstream import API, SECOND_NS
from tests.compatibility.origins import (
    PATIENCE_SECONDS,
    identity,
    payloads,
    publish_numbers,
    stored,
    wait_for_messages,
    wait_for_sequence,
)
from tests.compatibility.remotes import Pair, error_text, origin_of, state_of, wait_for_origin

pair, killable = remotes.pair, remotes.killable
shared_pair, started = remotes.shared_pair, remotes.started

MIRROR_FAILED = 10029


# Messages


def test_a_mirror_has_the_messages_of_another_server_with_their_sequences_and_times(started: Pair) -> None:
    with started.origin() as origin, started.copy() as copy:
        origin.create("O")
        for number in range(5):
            origin.publish(f"O.{number % 2}", b"%d" % number, {"A": "b", "Nats-Msg-Id": f"id{number}"})
        copy.create("M", mirror=origin_of("O"))
        wait_for_messages(copy, "M", 5)

        publish_numbers(origin, "O.x", 2, first=5)
        wait_for_messages(copy, "M", 7)

        for sequence in range(1, 8):
            assert copy.get("M", seq=sequence) == origin.get("O", seq=sequence)
        state = wait_for_origin(copy, "M", lambda state: state["lag"] == 0)
        assert state["external"]["api"] == "$JS.hub.API"
        assert 0 <= state["active"] < 30 * SECOND_NS
        assert "error" not in state


def test_a_source_says_where_its_messages_come_from(started: Pair) -> None:
    with started.origin() as origin, started.copy() as copy:
        origin.create("O")
        copy.create("L")
        publish_numbers(copy, "L.a", 1)
        copy.create("S", subjects=["s.own"], sources=[origin_of("O"), {"name": "L"}])
        publish_numbers(origin, "O.a", 2)

        wait_for_messages(copy, "S", 3)
        publish_numbers(copy, "s.own", 1, first=9)

        value = f"O:bTMUkJQk 2 > > O.a {identity(origin, 'O')}".encode()
        headers = [message.headers for message in stored(copy, "S") if b"bTMUkJQk 2 " in message.headers]
        assert headers == [b"NATS/1.0\r\nNats-Stream-Source: " + value + b"\r\n\r\n"]
        assert sorted(payloads(copy, "S")) == ["1", "1", "2", "9"]
        positions = {source["name"]: source["seq"] for source in copy.info("S")["sources"]}
        assert positions == {"O": 2, "L": 1}


def test_filters_and_transforms_choose_and_rename(started: Pair) -> None:
    with started.origin() as origin, started.copy() as copy:
        origin.create("O")
        for subject in ("a.1", "b.1", "c", "a.2"):
            origin.publish(f"O.{subject}", subject.encode())
        transforms = [{"src": "O.a.*", "dest": "x.{{wildcard(1)}}"}, {"src": "O.c", "dest": ""}]

        copy.create("F", subjects=[], sources=[origin_of("O", filter_subject="O.b.>")])
        copy.create("T", subjects=[], sources=[origin_of("O", subject_transforms=transforms)])
        copy.create("M", mirror=origin_of("O", filter_subject="O.a.*"))

        wait_for_messages(copy, "F", 1)
        wait_for_messages(copy, "T", 3)
        wait_for_messages(copy, "M", 2)
        assert [message.subject for message in stored(copy, "F")] == ["O.b.1"]
        assert [message.subject for message in stored(copy, "T")] == ["x.1", "O.c", "x.2"]
        assert copy.sequences("M") == [1, 4]


def test_copies_begin_at_a_sequence_or_a_time(started: Pair) -> None:
    with started.origin() as origin, started.copy() as copy:
        origin.create("O")
        publish_numbers(origin, "O.a", 3)
        time.sleep(0.01)
        publish_numbers(origin, "O.a", 2, first=4)
        moment = origin.get("O", seq=4)["time"]

        for number, start in enumerate(({"opt_start_seq": 4}, {"opt_start_time": moment})):
            copy.create(f"M{number}", mirror=origin_of("O", **start))
            copy.create(f"S{number}", subjects=[], sources=[origin_of("O", **start)])

        for number in range(2):
            wait_for_messages(copy, f"M{number}", 2)
            wait_for_messages(copy, f"S{number}", 2)
            assert copy.sequences(f"M{number}") == [4, 5]
            assert payloads(copy, f"S{number}") == ["4", "5"]


def test_gaps_and_purges_at_the_origin_are_passed_over(started: Pair) -> None:
    with started.origin() as origin, started.copy() as copy:
        origin.create("O")
        publish_numbers(origin, "O.a", 9)
        for sequence in (1, 2, 5, 7):
            origin.api("STREAM.MSG.DELETE.O", {"seq": sequence})
        copy.create("M", mirror=origin_of("O"))
        wait_for_messages(copy, "M", 5)
        assert copy.sequences("M") == [3, 4, 6, 8, 9]

        origin.api("STREAM.PURGE.O", {"seq": 1_000_000})
        publish_numbers(origin, "O.a", 2, first=10)

        wait_for_messages(copy, "M", 7)
        assert copy.get("M", seq=1_000_000) == origin.get("O", seq=1_000_000)
        assert copy.get("M", seq=1_000_001) == origin.get("O", seq=1_000_001)


def test_an_empty_mirror_begins_where_its_origin_does(started: Pair) -> None:
    with started.origin() as origin, started.copy() as copy:
        origin.create("O", first_seq=1000)
        copy.create("M", mirror=origin_of("O"))

        state = wait_for_sequence(copy, "M", 999)
        publish_numbers(origin, "O.a", 1)

        assert (state["messages"], state["first_seq"], state["last_seq"]) == (0, 1000, 999)
        wait_for_messages(copy, "M", 1)
        assert copy.sequences("M") == [1000]


def test_large_messages_come_through(started: Pair) -> None:
    with started.origin() as origin, started.copy() as copy:
        origin.create("O")
        for letter in b"abcdefgh":
            assert "error" not in origin.publish("O.a", bytes([letter]) * 1_000_000)
        copy.create("M", mirror=origin_of("O"))

        wait_for_messages(copy, "M", 8)

        assert [message.payload[:1] for message in stored(copy, "M")] == [b"%c" % letter for letter in b"abcdefgh"]
        assert copy.state("M")["bytes"] == origin.state("O")["bytes"]


def test_a_full_copy_goes_on_when_there_is_room(started: Pair) -> None:
    with started.origin() as origin, started.copy() as copy:
        origin.create("O")
        publish_numbers(origin, "O.a", 10)
        copy.create("M", mirror=origin_of("O"), max_msgs=4, discard="new")
        wait_for_messages(copy, "M", 4)

        copy.api("STREAM.PURGE.M")

        wait_for_sequence(copy, "M", 8)
        assert payloads(copy, "M") == ["5", "6", "7", "8"]
        wait_for_origin(copy, "M", lambda state: state["lag"] == 2)


# Origins whose messages go once they are taken


@pytest.mark.parametrize("retention", ["workqueue", "interest"])
def test_messages_that_are_on_disk_here_leave_a_queue_there(started: Pair, retention: str) -> None:
    with started.origin() as origin, started.copy() as copy:
        origin.create("O", retention=retention)
        copy.create("S", subjects=[], sources=[origin_of("O")])
        wait_for_origin(copy, "S", lambda state: state["active"] >= 0)
        origin.wait_for_state("O", lambda state: state["consumer_count"] == 1)

        publish_numbers(origin, "O.a", 20)

        wait_for_messages(copy, "S", 20)
        wait_for_messages(origin, "O", 0)
        assert payloads(copy, "S") == [str(number) for number in range(1, 21)]


def test_a_queue_keeps_what_cannot_be_stored_here(started: Pair) -> None:
    with started.origin() as origin, started.copy() as copy:
        origin.create("O", retention="workqueue")
        publish_numbers(origin, "O.a", 10)

        copy.create("S", subjects=[], sources=[origin_of("O")], max_msgs=4, discard="new")

        wait_for_messages(copy, "S", 4)
        wait_for_messages(origin, "O", 6)
        assert [message.payload for message in stored(origin, "O")] == [b"%d" % number for number in range(5, 11)]
        copy.api("STREAM.PURGE.S")
        wait_for_messages(origin, "O", 2)
        assert payloads(copy, "S") == ["5", "6", "7", "8"]


def test_the_consumer_of_a_queue_goes_with_the_stream(started: Pair) -> None:
    with started.origin() as origin, started.copy() as copy:
        origin.create("O", retention="workqueue")
        copy.create("S", subjects=[], sources=[origin_of("O")])
        origin.wait_for_state("O", lambda state: state["consumer_count"] == 1)

        copy.api("STREAM.DELETE.S")

        state = origin.wait_for_state("O", lambda state: state["consumer_count"] == 0)
        assert state["messages"] == 0


def test_an_origin_that_is_given_up_is_read_no_more(started: Pair) -> None:
    with started.origin() as origin, started.copy() as copy:
        origin.create("O", retention="workqueue")
        copy.create("S", subjects=["s"], sources=[origin_of("O")])
        origin.wait_for_state("O", lambda state: state["consumer_count"] == 1)

        copy.update("S", sources=[])

        origin.wait_for_state("O", lambda state: state["consumer_count"] == 0)
        publish_numbers(origin, "O.a", 1)
        assert (origin.state("O")["messages"], copy.state("S")["messages"]) == (1, 0)


def test_a_mirror_that_has_caught_up_answers_for_its_origin(started: Pair) -> None:
    with started.origin() as origin, started.copy() as copy:
        origin.create("O")
        publish_numbers(origin, "O.a", 2)
        copy.create("M", mirror=origin_of("O"), mirror_direct=True, allow_direct=True)
        wait_for_messages(copy, "M", 2)

        deadline = time.monotonic() + PATIENCE_SECONDS
        while (answer := copy.request(f"{API}DIRECT.GET.O", b'{"seq":2}')).status.startswith("503"):
            assert time.monotonic() < deadline

        assert (answer.data, answer.header("Nats-Stream"), answer.header("Nats-Sequence")) == (b"2", "M", "2")


# What can go wrong


def test_an_api_that_no_remote_answers_to_says_what_to_do(started: Pair) -> None:
    with started.copy() as copy:
        copy.create("M", mirror={"name": "O", "external": {"api": "$JS.x.API", "deliver": ""}})

        state = wait_for_origin(copy, "M", lambda state: "error" in state)

        assert state["error"] == {
            "code": 500,
            "err_code": MIRROR_FAILED,
            "description": "no remote answers to $JS.x.API: add it to jetstream { remotes } in the configuration, "
            "import it and the deliver subjects from another account, or connect to its server with leafnodes",
        }
        assert (state["lag"], state["active"]) == (0, -1)


def test_an_origin_that_is_not_there_is_waited_for(started: Pair) -> None:
    with started.origin() as origin, started.copy() as copy:
        copy.create("S", subjects=[], sources=[origin_of("O")])
        assert error_text(copy, "S") == "stream not found"

        origin.create("O")
        publish_numbers(origin, "O.a", 1)

        wait_for_messages(copy, "S", 1)
        assert "error" not in state_of(copy, "S")


def test_an_origin_that_is_made_again_is_read_from_its_beginning(started: Pair) -> None:
    with started.origin() as origin, started.copy() as copy:
        origin.create("O")
        publish_numbers(origin, "O.a", 3)
        copy.create("S", subjects=[], sources=[origin_of("O")])
        wait_for_messages(copy, "S", 3)

        origin.api("STREAM.DELETE.O")
        origin.create("O")
        publish_numbers(origin, "O.a", 2, first=4)

        wait_for_messages(copy, "S", 5)
        assert payloads(copy, "S") == ["1", "2", "3", "4", "5"]


def test_a_consumer_that_somebody_deletes_is_made_again(started: Pair) -> None:
    with started.origin() as origin, started.copy() as copy:
        origin.create("O")
        publish_numbers(origin, "O.a", 3)
        copy.create("M", mirror=origin_of("O"))
        wait_for_messages(copy, "M", 3)
        (name,) = origin.api("CONSUMER.NAMES.O")["consumers"]

        origin.api(f"CONSUMER.DELETE.O.{name}")
        publish_numbers(origin, "O.a", 3, first=4)

        wait_for_messages(copy, "M", 6)
        assert payloads(copy, "M") == ["1", "2", "3", "4", "5", "6"]


def test_an_origin_server_that_is_killed_is_found_again(killable: Pair) -> None:
    with killable.origin() as origin, killable.copy() as copy:
        origin.create("O")
        publish_numbers(origin, "O.a", 3)
        copy.create("M", mirror=origin_of("O"))
        copy.create("S", subjects=[], sources=[origin_of("O")])
        wait_for_messages(copy, "M", 3)
        wait_for_messages(copy, "S", 3)

    killable.kill("origin")
    with killable.copy() as copy:
        text = error_text(copy, "M")
        assert "connect" in text or "closed" in text or "reset" in text.lower(), text
    killable.start_origin()

    with killable.origin() as origin, killable.copy() as copy:
        first = origin.state("O")["last_seq"] + 1
        publish_numbers(origin, "O.a", 2, first=first)
        for name in ("M", "S"):
            wait_for_sequence(copy, name, first + 1)
            assert payloads(copy, name) == [str(number) for number in range(1, first + 2)]
            wait_for_origin(copy, name, lambda state: "error" not in state)


def test_the_copying_server_goes_on_where_it_was(killable: Pair) -> None:
    with killable.origin() as origin:
        origin.create("O")
        origin.create("Q", retention="workqueue")
        publish_numbers(origin, "O.a", 3)
        publish_numbers(origin, "Q.a", 3)
        with killable.copy() as copy:
            copy.create("M", mirror=origin_of("O"))
            copy.create("S", subjects=[], sources=[origin_of("O"), origin_of("Q")])
            wait_for_messages(copy, "M", 3)
            wait_for_messages(copy, "S", 6)

        killable.kill("copy")
        publish_numbers(origin, "O.a", 2, first=4)
        publish_numbers(origin, "Q.a", 2, first=4)
        killable.start_copy()

        with killable.copy() as copy:
            wait_for_messages(copy, "M", 5)
            wait_for_messages(copy, "S", 10)
            wait_for_messages(origin, "Q", 0)
            assert payloads(copy, "M") == ["1", "2", "3", "4", "5"]
            assert sorted(payloads(copy, "S")) == sorted(["1", "2", "3", "4", "5"] * 2)


def test_the_next_address_is_tried(pair: Pair) -> None:
    pair.start_origin()
    pair.start_copy(f'["nats://127.0.0.1:9", "{pair.servers["origin"].url}"]')
    with pair.origin() as origin, pair.copy() as copy:
        origin.create("O")
        publish_numbers(origin, "O.a", 1)

        copy.create("M", mirror=origin_of("O"))

        wait_for_messages(copy, "M", 1)
        assert payloads(copy, "M") == ["1"]


def test_a_domain_chooses_the_remote_and_is_asked_there(pair: Pair) -> None:
    pair.domain = "east"
    pair.remote = "domain: east"
    pair.start_origin()
    pair.start_copy()
    with pair.origin() as origin, pair.copy() as copy:
        origin.create("O")
        publish_numbers(origin, "O.a", 1)

        copy.create("M", mirror={"name": "O", "external": {"api": "$JS.east.API"}})
        copy.create("N", mirror=origin_of("O"))

        wait_for_messages(copy, "M", 1)
        wait_for_messages(copy, "N", 1)
        assert copy.get("M", seq=1) == copy.get("N", seq=1) == origin.get("O", seq=1)


def test_a_prefix_that_nobody_serves_is_named(pair: Pair) -> None:
    pair.remote = 'api_prefix: "js.hub"'
    pair.start_origin()
    pair.start_copy()
    with pair.copy() as copy:
        copy.create("M", mirror={"name": "O", "external": {"api": "js.hub"}})

        assert "nobody answers js.hub.STREAM.INFO.O" in error_text(copy, "M")
