"""A consumer for these tests: its pulls with every message and status, its acknowledgements, and its numbers.

It speaks the raw protocol, so bytes are what was on the wire. A pulled message has the subject it was stored with, and
so only the subscription says which request it answers: each request has an inbox with a subscription of its own. A test
has a stream of its own (`stream`), and so its consumers may have short names.

    js, js_server, stream = consumers.js, jetstream.js_server, jetstream.stream

    def test_first_message_is_delivered_first(js: Puller, stream: str) -> None:
        consumer = create(js, stream, "abc")

        assert deliveries(consumer.take(1)) == [Delivery(1, 1, 1, 2)]
        assert consumer.numbers() == Numbers(delivered=(1, 1), ack_pending=1, pending=2)
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from tests.compatibility.jetstream import (
    API,
    MILLISECOND_NS,
    POLL_SECONDS,
    SECOND_NS,
    Body,
    Headers,
    JetStream,
    Json,
    Message,
    encode_body,
    normal,
    parse_message,
    subject_matcher,
)
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import TIMEOUT_SECONDS

# The life of a pull request that a test expects to be filled: longer than any waiting in a test.
EXPIRES_NS = 30 * SECOND_NS

# The life of a pull request that a test expects to end by itself.
SHORT_NS = 100 * MILLISECOND_NS

# More than any test stores, for pulls that take all there is.
BATCH_MAX = 1000

# Subscriptions with smaller numbers are those of `JetStream`.
FIRST_INBOX_SUBSCRIPTION = 1000

ACK, NAK, PROGRESS, NEXT, TERM = b"+ACK", b"-NAK", b"+WPI", b"+NXT", b"+TERM"

NO_MESSAGES = b"NATS/1.0 404 No Messages\r\n\r\n"
CONSUMER_DELETED = b"NATS/1.0 409 Consumer Deleted\r\n\r\n"


class Delivery(NamedTuple):
    """The numbers in the ack subject of a delivered message, without its time."""

    count: int
    stream_sequence: int
    consumer_sequence: int
    pending: int


class Numbers(NamedTuple):
    """The numbers of a consumer's information; pairs are consumer sequence and stream sequence."""

    delivered: tuple[int, int] = (0, 0)
    ack_floor: tuple[int, int] = (0, 0)
    ack_pending: int = 0
    redelivered: int = 0
    waiting: int = 0
    pending: int = 0


class Inbox(NamedTuple):
    """Where the answers to one pull request go."""

    subject: str
    subscription: int


class Puller(JetStream):
    """One connection that keeps the answers of each pull request apart."""

    def __init__(self, server: ServerProcess, **options: Any) -> None:
        super().__init__(server, **options)
        self._inbox_numbers = itertools.count(FIRST_INBOX_SUBSCRIPTION)
        self._answers: dict[int, list[Message]] = {}

    def open_inbox(self, subject: str = "") -> Inbox:
        subscription = next(self._inbox_numbers)
        inbox = Inbox(subject or f"{self._inbox}.pull.{subscription}", subscription)
        self._answers[subscription] = []
        self.raw.send(f"SUB {inbox.subject} {subscription}\r\n".encode())
        return inbox

    def close_inbox(self, inbox: Inbox) -> None:
        """Unsubscribe; the server knows on return."""
        self.raw.send(f"UNSUB {inbox.subscription}\r\n".encode())
        self.flush()

    def next_at(self, inbox: Inbox, seconds: float = TIMEOUT_SECONDS) -> Message:
        """Return the next message or status at `inbox`."""
        deadline = time.monotonic() + seconds
        while not self._answers[inbox.subscription]:
            self._keep(self._read(deadline, inbox.subject))
        return self._answers[inbox.subscription].pop(0)

    def received_at(self, inbox: Inbox) -> list[Message]:
        """Return what is at `inbox` already, after a round trip."""
        self.flush()
        found, self._answers[inbox.subscription] = self._answers[inbox.subscription], []
        return found

    def flush(self) -> None:
        self.raw.send(b"PING\r\n")
        while (frame := self.raw.read_line()) != b"PONG\r\n":
            self._keep(frame)

    def next(self, subject: str, seconds: float = TIMEOUT_SECONDS) -> Message:
        matches = subject_matcher(subject)
        deadline = time.monotonic() + seconds
        while True:
            for index, message in enumerate(self._waiting):
                if matches(message.subject):
                    return self._waiting.pop(index)
            self._keep(self._read(deadline, subject))

    def _read(self, deadline: float, wanted: str) -> bytes:
        try:
            frame = self.raw.read_frame(max(deadline - time.monotonic(), 0.001))
        except TimeoutError:
            raise AssertionError(f"nothing on {wanted}; waiting: {self._waiting} {self._answers}") from None
        assert frame, "the server closed the connection"
        return frame

    def _keep(self, frame: bytes) -> None:
        message = parse_message(frame)
        self._answers.get(int(frame.split(b" ", 3)[2]), self._waiting).append(message)


