"""Flow control with messages that are larger than what may be unanswered."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.compatibility import jetstream
from tests.compatibility.consumer_watch import Inbox, Watch, consumer_info, create_consumer, sequences_of
from tests.compatibility.jetstream import MILLISECOND_NS, JetStream, Message
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.test_consumer_push import WINDOW_BYTES
from tests.compatibility.wire import TIMEOUT_SECONDS

start_jetstream, stream = jetstream.start_jetstream, jetstream.stream

HEARTBEAT_NS = 100 * MILLISECOND_NS

HALF = WINDOW_BYTES // 2
"""More than this must be under way for the server to ask its receiver."""


def take_slowly(watch: Watch, inbox: Inbox, count: int) -> list[Message]:
    """Return the next messages, as a receiver that answers a request only when the server waits for it."""
    messages: list[Message] = []
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while len(messages) < count:
        assert time.monotonic() < deadline, f"the consumer stays at {sequences_of(messages)}"
        message = inbox.next()
        if not message.status:
            messages.append(message)
        elif stalled := message.header("Nats-Consumer-Stalled"):
            watch.send(stalled)
    return messages


@pytest.mark.parametrize(
    "sizes",
    [
        (HALF + 1, 3 * WINDOW_BYTES, 10, 11, 12),
        (HALF + 1, 2 * WINDOW_BYTES, 3 * WINDOW_BYTES, 2 * WINDOW_BYTES, 10, 11, 12),
    ],
    ids=["one", "several"],
)
def test_message_larger_than_the_window_does_not_stop_a_consumer(
    start_jetstream: Callable[..., ServerProcess], stream: str, sizes: tuple[int, ...]
) -> None:
    server = start_jetstream(config="max_payload: 8MB\n")
    with JetStream(server) as js, Watch(server) as watch:
        js.create(stream, storage="memory")
        for size in sizes:
            assert "error" not in js.publish(f"{stream}.a", b"x" * size)
        inbox = watch.subscribe(f"to.{stream}")
        flow = {"flow_control": True, "idle_heartbeat": HEARTBEAT_NS}
        create_consumer(js, stream, "C", ack_policy="none", deliver_subject=inbox.subject, **flow)

        messages = take_slowly(watch, inbox, len(sizes))

        assert [len(message.data) for message in messages] == list(sizes)
        assert consumer_info(js, stream, "C")["num_pending"] == 0
