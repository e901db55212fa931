"""Acknowledgements: every body with and without a reply subject, and the floor after each step of a history."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.compatibility import consumers, jetstream
from tests.compatibility.consumers import (
    ACK,
    NAK,
    NEXT,
    NO_MESSAGES,
    PROGRESS,
    SHORT_NS,
    TERM,
    Consumer,
    Delivery,
    Inbox,
    Numbers,
    Puller,
    add,
    create,
    deliveries,
    delivery,
    pending_status,
    plain_status,
    publish,
    sequences,
    written,
)
from tests.compatibility.jetstream import ADVISORY, ADVISORY_TYPE, Message, normal
from tests.compatibility.server_process import ServerProcess

js, js_server, stream = consumers.js, jetstream.js_server, jetstream.stream
start_jetstream = jetstream.start_jetstream

# The first eight bytes of the digest of the account's name, as it stands in ack subjects of the second form.
ACCOUNT_HASH = "szMpdrwD"

ACKNOWLEDGED = Numbers((1, 1), (1, 1), pending=2)
UNTOUCHED = Numbers((1, 1), ack_pending=1, pending=2)

# What is delivered next when the first of three messages is acknowledged or still waits, and when it is redelivered.
NEW = [Delivery(1, 2, 2, 1), Delivery(1, 3, 3, 0)]
AGAIN = [Delivery(2, 1, 2, 2), Delivery(1, 2, 3, 1), Delivery(1, 3, 4, 0)]


def no_responders(subject: str) -> bytes:
    return f"NATS/1.0 503\r\nNats-Subject: {subject}\r\n\r\n".encode()


def is_unanswered(consumer: Consumer, ack_subject: str, body: bytes = ACK) -> bool:
    """Whether an acknowledgement gets no answer: they are taken in order, so a later one's answer comes alone."""
    inbox = consumer.js.new_inbox()
    consumer.js.send(ack_subject, body, reply=inbox)
    consumer.answer_to(f"$JS.ACK.{consumer.stream}.{consumer.name}.1.1.1.0.0", b"nothing")
    return not consumer.js.received(inbox)


def ask_for_more(consumer: Consumer, message: Message, argument: bytes = b"") -> Inbox:
    """Acknowledge and ask for the next messages; return where they come."""
    inbox = consumer.js.open_inbox()
    consumer.js.send(message.reply, NEXT + argument, reply=inbox.subject)
    return inbox


# The ack subject


