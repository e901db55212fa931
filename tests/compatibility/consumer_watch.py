"""Watches what consumers deliver: one connection whose subscriptions keep what they received apart.

A delivered message has the subject it was stored under, not the one that was subscribed to; so messages are sorted by
the id of their subscription, and every pull request has a subscription of its own. Streams and consumers are managed
through the connection of `jetstream.JetStream`, so that answers and deliveries cannot be mixed up.

    js, js_server, stream, watch = jetstream.js, jetstream.js_server, jetstream.stream, consumer_watch.watch

    def test_push(js: JetStream, watch: Watch, stream: str) -> None:
        js.create(stream)
        inbox = watch.subscribe(f"to.{stream}")
        create_consumer(js, stream, "C", deliver_subject=f"to.{stream}")
        js.publish(f"{stream}.a", b"hello")

        assert inbox.next().data == b"hello"
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import pytest

from tests.compatibility.jetstream import (
    API,
    POLL_SECONDS,
    Body,
    Headers,
    JetStream,
    Json,
    Message,
    encode_body,
    error_of,
    header_block,
    parse_message,
)
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import TIMEOUT_SECONDS

# Long enough for a server to deliver what it is about to deliver.
QUIET_SECONDS = 0.1


@dataclass(frozen=True)
class Delivery:
    """The numbers in an ack subject; the time of the message is left out."""

    stream: str
    consumer: str
    deliveries: int
    stream_sequence: int
    consumer_sequence: int
    pending: int


def delivery_of(message: Message) -> Delivery:
    words = message.reply.split(".")
    assert words[:2] == ["$JS", "ACK"], f"expected a delivered message, received {message}"
    assert len(words) == 9, message.reply
    return Delivery(words[2], words[3], int(words[4]), int(words[5]), int(words[6]), int(words[8]))


def sequences_of(messages: list[Message]) -> list[int]:
    """Return the stream sequence of each delivered message."""
    return [delivery_of(message).stream_sequence for message in messages]


class Inbox:
    """What one subscription received and a test has not yet taken."""

    def __init__(self, watch: Watch, subject: str, subscription: int) -> None:
        self._watch = watch
        self.subscription = subscription
        self.subject = subject
        self.messages: list[Message] = []

    def next(self, seconds: float = TIMEOUT_SECONDS) -> Message:
        deadline = time.monotonic() + seconds
        while not self.messages:
            assert self._watch.read(deadline), f"nothing on {self.subject} within {seconds} s"
        return self.messages.pop(0)

    def take(self, count: int) -> list[Message]:
        return [self.next() for _ in range(count)]

    def next_of_status(self, status: str) -> Message:
        """Return the next message with this status and forget the messages with another one before it."""
        while (message := self.next()).status != status:
            assert message.status, f"expected {status}, received {message}"
        return message

    def next_delivered(self) -> Message:
        """Return the next message that has no status."""
        while (message := self.next()).status:
            pass
        return message

    def received(self) -> list[Message]:
        """Return what is here already, after a round trip."""
        self._watch.flush()
        messages, self.messages = self.messages, []
        return messages

    def settled(self, seconds: float = QUIET_SECONDS) -> list[Message]:
        """Return what arrives within a short while; for what must not arrive."""
        deadline = time.monotonic() + seconds
        while self._watch.read(deadline):
            pass
        return self.received()

    def close(self) -> None:
        """Unsubscribe; the server knows on return."""
        self._watch.raw.send(f"UNSUB {self.subscription}\r\n".encode())
        self._watch.flush()


class Watch:
    """One connection to a server; messages of a subscription stay in the order of their arrival."""

    def __init__(self, server: ServerProcess, **options: Any) -> None:
        self.raw = server.client()
        self.raw.connect(headers=True, no_responders=True, **options)
        self._prefix = f"_INBOX.watch{self.raw.info['client_id']}"
        self._subscription_numbers = itertools.count(1)
        self._inboxes: dict[str, Inbox] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.raw.close()

    def subscribe(self, subject: str, group: str = "") -> Inbox:
        """Subscribe; the subscription is known to the server on return."""
        number = next(self._subscription_numbers)
        inbox = Inbox(self, subject, number)
        self._inboxes[str(number)] = inbox
        words = f"{subject} {group} " if group else f"{subject} "
        self.raw.send(f"SUB {words}{number}\r\n".encode())
        self.flush()
        return inbox

    def new_inbox(self) -> Inbox:
        return self.subscribe(f"{self._prefix}.{next(self._subscription_numbers)}")

    def send(self, subject: str, payload: bytes = b"", headers: Headers = None, reply: str = "") -> None:
        block = header_block(headers)
        words = f"{subject} {reply} " if reply else f"{subject} "
        sizes = f"{len(block)} {len(block) + len(payload)}" if block else f"{len(payload)}"
        self.raw.send(f"{'H' if block else ''}PUB {words}{sizes}\r\n".encode() + block + payload + b"\r\n")

    def request(self, subject: str, payload: bytes = b"", headers: Headers = None) -> Message:
        inbox = self.new_inbox()
        self.send(subject, payload, headers, inbox.subject)
        answer = inbox.next()
        inbox.close()
        return answer

    def pull(self, stream: str, consumer: str, body: Body = None) -> Inbox:
        """Send a pull request and return what receives its messages; the server has read it on return."""
        inbox = self.new_inbox()
        self.send(f"{API}CONSUMER.MSG.NEXT.{stream}.{consumer}", encode_body(body), reply=inbox.subject)
        self.flush()
        return inbox

    def fetch(self, stream: str, consumer: str, count: int) -> list[Message]:
        """Pull this many messages, which must be there."""
        inbox = self.pull(stream, consumer, {"batch": count})
        messages = inbox.take(count)
        inbox.close()
        return messages

    def acknowledge(self, message: Message, body: bytes = b"+ACK") -> None:
        """Answer a delivered message and wait until the server has recorded it."""
        assert self.request(message.reply, body).data == b""

    def flush(self) -> None:
        """Wait until the server has read everything sent so far."""
        self.raw.send(b"PING\r\n")
        while (frame := self.raw.read_line()) != b"PONG\r\n":
            self._sort(frame)

    def read(self, deadline: float) -> bool:
        """Read one message; False when none comes in time."""
        try:
            frame = self.raw.read_frame(max(deadline - time.monotonic(), 0.001))
        except TimeoutError:
            return False
        assert frame, "the server closed the connection"
        self._sort(frame)
        return True

    def _sort(self, frame: bytes) -> None:
        subscription = frame.split(b" ", 3)[2].decode()
        self._inboxes[subscription].messages.append(parse_message(frame))


# Consumers


def try_create_consumer(js: JetStream, stream: str, name: str, **config: Any) -> Json:
    """Return the answer to a request for a consumer; it is durable when `durable_name` is among its configuration."""
    return js.api(f"CONSUMER.CREATE.{stream}.{name}", {"stream_name": stream, "config": {"name": name, **config}})


def create_consumer(js: JetStream, stream: str, name: str, **config: Any) -> Json:
    """Create or update a consumer and return its info."""
    answer = try_create_consumer(js, stream, name, **config)
    assert "error" not in answer, answer
    return answer


def create_durable(js: JetStream, stream: str, name: str, **config: Any) -> Json:
    """Create or update a consumer that stays, with explicit acknowledgements unless it says otherwise."""
    return create_consumer(js, stream, name, **{"durable_name": name, "ack_policy": "explicit", **config})


def create_consumer_error(js: JetStream, stream: str, name: str, **config: Any) -> tuple[int, int, str]:
    return error_of(try_create_consumer(js, stream, name, **config))


def delete_consumer(js: JetStream, stream: str, name: str) -> None:
    assert js.api(f"CONSUMER.DELETE.{stream}.{name}").get("success")


def consumer_info(js: JetStream, stream: str, name: str) -> Json:
    answer = js.api(f"CONSUMER.INFO.{stream}.{name}")
    assert "error" not in answer, answer
    return answer


def wait_for_consumer(js: JetStream, stream: str, name: str, condition: Callable[[Json], bool]) -> Json:
    """Ask for the info until it fulfils `condition`."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition(info := consumer_info(js, stream, name)):
        assert time.monotonic() < deadline, f"the consumer stays {info}"
        time.sleep(POLL_SECONDS)
    return info


