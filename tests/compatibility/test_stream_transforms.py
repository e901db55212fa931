"""Subject transforms at the entrance of a stream, and republishing of what was stored."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compatibility import jetstream
from tests.compatibility.jetstream import JetStream, Message, header_block

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream

TRANSFORM = "stream transform: "
MAPPING = "stream transform: invalid mapping destination: "

# In these tables `~` stands for the name of the stream, with which its subjects begin.


def named(text: str, stream: str) -> str:
    return text.replace("~", stream)


# Transforms


@pytest.mark.parametrize(
    ("source", "destination", "subject", "stored"),
    [
        ("~.>", "z.>", "~.a.b", "z.a.b"),
        (">", "z.>", "~.a.b", "z.~.a.b"),
        ("", "z.>", "~.a", "z.~.a"),
        ("", "", "~.a", "~.a"),
        ("~.a", "", "~.a", "~.a"),
        ("~.a", "z", "~.a", "z"),
        ("~.a", "z", "~.b", "~.b"),
        ("~.*", "z", "~.a", "z"),
        ("~.*", "~.$1.$1", "~.a", "~.a.a"),
        ("~.*.*", "y.$2.$1", "~.a.b", "y.b.a"),
        ("~.*.>", "z.$1.>", "~.a.b.c", "z.a.b.c"),
        ("~.*.c", "z.$1", "~.a.b", "~.a.b"),
        ("~.*.*", "y.{{wildcard(2)}}.{{Wildcard(1)}}", "~.a.b", "y.b.a"),
        ("~.*.*", "y.{{ wildcard( 2 ) }}.$1", "~.a.b", "y.b.a"),
        ("~.*", "y.{{partition(10,1)}}", "~.a", "y.0"),
        ("~.*", "y.{{partition(10,1)}}", "~.b", "y.7"),
        ("~.*", "y.{{partition(10,1)}}", "~.foo", "y.3"),
        ("~.*", "y.{{partition(10,1)}}", "~.bar-baz", "y.2"),
        ("~.*", "y.{{partition(0,1)}}", "~.a", "y.0"),
        ("~.*.*", "y.{{partition(10,1,2)}}", "~.a.b", "y.6"),
        ("~.*", "y.{{random(1)}}", "~.a", "y.0"),
        ("~.*", "y.{{random(0)}}", "~.a", "y.0"),
        ("~.a", "y.{{random(1)}}", "~.a", "y.0"),
        ("~.*", "y.{{split(1,-)}}", "~.-a--b-", "y.a.b"),
        ("~.*", "y.{{split(1,x)}}.z", "~.abc", "y.abc.z"),
        ("~.*", "y.{{splitFromLeft(1,3)}}", "~.12345", "y.123.45"),
        ("~.*", "y.{{splitfromleft(1,3)}}", "~.12345", "y.123.45"),
        ("~.*", "y.{{splitFromLeft(1,9)}}", "~.12345", "y.12345"),
        ("~.*", "y.{{SplitFromRight(1,3)}}", "~.12345", "y.12.345"),
        ("~.*", "y.{{sliceFromLeft(1,2)}}", "~.12345", "y.12.34.5"),
        ("~.*", "y.{{sliceFromRight(1,2)}}", "~.12345", "y.1.23.45"),
        ("~.*", "y.{{left(1,2)}}", "~.12345", "y.12"),
        ("~.*", "y.{{left(1,9)}}", "~.12345", "y.12345"),
        ("~.*", "y.{{right(1,2)}}", "~.12345", "y.45"),
        ("~.*", "y.{{wildcard(1)", "~.a", "y.{{wildcard(1)"),
        ("~.*", "y.{{split(1,.)}}", "~.a", "y.{{split(1,.)}}"),
        (
            "~.*.*",
            "y.{{wildcard(2)}}.{{partition(5,1)}}.{{split(1,-)}}",
            "~.a-b.q",
            "y.q.1.a.b",
        ),
    ],
)
def test_message_is_stored_under_the_transformed_subject(
    js: JetStream, stream: str, source: str, destination: str, subject: str, stored: str
) -> None:
    transform = {"src": named(source, stream), "dest": named(destination, stream)}
    js.create(stream, subject_transform=transform)

    js.publish(named(subject, stream))

    assert js.get(stream, seq=1)["subject"] == named(stored, stream)


def hash_of(text: str) -> int:
    """FNV-1a with 32 bits."""
    result = 0x811C9DC5
    for byte in text.encode():
        result = (result ^ byte) * 0x01000193 & 0xFFFFFFFF
    return result


@pytest.mark.parametrize(
    ("subject", "source", "destination", "tail"),
    [
        ("~.a.b", "~.*.*", "y.{{partition(10)}}", ""),
        ("~.a.b", "~.>", "y.{{partition(10)}}.>", ".a.b"),
        ("~.a", "~.a", "y.{{partition(10)}}", ""),
    ],
)
def test_partition_without_tokens_takes_the_whole_subject(
    js: JetStream, stream: str, subject: str, source: str, destination: str, tail: str
) -> None:
    js.create(stream, subject_transform={"src": named(source, stream), "dest": destination})

    js.publish(named(subject, stream))

    assert js.get(stream, seq=1)["subject"] == f"y.{hash_of(named(subject, stream)) % 10}{tail}"


@pytest.mark.parametrize(
    ("destination", "description"),
    [
        ("x.*", f"{TRANSFORM}invalid subject"),
        ("x.>", f"{TRANSFORM}invalid subject"),
        ("x..y", f"{MAPPING}invalid transform"),
        ("x y", f"{MAPPING}invalid transform"),
        ("x.$2", f"{MAPPING}wildcard index out of range in $2: [2]"),
        ("x.{{unknown(1)}}", f"{MAPPING}unknown function in {{{{unknown(1)}}}}"),
        ("x.{{WILDCARD(1)}}", f"{MAPPING}unknown function in {{{{WILDCARD(1)}}}}"),
        ("x.{{wildcard(2)}}", f"{MAPPING}wildcard index out of range in {{{{wildcard(2)}}}}: [2]"),
        ("x.{{partition(2,9)}}", f"{MAPPING}wildcard index out of range in {{{{partition(2,9)}}}}: [9]"),
        ("x.{{wildcard()}}", f"{MAPPING}not enough arguments passed to the function in {{{{wildcard()}}}}"),
        ("x.{{split(1)}}", f"{MAPPING}not enough arguments passed to the function in {{{{split(1)}}}}"),
        ("x.{{left(1)}}", f"{MAPPING}not enough arguments passed to the function in {{{{left(1)}}}}"),
        ("x.{{wildcard(1,2)}}", f"{MAPPING}too many arguments passed to the function in {{{{wildcard(1,2)}}}}"),
        (
            "x.{{wildcard(a)}}",
            f"{MAPPING}function argument is invalid or in the wrong format in {{{{wildcard(a)}}}}",
        ),
        (
            "x.{{partition()}}",
            f"{MAPPING}function argument is invalid or in the wrong format in {{{{partition()}}}}",
        ),
        ("x.{{random(a)}}", f"{MAPPING}function argument is invalid or in the wrong format in {{{{random(a)}}}}"),
    ],
)
def test_destination_that_cannot_be_is_refused(js: JetStream, stream: str, destination: str, description: str) -> None:
    refused = js.create_error(stream, subject_transform={"src": f"{stream}.*", "dest": destination})

    assert refused == (400, 10156, description)


@pytest.mark.parametrize(
    ("destination", "description"),
    [
        ("x.{{wildcard(1)}}", f"{MAPPING}wildcard index out of range in {{{{wildcard(1)}}}}"),
        ("x.$1", f"{MAPPING}wildcard index out of range in $1"),
        ("x.{{split(1,-)}}", f"{MAPPING}wildcard index out of range in {{{{split(1,-)}}}}"),
    ],
)
def test_source_without_wildcards_has_no_tokens_to_take(
    js: JetStream, stream: str, destination: str, description: str
) -> None:
    refused = js.create_error(stream, subject_transform={"src": f"{stream}.a", "dest": destination})

    assert refused == (400, 10156, description)


def test_source_that_is_no_subject_is_refused(js: JetStream, stream: str) -> None:
    refused = js.create_error(stream, subject_transform={"src": "a..b", "dest": "x"})

    assert refused == (400, 10155, "stream transform source: invalid subject a..b")


def test_full_wildcard_must_be_in_both_and_at_the_end(js: JetStream, stream: str) -> None:
    only_in_source = js.create_error(stream, subject_transform={"src": "a.>", "dest": "x"})
    not_at_the_end = js.create_error(stream, subject_transform={"src": "a.*.>", "dest": "x.>.y"})

    assert only_in_source == (400, 10156, f"{TRANSFORM}invalid subject")
    assert not_at_the_end == (400, 10156, f"{MAPPING}invalid transform in y")


def test_expected_sequence_is_that_of_the_transformed_subject(js: JetStream, stream: str) -> None:
    js.create(stream, subject_transform={"src": f"{stream}.*", "dest": f"{stream}-2.$1"})
    js.publish(f"{stream}.a")
    expectation = {"Nats-Expected-Last-Subject-Sequence": "1"}

    assert js.publish(f"{stream}.a", b"", expectation)["seq"] == 2
    assert js.publish_code(f"{stream}.a", b"", expectation) == 10071


def test_limit_of_a_subject_is_that_of_the_transformed_subject(js: JetStream, stream: str) -> None:
    js.create(stream, max_msgs_per_subject=1, subject_transform={"src": f"{stream}.*", "dest": "one"})

    js.publish(f"{stream}.a")
    js.publish(f"{stream}.b")

    assert js.sequences(stream) == [2]


def test_transform_may_change_and_stored_subjects_stay(js: JetStream, stream: str) -> None:
    js.create(stream, subject_transform={"src": f"{stream}.*", "dest": "one.$1"})
    js.publish(f"{stream}.a")

    js.update(stream, subject_transform={"src": f"{stream}.*", "dest": "two.$1"})
    js.publish(f"{stream}.a")
    js.update(stream, subject_transform=None)
    js.publish(f"{stream}.a")

    assert [js.get(stream, seq=number)["subject"] for number in (1, 2, 3)] == ["one.a", "two.a", f"{stream}.a"]


# Republish


def republished_block(
    js: JetStream, stream: str, sequence: int, last: int, headers: bytes = b"", more: str = ""
) -> bytes:
    """The header block of a republished message; `last` is the sequence before it on its subject."""
    message = js.get(stream, seq=sequence)
    added = f"Nats-Stream: {stream}\r\nNats-Subject: {message['subject']}\r\nNats-Sequence: {sequence}\r\n"
    times = f"Nats-Time-Stamp: {message['time']}\r\nNats-Last-Sequence: {last}\r\n"
    return header_block(headers + f"{added}{times}{more}".encode())


def test_republished_message_tells_where_it_is_stored(js: JetStream, stream: str) -> None:
    js.create(stream, republish={"src": ">", "dest": "out.>"})
    js.subscribe(f"out.{stream}.>")

    js.publish(f"{stream}.a", b"one")
    js.publish(f"{stream}.b", b"two", b"H: 1\r\nNats-Msg-Id: 2\r\n")
    js.publish(f"{stream}.a", b"three")
    received = [js.next(f"out.{stream}.>") for _ in range(3)]

    ours = b"H: 1\r\nNats-Msg-Id: 2\r\n"
    assert received == [
        Message(f"out.{stream}.a", "", republished_block(js, stream, 1, 0), b"one"),
        Message(f"out.{stream}.b", "", republished_block(js, stream, 2, 0, ours), b"two"),
        Message(f"out.{stream}.a", "", republished_block(js, stream, 3, 1), b"three"),
    ]


@pytest.mark.parametrize(("payload", "size"), [(b"12345", 5), (b"", 0)])
def test_republished_headers_tell_the_size(js: JetStream, stream: str, payload: bytes, size: int) -> None:
    js.create(stream, republish={"src": f"{stream}.*", "dest": f"heads.{stream}.$1", "headers_only": True})
    js.subscribe(f"heads.{stream}.*")

    js.publish(f"{stream}.a", payload, b"A: b\r\n")

    message = js.next(f"heads.{stream}.a")
    assert message.headers == republished_block(js, stream, 1, 0, b"A: b\r\n", f"Nats-Msg-Size: {size}\r\n")
    assert message.data == b""


def test_only_matching_and_only_stored_messages_are_republished(js: JetStream, stream: str) -> None:
    js.create(stream, republish={"src": f"{stream}.*", "dest": f"some.{stream}.$1"})
    js.subscribe(f"some.{stream}.>")

    js.publish(f"{stream}.a.b", b"of another subject")
    js.publish(f"{stream}.a", b"stored", {"Nats-Msg-Id": "1"})
    js.publish(f"{stream}.a", b"duplicate", {"Nats-Msg-Id": "1"})
    js.publish(f"{stream}.a", b"refused", {"Nats-Expected-Last-Sequence": "9"})
    js.publish(f"{stream}.z", b"last")

    assert js.next(f"some.{stream}.*").data == b"stored"
    assert js.next(f"some.{stream}.*").data == b"last"


def test_republish_sees_the_transformed_subject(js: JetStream, stream: str) -> None:
    js.create(
        stream,
        subject_transform={"src": f"{stream}.*", "dest": f"{stream}-2.$1"},
        republish={"src": f"{stream}-2.*", "dest": f"third.{stream}.{{{{wildcard(1)}}}}"},
    )
    js.subscribe(f"third.{stream}.>")

    js.publish(f"{stream}.a")

    message = js.next(f"third.{stream}.a")
    assert message.header("Nats-Subject") == f"{stream}-2.a"


def test_last_sequence_is_told_also_when_that_message_was_replaced(js: JetStream, stream: str) -> None:
    js.create(stream, republish={"src": ">", "dest": "out.>"}, allow_rollup_hdrs=True, max_msgs_per_subject=1)
    js.subscribe(f"out.{stream}.>")

    js.publish(f"{stream}.a")
    js.publish(f"{stream}.a", b"", {"Nats-Rollup": "sub"})
    js.publish(f"{stream}.a")
    received = [js.next(f"out.{stream}.a") for _ in range(3)]

    assert [message.header("Nats-Last-Sequence") for message in received] == ["0", "1", "2"]


@pytest.mark.parametrize("storages", [("file", "file"), ("memory", "file"), ("file", "memory"), ("memory", "memory")])
def test_republished_copy_is_stored_when_its_publisher_is_answered(
    js: JetStream, stream: str, storages: tuple[str, str]
) -> None:
    first, second = storages
    js.create(stream, storage=first, republish={"src": f"{stream}.>", "dest": f"{stream}-2.>"})
    js.create(f"{stream}-2", storage=second, subjects=[f"{stream}-2.>"], allow_direct=True)

    missing = 0
    for number in range(1, 101):
        assert js.publish(f"{stream}.a", b"%d" % number)["seq"] == number
        answer = js.request(f"$JS.API.DIRECT.GET.{stream}-2", b'{"last_by_subj":"%s-2.a"}' % stream.encode())
        missing += answer.data != b"%d" % number

    if js.server.kind == "jetlake":
        assert missing == 0
    else:
        # It mostly is on nats-server, which promises nothing.
        js.wait_for_state(f"{stream}-2", lambda state: state["messages"] == 100)


def test_copy_that_is_refused_does_not_keep_the_answer_back(js: JetStream, stream: str) -> None:
    js.create(stream, republish={"src": f"{stream}.>", "dest": f"{stream}-2.>"})
    js.create(f"{stream}-2", subjects=[f"{stream}-2.>"], max_msgs=1, discard="new")

    acknowledged = [js.publish(f"{stream}.a")["seq"] for _ in range(3)]

    assert acknowledged == [1, 2, 3]
    js.wait_for_state(f"{stream}-2", lambda state: state["messages"] == 1)


def test_streams_that_republish_in_a_row_answer_and_store_everything(js: JetStream, stream: str) -> None:
    names = [stream, f"{stream}-2", f"{stream}-3"]
    for name, following in zip(names, [*names[1:], ""], strict=True):
        republish = {"republish": {"src": f"{name}.>", "dest": f"{following}.>"}} if following else {}
        js.create(name, **republish)

    inboxes = [js.new_inbox() for _ in range(200)]
    for inbox in inboxes:
        js.send(f"{stream}.a", b"x", reply=inbox)
    acknowledged = [js.next(inbox).json()["seq"] for inbox in inboxes]

    assert acknowledged == list(range(1, 201))
    for name in names:
        js.wait_for_state(name, lambda state: state["messages"] == 200)


def test_republish_of_everything_to_itself_follows_the_transform(js: JetStream, stream: str) -> None:
    transform = {"src": f"{stream}.>", "dest": f"{stream}-2.>"}
    everything = {"src": ">", "dest": ">"}

    pedantic = js.create_error(stream, subject_transform=transform, republish=everything, pedantic=True)
    config = js.create(stream, subject_transform=transform, republish=everything)["config"]
    js.subscribe(f"{stream}-2.>")
    js.publish(f"{stream}.a", b"x")

    assert pedantic == (400, 10157, "pedantic mode: implicit republish based on subject transform")
    assert config["republish"] == {"src": f"{stream}-2.>", "dest": f"{stream}-2.>"}
    assert js.next(f"{stream}-2.a").data == b"x"


@pytest.mark.parametrize(
    ("republish", "shown"),
    [
        ({"src": "", "dest": "out.>"}, {"src": ">", "dest": "out.>"}),
        ({"dest": "out.>"}, {"src": ">", "dest": "out.>"}),
        ({"src": ">", "dest": ""}, {"src": ">", "dest": ""}),
        ({"src": "a.*", "dest": "b"}, {"src": "a.*", "dest": "b"}),
        (
            {"src": ">", "dest": "out.>", "headers_only": True},
            {"src": ">", "dest": "out.>", "headers_only": True},
        ),
    ],
)
def test_republish_is_shown_with_its_source(
    js: JetStream, stream: str, republish: dict[str, Any], shown: dict[str, Any]
) -> None:
    assert js.create(stream, republish=republish)["config"]["republish"] == shown


def test_republish_that_cannot_be_is_refused(js: JetStream, stream: str) -> None:
    cycle = js.create_error(stream, republish={"src": ">", "dest": f"{stream}.again.>"})
    invalid = js.create_error(stream, republish={"src": "a.*", "dest": "b.*"})
    pedantic = js.create_error(stream, republish={"dest": "out.>"}, pedantic=True)

    assert cycle == (500, 10052, "stream configuration for republish destination forms a cycle")
    assert invalid == (
        500,
        10052,
        "stream configuration for republish with transform from 'a.*' to 'b.*' not valid",
    )
    assert pedantic == (400, 10157, "pedantic mode: republish source can not be empty")


def test_republish_may_be_taken_away(js: JetStream, stream: str) -> None:
    js.create(stream, republish={"src": ">", "dest": "out.>"})
    js.subscribe(f"out.{stream}.>")

    config = js.update(stream, republish=None)["config"]
    js.publish(f"{stream}.a")

    assert "republish" not in config
    assert js.received(f"out.{stream}.>") == []