class Consumer:
    """One consumer, seen through one connection."""

    def __init__(self, js: Puller, stream: str, name: str) -> None:
        self.js = js
        self.stream = stream
        self.name = name

    # Pulls

    @property
    def next_subject(self) -> str:
        return f"{API}CONSUMER.MSG.NEXT.{self.stream}.{self.name}"

    def request(self, body: Body = None, headers: Headers = None) -> Inbox:
        """Send a pull request and return its inbox. The server has read it on return, and queued it soon after."""
        inbox = self.js.open_inbox()
        self.js.send(self.next_subject, encode_body(body), headers, inbox.subject)
        self.js.flush()
        return inbox

    def wait(self, body: Body = None) -> Inbox:
        """Send a pull request that nothing answers yet and return its inbox once it waits at the server."""
        waiting = self.numbers().waiting
        inbox = self.request(body)
        self.wait_for(lambda numbers: numbers.waiting == waiting + 1)
        return inbox

    def answers(self, inbox: Inbox, count: int) -> list[Message]:
        """Return the next `count` messages or statuses at `inbox`."""
        return [self.js.next_at(inbox) for _ in range(count)]

    def pull(self, body: Body = None, headers: Headers = None) -> list[Message]:
        """Return everything up to the first status that is no heartbeat."""
        return self.rest(self.request(body, headers))

    def rest(self, inbox: Inbox) -> list[Message]:
        """Return everything that comes to `inbox`, up to the first status that is no heartbeat."""
        answers = [self.js.next_at(inbox)]
        while not answers[-1].status or answers[-1].status.startswith("100 "):
            answers.append(self.js.next_at(inbox))
        return answers

    def status(self, body: Body = None, headers: Headers = None) -> bytes:
        """Return the bytes of the status that is the only answer to a pull request."""
        (answer,) = self.pull(body, headers)
        assert answer.data == b""
        return answer.headers

    def take(self, count: int) -> list[Message]:
        """Return the next `count` messages, waiting for them."""
        return self.answers(self.request({"batch": count, "expires": EXPIRES_NS}), count)

    def take_one(self) -> Message:
        return self.take(1)[0]

    def take_all(self) -> list[Message]:
        """Return the messages that are there."""
        *messages, end = self.pull({"batch": BATCH_MAX, "no_wait": True})
        assert end.headers == NO_MESSAGES
        return messages

    def is_silent(self, inbox: Inbox) -> bool:
        """Whether nothing more has come to `inbox` after the consumer was asked for its numbers."""
        self.numbers()
        return not self.js.received_at(inbox)

    # Acknowledgements

    def acknowledge(self, message: Message, body: bytes = ACK) -> None:
        """Acknowledge with a reply subject and expect the empty answer: what follows sees the acknowledgement."""
        answer = self.answer_to(message.reply, body)
        assert (answer.headers, answer.data, answer.reply) == (b"", b"", ""), answer

    def acknowledge_each(self, messages: Iterable[Message], body: bytes = ACK) -> None:
        for message in messages:
            self.acknowledge(message, body)

    def answer_to(self, ack_subject: str, body: bytes = ACK) -> Message:
        """Return whatever answers a message to `ack_subject`."""
        assert ack_subject.startswith("$JS.ACK."), ack_subject
        return self.js.request(ack_subject, body)

    # Information

    def info(self) -> Json:
        """Return the consumer's information, with times as they are."""
        answer = self.js.api(f"CONSUMER.INFO.{self.stream}.{self.name}")
        assert "error" not in answer, answer
        return answer

    def masked_info(self) -> Json:
        """Return the consumer's information with its times replaced."""
        return dict(normal(self.info()))

    def numbers(self) -> Numbers:
        return numbers_of(self.info())

    def wait_for(self, condition: Callable[[Numbers], bool]) -> Numbers:
        """Ask for the numbers until they fulfil `condition`."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not condition(numbers := self.numbers()):
            assert time.monotonic() < deadline, f"the numbers stay {numbers}"
            time.sleep(POLL_SECONDS)
        return numbers

    def wait_for_pending(self, count: int) -> Numbers:
        """Wait until `count` messages are pending: a server may count a message after acknowledging its publication."""
        return self.wait_for(lambda numbers: numbers.pending == count)

    def update(self, **changes: Any) -> Json:
        """Update the present configuration with `changes`."""
        config = {**self.info()["config"], **changes}
        config.pop("name")
        answer = try_add(self.js, self.stream, self.name, "update", **config)
        assert "error" not in answer, answer
        return answer

    def delete(self) -> None:
        answer = self.js.api(f"CONSUMER.DELETE.{self.stream}.{self.name}")
        assert answer.get("success"), answer


def create(js: Puller, stream: str, tails: Iterable[str] = "", **config: Any) -> Consumer:
    """Create the stream, publish one message per tail of its subject, and create the durable consumer "c"."""
    js.create(stream)
    publish(js, stream, tails)
    return add(js, stream, **config)


def add(js: Puller, stream: str, name: str = "c", **config: Any) -> Consumer:
    """Create a durable consumer with explicit acknowledgements, unless `config` says something else."""
    answer = try_add(js, stream, name, **config)
    assert "error" not in answer, answer
    return Consumer(js, stream, name)


def try_add(js: Puller, stream: str, name: str = "c", action: str = "create", **config: Any) -> Json:
    """Return the answer to the request for a consumer."""
    body = {"durable_name": name, "ack_policy": "explicit", **config}
    present = {key: value for key, value in body.items() if value is not None}
    return js.api(f"CONSUMER.CREATE.{stream}.{name}", {"stream_name": stream, "config": present, "action": action})


def publish(js: Puller, stream: str, tails: Iterable[str], payload: bytes = b"") -> None:
    """Publish one message per tail of the stream's subject; the payload is the tail unless given."""
    for tail in tails:
        assert "error" not in js.publish(f"{stream}.{tail}", payload or tail.encode())


