"""A client that does not read is cut off, without a word, and the others are not held up."""

from __future__ import annotations

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient

PAYLOAD = b"p" * 60_000

# Far more than the kernel's socket buffers and the configured max_pending together can hold.
BYTES_TO_OVERFLOW = 64 * 1024 * 1024


def subscribe_without_reading(server: ServerProcess, subject: bytes) -> RawClient:
    client = server.client()
    client.connect()
    client.send(b"SUB %b 1\r\n" % subject)
    client.expect_pong()
    return client


def publish_until_logged(server: ServerProcess, publisher: RawClient, subject: bytes, text: str) -> None:
    """Publish in batches until the server logs `text`, at most BYTES_TO_OVERFLOW bytes."""
    batch = b"PUB %b %d\r\n%b\r\n" % (subject, len(PAYLOAD), PAYLOAD) * 8
    for _ in range(BYTES_TO_OVERFLOW // len(batch)):
        publisher.send(batch)
        publisher.expect_pong()
        if text in server.log():
            return
    server.wait_for_log(text)


def test_slow_consumer_is_cut_off_at_max_pending(start_server) -> None:
    server = start_server(config="max_pending: 1048576")

    with server.client() as publisher, subscribe_without_reading(server, b"flood") as slow:
        publisher.connect()
        publish_until_logged(server, publisher, b"flood", "Slow Consumer Detected: MaxPending of 1048576 Exceeded")

        assert b"-ERR" not in slow.read_to_end()
        publisher.expect_pong()


def test_slow_consumer_is_cut_off_at_the_write_deadline(start_server) -> None:
    server = start_server(config='write_deadline: "300ms"')

    with server.client() as publisher, subscribe_without_reading(server, b"flood") as slow:
        publisher.connect()
        publish_until_logged(server, publisher, b"flood", "Slow Consumer Detected: WriteDeadline of 300ms exceeded")

        assert b"-ERR" not in slow.read_to_end()
        publisher.expect_pong()


def test_slow_consumer_does_not_hold_up_the_others(start_server) -> None:
    server = start_server(config="max_pending: 1048576")
    count = 200

    with (
        server.client() as publisher,
        server.client() as quick,
        subscribe_without_reading(server, b"flood") as slow,
    ):
        publisher.connect()
        quick.connect()
        quick.send(b"SUB flood 1\r\n")
        quick.expect_pong()
        message = b"flood %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD)

        for _ in range(count):
            publisher.send(b"PUB " + message)
            quick.expect(b"MSG flood 1 %d\r\n%b\r\n" % (len(PAYLOAD), PAYLOAD))

        server.wait_for_log("Slow Consumer Detected")
        slow.read_to_end()