def test_ack_subject_has_nine_tokens(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc")
    stored_time = js.get(stream, seq=1)["time"]

    first, second = consumer.take(2)

    match = re.fullmatch(rf"\$JS\.ACK\.{stream}\.c\.1\.1\.1\.(\d{{19}})\.2", first.reply)
    assert match is not None
    assert match[1][-9:].rstrip("0") == stored_time.removesuffix("Z").partition(".")[2]
    assert second.reply.startswith(f"$JS.ACK.{stream}.c.1.2.2.")
    assert second.reply.endswith(".1")


@pytest.mark.parametrize("tail", ["", ".extra", ".two.more"])
def test_ack_subject_with_domain_and_account_is_understood(js: Puller, stream: str, tail: str) -> None:
    consumer = create(js, stream, "abc")

    numbers = consumer.take_one().reply.split(".", 4)[4]
    answer = consumer.answer_to(f"$JS.ACK._.{ACCOUNT_HASH}.{stream}.c.{numbers}{tail}")

    assert (answer.headers, answer.data) == (b"", b"")
    assert consumer.numbers() == ACKNOWLEDGED


@pytest.mark.parametrize(("jetstream_lines", "domain"), [("", "_"), ("domain: hub", "hub")])
def test_ack_subject_names_domain_and_account_when_the_server_is_told_to(
    start_jetstream: Callable[..., ServerProcess], jetstream_lines: str, domain: str
) -> None:
    server = start_jetstream(jetstream=jetstream_lines, config="feature_flags { js_ack_fc_v2: true }\n")
    with Puller(server) as js:
        consumer = create(js, "S", "ab")

        message = consumer.take_one()
        consumer.acknowledge(message)

        assert re.fullmatch(rf"\$JS\.ACK\.{domain}\.{ACCOUNT_HASH}\.S\.c\.1\.1\.1\.\d{{19}}\.1", message.reply)
        assert consumer.numbers() == Numbers((1, 1), (1, 1), pending=1)


@pytest.mark.parametrize("head", ["other.{hash}.{stream}.c", "_.other.{stream}.c", "{stream}.d", "OTHER.c"])
def test_ack_subject_of_something_else_has_no_responders(js: Puller, stream: str, head: str) -> None:
    consumer = create(js, stream, "abc")
    consumer.take_one()

    subject = f"$JS.ACK.{head.format(hash=ACCOUNT_HASH, stream=stream)}.1.1.1.0.0"

    assert consumer.answer_to(subject).headers == no_responders(subject)
    assert consumer.numbers() == UNTOUCHED


@pytest.mark.parametrize("numbers", ["1.1", "1.1.1.0", "1.1.1.0.0.0"])
def test_ack_subject_of_another_length_has_no_responders(js: Puller, stream: str, numbers: str) -> None:
    consumer = create(js, stream, "abc")
    consumer.take_one()

    subject = f"$JS.ACK.{stream}.c.{numbers}"

    assert consumer.answer_to(subject).headers == no_responders(subject)


def test_only_the_stream_sequence_of_an_ack_subject_counts(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc")
    consumer.take(2)

    consumer.answer_to(f"$JS.ACK.{stream}.c.9.1.9.9.9")
    consumer.answer_to(f"$JS.ACK.{stream}.c.x.2.x.x.x")

    assert consumer.numbers() == Numbers((2, 2), (2, 2), pending=1)


@pytest.mark.parametrize("number", [5, 1000, 2**64 - 1])
def test_number_of_a_delivery_that_never_was(js: Puller, stream: str, server_kind: str, number: int) -> None:
    consumer = create(js, stream, "abcdef", ack_policy="all")
    messages = consumer.take(4)

    consumer.answer_to(f"$JS.ACK.{stream}.c.1.2.{number}.0.0")
    assert consumer.numbers().ack_pending == 2
    consumer.acknowledge(messages[2], NAK)
    consumer.acknowledge(messages[3])

    if server_kind == "nats-server":
        # Later acknowledgements do not count until there were that many deliveries.
        assert consumer.numbers().ack_pending == 2
    else:
        assert consumer.numbers() == Numbers((4, 4), (4, 4), pending=2)


def test_acknowledgement_from_before_a_reset(js: Puller, stream: str, server_kind: str) -> None:
    consumer = create(js, stream, "abcdef", ack_policy="all")
    before = consumer.take(5)
    assert "error" not in js.api(f"CONSUMER.RESET.{stream}.c", {"seq": 4})
    after = consumer.take(2)

    consumer.acknowledge(before[3])
    assert consumer.numbers().ack_pending == 1
    consumer.acknowledge(after[1])

    if server_kind == "nats-server":
        assert consumer.numbers().ack_pending == 1
    else:
        assert consumer.numbers() == Numbers((2, 5), (2, 5), pending=1)


# Bodies


@pytest.mark.parametrize(
    ("body", "numbers", "next_deliveries"),
    [
        (b"", ACKNOWLEDGED, NEW),
        (b"+ACK", ACKNOWLEDGED, NEW),
        (b"+OK", ACKNOWLEDGED, NEW),
        (b"+TERM", ACKNOWLEDGED, NEW),
        (b"+TERM because of it", ACKNOWLEDGED, NEW),
        (b"+TERMinated", ACKNOWLEDGED, NEW),
        (b"-NAK", UNTOUCHED, AGAIN),
        (b"-NAKX", UNTOUCHED, AGAIN),
        (b"-NAK ", UNTOUCHED, AGAIN),
        (b"-NAK junk", UNTOUCHED, AGAIN),
        (b"-NAK 30", UNTOUCHED, AGAIN),
        (b"-NAK {", UNTOUCHED, AGAIN),
        (b'-NAK {"delay":"30s"}', UNTOUCHED, AGAIN),
        (b"-NAK 30s", UNTOUCHED, NEW),
        (b"-NAK30s", UNTOUCHED, NEW),
        (b"-NAK  1h30m ", UNTOUCHED, NEW),
        (b'-NAK {"delay":30000000000}', UNTOUCHED, NEW),
        (b'-NAK{"delay":30000000000,"more":1}', UNTOUCHED, NEW),
        (b"+WPI", UNTOUCHED, NEW),
        (b"+WPI ", UNTOUCHED, NEW),
        (b"+ACKX", UNTOUCHED, NEW),
        (b"+ACK ", UNTOUCHED, NEW),
        (b" +ACK", UNTOUCHED, NEW),
        (b"+ack", UNTOUCHED, NEW),
        (b"+OK ", UNTOUCHED, NEW),
        (b"anything", UNTOUCHED, NEW),
    ],
)
def test_body_says_what_becomes_of_the_message(
    js: Puller, stream: str, body: bytes, numbers: Numbers, next_deliveries: list[Delivery]
) -> None:
    consumer = create(js, stream, "abc")

    consumer.acknowledge(consumer.take_one(), body)

    assert consumer.numbers() == numbers
    assert deliveries(consumer.take_all()) == next_deliveries


@pytest.mark.parametrize("body", [b"", b"+ACK", b"+OK", b"+TERM", b"+TERM reason", b"+NXT"])
def test_acknowledgement_needs_no_reply_subject(js: Puller, stream: str, body: bytes) -> None:
    consumer = create(js, stream, "abc")

    js.send(consumer.take_one().reply, body)

    assert consumer.wait_for(lambda numbers: numbers.ack_pending == 0) == ACKNOWLEDGED


def test_refusal_needs_no_reply_subject(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "a")

    js.send(consumer.take_one().reply, NAK)

    assert deliveries(consumer.take(1)) == [Delivery(2, 1, 2, 0)]


@pytest.mark.parametrize("body", [b"", b"+ACK", b"-NAK", b"+WPI"])
def test_headers_of_an_acknowledgement_are_ignored(js: Puller, stream: str, body: bytes) -> None:
    consumer = create(js, stream, "abc")

    answer = js.request(consumer.take_one().reply, body, {"A": "b"})

    assert (answer.headers, answer.data) == (b"", b"")
    assert consumer.numbers() == (ACKNOWLEDGED if body in (b"", ACK) else UNTOUCHED)


def test_termination_tells_its_reason(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc")
    subject = f"{ADVISORY}CONSUMER.MSG_TERMINATED.{stream}.c"
    js.subscribe(subject)

    consumer.acknowledge_each(consumer.take(1), b"+TERM   out of  order ")
    consumer.acknowledge_each(consumer.take(1), TERM)

    told = {
        "type": f"{ADVISORY_TYPE}terminated",
        "id": "...",
        "timestamp": "TIME",
        "stream": stream,
        "consumer": "c",
        "deliveries": 1,
    }
    with_reason, without = (normal(js.next(subject).json()) for _ in range(2))
    assert with_reason == {**told, "consumer_seq": 1, "stream_seq": 1, "reason": "out of  order"}
    assert without == {**told, "consumer_seq": 2, "stream_seq": 2}


def test_refusal_is_told(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc")
    subject = f"{ADVISORY}CONSUMER.MSG_NAKED.{stream}.c"
    js.subscribe(subject)

    consumer.acknowledge(consumer.take_one(), b"-NAK 30s")

    assert normal(js.next(subject).json()) == {
        "type": f"{ADVISORY_TYPE}nak",
        "id": "...",
        "timestamp": "TIME",
        "stream": stream,
        "consumer": "c",
        "consumer_seq": 1,
        "stream_seq": 1,
        "deliveries": 1,
    }


# Sequences that are not pending


@pytest.mark.parametrize("sequence", ["4", "5", "99", "x", "-1"])
@pytest.mark.parametrize("body", [b"", b"+ACK", b"+TERM"])
def test_acknowledgement_of_what_was_never_delivered_is_not_answered(
    js: Puller, stream: str, sequence: str, body: bytes
) -> None:
    consumer = create(js, stream, "abcde")
    consumer.take(3)

    assert is_unanswered(consumer, f"$JS.ACK.{stream}.c.1.{sequence}.1.0.0", body)
    assert consumer.numbers() == Numbers((3, 3), ack_pending=3, pending=2)


@pytest.mark.parametrize("sequence", ["4", "99", "x"])
@pytest.mark.parametrize("body", [b"-NAK", b"+WPI", b"anything"])
def test_other_bodies_are_answered_for_what_was_never_delivered(
    js: Puller, stream: str, sequence: str, body: bytes
) -> None:
    consumer = create(js, stream, "abcde")
    consumer.take(3)

    answer = consumer.answer_to(f"$JS.ACK.{stream}.c.1.{sequence}.1.0.0", body)

    assert (answer.headers, answer.data) == (b"", b"")
    assert consumer.numbers() == Numbers((3, 3), ack_pending=3, pending=2)
    assert sequences(consumer.take_all()) == [4, 5]


@pytest.mark.parametrize("body", [b"", b"+ACK", b"-NAK", b"-NAK 1ms", b"+WPI", b"+TERM"])
def test_what_is_acknowledged_already_may_be_acknowledged_again(js: Puller, stream: str, body: bytes) -> None:
    consumer = create(js, stream, "abc")
    first, second, _ = consumer.take(3)
    consumer.acknowledge_each([second, first])

    consumer.acknowledge_each([first, second], body)

    assert consumer.numbers() == Numbers((3, 3), (2, 2), ack_pending=1)
    assert consumer.take_all() == []


def test_acknowledgement_of_sequence_zero_is_answered(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc")
    consumer.take_one()

    answer = consumer.answer_to(f"$JS.ACK.{stream}.c.1.0.0.0.0")

    assert (answer.headers, answer.data) == (b"", b"")
    assert consumer.numbers() == UNTOUCHED


def test_acknowledgement_of_a_message_that_the_filter_skipped_is_answered(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abab", filter_subject=f"{stream}.b")
    consumer.take(2)

    consumer.answer_to(f"$JS.ACK.{stream}.c.1.1.1.0.0")
    consumer.answer_to(f"$JS.ACK.{stream}.c.1.3.1.0.0")

    assert consumer.numbers() == Numbers((2, 4), ack_pending=2)


def test_deleted_consumer_has_no_responders(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc")
    (message,) = consumer.take(1)

    consumer.delete()

    assert consumer.answer_to(message.reply).headers == no_responders(message.reply)


@pytest.mark.parametrize("body", [b"", b"+ACK", b"+NXT"])
def test_consumer_without_acknowledgements_has_no_responders(js: Puller, stream: str, body: bytes) -> None:
    consumer = create(js, stream, "abc", ack_policy="none")
    (message,) = consumer.take(1)

    assert consumer.answer_to(message.reply, body).headers == no_responders(message.reply)
    assert consumer.numbers() == ACKNOWLEDGED


# Acknowledging and asking for the next


@pytest.mark.parametrize(
    ("argument", "count"),
    [
        (b"", 1),
        (b" 2", 2),
        (b"2", 2),
        (b"\n2", 2),
        (b" 0", 1),
        (b" junk", 1),
        (b"X", 1),
        (b' {"batch":2}', 2),
        (b'{"batch":2}', 2),
        (b" {}", 1),
    ],
)
def test_acknowledgement_may_ask_for_the_next_messages(js: Puller, stream: str, argument: bytes, count: int) -> None:
    consumer = create(js, stream, "abcde")

    inbox = ask_for_more(consumer, consumer.take_one(), argument)
    messages = consumer.answers(inbox, count)

    assert sequences(messages) == list(range(2, 2 + count))
    assert consumer.is_silent(inbox)
    assert consumer.numbers() == Numbers((1 + count, 1 + count), (1, 1), ack_pending=count, pending=4 - count)


@pytest.mark.parametrize(
    ("argument", "status"),
    [
        (b' {"batch":2,"no_wait":true}', NO_MESSAGES),
        (b' {"batch":2,"expires":%d}' % SHORT_NS, pending_status("408 Request Timeout", 2)),
        (b" 3", plain_status("409 Exceeded MaxRequestBatch of 2")),
    ],
)
def test_asking_for_the_next_messages_ends_like_a_pull(js: Puller, stream: str, argument: bytes, status: bytes) -> None:
    consumer = create(js, stream, "a", max_batch=2)

    inbox = ask_for_more(consumer, consumer.take_one(), argument)

    assert [answer.headers for answer in consumer.rest(inbox)] == [status]
    assert consumer.numbers() == Numbers((1, 1), (1, 1))


def test_bad_request_for_the_next_message_acknowledges_all_the_same(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abc")

    inbox = ask_for_more(consumer, consumer.take_one(), b" {")

    assert js.next_at(inbox).status.startswith("400 Bad Request - ")
    assert consumer.numbers() == ACKNOWLEDGED


def test_asking_for_the_next_message_waits_for_it(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "a")
    inbox = ask_for_more(consumer, consumer.take_one())
    waiting = consumer.wait_for(lambda numbers: numbers.waiting == 1)

    publish(js, stream, "b")

    assert waiting == Numbers((1, 1), (1, 1), waiting=1)
    assert delivery(js.next_at(inbox)) == Delivery(1, 2, 2, 0)


@pytest.mark.parametrize("sequence", ["99", "x"])
def test_asking_for_the_next_message_is_served_whatever_is_acknowledged(js: Puller, stream: str, sequence: str) -> None:
    consumer = create(js, stream, "ab")
    message = consumer.take_one()

    unknown = Message("", f"$JS.ACK.{stream}.c.1.{sequence}.1.0.0", b"", b"")

    assert sequences(consumer.answers(ask_for_more(consumer, unknown), 1)) == [2]
    assert delivery(message).stream_sequence == 1
    assert consumer.numbers() == Numbers((2, 2), ack_pending=2)


def test_push_consumer_acknowledges_but_has_no_next_message_to_ask_for(js: Puller, stream: str) -> None:
    js.create(stream)
    js.subscribe(f"deliver.{stream}")
    consumer = add(js, stream, deliver_subject=f"deliver.{stream}")
    publish(js, stream, "a")

    inbox = ask_for_more(consumer, js.next(f"{stream}.a"))

    assert js.next_at(inbox).headers == plain_status("409 Consumer is push based")
    assert consumer.numbers() == Numbers((1, 1), (1, 1))


# Histories

# Each step takes (t) so many messages of six, or acknowledges (a), refuses (n), terminates (x) or prolongs (w) the n-th
# message that was taken. Behind it stand the consumer and stream sequence delivered, those acknowledged without a gap,
# and how many messages wait for an acknowledgement, were redelivered, and are pending.
HISTORIES = [
    (
        "explicit",
        (
            "t1=1,1/0,0/1/0/5  a1=1,1/1,1/0/0/5  t1=2,2/1,1/1/0/4  a2=2,2/2,2/0/0/4  t4=6,6/2,2/4/0/0"
            "  a3=6,6/3,3/3/0/0  a4=6,6/4,4/2/0/0  a5=6,6/5,5/1/0/0  a6=6,6/6,6/0/0/0"
        ),
    ),
    (
        "explicit",
        "t4=4,4/0,0/4/0/2  a2=4,4/0,0/3/0/2  a1=4,4/2,2/2/0/2  a4=4,4/2,2/1/0/2  a3=4,4/4,4/0/0/2",
    ),
    (
        "explicit",
        "t4=4,4/0,0/4/0/2  a4=4,4/0,0/3/0/2  a3=4,4/0,0/2/0/2  a2=4,4/0,0/1/0/2  a1=4,4/4,4/0/0/2",
    ),
    (
        "explicit",
        "t3=3,3/0,0/3/0/3  n1=3,3/0,0/3/0/3  t1=4,3/0,0/3/1/3  a4=4,3/1,1/2/0/3  a2=4,3/2,2/1/0/3  a3=4,3/4,3/0/0/3",
    ),
    (
        "explicit",
        (
            "t3=3,3/0,0/3/0/3  n1=3,3/0,0/3/0/3  t1=4,3/0,0/3/1/3  a1=4,3/1,1/2/0/3  a4=4,3/1,1/2/0/3"
            "  a3=4,3/1,1/1/0/3  a2=4,3/4,3/0/0/3"
        ),
    ),
    (
        "explicit",
        (
            "t3=3,3/0,0/3/0/3  n2=3,3/0,0/3/0/3  t1=4,3/0,0/3/1/3  a1=4,3/1,1/2/1/3  a3=4,3/1,1/1/1/3"
            "  a4=4,3/4,3/0/0/3  t3=7,6/4,3/3/0/0  a5=7,6/5,4/2/0/0"
        ),
    ),
    (
        "explicit",
        "t3=3,3/0,0/3/0/3  x2=3,3/0,0/2/0/3  a1=3,3/2,2/1/0/3  t1=4,4/2,2/2/0/2  a3=4,4/3,3/1/0/2  x4=4,4/4,4/0/0/2",
    ),
    (
        "explicit",
        (
            "t3=3,3/0,0/3/0/3  n1=3,3/0,0/3/0/3  n2=3,3/0,0/3/0/3  n3=3,3/0,0/3/0/3  t3=6,3/0,0/3/3/3"
            "  a5=6,3/0,0/2/2/3  a4=6,3/2,2/1/1/3  a6=6,3/6,3/0/0/3"
        ),
    ),
    (
        "explicit",
        (
            "t2=2,2/0,0/2/0/4  n1=2,2/0,0/2/0/4  n2=2,2/0,0/2/0/4  t1=3,2/0,0/2/1/4  n3=3,2/0,0/2/1/4"
            "  t2=5,2/0,0/2/2/4  a1=5,2/1,1/1/1/4  a2=5,2/5,2/0/0/4"
        ),
    ),
    (
        "explicit",
        (
            "t2=2,2/0,0/2/0/4  w1=2,2/0,0/2/0/4  a1=2,2/1,1/1/0/4  w1=2,2/1,1/1/0/4  n1=2,2/1,1/1/0/4"
            "  t1=3,3/1,1/2/0/3  a2=3,3/2,2/1/0/3  a3=3,3/3,3/0/0/3"
        ),
    ),
    (
        "all",
        "t4=4,4/0,0/4/0/2  a2=4,4/2,2/2/0/2  a1=4,4/2,2/2/0/2  a4=4,4/4,4/0/0/2  a3=4,4/4,4/0/0/2",
    ),
    (
        "all",
        "t4=4,4/0,0/4/0/2  a3=4,4/3,3/1/0/2  t2=6,6/3,3/3/0/0  a6=6,6/6,6/0/0/0",
    ),
    (
        "all",
        "t3=3,3/0,0/3/0/3  n1=3,3/0,0/3/0/3  t1=4,3/0,0/3/1/3  a4=4,3/4,1/2/0/3  a2=4,3/4,1/2/0/3  a3=4,3/4,1/2/0/3",
    ),
    (
        "all",
        "t3=3,3/0,0/3/0/3  n2=3,3/0,0/3/0/3  t1=4,3/0,0/3/1/3  a3=4,3/3,3/0/0/3  a4=4,3/3,3/0/0/3",
    ),
    (
        "all",
        "t3=3,3/0,0/3/0/3  n3=3,3/0,0/3/0/3  t1=4,3/0,0/3/1/3  a4=4,3/4,3/0/0/3  t1=5,4/4,3/1/0/2  a5=5,4/5,4/0/0/2",
    ),
    (
        "all",
        "t3=3,3/0,0/3/0/3  x2=3,3/2,2/1/0/3  a3=3,3/3,3/0/0/3",
    ),
    (
        "all",
        "t4=4,4/0,0/4/0/2  n2=4,4/0,0/4/0/2  n3=4,4/0,0/4/0/2  a3=4,4/3,3/1/0/2  t2=6,6/3,3/3/0/0  a6=6,6/6,6/0/0/0",
    ),
    (
        "none",
        "t3=3,3/3,3/0/0/3  t1=4,4/4,4/0/0/2",
    ),
    (
        "none",
        "t6=6,6/6,6/0/0/0",
    ),
]
BODIES = {"a": ACK, "n": NAK, "x": TERM, "w": PROGRESS}


@pytest.mark.parametrize(("ack_policy", "history"), HISTORIES)
@pytest.mark.parametrize("mem_storage", [False, True])
def test_numbers_follow_each_step_of_a_history(
    js: Puller, stream: str, mem_storage: bool, ack_policy: str, history: str
) -> None:
    consumer = create(js, stream, "abcdef", ack_policy=ack_policy, mem_storage=mem_storage)

    taken: list[Message] = []
    lines = []
    for step in (line.split("=")[0] for line in history.split("  ")):
        count = int(step[1:])
        if step[0] == "t":
            taken += consumer.take(count)
        else:
            consumer.acknowledge(taken[count - 1], BODIES[step[0]])
        lines.append(f"{step}={written(consumer.numbers())}")

    assert lines == history.split("  ")


def test_floor_passes_over_messages_that_the_filter_skips(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abababa", filter_subject=f"{stream}.b")
    first, second, third = consumer.take(3)

    consumer.acknowledge(first)
    after_first = consumer.numbers()
    consumer.acknowledge(third)
    after_third = consumer.numbers()
    consumer.acknowledge(second)

    assert after_first.ack_floor == (1, 3)
    assert after_third.ack_floor == (1, 3)
    assert consumer.numbers() == Numbers((3, 6), (3, 6))


@pytest.mark.parametrize("retention", ["workqueue", "interest"])
@pytest.mark.parametrize("body", [b"", b"+TERM", b"+NXT"])
def test_message_that_is_done_is_removed_from_a_stream_that_keeps_what_is_wanted(
    js: Puller, stream: str, retention: str, body: bytes
) -> None:
    js.create(stream, retention=retention)
    consumer = add(js, stream)
    publish(js, stream, "abc")
    _, second = consumer.take(2)

    js.send(second.reply, body)
    js.wait_for_state(stream, lambda state: state["messages"] == 2)

    assert js.sequences(stream) == [1, 3]
    assert consumer.numbers() == Numbers((2, 2), ack_pending=1, pending=1)
