"""What the tests of mirrors and sources have in common: waiting for messages that come from another stream."""

from __future__ import annotations

import base64
import hashlib
import string
import time
from collections.abc import Callable
from typing import NamedTuple

from tests.compatibility.jetstream import POLL_SECONDS, JetStream, Json

# nats-server looks for an origin that was not there only now and then.
PATIENCE_SECONDS = 60.0

MISSING: Json = {"code": 404, "err_code": 10059, "description": "stream not found"}

_LETTERS = string.digits + string.ascii_uppercase + string.ascii_lowercase


class Stored(NamedTuple):
    """A stored message."""

    sequence: int
    subject: str
    headers: bytes
    payload: bytes


def stored(js: JetStream, stream: str) -> list[Stored]:
    """Return all messages of a stream."""
    messages = [js.get(stream, seq=sequence) for sequence in js.sequences(stream)]
    return [
        Stored(
            message["seq"],
            message["subject"],
            base64.b64decode(message.get("hdrs", "")),
            base64.b64decode(message.get("data", "")),
        )
        for message in messages
    ]


def payloads(js: JetStream, stream: str) -> list[str]:
    return [message.payload.decode() for message in stored(js, stream)]


def wait_for_messages(js: JetStream, stream: str, count: int) -> Json:
    """Wait until a stream has so many messages, and return its state."""
    return wait_until(js, stream, lambda state: bool(state["messages"] == count))


def wait_for_sequence(js: JetStream, stream: str, last_sequence: int) -> Json:
    """Wait until a stream has come so far, and return its state."""
    return wait_until(js, stream, lambda state: bool(state["last_seq"] >= last_sequence))


def wait_for_sources(js: JetStream, stream: str) -> None:
    """Wait until all sources follow: where nobody is interested nothing is kept, and nats-server needs a moment."""
    wait_until(js, stream, lambda _: all(source["active"] >= 0 for source in js.info(stream)["sources"]))


def wait_until(js: JetStream, stream: str, condition: Callable[[Json], bool]) -> Json:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition(state := js.state(stream)):
        assert time.monotonic() < deadline, f"the state stays {state}, of {js.info(stream)}"
        time.sleep(POLL_SECONDS)
    return state


def publish_numbers(js: JetStream, subject: str, count: int, first: int = 1) -> None:
    for number in range(first, first + count):
        assert "error" not in js.publish(subject, b"%d" % number)


def identity(js: JetStream, stream: str) -> str:
    """What tells a stream from another of the same name: its creation time as eight letters."""
    digest = hashlib.sha256(js.info(stream)["created"].encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:8])