def delivery(message: Message) -> Delivery:
    """Return the numbers of a delivered message."""
    tokens = message.reply.split(".")
    assert tokens[:2] == ["$JS", "ACK"], message
    assert len(tokens) == 9, message
    return Delivery(int(tokens[4]), int(tokens[5]), int(tokens[6]), int(tokens[8]))


def deliveries(messages: Iterable[Message]) -> list[Delivery]:
    return [delivery(message) for message in messages]


def sequences(messages: Iterable[Message]) -> list[int]:
    """Return the stream sequences of delivered messages."""
    return [delivery(message).stream_sequence for message in messages]


def statuses(messages: Iterable[Message]) -> list[str]:
    return [message.status for message in messages]


def numbers_of(information: Mapping[str, Any]) -> Numbers:
    """Return the numbers in a consumer's information."""
    delivered, ack_floor = information["delivered"], information["ack_floor"]
    return Numbers(
        (delivered["consumer_seq"], delivered["stream_seq"]),
        (ack_floor["consumer_seq"], ack_floor["stream_seq"]),
        information["num_ack_pending"],
        information["num_redelivered"],
        information["num_waiting"],
        information["num_pending"],
    )


def written(numbers: Numbers) -> str:
    """Return the numbers in short, without those that wait: delivered/floor/ack pending/redelivered/pending."""
    delivered, ack_floor = (",".join(str(number) for number in pair) for pair in (numbers.delivered, numbers.ack_floor))
    return f"{delivered}/{ack_floor}/{numbers.ack_pending}/{numbers.redelivered}/{numbers.pending}"


def filters_of(stream: str, tails: str) -> Json:
    """Return the filters of a consumer, each a tail of the stream's subject; one alone has a field of its own."""
    subjects = [f"{stream}.{tail}" for tail in tails.split()]
    if len(subjects) > 1:
        return {"filter_subjects": subjects}
    return {"filter_subject": subjects[0]} if subjects else {}


def pending_status(status: str, messages: int, size_bytes: int = 0) -> bytes:
    """The bytes of a status that says what a request still waited for."""
    return (
        f"NATS/1.0 {status}\r\nNats-Pending-Messages: {messages}\r\nNats-Pending-Bytes: {size_bytes}\r\n\r\n"
    ).encode()


def cost_bytes(message: Message) -> int:
    """What a message takes of a request's bytes."""
    return len(message.subject) + len(message.reply) + len(message.headers) + len(message.data)


def heartbeat(consumer_sequence: int, stream_sequence: int) -> bytes:
    lines = f"Nats-Last-Consumer: {consumer_sequence}\r\nNats-Last-Stream: {stream_sequence}\r\n"
    return f"NATS/1.0 100 Idle Heartbeat\r\n{lines}\r\n".encode()


def plain_status(status: str) -> bytes:
    return f"NATS/1.0 {status}\r\n\r\n".encode()


@pytest.fixture
def js(js_server: ServerProcess) -> Iterator[Puller]:
    with Puller(js_server) as puller:
        yield puller