def wait_until_deleted(js: JetStream, stream: str, name: str) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while "error" not in (answer := js.api(f"CONSUMER.INFO.{stream}.{name}")):
        assert time.monotonic() < deadline, f"the consumer stays {answer}"
        time.sleep(POLL_SECONDS)
    assert error_of(answer) == (404, 10014, "consumer not found")


def numbers_of(info: Json) -> tuple[int, int, int, int, int, int]:
    """Return delivered and ack floor (consumer, stream), then what is not acknowledged and what is not delivered."""
    delivered, floor = info["delivered"], info["ack_floor"]
    return (
        delivered["consumer_seq"],
        delivered["stream_seq"],
        floor["consumer_seq"],
        floor["stream_seq"],
        info["num_ack_pending"],
        info["num_pending"],
    )


def publish_many(js: JetStream, stream: str, tails: str, payload: bytes = b"") -> None:
    """Store one message for each letter, in `<stream>.<letter>`."""
    for tail in tails:
        assert "error" not in js.publish(f"{stream}.{tail}", payload)


@pytest.fixture
def watch(js_server: ServerProcess) -> Iterator[Watch]:
    with Watch(js_server) as connection:
        yield connection


@pytest.fixture
def other_watch(js_server: ServerProcess) -> Iterator[Watch]:
    """A second connection, for a client that is not the first one."""
    with Watch(js_server) as connection:
        yield connection
